"""The Sume API over real HTTP: against the simulated Sume, and against servers that do what no sane server does."""

import contextlib
import gzip
import json
import logging
import socket
import ssl
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from certificates import self_signed
from listener import Connection, Listener
from sume_operator.adapters.sume_api import MAX_BODY_BYTES, SumeAPI
from sume_operator.core.job import (
    Call,
    Cancel,
    CancelAccepted,
    Check,
    Collect,
    JobResult,
    JobStatus,
    JobUnknown,
    Malformed,
    RateLimited,
    Refusal,
    Reply,
    Submit,
    Submitted,
    Unauthorized,
    Unavailable,
)
from sume_operator.core.observing import state_of
from sume_sandbox.config import SandboxConfig
from sume_sandbox.embedded import running
from sume_sandbox.shape_table import SHAPES, shape_of

KEY = "sk-s3cret-key-0f-a-test"
ONE = Check(job_id="job_1")
QUEUED = b'{"data": {"sume_status": "queued", "terminal": false}}'
STILL_QUEUED = JobStatus(word="queued", terminal=False)
WELL_BEFORE_THE_END_S = 2.0  # a busy machine is slow; without the time-out each of these takes 4 s or for ever
CLOSED = "the connection was closed before an answer came"


@pytest.fixture(autouse=True)
def _no_text_holds_the_key(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    caplog.set_level(logging.DEBUG)
    yield
    assert KEY not in caplog.text
    assert KEY not in repr([record.__dict__ for record in caplog.records])


class User:
    """Calls an API base; what it observed is written down."""

    def __init__(self, base_url: str, **options: Any) -> None:
        self.observed: list[tuple[str, str]] = []
        self._api = SumeAPI(
            base_url,
            connections=options.pop("connections", 4),
            observe=lambda operation, code, _seconds: self.observed.append((operation, code)),
            **options,
        )

    def perform(self, call: Call = ONE, timeout_s: float = 5.0) -> Reply:
        reply = self._api.perform(call, KEY, timeout_s)
        assert KEY not in repr(reply)
        assert "0x" not in repr(reply)
        return reply


def always_queued(connection: Connection) -> None:
    while connection.read_request():
        connection.answer(QUEUED)


def took_s(call: Callable[[], Any]) -> tuple[float, Any]:
    began_s = time.monotonic()
    result = call()
    return time.monotonic() - began_s, result


# --- the total time-out ---------------------------------------------------------------------------


def nothing_at_all(connection: Connection) -> None:
    connection.read_request()
    connection.hang()


def half_of_the_headers(connection: Connection) -> None:
    connection.read_request()
    connection.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Le")
    connection.hang()


def headers_then_nothing(connection: Connection) -> None:
    connection.read_request()
    connection.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n")
    connection.hang()


def dripping_headers(connection: Connection) -> None:
    connection.read_request()
    connection.drip(b"HTTP/1.1 200 OK\r\n" + b"X-Long: 1\r\n" * 2, 0.2)


def dripping_body(connection: Connection) -> None:
    connection.read_request()
    connection.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
    connection.drip(b" " * 20, 0.2)


def dripping_chunks(connection: Connection) -> None:
    connection.read_request()
    connection.sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not connection.stopping.wait(0.2):
        connection.sock.sendall(b"1\r\n \r\n")


def dripping_without_end(connection: Connection) -> None:
    """No length: the end of the connection is the end of the body, so a cut connection looks like a whole answer."""
    connection.read_request()
    connection.sock.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + QUEUED)
    connection.drip(b" " * 20, 0.2)


SLOW = (
    nothing_at_all,
    half_of_the_headers,
    headers_then_nothing,
    dripping_headers,
    dripping_body,
    dripping_chunks,
    dripping_without_end,
)


