"""`why` from what was gathered: every reason that the operator can give has an answer, and an untouched render too."""

import ast
import string
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import sume_operator.core
from kubectl_sumerender import advice
from kubectl_sumerender.why import Heartbeat, Situation, answer
from sume_operator.adapters import credentials
from sume_operator.core import conditions, noting, step

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
ALIVE = Heartbeat(namespace="sume", renewed=NOW - timedelta(seconds=5), duration_s=40)
DEAD = Heartbeat(namespace="sume", renewed=NOW - timedelta(hours=1), duration_s=40)
WORDS = {"name", "namespace", "operator", "secret_namespace", "secret", "key"}

# The table of the design, by hand: a reason that the code forgets is still one that somebody may meet.
TABLE = [
    "Accepted",
    "CredentialsNotFound",
    "CredentialsKeyMissing",
    "CredentialsInvalid",
    "NamespaceNotAllowed",
    "SubmissionsDisabled",
    "Pending",
    "Created",
    "AlreadyExists",
    "Adopted",
    "NotSubmitted",
    "WaitingForSlot",
    "Suspended",
    "InsufficientCredits",
    "SubmissionRejected",
    "Submitting",
    "OutcomeUnknown",
    "Observed",
    "RateLimited",
    "Unauthorized",
    "APIUnavailable",
    "InvalidResponse",
    "JobNotFound",
    "WrongEndpoint",
    "NotObservedYet",
    "Collected",
    "ResultGone",
    "NoOutputs",
    "NotCollected",
    "Completed",
    "JobFailed",
    "ContentPolicyRejected",
    "Canceled",
    "DeadlineExceeded",
    "JobLost",
    "Queued",
    "Processing",
    "Canceling",
    "Retrying",
    "Active",
]


def reasons_in_the_code() -> set[str]:
    """Every text that stands as `reason=...` in the operator's rules, or as the reason of a rule's helper."""
    found: set[str] = set()
    constants = {name: value for m in (conditions, noting, step) for name, value in vars(m).items() if name.isupper()}
    core = Path(sume_operator.core.__file__).parent
    for path in (*core.glob("*.py"), Path(credentials.__file__)):
        if path.name == "events.py":  # reasons of Events are others
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "id", "")
                values = [keyword.value for keyword in node.keywords if keyword.arg == "reason"]
                values += node.args[:1] if called == "_not_synced" else []
                values += node.args[2:3] if called == "_without_outputs" else []
            elif isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "reason" for t in node.targets):
                values = [node.value]
            else:
                continue
            for value in values:
                for part in ast.walk(value):
                    text = part.value if isinstance(part, ast.Constant) else constants.get(getattr(part, "id", ""))
                    if isinstance(text, str) and text[:1].isupper():
                        found.add(text)
    return found


def body(reason: str | None, status: str = "Unknown", **more: Any) -> dict[str, Any]:
    known = {"conditions": [{"type": "Succeeded", "status": status, "reason": reason, "message": "In short."}]}
    metadata = {
        "namespace": "films",
        "name": "intro",
        "uid": "u",
        "generation": 1,
        "creationTimestamp": (NOW - timedelta(hours=1)).isoformat(),
    }
    return {
        "metadata": metadata | more.pop("metadata", {}),
        "spec": more.pop("spec", {}),
        "status": (known if reason else {}) | more,
    }


def situation(about: dict[str, Any], **facts: Any) -> Situation:
    given: dict[str, Any] = {"body": about, "now": NOW, "heartbeats": [ALIVE], "neighbours_touched": True}
    return Situation(**given | facts)


def test_every_reason_of_the_code_and_of_the_design_has_an_answer() -> None:
    found = reasons_in_the_code()
    assert len(found) > 25  # the search finds what there is
    assert {"WaitingForSlot", "CredentialsNotFound", "APIUnavailable", "ResultGone", "Retrying"} <= found
    assert found | set(TABLE) == set(advice.ADVICE)


