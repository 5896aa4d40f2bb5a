"""The sandbox over real HTTP, as its clients meet it."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pytest
import requests

from sume_sandbox.command import sandbox as sandbox_command
from sume_sandbox.config import SandboxConfig
from sume_sandbox.digest import fingerprint
from sume_sandbox.embedded import running

KEY = "s3cret-key-of-a-test"
QUICK = SandboxConfig(host="127.0.0.1", port=0, queue_s=0, process_s=0.05, next_poll_s=1)
LASTING = replace(QUICK, process_s=3600)


@dataclass(frozen=True, slots=True)
class Client:
    """One user of a sandbox."""

    base: str
    session: requests.Session
    key: str = KEY

    def api(self, method: str, path: str, **options: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.key}", **options.pop("headers", {})}
        return self.session.request(method, f"{self.base}{path}", headers=headers, timeout=10, **options)

    def status(self, job_id: str, **options: Any) -> requests.Response:
        return self.api("GET", f"/jobs/{job_id}/status", **options)

    def submit(self, key: str | None = None, model: str = "sume/avatar-video/v1.0") -> requests.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.api("POST", f"/models/{model}/runs", json={"prompt": "a cat"}, headers=headers)

    def admin(self, method: str, path: str, body: object = None) -> Any:
        url = f"{self.base.removesuffix('/v1')}/_sandbox{path}"
        reply = self.session.request(method, url, json=body, timeout=10)
        assert reply.status_code < 300, reply.text
        return reply.json() if reply.content else None

    def state(self, job_id: str) -> str | None:
        state: str | None = self.admin("GET", f"/jobs/{job_id}")["state"]
        return state


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.trust_env = False
        yield session


@pytest.fixture(scope="module")
def quick_base() -> Iterator[str]:
    with running(QUICK) as base:
        yield base


@pytest.fixture(scope="module")
def lasting_base() -> Iterator[str]:
    with running(LASTING) as base:
        yield base


def client_of(base: str, session: requests.Session) -> Client:
    client = Client(base, session)
    client.admin("POST", "/reset")
    return client


@pytest.fixture
def quick(quick_base: str, session: requests.Session) -> Client:
    """Jobs that end at once."""
    return client_of(quick_base, session)


@pytest.fixture
def lasting(lasting_base: str, session: requests.Session) -> Client:
    """Jobs that never end by themselves."""
    return client_of(lasting_base, session)


def wait_for(condition: Callable[[], object], timeout_s: float = 5.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "waited in vain"
        time.sleep(0.01)


def error_code(reply: requests.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["code"]


def job_id_of(reply: requests.Response) -> str:
    found = re.search(r"job_[0-9a-f-]{36}", reply.text)
    assert found is not None, reply.text
    return found.group()


def test_it_says_that_it_is_healthy(quick: Client) -> None:
    for path in ("/healthz", "/readyz"):
        assert quick.session.get(quick.base.removesuffix("/v1") + path, timeout=5).text == "ok"


def test_a_job_goes_from_submission_to_its_outputs(quick: Client) -> None:
    reply = quick.submit()
    assert reply.status_code == 202
    job_id = job_id_of(reply)
    wait_for(lambda: quick.state(job_id) == "completed")
    assert quick.status(job_id).status_code == 200
    assert "https://media.sandbox.sume.example/" in quick.api("GET", f"/jobs/{job_id}/result").text


@pytest.mark.parametrize(("router", "suffix"), [("video", "mp4"), ("image", "png")])
def test_a_router_takes_the_model_from_the_body(quick: Client, router: str, suffix: str) -> None:
    reply = quick.api("POST", f"/{router}-router/generate", json={"model": "sume/any", "prompt": "a cat"})
    job_id = job_id_of(reply)
    wait_for(lambda: quick.state(job_id) == "completed")
    assert f"/{job_id}/1.{suffix}" in quick.api("GET", f"/jobs/{job_id}/result").text


def test_the_same_idempotency_key_gives_the_same_job(lasting: Client) -> None:
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: submit_on_its_own(lasting, "once"), range(16)))
    assert len({job_id_of(reply) for reply in replies}) == 1
    assert sorted('"idempotency_hit": true' in reply.text for reply in replies) == [False] + [True] * 15
    job = lasting.admin("GET", f"/jobs/{job_id_of(replies[0])}")
    assert (job["submits"], job["idempotency_key"]) == (16, "once")
    assert lasting.admin("GET", "/stats")["jobs"]["submitted"] == 1


def submit_on_its_own(client: Client, key: str) -> requests.Response:
    """A submission over a connection of its own: sessions are not made for threads."""
    with requests.Session() as session:
        session.trust_env = False
        return Client(client.base, session).submit(key)


@pytest.mark.parametrize(
    ("path", "body", "refused"),
    [
        ("/video-router/generate", '{"prompt": "x"}', (400, "invalid_request")),
        ("/video-router/generate", '{"model": 5}', (400, "invalid_request")),
        ("/video-router/generate", '{"model": "invalid-model"}', (422, "invalid_request")),
        ("/models/sume/invalid-model/v1/runs", "{}", (422, "invalid_request")),
        ("/models/sume/no-credits/runs", "{}", (402, "insufficient_credits")),
        ("/image-router/generate", "{", (400, "bad_request")),
        ("/image-router/generate", "[]", (400, "bad_request")),
    ],
)
def test_bad_submissions_are_refused(lasting: Client, path: str, body: str, refused: tuple[int, str]) -> None:
    reply = lasting.api("POST", path, data=body)
    assert error_code(reply) == refused
    if refused[1] == "invalid_request":
        assert reply.json()["error"]["details"]["errors"][0]["path"] == "model"
    assert lasting.admin("GET", "/stats")["jobs"]["known"] == 0


def test_a_full_workspace_refuses_and_others_do_not_notice(lasting: Client) -> None:
    codes = [lasting.submit(f"k{number}").status_code for number in range(26)]
    assert codes == [202] * 24 + [429] * 2
    refused = lasting.submit("another")
    assert error_code(refused) == (429, "workspace_queue_full")
    assert refused.headers["Retry-After"] == "1"
    assert lasting.submit("k0").status_code == 200
    assert replace(lasting, key="other").submit().status_code == 202
    stats = lasting.admin("GET", "/stats")
    assert (stats["max_active"], stats["rate_limited"]) == (24, 3)
    assert stats["jobs"]["by_state"] == {"processing": 5, "queued": 20}


@pytest.mark.parametrize(
    ("job_id", "state", "result"),
    [
        ("job_plain", "completed", 200),
        ("job_multi", "completed", 200),
        ("job_fail", "failed", 409),
        ("job_nsfw", "failed", 409),
        ("job_cancel", "canceled", 409),
        ("job_expired", "completed", 410),
    ],
)
def test_any_job_can_be_followed_and_its_id_says_how_it_ends(
    quick: Client, job_id: str, state: str, result: int
) -> None:
    assert quick.status(job_id).status_code == 200
    wait_for(lambda: quick.state(job_id) == state)
    assert ("content_policy_rejected" in quick.status(job_id).text) == ("nsfw" in job_id)
    assert quick.api("GET", f"/jobs/{job_id}/result").status_code == result


def test_a_missing_job_is_404_with_the_error_body_of_sume(quick: Client) -> None:
    for method, call in (("GET", "status"), ("GET", "result"), ("POST", "cancel")):
        reply = quick.api(method, f"/jobs/job_missing/{call}")
        assert error_code(reply) == (404, "job_not_found")
    assert error_code(quick.status("..%2fx")) == (404, "job_not_found")
    assert quick.admin("GET", "/jobs/job_missing")["status_reads"] == 1


def test_a_result_is_refused_until_the_job_has_completed(lasting: Client) -> None:
    reply = lasting.api("GET", "/jobs/job_plain/result")
    assert error_code(reply) == (409, "job_not_completed")
    assert reply.json()["error"]["details"] == {"status": "processing"}


def test_cancel_is_carried_out_or_refused_by_state(lasting: Client) -> None:
    jobs = [job_id_of(lasting.submit()) for _ in range(5)]
    canceled = lasting.api("POST", f"/jobs/{jobs[4]}/cancel", json={})
    assert (canceled.status_code, '"status": "CANCELED"' in canceled.text) == (200, True)
    assert lasting.state(jobs[4]) == "canceled"
    refused = lasting.api("POST", f"/jobs/{jobs[0]}/cancel", json={})
    assert error_code(refused) == (409, "job_generation_already_started")
    assert error_code(lasting.api("POST", f"/jobs/{jobs[4]}/cancel")) == (409, "job_not_cancelable")
    assert lasting.admin("GET", f"/jobs/{jobs[4]}")["cancels"] == 2


@pytest.mark.parametrize(
    "headers", [{"Authorization": ""}, {"Authorization": "Basic x"}, {"Authorization": "Bearer wrong"}]
)
def test_a_request_without_a_good_key_is_401(lasting: Client, headers: dict[str, str]) -> None:
    lasting.admin("PUT", "/keys", {"keys": [KEY]})
    assert error_code(lasting.status("job_1", headers=headers)) == (401, "unauthorized")
    assert lasting.state("job_1") is None


def test_keys_are_replaced_while_it_runs(lasting: Client) -> None:
    assert lasting.status("job_1").status_code == 200
    answer = lasting.admin("PUT", "/keys", {"keys": {"new": "studio", "newer": "studio"}})
    assert answer == {"any_key_accepted": False, "keys": sorted([fingerprint("new"), fingerprint("newer")])}
    assert lasting.status("job_1").status_code == 401
    assert lasting.status("job_1", headers={"Authorization": "", "x-api-key": "new"}).status_code == 401
    by_x_api_key = lasting.session.get(f"{lasting.base}/jobs/job_1/status", headers={"x-api-key": "new"}, timeout=5)
    assert by_x_api_key.status_code == 200
    made = [job_id_of(replace(lasting, key=key).submit("once")) for key in ("new", "newer")]
    assert made[0] == made[1]
    assert lasting.admin("GET", "/jobs/job_1")["keys"] == sorted([fingerprint(KEY), fingerprint("new")])


def test_reads_are_limited_per_key(session: requests.Session) -> None:
    with running(replace(LASTING, reads_per_minute=2)) as base:
        client = Client(base, session)
        replies = [client.status("job_1") for _ in range(3)]
        assert [reply.status_code for reply in replies] == [200, 200, 429]
        assert [reply.headers["RateLimit-Remaining"] for reply in replies] == ["1", "0", "0"]
        assert error_code(replies[2]) == (429, "rate_limit_exceeded")
        assert 0 < int(replies[2].headers["Retry-After"]) <= 60
        assert replace(client, key="other").status("job_1").status_code == 200
        assert client.submit().status_code == 202


def test_a_script_is_told_entry_by_entry(lasting: Client) -> None:
    script = [
        {"status": "queued", "next_poll_after_seconds": 7},
        {"http_status": 500, "headers": {"X-Odd": "yes"}, "body": "<html>"},
        {"http_status": 200, "body": ["a", "list"]},
        {"status": "enhancing", "terminal": False, "next_poll_after_seconds": "NaN"},
        {"status": "completed", "terminal": True},
    ]
    outputs = [{"kind": "idle-loop", "url": "https://media.example/a.webm", "content_type": "video/webm"}]
    lasting.admin("PUT", "/jobs/job_1", {"script": script, "outputs": outputs, "shape": 0})
    replies = [lasting.status("job_1") for _ in range(6)]
    first, odd_word = replies[0].json()["data"], replies[3].json()["data"]
    assert (first["sume_status"], first["next_poll_after_seconds"], first["terminal"]) == ("queued", 7, False)
    assert (replies[1].status_code, replies[1].text, replies[1].headers["x-odd"]) == (500, "<html>", "yes")
    assert replies[2].json() == ["a", "list"]
    assert (odd_word["status"], odd_word["terminal"], odd_word["next_poll_after_seconds"]) == (
        "enhancing",
        False,
        "NaN",
    )
    assert replies[4].json() == replies[5].json()
    assert replies[5].json()["data"]["terminal"] is True
    result = lasting.api("GET", "/jobs/job_1/result").json()["data"]["result"]["artifacts"]
    assert result == [{"url": "https://media.example/a.webm", "type": "idle-loop", "content_type": "video/webm"}]


def test_many_scripts_are_given_at_once_or_none_of_them(lasting: Client) -> None:
    failing = {"script": [{"status": "failed"}], "error": {"message": "No."}, "shape": 0}
    lasting.admin("PUT", "/jobs", {"jobs": {"job_1": failing, "job_2": {"script": [{"drop": True}]}}})
    assert lasting.status("job_1").json()["data"]["job"]["error"] == {"message": "No."}
    with pytest.raises(requests.ConnectionError):
        lasting.status("job_2")
    url = f"{lasting.base.removesuffix('/v1')}/_sandbox/jobs"
    reply = lasting.session.put(url, json={"jobs": {"job_3": failing, "job_4": {"shape": 99}}}, timeout=5)
    assert (reply.status_code, reply.json()) == (400, {"error": "job_4: shape must be from 0 to 11"})
    assert sorted(lasting.admin("GET", "/jobs")["jobs"]) == ["job_1", "job_2"]


def test_a_cancelable_scripted_job_stays_canceled(lasting: Client) -> None:
    lasting.admin("PUT", "/jobs/job_1", {"script": [{"status": "processing"}], "cancelable": True, "shape": 0})
    assert lasting.api("POST", "/jobs/job_1/cancel").json()["data"]["canceled"] is True
    assert lasting.status("job_1").json()["data"]["sume_status"] == "canceled"


@pytest.mark.parametrize(
    ("method", "path", "body", "complaint"),
    [
        ("PUT", "/jobs/job_1", '{"script": [{"status": 5}]}', "script.0.status: "),
        ("PUT", "/jobs/job_1", "{", "body: Invalid JSON"),
        ("PUT", "/jobs/a.b", "{}", "a.b: a job id has"),
        ("POST", "/faults", '{"operation": "reads"}', "operation: "),
        ("POST", "/faults", '{"job": "job_1"}', "body: a fault needs"),
        ("POST", "/faults", '{"http_status": 999}', "http_status: "),
        ("PUT", "/keys", '{"keys": [" "]}', "keys: a key must not be empty"),
    ],
)
def test_bad_admin_input_is_refused(lasting: Client, method: str, path: str, body: str, complaint: str) -> None:
    url = f"{lasting.base.removesuffix('/v1')}/_sandbox{path}"
    reply = lasting.session.request(method, url, data=body, timeout=5)
    assert reply.status_code == 400
    assert reply.json()["error"].startswith(complaint)


def test_a_fault_strikes_whom_it_names_and_as_often_as_it_says(lasting: Client) -> None:
    rule = {"job": "job_1", "operation": "status", "times": 2, "http_status": 503, "headers": {"Retry-After": "soon"}}
    fault_id = lasting.admin("POST", "/faults", {**rule, "json": {"detail": "down"}})["id"]
    assert lasting.status("job_2").status_code == 200
    struck = [lasting.status("job_1") for _ in range(3)]
    assert [reply.status_code for reply in struck] == [503, 503, 200]
    assert (struck[0].headers["Retry-After"], struck[0].json()) == ("soon", {"detail": "down"})
    listed = lasting.admin("GET", "/faults")["faults"]
    assert [(fault["id"], fault["hits"], fault["http_status"]) for fault in listed] == [(fault_id, 2, 503)]
    lasting.admin("DELETE", f"/faults/{fault_id}")
    assert lasting.admin("GET", "/faults") == {"faults": []}


def test_a_fault_can_be_meant_for_one_key(lasting: Client) -> None:
    lasting.admin("POST", "/faults", {"key_fingerprint": fingerprint("other"), "http_status": 403, "body": "no"})
    assert lasting.status("job_1").status_code == 200
    assert replace(lasting, key="other").status("job_1").status_code == 403
    lasting.admin("DELETE", "/faults")
    assert replace(lasting, key="other").status("job_1").status_code == 200


def test_a_submission_whose_reply_is_lost_has_made_its_job(lasting: Client) -> None:
    lasting.admin("POST", "/faults", {"operation": "submit", "times": 1, "drop": True})
    lasting.admin("POST", "/faults", {"operation": "submit", "times": 1, "drop_after_effect": True})
    for made in (0, 1):
        with pytest.raises(requests.ConnectionError):
            lasting.submit("once")
        assert lasting.admin("GET", "/stats")["jobs"]["submitted"] == made
    assert '"idempotency_hit": true' in lasting.submit("once").text
    assert lasting.admin("GET", "/stats")["requests"]["submit"] == {"200": 1, "dropped": 2}


def test_an_answer_can_come_late_or_byte_by_byte(lasting: Client) -> None:
    lasting.admin("POST", "/faults", {"job": "late", "delay_s": 0.2})
    lasting.admin("POST", "/faults", {"job": "slow", "trickle_s": 0.002})
    lasting.admin("POST", "/faults", {"job": "stuck", "trickle_s": 60})
    started_s = time.monotonic()
    assert lasting.status("late").status_code == 200
    assert time.monotonic() - started_s >= 0.2
    assert lasting.status("slow").json() is not None
    with pytest.raises(requests.ConnectionError, match="Read timed out"):
        lasting.session.get(
            f"{lasting.base}/jobs/stuck/status", headers={"Authorization": f"Bearer {KEY}"}, timeout=(5, 0.2)
        )


def test_overlapping_reads_of_one_job_are_counted(lasting: Client) -> None:
    lasting.admin("POST", "/faults", {"job": "job_1", "times": 1, "delay_s": 60})
    lasting.admin("POST", "/faults", {"job": "job_2", "times": 1, "delay_s": 60})
    gave_up = threading.Event()

    def read_and_give_up() -> None:
        with requests.Session() as session, pytest.raises(requests.ReadTimeout):
            session.get(f"{lasting.base}/jobs/job_1/status", headers={"x-api-key": KEY}, timeout=0.7)
        gave_up.set()

    thread = threading.Thread(target=read_and_give_up)
    thread.start()
    wait_for(lambda: lasting.admin("GET", "/jobs")["jobs"].get("job_1"))
    lasting.status("job_1")
    assert not gave_up.is_set()
    thread.join()
    seen = lasting.admin("GET", "/jobs/job_1")
    assert (seen["status_reads"], seen["overlapping_reads"]) == (2, 1)
    assert lasting.admin("GET", "/stats")["max_concurrent_requests"] == 2
    with pytest.raises(requests.ReadTimeout):  # who gives up is no longer being answered
        lasting.session.get(f"{lasting.base}/jobs/job_2/status", headers={"x-api-key": KEY}, timeout=0.2)
    lasting.status("job_2")
    assert lasting.admin("GET", "/jobs/job_2")["overlapping_reads"] == 0


def test_reads_are_remembered_with_their_gaps(lasting: Client) -> None:
    for _ in range(3):
        lasting.status("job_1")
    seen = lasting.admin("GET", "/jobs/job_1")
    times = seen["read_times"]
    assert times == sorted(times)
    assert (seen["first_read_at"], seen["last_read_at"]) == (times[0], times[-1])
    assert seen["longest_gap_s"] == pytest.approx(max(times[1] - times[0], times[2] - times[1]))
    assert abs(times[0] - time.time()) < 60
    assert seen["keys"] == [fingerprint(KEY)]


def test_a_reset_forgets_everything(lasting: Client) -> None:
    lasting.submit()
    lasting.admin("POST", "/faults", {"drop": True})
    lasting.admin("PUT", "/keys", {"keys": ["another"]})
    lasting.admin("POST", "/reset")
    assert lasting.admin("GET", "/jobs") == {"jobs": {}}
    assert lasting.status("job_1").status_code == 200


@dataclass(frozen=True, slots=True)
class Started:
    """A sandbox in a process of its own."""

    process: subprocess.Popen[str]
    base: str


@pytest.fixture
def started() -> Iterator[Started]:
    environment = {
        **os.environ,
        "SUME_SANDBOX_HOST": "127.0.0.1",
        "SUME_SANDBOX_PORT": "0",
        "SUME_SANDBOX_API_KEYS": f"{KEY}, other",
        "SUME_SANDBOX_LOG_REQUESTS": "true",
    }
    command = [sys.executable, "-c", "from sume_sandbox.command import sandbox; sandbox()", "--process-s", "3600"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("sandbox listening on http://127.0.0.1:"), line
        yield Started(process, line.split()[-1])
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_stops_on_a_signal_even_with_an_answer_under_way(
    started: Started, session: requests.Session, number: signal.Signals
) -> None:
    client = Client(started.base, session)
    client.admin("POST", "/faults", {"delay_s": 60})
    port = int(started.base.removesuffix("/v1").rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as waiting:
        waiting.sendall(b"GET /v1/jobs/job_1/status HTTP/1.1\r\nHost: sandbox\r\nx-api-key: other\r\n\r\n")
        wait_for(lambda: client.admin("GET", "/jobs")["jobs"])
        started.process.send_signal(number)
        assert started.process.wait(timeout=2) == 0


def test_keys_are_not_logged(started: Started, session: requests.Session) -> None:
    client = Client(started.base, session)
    assert client.status("job_1").status_code == 200
    assert replace(client, key="s3cret-but-wrong").status("job_1").status_code == 401
    port = int(started.base.removesuffix("/v1").rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as malformed:
        malformed.sendall(b"GET /v1/jobs/job_1/status HTTP/1.1\r\nHost: a\r\nx-api-key: s3cret\x00\r\n\r\n")
        assert b"400 Bad Request" in malformed.recv(1000)
    started.process.terminate()
    assert started.process.stdout is not None
    output = started.process.stdout.read()
    assert f'"answer": "200", "key": "{fingerprint(KEY)}"' in output
    assert "s3cret" not in output


def test_a_port_in_use_is_said_in_one_line(started: Started) -> None:
    port = started.base.removesuffix("/v1").rpartition(":")[2]
    command = [sys.executable, "-c", "from sume_sandbox.command import sandbox; sandbox()"]
    second = subprocess.run(
        [*command, "--host", "127.0.0.1", "--port", port], capture_output=True, text=True, check=False, timeout=30
    )
    assert second.returncode == 1
    assert second.stderr.startswith(f"Error: cannot listen on 127.0.0.1 port {port}: ")


def test_options_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUME_SANDBOX_PORT", "tcp://10.0.0.1:80")  # Kubernetes does so beside a Service `sume-sandbox`
    monkeypatch.setenv("SUME_SANDBOX_READS_PER_MINUTE", "120")
    monkeypatch.setenv("SUME_SANDBOX_CANCEL_RUNNING", "true")
    options = sandbox_command.make_context("sandbox", ["--queue-s", "0.5"]).params
    assert (options["port"], options["reads_per_minute"], options["queue_s"]) == (8081, 120, 0.5)
    assert options["cancel_running"] is True
    assert set(options) == set(SandboxConfig.__dataclass_fields__)


def test_an_embedded_sandbox_says_why_it_cannot_start() -> None:
    with running(QUICK) as base:
        port = int(base.removesuffix("/v1").rpartition(":")[2])
        with pytest.raises(OSError, match="address already in use"), running(replace(QUICK, port=port)):
            pass