@pytest.mark.parametrize("handle", SLOW)
@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_the_time_out_is_a_total(
    handle: Callable[[Connection], None], tls: bool, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    with Listener(handle, server_context(certificate) if tls else None) as listener:
        user = User(listener.url)
        seconds, reply = took_s(lambda: user.perform(timeout_s=0.6))
        assert reply == Unavailable(detail="no complete answer within 1 s")
        assert 0.5 < seconds < WELL_BEFORE_THE_END_S
        assert len(listener.requests) == 1
        assert user.observed == [("check", "timeout")]


def test_the_time_out_covers_a_handshake_that_drips(figures: Callable[[str], None]) -> None:
    """A record of TLS that never ends: a byte now and then resets any time-out between bytes."""
    with Listener(lambda connection: connection.drip(b"\x16\x03\x03\x3f\xff" + b"\x02" * 20, 0.2)) as listener:
        user = User(f"https://127.0.0.1:{listener.port}")
        seconds, reply = took_s(lambda: user.perform(timeout_s=0.6))
        assert reply == Unavailable(detail="no complete answer within 1 s")
        assert 0.5 < seconds < WELL_BEFORE_THE_END_S
        figures(f"Sume, time-out of 0.6 s against a dripping TLS handshake: {seconds:.2f} s")


def test_the_time_out_covers_a_proxy_that_drips(monkeypatch: pytest.MonkeyPatch) -> None:
    def proxy(connection: Connection) -> None:
        connection.read_request()
        connection.drip(b"HTTP/1.1 200 OK\r\n" + b"X-Long: 1\r\n" * 2, 0.2)

    with Listener(proxy) as listener:
        monkeypatch.setenv("HTTPS_PROXY", listener.url)
        seconds, reply = took_s(lambda: User("https://sume.example").perform(timeout_s=0.6))
        assert reply == Unavailable(detail="no complete answer within 1 s")
        assert 0.5 < seconds < WELL_BEFORE_THE_END_S


def test_nobody_accepts() -> None:
    """The queue of the listening socket is full, so the kernel drops every further attempt to connect."""
    with socket.socket() as server, contextlib.ExitStack() as waiting:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        port = server.getsockname()[1]
        for _ in range(4):
            sock = waiting.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", port))
        seconds, reply = took_s(lambda: User(f"http://127.0.0.1:{port}").perform(timeout_s=0.6))
        assert reply == Unavailable(detail="no complete answer within 1 s")
        assert seconds < WELL_BEFORE_THE_END_S


def test_several_addresses_share_one_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as server, contextlib.ExitStack() as waiting:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        address = server.getsockname()
        for _ in range(4):
            sock = waiting.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(address)
        row = (socket.AF_INET, socket.SOCK_STREAM, 6, "", address)
        rows = {"several.example": [row] * 4, "127.0.0.1": [row]}
        monkeypatch.setattr(socket, "getaddrinfo", lambda name, *_args, **_options: rows[name])
        seconds, reply = took_s(lambda: User(f"http://several.example:{address[1]}").perform(timeout_s=0.6))
        assert reply == Unavailable(detail="no complete answer within 1 s")
        assert seconds < WELL_BEFORE_THE_END_S


# --- the key stays here ---------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "header"), [("bearer", f"Authorization: Bearer {KEY}"), ("x-api-key", KEY)])
def test_where_the_key_stands(mode: str, header: str) -> None:
    with Listener(always_queued) as listener:
        assert User(listener.url, auth_mode=mode).perform() == STILL_QUEUED
        (request,) = listener.requests
        assert header.encode() in request
        assert request.count(KEY.encode()) == 1
        assert (b"x-api-key: " in request.lower()) == (mode == "x-api-key")
        assert (b"authorization" in request.lower()) == (mode == "bearer")


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
def test_redirects_are_not_followed(status: str) -> None:
    with Listener(always_queued) as elsewhere:

        def redirect(connection: Connection) -> None:
            while connection.read_request():
                connection.answer(b"", status, f"Location: {elsewhere.url}/jobs/job_1/status")

        with Listener(redirect) as listener:
            for call in (ONE, Collect(job_id="job_1"), Cancel(job_id="job_1")):
                reply = User(listener.url).perform(call)
                assert isinstance(reply, Malformed)
                assert "redirect" in reply.detail
            assert len(listener.requests) == 3
        assert elsewhere.connections == 0


def test_cookies_are_not_kept() -> None:
    def bake(connection: Connection) -> None:
        while connection.read_request():
            connection.answer(QUEUED, "200 OK", "Set-Cookie: session=1; Path=/")

    with Listener(bake) as listener:
        user = User(listener.url)
        assert [user.perform() for _ in range(3)] == [STILL_QUEUED] * 3
        assert not any(b"cookie" in request.lower() for request in listener.requests)


def test_a_netrc_does_not_replace_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1\nlogin somebody\npassword else\ndefault login a password b\n", encoding="utf-8")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with Listener(always_queued) as listener:
        assert requests.utils.get_netrc_auth(listener.url) == ("somebody", "else")
        for mode in ("bearer", "x-api-key"):
            assert User(listener.url, auth_mode=mode).perform() == STILL_QUEUED
        assert all(KEY.encode() in request for request in listener.requests)
        assert not any(b"Basic" in request for request in listener.requests)


def test_proxy_variables_are_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    with Listener(always_queued) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        assert User("http://sume.example/v1").perform() == STILL_QUEUED
        assert proxy.requests[0].startswith(b"GET http://sume.example/v1/jobs/job_1/status HTTP/1.1\r\n")


def test_a_proxy_that_refuses_sees_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(connection: Connection) -> None:
        connection.read_request()
        connection.answer(b"no", "403 Forbidden")

    with Listener(refuse) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        assert User("https://sume.example/v1").perform() == Unavailable(detail="the proxy did not answer")
        assert [request.split(b"\r\n")[0] for request in proxy.requests] == [b"CONNECT sume.example:443 HTTP/1.0"]
        assert KEY.encode() not in proxy.requests[0]


# --- connections ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["closed", "reset"])
@pytest.mark.parametrize("call", [ONE, Cancel(job_id="job_1")])
def test_a_kept_alive_connection_that_died_costs_one_second_try(ending: str, call: Call) -> None:
    def once(connection: Connection) -> None:
        connection.read_request()
        connection.answer(QUEUED)
        if connection.number == 0:
            connection.read_request()
            if ending == "reset":
                connection.reset()
        else:
            always_queued(connection)

    with Listener(once) as listener:
        user = User(listener.url)
        assert user.perform() == STILL_QUEUED
        assert isinstance(user.perform(call), JobStatus | CancelAccepted)
        assert len(listener.requests) == 3
        assert listener.connections == 2
        assert len(user.observed) == 2


def test_there_is_no_third_try() -> None:
    def never_twice(connection: Connection) -> None:
        connection.read_request()
        if connection.number == 0:
            connection.answer(QUEUED)
            connection.read_request()

    with Listener(never_twice) as listener:
        user = User(listener.url)
        assert user.perform() == STILL_QUEUED
        assert isinstance(user.perform(), Unavailable)
        assert len(listener.requests) == 3
        assert isinstance(user.perform(), Unavailable)
        assert len(listener.requests) == 4, "a fresh connection that is closed is not tried again"


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("ending", ["closed", "reset"])
def test_an_answer_that_broke_off_is_not_asked_for_again(
    ending: str, tls: bool, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))

    def break_off(connection: Connection) -> None:
        connection.read_request()
        connection.answer(QUEUED)
        connection.read_request()
        connection.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + QUEUED)
        if ending == "reset":
            connection.stopping.wait(0.1)  # else the reset overtakes what was sent
            connection.reset()

    with Listener(break_off, server_context(certificate) if tls else None) as listener:
        user = User(listener.url)
        assert user.perform() == STILL_QUEUED
        reply = user.perform()
        assert isinstance(reply, Unavailable)
        assert "the connection failed" in reply.detail
        assert len(listener.requests) == 2
        assert listener.connections == 1


