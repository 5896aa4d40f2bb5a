"""`cancel`, `suspend`, `resume`, `refresh`, `retry` and `list` with the real operator behind them."""

import json
import os
import pty
import select
import subprocess
import time

import pytest

from kube import eventually, status
from plugin import Plugin
from stack import Stack, scripted


@pytest.fixture
def plugin(stack: Stack) -> Plugin:
    return Plugin(stack.control_plane, stack.namespaces[0])


def _make(stack: Stack, plugin: Plugin, *names: str) -> None:
    for name in names:
        stack.kube.create(plugin.namespace, name, {"jobID": f"job_{name}"}, labels={"set": "x"})


def _spec(stack: Stack, plugin: Plugin, name: str, field: str) -> object:
    return stack.kube.get(plugin.namespace, name)["spec"].get(field, False)


def test_suspend_resume_cancel_and_what_comes_of_them(stack: Stack, plugin: Plugin) -> None:
    stack.start_all()
    stack.sandbox.script({f"job_{name}": scripted("queued") for name in "abc"} | {"job_done": scripted("completed")})
    _make(stack, plugin, "a", "b", "c", "done")
    plugin.ok("wait", "done", "--timeout", "30s")
    at = plugin.namespace

    text = plugin.ok("suspend", "-l", "set=x", "--yes")
    assert text.splitlines() == [
        f"{at}/a suspended", f"{at}/b suspended", f"{at}/c suspended", "suspend: 3 done, 1 left alone"
    ]  # fmt: skip
    eventually(lambda: "Suspended" in plugin.ok("list", "a"), within_s=10)
    assert plugin.ok("suspend", "a", "done").splitlines()[:2] == [
        f"{at}/a left alone: suspended already",
        f"{at}/done left alone: ended already (Completed)",
    ]
    plugin.ok("resume", "-l", "set=x", "--yes")
    assert [_spec(stack, plugin, name, "suspend") for name in "abc"] == [False, False, False]
    eventually(
        lambda: plugin.run("list", "--state", "Queued", "-o", "name").stdout.split() == ["a", "b", "c"], within_s=10
    )

    plugin.ok("cancel", "a")
    assert plugin.run("wait", "a", "--timeout", "30s").returncode == 1
    assert status(stack.kube.get(at, "a"))["state"] == "Canceled"
    plugin.ok("cancel", "--state", "queued", "--yes")
    assert plugin.run("wait", "b", "c", "--timeout", "30s").returncode == 1
    assert json.loads(plugin.ok("list", "--state", "Canceled", "-o", "json"))[0]["reason"] == "Canceled"


def test_refresh_brings_fresh_addresses(stack: Stack, plugin: Plugin) -> None:
    stack.start_all()
    first = [{"kind": "video", "url": "https://media.example/a.mp4?sig=1"}]
    stack.sandbox.script({"job_a": scripted("completed", outputs=first)})
    _make(stack, plugin, "a")
    plugin.ok("wait", "a", "--timeout", "30s")
    second = [{"kind": "video", "url": "https://media.example/a.mp4?sig=2"}]
    stack.sandbox.script({"job_a": scripted("completed", outputs=second)})
    assert plugin.ok("refresh", "a") == f"{plugin.namespace}/a will be looked at soon\n"
    eventually(
        lambda: status(stack.kube.get(plugin.namespace, "a"))["outputs"][0]["url"].endswith("sig=2"), within_s=15
    )


def test_retry_pays_again_once(stack: Stack, plugin: Plugin) -> None:
    stack.start_sandbox("--failing-share", "0", "--queue-s", "0", "--process-s", "0.5", "--next-poll-s", "0.5")
    stack.start("controller")
    stack.start("poller")
    # The sandbox fails what has this word in its model.
    rows = "name,prompt,model\nbad,x,demo/fail\ngood,y,sume/clip-fast\n"
    plugin.ok("import", "-", "--batch", "b", "--apply", stdin=rows)
    wait = ("wait", "-l", "render.sume.com/batch=b", "--timeout", "60s")
    assert plugin.run(*wait).returncode == 1
    assert plugin.ok("retry", "-l", "render.sume.com/batch=b").splitlines() == [
        f"{plugin.namespace}/bad is asked for again as bad-r2",
        "retry: 1 done, 1 left alone",
    ]
    assert plugin.ok("retry", "bad") == f"{plugin.namespace}/bad was retried already, as bad-r2\n"
    assert plugin.run(*wait).returncode == 1
    again = plugin.ok("retry", "--state", "Failed", "--yes")
    assert f"{plugin.namespace}/bad was retried already, as bad-r2" in again
    assert f"{plugin.namespace}/bad-r2 is asked for again as bad-r3" in again
    plugin.run(*wait)
    keys = sorted(str(job["idempotency_key"]) for job in stack.sandbox.jobs().values())
    assert keys == ["b/bad", "b/bad-r2", "b/bad-r3", "b/good"]


