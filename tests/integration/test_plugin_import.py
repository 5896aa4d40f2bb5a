"""`kubectl sumerender import` on a real API server, with the real operator where money is at stake."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kube import Kube, eventually, is_finished, manifest, status
from plugin import Plugin
from stack import Stack

PROMPTS = 800
BATCH = "july"
# Slots and limits have tests of their own; here it is about eight hundred getting through soon.
FAST = (
    "--queue-s",
    "0",
    "--process-s",
    "0.1",
    "--next-poll-s",
    "1",
    "--running-slots",
    "1000",
    "--reads-per-minute",
    "0",
)

# The defaults: with the short leases of other tests a busy machine would only repeat its work.
CALM: dict[str, Any] = {
    "SUME_MAX_ACTIVE_JOBS": "0",
    "SUME_LOG_LEVEL": "info",
    "SUME_LEASE_SECONDS": "45",
    "SUME_REQUEST_TIMEOUT_SECONDS": "30",
    "SUME_KUBERNETES_TIMEOUT_SECONDS": "15",
    "SUME_SWEEP_SECONDS": "60",
}


@pytest.fixture
def plugin(stack: Stack) -> Plugin:
    return Plugin(stack.control_plane, stack.namespaces[0])


def _renders(plugin: Plugin, kube: Kube) -> dict[str, Any]:
    return {body["metadata"]["name"]: body for body in kube.all_in([plugin.namespace])}


def _write_csv(path: Path) -> list[str]:
    """Prompts with everything that breaks a naive reader: quotes, commas, line breaks, other scripts, YAML's traps."""
    odd = ['a "dog", running', "two\nlines", "夜の港、灯台", "Ünïcødé 🎬", "1e3", "y", "a: b # c", "'", "\\n", "- x"]
    prompts = [f"{odd[number % len(odd)]} {number}" if number >= len(odd) else odd[number] for number in range(PROMPTS)]
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["prompt", "duration:json", "name"])
        rows.writerows(
            [prompt, number % 9 + 1, "" if number % 2 else f"Shot {number}"] for number, prompt in enumerate(prompts)
        )
    return prompts


@pytest.mark.timeout(1500)
def test_eight_hundred_prompts_applied_twice_are_paid_once(
    stack: Stack, plugin: Plugin, tmp_path: Path, figures: Callable[[str], None]
) -> None:
    stack.start_sandbox(*FAST)
    for role, name in (("controller", "controller"), ("poller", "poller-0"), ("poller", "poller-1")):
        stack.start(role, name, **CALM)
    file = tmp_path / "prompts.csv"
    prompts = _write_csv(file)
    arguments = (str(file), "--batch", BATCH, "--model", "sume/clip-fast", "--apply", "--output", "json")

    first = json.loads(plugin.ok("import", *arguments))
    second = json.loads(plugin.ok("import", *arguments))  # while the first ones run
    assert (first["created"], first["existing"]) == (PROMPTS, 0)
    assert (second["created"], second["existing"]) == (0, PROMPTS)
    assert first["names"] == second["names"]

    def ended() -> bool:
        renders = stack.kube.all_in([plugin.namespace])
        return len(renders) == PROMPTS and all(map(is_finished, renders))

    eventually(ended, within_s=900, every_s=5, what=f"{PROMPTS} renders that have ended")
    renders = _renders(plugin, stack.kube)
    assert [renders[name]["spec"]["request"]["arguments"]["prompt"] for name in first["names"]] == prompts
    assert {status(render)["state"] for render in renders.values()} == {"Completed"}
    jobs = {status(render)["jobID"] for render in renders.values()}
    assert len(jobs) == PROMPTS
    assert stack.sandbox.stats()["jobs"]["submitted"] == PROMPTS
    keys = sorted(str(job["idempotency_key"]) for job in stack.sandbox.jobs().values())
    assert keys == sorted(f"{BATCH}/{name}" for name in first["names"])

    # deleted and imported again, the new objects find the old jobs
    for name in first["names"][:5]:
        stack.kube.delete(plugin.namespace, name)
    eventually(lambda: len(_renders(plugin, stack.kube)) == PROMPTS - 5, within_s=30)
    assert json.loads(plugin.ok("import", *arguments))["created"] == 5
    eventually(ended, within_s=120, every_s=1)
    assert {status(render)["jobID"] for render in _renders(plugin, stack.kube).values()} == jobs
    assert stack.sandbox.stats()["jobs"]["submitted"] == PROMPTS
    figures(f"import: {PROMPTS} prompts applied twice: {PROMPTS} objects, {len(jobs)} jobs")


