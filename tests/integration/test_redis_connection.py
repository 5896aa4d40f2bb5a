"""The connection to Redis when something is wrong with it: bounded, never repeated, and no password in any text."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis

from controlplane import RedisServer
from kube import eventually
from listener import Connection, Listener
from sume_operator.adapters.due_queue import Claimed, DueQueue
from sume_operator.adapters.key_state import KeyState
from sume_operator.adapters.redis_connection import SOCKET_TIMEOUT_S, RedisUnavailableError, connect
from sume_operator.core.keys import NoteAnswer, NoteForbidden
from sume_operator.core.render import Ref

KEY = "test:polls"
A = Ref("ns", "a", "uid-a")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD, NEW = "0ld-s3cret-pa55", "n3w-s3cret-pa55"
MINE = Claimed(ref=A, lease="1.50", score="1.00", lateness_s=0, was_leased=False)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis") as server:
        yield server


def admin(server: RedisServer, password: str | None = None) -> Any:
    return redis.Redis.from_url(server.url, decode_responses=True, password=password)


def calls_on(client: Any) -> dict[str, Callable[[], Any]]:
    """Every kind of call that is ever made."""
    queue, keys = DueQueue(client, KEY), KeyState(client, KEY)
    return {
        "claim": lambda: queue.claim(1, 60),
        "settle": lambda: queue.settle(MINE, 5),
        "schedule": lambda: queue.schedule([(A, 5)]),
        "hasten": lambda: queue.hasten(A),
        "extend": lambda: queue.extend(MINE, 5),
        "drop": lambda: queue.drop(A),
        "measure": queue.measure,
        "count_leased": queue.count_leased,
        "count_foreign": queue.count_foreign,
        "is_whole": queue.is_whole,
        "begin_pass": queue.begin_pass,
        "end_pass": lambda: queue.end_pass("token"),
        "ping": queue.ping,
        "look": lambda: keys.look("fingerprint", NOW),
        "answered": lambda: keys.note("fingerprint", NoteAnswer(job_id="job_1")),
        "forbidden": lambda: keys.note("fingerprint", NoteForbidden(job_id="job_1")),
    }


def seconds_until_refused(call: Callable[[], Any]) -> float:
    began_s = time.monotonic()
    with pytest.raises(RedisUnavailableError):
        call()
    return time.monotonic() - began_s


def all_at_once(client: Any) -> dict[str, float]:
    """How long each kind of call took to fail, all of them at the same time."""
    calls = calls_on(client)
    with ThreadPoolExecutor(len(calls)) as pool:
        return dict(zip(calls, pool.map(seconds_until_refused, calls.values()), strict=True))


def test_a_black_hole_costs_one_time_out_and_one_command(figures: Callable[[str], None]) -> None:
    def swallow(connection: Connection) -> None:
        while data := connection.sock.recv(65536):
            connection.received.append(data)

    with Listener(swallow) as hole:
        client = connect(f"redis://127.0.0.1:{hole.port}/0", connections=16)
        took_s = all_at_once(client)
        assert all(SOCKET_TIMEOUT_S * 0.9 < each < SOCKET_TIMEOUT_S + 0.5 for each in took_s.values()), took_s
        figures(f"redis, black hole: every call fails within {max(took_s.values()):.2f} s")
        assert hole.connections == len(took_s)
        assert len(hole.requests) == len(took_s), "something was sent twice"
        client.close()


def test_a_hung_server_costs_one_time_out_and_each_command_once(
    server: RedisServer, figures: Callable[[str], None]
) -> None:
    client, raw = connect(server.url, connections=16), admin(server)
    calls = calls_on(client)
    for call in calls.values():  # connections and scripts are there
        call()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: client.ping(), range(64)))
    before = _calls_of(raw)
    server.pause()
    try:
        took_s = all_at_once(client)
    finally:
        server.resume()
    assert all(each < SOCKET_TIMEOUT_S + 0.5 for each in took_s.values()), took_s
    figures(f"redis, hung server: every call fails within {max(took_s.values()):.2f} s")
    eventually(lambda: _calls_of(raw) - before >= 1, within_s=5)
    assert _calls_of(raw) - before <= sum(1 for name in took_s if name in _SCRIPTED)
    for call in calls.values():  # no answer of before is taken for one of now
        call()
    assert client.ping() is True
    assert client.time()[0] > 1
    client.close()
    raw.close()


_SCRIPTED = (
    "claim",
    "settle",
    "schedule",
    "hasten",
    "extend",
    "measure",
    "end_pass",
    "look",
    "answered",
    "forbidden",
)


def _calls_of(raw: Any) -> int:
    return int(raw.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0))


def test_nobody_listens() -> None:
    client = connect("redis://127.0.0.1:1/0", connections=1)
    claim = calls_on(client)["claim"]
    assert seconds_until_refused(claim) < 1
    with pytest.raises(RedisUnavailableError) as raised:
        claim()
    assert "0x" not in str(raised.value)


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_connection_that_the_server_closed_costs_at_most_one_command(server: RedisServer, protocol: int) -> None:
    client, raw = connect(f"{server.url}?protocol={protocol}", connections=4), admin(server)
    queue = DueQueue(client, KEY)
    for _ in range(5):
        queue.hasten(A)
        assert raw.client_kill_filter(_type="normal", skipme=True) >= 1
        failures = 0
        try:
            queue.ping()
        except RedisUnavailableError:
            failures += 1
        queue.ping()
        assert queue.measure().size == 1
        assert failures <= 1
    client.close()
    raw.close()


def test_a_rotated_password_is_read_at_the_next_connect(server: RedisServer, tmp_path: Path) -> None:
    raw = admin(server)
    raw.config_set("requirepass", OLD)
    raw.auth(OLD)
    file = tmp_path / "password"
    file.write_text(f"{OLD}\n", encoding="utf-8")
    client = connect(server.url, connections=2, password_file=file)
    queue = DueQueue(client, KEY)
    queue.hasten(A)
    raw.config_set("requirepass", NEW)
    queue.ping()  # who is in, stays in
    raw.client_kill_filter(_type="normal", skipme=True)
    for _ in range(2):
        with pytest.raises(RedisUnavailableError) as raised:
            queue.ping()
        _assert_secret_free(raised.value)
    file.write_text(NEW, encoding="utf-8")
    queue.ping()
    assert [c.ref for c in queue.claim(1, 60).claimed] == [A]
    _assert_secret_free(client)
    client.close()
    raw.close()


def test_a_password_and_a_user_from_url_and_file(server: RedisServer, tmp_path: Path) -> None:
    raw = admin(server)
    raw.acl_setuser("poller", enabled=True, passwords=[f"+{OLD}"], keys=["*"], categories=["+@all"])
    file = tmp_path / "password"
    file.write_text(OLD, encoding="utf-8")
    address = f"127.0.0.1:{server.port}/0"
    for client in (
        connect(f"redis://poller@{address}", connections=1, password_file=file),
        connect(f"redis://%70oller:{NEW}@{address}", connections=1, password_file=file),
        connect(f"redis://poller:{OLD}@{address}", connections=1),
    ):
        assert client.acl_whoami() == "poller"
        client.close()
    client = connect(f"redis://poller:{NEW}@{address}", connections=1)
    with pytest.raises(RedisUnavailableError) as raised:
        DueQueue(client, KEY).ping()
    _assert_secret_free(raised.value)
    raw.close()


def test_a_password_file_that_is_missing_or_wrong_is_trouble_like_any_other(
    server: RedisServer, tmp_path: Path
) -> None:
    raw = admin(server)
    binary = OLD.encode() + b"\xff\xfe"
    raw.config_set("requirepass", binary)
    file = tmp_path / "password"
    client = connect(server.url, connections=1, password_file=file)
    queue = DueQueue(client, KEY)
    for content in (None, b"", OLD.encode(), b"\xff", b"a\0b"):
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(RedisUnavailableError) as raised:
            queue.ping()
        _assert_secret_free(raised.value)
    file.write_bytes(binary + b"\r\n")
    queue.ping()
    client.close()
    raw.close()


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:{OLD}/x@127.0.0.1:6379/0",
        f"redis://:{OLD}@127.0.0.1:port/0",
        f"redis://:{OLD}@[::1/0",
        f"http://:{OLD}@127.0.0.1/0",
        f"redis://:{OLD}@127.0.0.1/0?socket_timeout=x",
    ],
)
def test_a_url_that_is_none_is_refused_without_its_password(url: str, tmp_path: Path) -> None:
    for file in (None, tmp_path / "password"):
        with pytest.raises(ValueError, match="URL") as raised:
            connect(url, connections=1, password_file=file)
        _assert_secret_free(raised.value)


def test_a_replica_refuses_writes_and_says_so(server: RedisServer) -> None:
    client, raw = connect(server.url, connections=1), admin(server)
    queue = DueQueue(client, KEY)
    queue.hasten(A)
    raw.replicaof("127.0.0.1", "1")
    with pytest.raises(RedisUnavailableError, match=r"(?i)read.?only"):
        queue.claim(1, 60)
    raw.replicaof("NO", "ONE")
    assert [c.ref for c in queue.claim(1, 60).claimed] == [A]
    client.close()
    raw.close()


def test_a_server_busy_with_a_script_is_trouble_until_it_is_free(server: RedisServer) -> None:
    client, raw, other = connect(server.url, connections=1), admin(server), admin(server)
    queue = DueQueue(client, KEY)
    queue.hasten(A)
    raw.config_set("busy-reply-threshold", 20)
    with ThreadPoolExecutor(1) as pool:
        endless = pool.submit(lambda: other.eval("while true do end", 0))
        with pytest.raises(RedisUnavailableError, match=r"(?i)busy"):
            eventually(lambda: queue.claim(0, 60) and None, within_s=10)
        raw.script_kill()
        with pytest.raises(redis.RedisError):
            endless.result()
    assert [c.ref for c in queue.claim(1, 60).claimed] == [A]
    for each in (client, raw, other):
        each.close()


def _assert_secret_free(value: object) -> None:
    for text in (str(value), repr(value), repr(getattr(value, "__cause__", None))):
        assert OLD not in text
        assert NEW not in text
        assert OLD[:6] not in text