def test_a_connection_closed_between_two_calls_is_not_noticed() -> None:
    def one_each(connection: Connection) -> None:
        connection.read_request()
        connection.answer(QUEUED)

    with Listener(one_each) as listener:
        user = User(listener.url)
        assert [user.perform() for _ in range(5)] == [STILL_QUEUED] * 5
        assert len(listener.requests) <= 5
        assert user.observed == [("check", "200")] * 5


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    user = User(f"http://127.0.0.1:{port}")
    assert user.perform() == Unavailable(detail="the connection failed (ConnectionRefusedError)", was_sent=False)
    assert user.observed == [("check", "connection")]


def test_a_name_that_does_not_exist() -> None:
    reply = User("http://no-such-host.invalid").perform()
    assert isinstance(reply, Unavailable)
    assert reply.detail == "the connection failed (gaierror)"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate of 127.0.0.1, with its key in the same file."""
    cert, key = self_signed(tmp_path_factory.mktemp("tls"))
    both = cert.with_name("both.pem")
    both.write_bytes(key.read_bytes() + cert.read_bytes())
    return both


def server_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_a_certificate_that_is_not_trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Listener(always_queued, server_context(certificate)) as listener:
        user = User(listener.url)
        reply = user.perform()
        assert isinstance(reply, Unavailable)
        assert reply.detail.startswith("TLS failed")
        assert user.observed == [("check", "tls")]
        assert listener.requests == []
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
        assert User(listener.url).perform() == STILL_QUEUED


def test_plain_http_where_tls_was_meant() -> None:
    with Listener(always_queued) as listener:
        reply = User(f"https://127.0.0.1:{listener.port}").perform(timeout_s=1)
        assert isinstance(reply, Unavailable)
        assert listener.requests == []


def test_sixteen_threads_share_one_pool() -> None:
    with Listener(always_queued) as listener:
        user = User(listener.url, connections=16)
        with ThreadPoolExecutor(16) as pool:
            replies = list(pool.map(lambda _: user.perform(), range(320)))
        assert replies == [STILL_QUEUED] * 320
        assert len(listener.requests) == 320
        assert listener.connections <= 16


def test_a_call_that_was_cut_off_takes_no_other_along() -> None:
    """The time-out of one thread's call ends that call only."""

    def by_job(connection: Connection) -> None:
        while request := connection.read_request():
            if b"slow" in request:
                connection.hang()
            connection.answer(QUEUED)

    with Listener(by_job) as listener:
        user = User(listener.url, connections=8)
        calls = [(Check(job_id="slow"), 0.15) if n % 4 == 0 else (ONE, 5.0) for n in range(80)]
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda each: user.perform(*each), calls))
        for (call, _), reply in zip(calls, replies, strict=True):
            assert isinstance(reply, Unavailable if call.job_id == "slow" else JobStatus)