def test_three_hundred_ids_through_kubectl_apply(stack: Stack, plugin: Plugin) -> None:
    ids = [f"job_{number:03}{letter}" for number in range(150) for letter in "Aa"]
    text = "# taken over from the night run\n\n" + "\n".join(ids) + "\n"
    manifests = plugin.ok("import", "-", "--batch", "night", stdin=text)
    applied = stack.control_plane.kubectl("apply", "--server-side", "-f", "-", stdin=manifests, timeout_s=120)
    assert applied.stdout.count("serverside-applied") == 300
    renders = _renders(plugin, stack.kube)
    assert {body["spec"]["jobID"] for body in renders.values()} == set(ids)
    assert len(renders) == 300
    for name, body in renders.items():
        source = body["metadata"]["annotations"]["render.sume.com/source"]
        assert source == body["spec"]["jobID"]
        assert re.fullmatch(rf"job-{source[4:7]}a-[0-9a-f]{{6}}", name)
        assert body["metadata"]["labels"] == {"render.sume.com/batch": "night"}
    # what kubectl made is known to --apply
    again = json.loads(plugin.ok("import", "-", "--batch", "night", "--apply", "--output", "json", stdin=text))
    assert (again["created"], again["existing"]) == (0, 300)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("name,prompt\nok,x\n../etc/passwd,x\n", 3, "slash"),
        ("name,prompt\nok,x\nok,y\n", 3, "as line 2 does"),
        ("name,prompt\nok,x\nshort\n", 3, "1 cells"),
        ("name,n:json\nok,1\nbad,{oops\n", 3, "column n:json: no JSON"),
        ("jobID\njob_1\n" + "x" * 300 + "\n", 3, "300 characters"),
        ("job_1\n../etc/passwd\n", 2, "no job id"),
        ("job_1\njob_1\n", 2, "as line 1 does"),
    ],
)
def test_a_file_with_one_fault_makes_nothing(stack: Stack, plugin: Plugin, text: str, line: int, says: str) -> None:
    result = plugin.run("import", "-", "--batch", "b", "--model", "m", "--apply", stdin=text)
    assert result.returncode == 2
    assert f"stdin:{line}: " in result.stderr
    assert says in result.stderr
    assert result.stdout == ""
    assert not stack.kube.all_in([plugin.namespace])


def test_another_prompt_under_a_name_that_is_taken_stops_the_whole_import(stack: Stack, plugin: Plugin) -> None:
    arguments = ("import", "-", "--batch", "b", "--model", "m", "--apply")
    plugin.ok(*arguments, stdin="name,prompt\na,x\n")
    result = plugin.run(*arguments, stdin="name,prompt\nnew,x\na,other\n")
    assert result.returncode == 2
    assert f"stdin:3: there is a render {plugin.namespace}/a already, and it has other arguments" in result.stderr
    assert set(_renders(plugin, stack.kube)) == {"a"}


def test_a_namespace_that_is_not_there(stack: Stack) -> None:
    missing = Plugin(stack.control_plane, "not-there")
    result = missing.run("import", "-", "--batch", "b", "--model", "m", "--apply", stdin="prompt\nx\n")
    assert result.returncode == 2
    assert 'namespaces "not-there" not found' in result.stderr


