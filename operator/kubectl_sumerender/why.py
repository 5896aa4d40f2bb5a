"""Why a render is where it is: from what was gathered about it to an answer. Pure: no call, no clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from kubectl_sumerender.advice import (
    ADVICE,
    CONTROLLER_DOWN,
    JUST_MADE,
    NAMESPACE_NOT_WATCHED,
    NO_CONTROLLER,
    NO_POLLER,
    NOT_TOUCHED,
    UNKNOWN_REASON,
    UNTOUCHED,
)
from kubectl_sumerender.render import condition, parse_time, read_render

YOUNG: Final = timedelta(seconds=20)
OVERDUE: Final = timedelta(minutes=2)
DELETION_TAKES: Final = timedelta(seconds=60)
DEFAULT_KEY: Final = "apiKey"
KEY_OF_OPERATOR: Final = "sume-api-key"  # the Secret, as the chart names it


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The Lease of one operator's controller."""

    namespace: str
    renewed: datetime | None
    duration_s: int

    def lives(self, now: datetime) -> bool:
        """Whether it was renewed in time."""
        return self.renewed is not None and now <= self.renewed + timedelta(seconds=self.duration_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All that was gathered. `heartbeats` None: they may not be read. `neighbours_touched`: of the same namespace."""

    body: Mapping[str, Any]
    now: datetime
    heartbeats: Sequence[Heartbeat] | None
    neighbours_touched: bool
    events: Sequence[Mapping[str, Any]] = ()
    operator_namespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`notes`: what is out of the ordinary beside the reason."""

    reason: str
    message: str
    meaning: str
    do: str
    commands: tuple[str, ...]
    notes: tuple[str, ...]
    controller: str


def answer(situation: Situation) -> Answer:
    """The answer."""
    body, reason = situation.body, reason_of(situation)
    advice = UNTOUCHED.get(reason) or ADVICE.get(reason) or UNTOUCHED[UNKNOWN_REASON]
    words = _words(situation)
    return Answer(
        reason=reason,
        message=str((body.get("status") or {}).get("message") or condition(body, "Succeeded").get("message") or ""),
        meaning=advice.meaning.format_map(words),
        do=advice.do.format_map(words),
        commands=tuple(command.format_map(words) for command in advice.commands),
        notes=tuple(_notes(situation)),
        controller=_controller(situation),
    )


def reason_of(situation: Situation) -> str:
    """The reason that the operator gave; for a render that nothing has touched, what can be told from outside."""
    body = situation.body
    reason = str(condition(body, "Succeeded").get("reason") or "")
    available = condition(body, "OutputsAvailable")
    if reason == "Completed" and available.get("status") == "False":
        return str(available.get("reason"))
    return reason or _untouched(situation)


def _untouched(situation: Situation) -> str:
    created = parse_time(read_render(situation.body).created)
    if situation.heartbeats is None:
        return NOT_TOUCHED
    if not situation.heartbeats:
        return NO_CONTROLLER
    if not any(each.lives(situation.now) for each in situation.heartbeats):
        return CONTROLLER_DOWN
    if created is not None and situation.now - created < YOUNG:
        return JUST_MADE
    return NO_POLLER if situation.neighbours_touched else NAMESPACE_NOT_WATCHED


def _notes(situation: Situation) -> list[str]:
    body, now, notes = situation.body, situation.now, []
    render, status = read_render(body), body.get("status") or {}
    metadata = body.get("metadata") or {}
    deleted = parse_time(str(metadata.get("deletionTimestamp") or ""))
    if deleted is not None:
        late = "" if now - deleted <= DELETION_TAKES else ", and that is over: is the controller alive?"
        notes.append(f"It is being deleted, and waits for Sume to cancel its job: within a minute{late}")
    seen = status.get("observedGeneration")
    if isinstance(seen, int) and seen != metadata.get("generation"):
        notes.append("Its last edit has not been acted on yet.")
    look = parse_time(str((status.get("polling") or {}).get("nextPollTime") or ""))
    if not render.terminal and look is not None and now - look > OVERDUE:
        notes.append(f"Its next look was due {_about(now - look)} ago: no poller seems to be at work.")
    if not render.terminal and render.reason and _is_down(situation):
        notes.append("The controller gives no sign of life, so edits are not noticed. Looks go on while pollers run.")
    failures = (status.get("polling") or {}).get("failures")
    if isinstance(failures, int) and failures > 1 and not render.terminal:
        notes.append(f"{failures} looks in a row brought nothing.")
    return notes


def _is_down(situation: Situation) -> bool:
    beats = situation.heartbeats
    return beats is not None and not any(each.lives(situation.now) for each in beats)


def _controller(situation: Situation) -> str:
    """Whether the controller lives, in words."""
    if situation.heartbeats is None:
        return "unknown (its Lease cannot be read; see --operator-namespace)"
    if not situation.heartbeats:
        return "none found: there is no Lease sume-operator-controller"
    newest = max(situation.heartbeats, key=lambda each: each.renewed.timestamp() if each.renewed else 0.0)
    if newest.renewed is None:
        return f"unknown: its Lease in namespace {newest.namespace} was never renewed"
    ago = _about(situation.now - newest.renewed)
    lives = "alive" if newest.lives(situation.now) else "down"
    return f"{lives}: last sign of life {ago} ago, in namespace {newest.namespace}"


def _words(situation: Situation) -> dict[str, str]:
    """What the advice is filled in with."""
    render = read_render(situation.body)
    reference = (situation.body.get("spec") or {}).get("credentialsSecretRef") or {}
    known = [each.namespace for each in situation.heartbeats or ()]
    operator = situation.operator_namespace or (known[0] if known else "OPERATOR_NAMESPACE")
    return {
        "name": render.name,
        "namespace": render.namespace,
        "operator": operator,
        "secret_namespace": render.namespace if reference else operator,
        "secret": str(reference.get("name") or KEY_OF_OPERATOR),
        "key": str(reference.get("key") or DEFAULT_KEY),
    }


def _about(duration: timedelta) -> str:
    seconds = max(0, int(duration.total_seconds()))
    for size_s, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size_s:
            return f"{seconds // size_s} {unit}"
    return f"{seconds} s"