@pytest.mark.parametrize("reason", [*advice.ADVICE, *advice.UNTOUCHED])
def test_an_answer_can_be_acted_on(reason: str) -> None:
    given = (dict(advice.ADVICE) | dict(advice.UNTOUCHED))[reason]
    for text in (given.meaning, given.do, *given.commands):
        fields = {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
        assert fields <= WORDS, text
    assert given.meaning.endswith(".")
    assert given.do.endswith(".")
    assert given.commands or given.do.startswith("Nothing")
    assert all(command.split()[0] in ("kubectl", "helm") for command in given.commands)


@pytest.mark.parametrize("reason", TABLE)
def test_the_reason_of_succeeded_is_the_answer(reason: str) -> None:
    given = answer(situation(body(reason)))
    assert (given.reason, given.message) == (reason, "In short.")
    assert given.meaning == advice.ADVICE[reason].meaning
    assert "{" not in " ".join(given.commands).replace("{.", "").replace('{"', "")


@pytest.mark.parametrize(
    ("facts", "age_s", "reason"),
    [
        ({"heartbeats": None}, 3600, advice.NOT_TOUCHED),
        ({"heartbeats": []}, 3600, advice.NO_CONTROLLER),
        ({"heartbeats": [DEAD]}, 3600, advice.CONTROLLER_DOWN),
        ({"heartbeats": [DEAD]}, 1, advice.CONTROLLER_DOWN),
        ({"heartbeats": [Heartbeat(namespace="sume", renewed=None, duration_s=0)]}, 3600, advice.CONTROLLER_DOWN),
        ({"heartbeats": [DEAD, ALIVE]}, 1, advice.JUST_MADE),
        ({"neighbours_touched": False}, 3600, advice.NAMESPACE_NOT_WATCHED),
        ({"neighbours_touched": True}, 3600, advice.NO_POLLER),
    ],
)
def test_a_render_that_nothing_has_touched(facts: dict[str, Any], age_s: int, reason: str) -> None:
    young = {"creationTimestamp": (NOW - timedelta(seconds=age_s)).isoformat()}
    given = answer(situation(body(None, metadata=young), **facts))
    assert given.reason == reason
    assert given.commands


def test_a_reason_of_a_newer_operator_is_said_to_be_one() -> None:
    given = answer(situation(body("BrandNew")))
    assert given.reason == "BrandNew"
    assert "newer than the plugin" in given.meaning


@pytest.mark.parametrize("reason", ["ResultGone", "NoOutputs"])
def test_completed_without_outputs_is_about_the_outputs(reason: str) -> None:
    about = body("Completed", "True", terminal=True)
    about["status"]["conditions"].append({"type": "OutputsAvailable", "status": "False", "reason": reason})
    assert answer(situation(about)).reason == reason


@pytest.mark.parametrize(
    ("spec", "command"),
    [
        (
            {"credentialsSecretRef": {"name": "mine", "key": "token"}},
            'kubectl patch secret -n films mine --type merge -p \'{"stringData":{"token":"YOUR_SUME_API_KEY"}}\'',
        ),
        (
            {},
            "kubectl patch secret -n sume sume-api-key --type merge "
            '-p \'{"stringData":{"apiKey":"YOUR_SUME_API_KEY"}}\'',
        ),
    ],
)
def test_a_command_names_the_secret_that_the_render_uses(spec: dict[str, Any], command: str) -> None:
    assert answer(situation(body("Unauthorized", spec=spec))).commands == (command,)


@pytest.mark.parametrize(
    ("about", "facts", "note"),
    [
        (body("Queued", polling={"nextPollTime": (NOW - timedelta(minutes=5)).isoformat()}), {}, "due 5 min ago"),
        (body("Queued", polling={"nextPollTime": (NOW - timedelta(minutes=1)).isoformat()}), {}, None),
        (body("Queued", observedGeneration=1, metadata={"generation": 2}), {}, "Its last edit has not been acted on"),
        (body("Queued", observedGeneration=2, metadata={"generation": 2}), {}, None),
        (body("Queued"), {"heartbeats": [DEAD]}, "The controller gives no sign of life"),
        (body("Queued"), {"heartbeats": None}, None),
        (body("APIUnavailable", polling={"failures": 7}), {}, "7 looks in a row brought nothing"),
        (body("Queued", metadata={"deletionTimestamp": NOW.isoformat()}), {}, "It is being deleted"),
        (
            body("Queued", metadata={"deletionTimestamp": (NOW - timedelta(minutes=5)).isoformat()}),
            {},
            "that is over: is the controller alive?",
        ),
    ],
)
def test_what_is_out_of_the_ordinary_is_noted(about: dict[str, Any], facts: dict[str, Any], note: str | None) -> None:
    notes = answer(situation(about, **facts)).notes
    assert notes == () if note is None else note in notes[0]


@pytest.mark.parametrize(
    ("heartbeats", "text"),
    [
        ([ALIVE], "alive: last sign of life 5 s ago, in namespace sume"),
        ([DEAD], "down: last sign of life 60 min ago, in namespace sume"),
        ([], "none found"),
        (None, "unknown (its Lease cannot be read; see --operator-namespace)"),
    ],
)
def test_whether_the_controller_lives(heartbeats: list[Heartbeat] | None, text: str) -> None:
    assert answer(situation(body("Queued"), heartbeats=heartbeats)).controller.startswith(text)