def test_what_only_the_server_refuses_makes_nothing(stack: Stack, plugin: Plugin) -> None:
    """An admission policy of the cluster's own: no rule of the plugin knows it."""
    group = "/apis/admissionregistration.k8s.io/v1"
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": plugin.namespace},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["render.sume.com"],
                        "apiVersions": ["*"],
                        "operations": ["CREATE"],
                        "resources": ["sumerenders"],
                    }
                ]
            },
            "validations": [
                {"expression": "object.metadata.name != 'forbidden'", "message": "that film is under embargo"}
            ],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": plugin.namespace},
        "spec": {
            "policyName": plugin.namespace,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": plugin.namespace}}},
        },
    }
    for kind, body in (("ies", policy), ("ybindings", binding)):
        answer = stack.kube.request("POST", f"{group}/validatingadmissionpolic{kind}", json=body)
        assert answer.status_code == 201, answer.text
    arguments = ("import", "-", "--batch", "b", "--model", "m", "--apply")
    try:
        eventually(lambda: _is_refused(stack, plugin), within_s=30, every_s=0.5, what="the policy to be in force")
        result = plugin.run(*arguments, stdin="name,prompt\na,x\nforbidden,x\nb,x\n")
    finally:
        for kind in ("ybindings", "ies"):
            stack.kube.request("DELETE", f"{group}/validatingadmissionpolic{kind}/{plugin.namespace}")
    assert result.returncode == 2
    assert "stdin:3: " in result.stderr
    assert "that film is under embargo" in result.stderr
    assert not stack.kube.all_in([plugin.namespace])


def _is_refused(stack: Stack, plugin: Plugin) -> bool:
    path = f"/apis/render.sume.com/v1alpha1/namespaces/{plugin.namespace}/sumerenders?dryRun=All"
    answer = stack.kube.request("POST", path, json=manifest("forbidden", {"jobID": "job_1"}))
    return not answer.ok


def test_a_loop_of_ones_own_is_taken_over_from_its_sorted_set(stack: Stack, plugin: Plugin) -> None:
    stack.client.zadd("my:polls", {"job_A": 1767000000, "job_a": 1767000001, "t/x/uid": 5})
    stack.client.zadd("my:polls:foreign", {"job_b": 1767000002})
    before = stack.client.zrange("my:polls", 0, -1, withscores=True)
    url = stack.redis.url
    made = json.loads(plugin.ok("import", "--from-redis", url, "--key", "my:polls", "--apply", "--output", "json"))
    assert made["created"] == 3
    assert {body["spec"]["jobID"] for body in stack.kube.all_in([plugin.namespace])} == {"job_A", "job_a", "job_b"}
    assert stack.client.zrange("my:polls", 0, -1, withscores=True) == before

    stack.client.zadd("bad", {"job 1": 1})
    stack.client.set("text", "x")
    for key, says in (
        ("bad", "bad:1: this is no job id"),
        ("text", "is a string, no sorted set"),
        ("none", "no job ids"),
    ):
        result = plugin.run("import", "--from-redis", url, "--key", key)
        assert result.returncode == 2
        assert says in result.stderr


def test_a_dry_run_counts_and_needs_no_cluster(plugin: Plugin) -> None:
    rows = "prompt,model,jobID\n" + "x,,\n" * 480 + "x,sume/other,\n" * 20 + ",,job_1\n"
    plugin.env["KUBECONFIG"] = "/absent"
    arguments = ("import", "-", "--batch", "b", "--model", "sume/clip", "--dry-run", "--minutes-per-render", "6")
    text = plugin.ok(*arguments, stdin=rows)
    assert text.splitlines()[:4] == [
        "501 renders, 500 of them new at Sume",
        "     480  sume/clip",
        "      20  sume/other",
        "       1  of jobs that exist",
    ]
    assert "about 12.5 h" in text
    told = json.loads(plugin.ok(*arguments, "--slots", "8", "--output", "json", stdin=rows))
    assert told == {
        "renders": 501,
        "follows": 1,
        "models": {"sume/clip": 480, "sume/other": 20},
        "hours": pytest.approx(6.25),
    }