def test_a_name_that_another_render_has_is_not_taken_for_a_retry(stack: Stack, plugin: Plugin) -> None:
    failed = {
        "state": "Failed",
        "terminal": True,
        "conditions": [
            {"type": "Succeeded", "status": "False", "reason": "JobFailed", "message": "", "lastTransitionTime": TIME}
        ],
    }
    for name in ("a", "a-r2", "followed"):
        spec = {"jobID": "job_1"} if name == "followed" else {"request": {"model": "m"}}
        stack.kube.create(plugin.namespace, name, spec)
    for name in ("a", "followed"):
        assert stack.kube.patch(plugin.namespace, name, {"status": failed}, status=True).ok
    result = plugin.run("retry", "a")
    assert result.returncode == 1
    assert "another render a-r2 already, which does not repeat it" in result.stderr
    assert "follows a job that somebody else asked for" in plugin.ok("retry", "followed")
    assert "has not ended; cancel it first" in plugin.ok("retry", "a-r2")


TIME = "2026-07-01T00:00:00Z"


@pytest.mark.parametrize("verb", ["cancel", "suspend", "refresh"])
def test_without_anybody_to_ask_more_than_one_wants_yes(stack: Stack, plugin: Plugin, verb: str) -> None:
    _make(stack, plugin, "a", "b")
    before = stack.kube.all_in([plugin.namespace])
    result = plugin.run(verb, "-l", "set=x")
    assert result.returncode == 2
    assert f"{verb} 2 renders ({plugin.namespace}/a, {plugin.namespace}/b)?" in result.stderr
    assert "give --yes" in result.stderr
    assert stack.kube.all_in([plugin.namespace]) == before
    assert plugin.run(verb, "-l", "set=none").returncode == 3
    assert plugin.run(verb, "absent").returncode == 3
    some = plugin.run(verb, "a", "absent")
    assert some.returncode == 1
    assert f"there is no render absent in namespace {plugin.namespace}" in some.stderr


@pytest.mark.parametrize(("answer", "done", "code"), [("y\n", True, 0), ("n\n", False, 130), ("\n", False, 130)])
def test_a_person_is_asked(stack: Stack, plugin: Plugin, answer: str, done: bool, code: int) -> None:
    _make(stack, plugin, "a", "b")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        plugin.command("cancel", "-l", "set=x"),
        env=plugin.env | {"TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        shown = _read_until(ours, b"[y/N]")
        assert b"cancel 2 renders" in shown
        assert b"It cannot be taken back." in shown
        os.write(ours, answer.encode())
        rest = _read_until(ours, b"cancel: 2 done" if done else b"interrupted")
        assert process.wait(timeout=30) == code
        assert b"Traceback" not in rest
    os.close(ours)
    assert [_spec(stack, plugin, name, "cancel") for name in "ab"] == [done, done]


def _read_until(descriptor: int, wanted: bytes) -> bytes:
    seen, over_s = b"", time.monotonic() + 60
    while wanted not in seen:
        assert time.monotonic() < over_s, seen
        if select.select([descriptor], [], [], 1)[0]:
            seen += os.read(descriptor, 4096)
    return seen


def test_list(stack: Stack, plugin: Plugin) -> None:
    empty = plugin.run("list")
    assert empty.returncode == 3
    assert f"nothing matches every render in namespace {plugin.namespace}" in empty.stderr
    assert plugin.run("list", "-o", "json").stdout == "[]\n"
    _make(stack, plugin, "a", "b")
    stack.kube.patch(plugin.namespace, "b", {"status": {"state": "Queued", "message": "\x1b[31mred"}}, status=True)
    rows = [line.split() for line in plugin.ok("list").splitlines()]
    assert rows[0] == ["NAME", "STATE", "REASON", "JOB", "MODEL", "AGE"]
    assert [row[:5] for row in rows[1:]] == [["a", "Pending", "-", "job_a", "-"], ["b", "Queued", "-", "job_b", "-"]]
    assert plugin.ok("list", "--state", "pending", "-o", "name") == "a\n"
    assert [each["name"] for each in json.loads(plugin.ok("list", "-l", "set=x", "-o", "json"))] == ["a", "b"]
    everywhere = plugin.ok("list", "-A", "-o", "name").split()
    assert {f"{plugin.namespace}/a", f"{plugin.namespace}/b"} <= set(everywhere)
    some = plugin.run("list", "a", "absent")
    assert (some.returncode, "there is no render absent" in some.stderr) == (0, True)