# --- bodies ---------------------------------------------------------------------------------------


def answering(body: bytes, *headers: str) -> Callable[[Connection], None]:
    def handle(connection: Connection) -> None:
        while connection.read_request():
            connection.answer(body, "200 OK", *headers)

    return handle


def test_a_body_as_long_as_is_taken() -> None:
    body = QUEUED + b" " * (MAX_BODY_BYTES - len(QUEUED))
    with Listener(answering(body)) as listener:
        assert User(listener.url).perform() == STILL_QUEUED


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_that_is_too_long_is_not_read(announced: bool) -> None:
    def handle(connection: Connection) -> None:
        connection.read_request()
        length = f"Content-Length: {10**12}\r\n" if announced else ""
        connection.sock.sendall(f"HTTP/1.1 200 OK\r\n{length}\r\n".encode())
        while True:
            connection.sock.sendall(b" " * 65536)

    with Listener(handle) as listener:
        user = User(listener.url)
        assert user.perform() == Malformed(detail="it is longer than 8 MiB")
        assert user.observed == [("check", "too_long")]


@pytest.mark.parametrize("layers", [1, 2])
def test_a_gzip_bomb_stays_small(layers: int) -> None:
    body = b"".join(gzip.compress(b" " * 2**24, 1) for _ in range(16))  # 256 MiB in members of 16
    if layers == 2:
        body = gzip.compress(body)
    encoding = "Content-Encoding: " + ", ".join(["gzip"] * layers)
    with Listener(answering(body, encoding)) as listener:
        user = User(listener.url)
        tracemalloc.start()
        try:
            reply = user.perform(timeout_s=20)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert reply == Malformed(detail="it is longer than 8 MiB")
        assert peak < 6 * MAX_BODY_BYTES


def test_a_compressed_body_and_one_that_only_says_so() -> None:
    with Listener(answering(gzip.compress(QUEUED), "Content-Encoding: gzip")) as listener:
        assert User(listener.url).perform() == STILL_QUEUED
    with Listener(answering(QUEUED, "Content-Encoding: gzip")) as listener:
        assert isinstance(User(listener.url).perform(), Unavailable | Malformed)


