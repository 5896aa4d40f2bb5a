"""A render in the hands of kubectl, from apply to delete."""

import json
import re
import subprocess

import pytest

from kube import eventually, manifest
from stack import Stack, scripted


@pytest.fixture
def namespace(stack: Stack) -> str:
    stack.start_all()
    outputs = [
        {"kind": "image", "url": "https://media.example/poster.png", "content_type": "image/png"},
        {"kind": "video", "url": "https://media.example/intro.mp4?sig=abc", "content_type": "video/mp4"},
    ]
    stack.sandbox.script(
        {
            "job_good": scripted("queued", "processing", "completed", outputs=outputs),
            "job_bad": scripted("processing", "failed", error={"code": "generation_failed", "message": "It broke."}),
            "job_runs": scripted("processing", next_poll_s=1),
        }
    )
    return stack.namespaces[0]


def _kubectl(stack: Stack, namespace: str, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    return stack.control_plane.kubectl("-n", namespace, *arguments, check=check)


def test_from_apply_to_delete(stack: Stack, namespace: str) -> None:
    items = [manifest(name, {"jobID": f"job_{name}"}) for name in ("good", "bad", "runs")]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    applied = stack.control_plane.kubectl("-n", namespace, "apply", "-f", "-", stdin=text)
    assert applied.stdout.count("created") == 3

    # wait returns on success and on failure; the outcome is another condition
    for name in ("good", "bad"):
        _kubectl(stack, namespace, "wait", f"srender/{name}", "--for=condition=Finished", "--timeout=15s")
    _kubectl(stack, namespace, "wait", "srender/good", "--for=condition=Succeeded", "--timeout=5s")
    failed = _kubectl(stack, namespace, "wait", "srender/bad", "--for=condition=Succeeded", "--timeout=1s", check=False)
    assert failed.returncode != 0
    eventually(lambda: "Processing" in _kubectl(stack, namespace, "get", "srender", "runs").stdout, within_s=5)

    rows = _rows(_kubectl(stack, namespace, "get", "sumerenders").stdout)
    assert rows[0] == ["NAME", "STATE", "REASON", "JOB", "AGE"]
    assert {row[0]: row[1:4] for row in rows[1:]} == {
        "good": ["Completed", "Completed", "job_good"],
        "bad": ["Failed", "JobFailed", "job_bad"],
        "runs": ["Processing", "Processing", "job_runs"],
    }
    wide = _kubectl(stack, namespace, "get", "sumerenders", "-o", "wide").stdout
    assert {"FINISHED", "MODEL", "COST", "POLLED", "POLLS", "OUTPUT", "MESSAGE"} <= set(wide.splitlines()[0].split())
    assert "https://media.example/intro.mp4?sig=abc" in wide  # the video comes first, whole
    assert "The job failed: It broke." in wide

    live = _kubectl(stack, namespace, "get", "srender", "--field-selector", "status.terminal!=true", "-o", "name")
    assert live.stdout.split() == ["sumerender.render.sume.com/runs"]
    by_job = _kubectl(stack, namespace, "get", "srender", "--field-selector", "status.jobID=job_bad", "-o", "name")
    assert by_job.stdout.split() == ["sumerender.render.sume.com/bad"]

    described = _kubectl(stack, namespace, "describe", "srender", "bad").stdout
    assert re.search(r"Warning\s+RenderFailed", described), described
    assert "Public Reason" not in described
    events = _kubectl(stack, namespace, "get", "events", "-o", "json").stdout
    assert "sig=abc" not in events

    deleted = _kubectl(stack, namespace, "delete", "srender", "--all", "--timeout=20s")
    assert deleted.stdout.count("deleted") == 3
    stack.wait_empty(within_s=5)


def _rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]