GARBAGE = (
    b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"X-Many: 1\r\n" * 300 + b"\r\n",
    b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 100_000 + b"\r\n\r\n",
    b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 OK\r\n\r\n",
    b"\x00\xff\x00\xff\r\n\r\n",
    b"SSH-2.0-OpenSSH_9\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: \xff\xfe\r\nContent-Length: 2\r\n\r\n\xff\xfe",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: http://[\r\nContent-Length: 0\r\n\r\n",
)


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
def test_whatever_comes_back_is_a_reply(garbage: bytes) -> None:
    def handle(connection: Connection) -> None:
        connection.read_request()
        connection.sock.sendall(garbage)

    with Listener(handle) as listener:
        user = User(listener.url)
        for call in (ONE, Collect(job_id="job_1")):
            assert isinstance(user.perform(call, timeout_s=2), Unavailable | Malformed)
        assert len(listener.requests) == 2


# --- what is sent ---------------------------------------------------------------------------------


def test_what_is_sent() -> None:
    with Listener(answering(b"{}")) as listener:
        user = User(f"{listener.url}/v1")
        for call in (ONE, Collect(job_id="job_1"), Cancel(job_id="job_1")):
            user.perform(call)
        heads = [request.partition(b"\r\n")[0].decode() for request in listener.requests]
        assert heads == [
            "GET /v1/jobs/job_1/status HTTP/1.1",
            "GET /v1/jobs/job_1/result HTTP/1.1",
            "POST /v1/jobs/job_1/cancel HTTP/1.1",
        ]
        assert listener.requests[2].endswith(b"\r\n\r\n{}")
        assert b"content-type: application/json" in listener.requests[2].lower()
        assert all(b"user-agent: sume-operator/" in request.lower() for request in listener.requests)


ODD_KEYS = [
    "plain",
    "two words",
    "two%20words",
    "line\nbreak",
    "line%0Abreak",
    "naïve/1",
    "na%C3%AFve/1",
    "鍵",
    "a+b",
    "a b",
    "%",
]


@pytest.mark.parametrize(
    ("key", "header"),
    [
        ("5e0b-1/2", b"5e0b-1/2"),
        ("!#$&'()*+,:;=?@[]^_`{|}~<>\"\\", b"!#$&'()*+,:;=?@[]^_`{|}~<>\"\\"),
        ("two words", b"two%20words"),
        (" x ", b"%20x%20"),
        ("a\nX-Evil: 1\r\n\r\n", b"a%0AX-Evil:%201%0D%0A%0D%0A"),
        ("naïve 鍵", b"na%C3%AFve%20%E9%8D%B5"),
        ("100%", b"100%25"),
        ("a\tb\x7f\x00", b"a%09b%7F%00"),
    ],
)
def test_an_idempotency_key_is_percent_encoded_always_alike(key: str, header: bytes) -> None:
    with Listener(always_queued) as listener:
        user = User(listener.url)
        for _ in range(2):
            user.perform(submit(key=key))
        for request in listener.requests:
            lines = request.partition(b"\r\n\r\n")[0].split(b"\r\n")
            assert [line for line in lines if line.lower().startswith(b"idempotency-key")] == [
                b"Idempotency-Key: " + header
            ]
            assert not [line for line in lines if line.startswith(b"X-Evil")]


@pytest.mark.parametrize(
    ("endpoint", "model", "line", "body"),
    [
        ("VideoRouter", "veo", b"POST /v1/video-router/generate HTTP/1.1", {"model": "veo", "prompt": "Hé", "n": 1}),
        ("ImageRouter", "f/x", b"POST /v1/image-router/generate HTTP/1.1", {"model": "f/x", "prompt": "Hé", "n": 1}),
        (
            "ModelRuns",
            "sume/avatar-video/v1.0",
            b"POST /v1/models/sume/avatar-video/v1.0/runs HTTP/1.1",
            {"prompt": "Hé", "n": 1},
        ),
        ("ModelRuns", "a b?c#d", b"POST /v1/models/a%20b%3Fc%23d/runs HTTP/1.1", {"prompt": "Hé", "n": 1}),
    ],
)
def test_each_entry_point(endpoint: str, model: str, line: bytes, body: dict[str, Any]) -> None:
    with Listener(always_queued) as listener:
        User(f"{listener.url}/v1").perform(submit(model, endpoint, prompt="Hé", n=1))
        head, _, sent = listener.requests[0].partition(b"\r\n\r\n")
        assert head.split(b"\r\n")[0] == line
        assert json.loads(sent) == body
        assert b"content-type: application/json" in head.lower()


def test_a_request_without_arguments_has_a_body_all_the_same() -> None:
    with Listener(always_queued) as listener:
        User(listener.url).perform(submit("m/1", "ModelRuns"))
        assert listener.requests[0].partition(b"\r\n\r\n")[2] == b"{}"


def test_arguments_replace_no_model() -> None:
    with Listener(always_queued) as listener:
        call = Submit(endpoint="VideoRouter", model="veo", idempotency_key="k", arguments={"model": "dear"})
        User(listener.url).perform(call)
        assert json.loads(listener.requests[0].partition(b"\r\n\r\n")[2]) == {"model": "veo"}


@pytest.mark.parametrize("ending", ["closed", "reset", "hangs"])
def test_what_arrived_counts_as_sent(ending: str) -> None:
    def take_it(connection: Connection) -> None:
        connection.read_request()
        if ending == "reset":
            connection.reset()
        elif ending == "hangs":
            connection.hang()

    with Listener(take_it) as listener:
        reply = User(listener.url).perform(submit(), timeout_s=0.5)
        assert isinstance(reply, Unavailable)
        assert reply.was_sent
        assert len(listener.requests) == 1


def test_what_nobody_took_counts_as_not_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for base in (f"http://127.0.0.1:{port}", f"https://127.0.0.1:{port}", "http://no-such-host.invalid"):
        reply = User(base).perform(submit())
        assert isinstance(reply, Unavailable)
        assert not reply.was_sent, base


def test_what_the_first_try_may_have_brought_counts_as_sent() -> None:
    """The server takes the request over a kept-alive connection and dies: the second try finds nobody."""
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    received: list[bytes] = []

    def take_one_and_die() -> None:
        sock, _ = server.accept()
        server.close()
        connection = Connection(0, sock, threading.Event(), received)
        connection.read_request()
        connection.answer(QUEUED)
        connection.read_request()
        sock.close()

    with ThreadPoolExecutor(1) as pool:
        dead = pool.submit(take_one_and_die)
        user = User(f"http://127.0.0.1:{port}")
        user.perform()
        reply = user.perform(submit())
        dead.result()
    assert reply == Unavailable(detail="the connection failed (ConnectionRefusedError)", was_sent=True)
    assert len(received) == 2


def test_a_certificate_is_looked_at_before_anything_is_sent(certificate: Path) -> None:
    with Listener(always_queued, server_context(certificate)) as listener:
        reply = User(listener.url).perform(submit())
        assert isinstance(reply, Unavailable)
        assert not reply.was_sent
        assert listener.requests == []


def test_tls_that_breaks_after_the_request_counts_as_sent(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))

    def garble(connection: Connection) -> None:
        connection.read_request()
        raw = socket.socket(fileno=connection.sock.detach())
        raw.sendall(b"\x17\x03\x03\x00\x20" + b"x" * 32)
        connection.stopping.wait(1)
        raw.close()

    with Listener(garble, server_context(certificate)) as listener:
        reply = User(listener.url).perform(submit())
        assert isinstance(reply, Unavailable)
        assert reply.was_sent
        assert len(listener.requests) == 1


def test_a_job_id_is_percent_encoded() -> None:
    with Listener(always_queued) as listener:
        User(listener.url).perform(Check(job_id="a/../b?c#d é%41"))
        assert listener.requests[0].startswith(b"GET /jobs/a%2F..%2Fb%3Fc%23d%20%C3%A9%2541/status HTTP/1.1\r\n")


# --- the simulated Sume ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sandbox() -> Iterator[str]:
    config = SandboxConfig(host="127.0.0.1", port=0, queue_s=0, process_s=0, next_poll_s=7)
    with running(config) as base:
        yield base


def put(base: str, path: str, body: Any) -> None:
    answer = requests.put(f"{base.removesuffix('/v1')}/_sandbox{path}", json=body, timeout=5)
    assert answer.ok, answer.text


def job_in(shape: int, fate: str) -> str:
    """A job id with that word in it, whose answers have that shape."""
    return next(job for n in range(10_000) if shape_of(job := f"job_{fate}-{n}") is SHAPES[shape])


def meaning(reply: Reply) -> object:
    """What a reply says, without how: synonyms, signatures and what only some shapes tell are taken off."""
    match reply:
        case JobStatus():
            error = reply.error and (reply.error.code, reply.error.message, reply.error.public_reason)
            return state_of(reply.word), reply.next_poll_s, error
        case JobResult():
            return sorted((found.kind, found.url.partition("?")[0].rpartition("/")[2]) for found in reply.found)
        case _:
            return reply


VIDEO = [("video", "1.mp4")]
MULTI = [("audio", "3.mp3"), ("image", "2.png"), ("video", "1.mp4")]
GONE = JobUnknown(http_status=410, message="The result of this job is no longer available.")
FAILED = ("Failed", None, ("generation_failed", "The generation failed.", None))
REFUSED = ("Failed", None, ("generation_failed", "The input was refused.", "content_policy_rejected"))
COMPLETED = ("Completed", None, None)


@pytest.mark.parametrize(
    ("fate", "status", "result"),
    [
        ("plain", COMPLETED, VIDEO),
        ("multi", COMPLETED, MULTI),
        ("image", COMPLETED, [("image", "1.png")]),
        ("multi-image", COMPLETED, [("image", "1.png"), ("image", "2.png"), ("image", "3.png")]),
        ("expired", COMPLETED, JobUnknown),
        ("fail", FAILED, Refusal),
        ("nsfw", REFUSED, Refusal),
        ("cancel", ("Canceled", None, None), Refusal),
        ("missing", JobUnknown, JobUnknown),
    ],
)
def test_every_shape_means_the_same(sandbox: str, fate: str, status: object, result: object) -> None:
    user = User(sandbox)
    for shape in range(len(SHAPES)):
        job = job_in(shape, fate)
        for call, expected in ((Check(job_id=job), status), (Collect(job_id=job), result)):
            reply = user.perform(call)
            if isinstance(expected, type):
                assert isinstance(reply, expected), (shape, reply)
            else:
                assert meaning(reply) == expected, (shape, reply)
        reply = user.perform(Cancel(job_id=job))
        assert isinstance(reply, JobUnknown if fate == "missing" else Refusal), (shape, reply)


@pytest.mark.parametrize("word", ["queued", "processing"])
def test_every_shape_says_when_to_look_again(sandbox: str, word: str) -> None:
    entry = {"status": word, "next_poll_after_seconds": 7}
    put(sandbox, "/jobs", {"jobs": {f"{word}-{n}": {"script": [entry], "shape": n} for n in range(len(SHAPES))}})
    user = User(sandbox)
    for shape in range(len(SHAPES)):
        reply = user.perform(Check(job_id=f"{word}-{shape}"))
        assert isinstance(reply, JobStatus)
        assert (state_of(reply.word), reply.next_poll_s, reply.error) == (word.title(), 7, None)
        assert reply.terminal is (False if SHAPES[shape].says_terminal else None)
        assert (reply.usage is not None) == SHAPES[shape].tells_usage
        if reply.usage is not None:
            assert (reply.usage.amount, reply.usage.currency, reply.usage.state) == ("0.42", "USD", "reserved")


def test_every_shape_takes_a_cancel(sandbox: str) -> None:
    jobs = {f"stop-{n}": {"script": [{"status": "queued"}], "shape": n} for n in range(len(SHAPES))}
    put(sandbox, "/jobs", {"jobs": jobs})
    user = User(sandbox)
    assert [user.perform(Cancel(job_id=job)) for job in jobs] == [CancelAccepted()] * len(SHAPES)


def submit(model: str = "veo", endpoint: str = "VideoRouter", key: str = "k", **arguments: Any) -> Submit:
    return Submit(endpoint=endpoint, model=model, idempotency_key=key, arguments=arguments)


def test_the_same_key_twice_is_one_job(sandbox: str) -> None:
    user = User(sandbox)
    for endpoint, model in (("VideoRouter", "veo"), ("ImageRouter", "flux"), ("ModelRuns", "sume/avatar-video/v1.0")):
        first, second, other = (user.perform(submit(model, endpoint, key=f"{model}{n}")) for n in (1, 1, 2))
        assert isinstance(first, Submitted)
        assert isinstance(second, Submitted)
        assert isinstance(other, Submitted)
        assert (first.replayed, second.replayed, other.replayed) == (False, True, False)
        assert first.job_id == second.job_id != other.job_id
        assert first.word
        assert isinstance(user.perform(Check(job_id=first.job_id)), JobStatus)


def test_odd_keys_stay_apart_at_sume(sandbox: str) -> None:
    user = User(sandbox)
    jobs: dict[str, str] = {}
    for _ in range(2):
        for key in ODD_KEYS:
            reply = user.perform(submit(key=key))
            assert isinstance(reply, Submitted)
            assert jobs.setdefault(key, reply.job_id) == reply.job_id
    assert len(set(jobs.values())) == len(ODD_KEYS)


def test_every_shape_names_the_job(sandbox: str) -> None:
    user = User(sandbox)
    replies = [user.perform(submit(key=f"shape-{number}")) for number in range(20)]
    made = {reply.job_id for reply in replies if isinstance(reply, Submitted)}
    assert len(made) == 20
    assert len({SHAPES.index(shape_of(job_id)) for job_id in made}) > 3


def test_refusals_of_the_simulated_sume(sandbox: str) -> None:
    user = User(sandbox)
    broke = user.perform(submit("no-credits", key="broke"))
    assert isinstance(broke, Refusal)
    assert (broke.http_status, broke.code) == (402, "insufficient_credits")
    invalid = user.perform(submit("invalid-1", key="invalid"))
    assert isinstance(invalid, Refusal)
    assert invalid.http_status == 422
    assert "There is no such model." in (invalid.message or "")


def test_faults_of_the_simulated_sume(sandbox: str) -> None:
    user = User(sandbox)
    raw: list[tuple[dict[str, Any], Reply]] = [
        ({"http_status": 503, "headers": {"Retry-After": "9"}}, Unavailable(detail="HTTP 503", retry_after_s=9)),
        ({"http_status": 429, "headers": {"Retry-After": "soon"}, "body": "no"}, RateLimited()),
        ({"http_status": 404, "body": "<html>"}, Malformed(detail="HTTP 404 without an error body of Sume's")),
        ({"http_status": 200, "body": "<html>"}, Malformed(detail="it is HTML")),
        ({"http_status": 200, "body": ""}, Malformed(detail="it is empty")),
        ({"drop": True}, Unavailable(detail="the connection failed (RemoteDisconnected)")),
    ]
    for number, (entry, expected) in enumerate(raw):
        put(sandbox, f"/jobs/fault-{number}", {"script": [entry]})
        fresh = User(sandbox)
        assert fresh.perform(Check(job_id=f"fault-{number}")) == expected
    put(sandbox, "/keys", {"keys": ["another"]})
    assert isinstance(user.perform(), Unauthorized)
    put(sandbox, "/keys", {"keys": []})
    put(sandbox, "/jobs/drip", {"script": [{"status": "queued", "delay_s": 30}]})
    seconds, reply = took_s(lambda: user.perform(Check(job_id="drip"), timeout_s=0.4))
    assert isinstance(reply, Unavailable)
    assert seconds < WELL_BEFORE_THE_END_S


def test_calls_per_second(sandbox: str, figures: Callable[[str], None]) -> None:
    user = User(sandbox)
    began_s = time.perf_counter()
    for _ in range(100):
        assert isinstance(user.perform(Check(job_id="job_plain")), JobStatus)
    figures(f"Sume, one thread against the sandbox in the same process: {100 / (time.perf_counter() - began_s):.0f}/s")
    assert json.dumps(user.observed).count('"200"') == 100
