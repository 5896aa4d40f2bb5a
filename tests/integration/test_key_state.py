"""What all pollers know of one key together, on a real server: holds, probes, refusals, answered jobs."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from controlplane import RedisServer
from kube import eventually
from sume_operator.adapters.key_state import KeyState
from sume_operator.adapters.redis_connection import RedisUnavailableError, connect
from sume_operator.core.keys import NOTHING_KNOWN, KeyView, NoteAnswer, NoteForbidden, Pause
from sume_operator.core.pace import KEY_PROBE_S

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUEUE = "test:polls"
KEY, OTHER = "fingerprint-1", "fingerprint-2"


class Pollers:
    """Several pollers' view of the keys: each has a connection pool of its own."""

    def __init__(self, server: RedisServer) -> None:
        self._clients = [connect(server.url, connections=16) for _ in range(2)]
        self.first, self.second = (KeyState(client, QUEUE) for client in self._clients)
        self.raw: Any = redis.Redis.from_url(server.url, decode_responses=True)
        self.raw.flushall()

    def close(self) -> None:
        for client in (*self._clients, self.raw):
            client.close()

    def is_held(self, key: str = KEY) -> bool:
        return self.second.look(key, NOW).hold_reason is not None

    def lapse(self) -> None:
        """As if the time of the hold were over."""
        self.raw.hset(f"{QUEUE}:key:{KEY}", "until", 1)


@pytest.fixture
def pollers(redis_server: RedisServer) -> Iterator[Pollers]:
    pollers = Pollers(redis_server)
    yield pollers
    pollers.close()


def pause(hold_s: float = KEY_PROBE_S) -> Pause:
    return Pause(reason="Unauthorized", hold_s=hold_s, probe=True)


def limit(hold_s: float) -> Pause:
    return Pause(reason="RateLimited", hold_s=hold_s, probe=False)


def test_nothing_is_known_of_a_new_key(pollers: Pollers) -> None:
    assert pollers.first.look(KEY, NOW) == replace(NOTHING_KNOWN, fingerprint=KEY)
    assert pollers.raw.keys("*") == []


def test_a_refused_key_is_held_for_everybody_and_for_no_other_key(pollers: Pollers) -> None:
    pollers.first.note(KEY, pause())
    view = pollers.second.look(KEY, NOW)
    assert (view.hold_reason, view.in_doubt) == ("Unauthorized", True)
    assert view.hold_s == pytest.approx(KEY_PROBE_S, abs=1)
    assert pollers.second.look(OTHER, NOW) == replace(NOTHING_KNOWN, fingerprint=OTHER)


def test_one_look_goes_through_per_probe_period(pollers: Pollers) -> None:
    pollers.first.note(KEY, pause())
    for _ in range(3):
        pollers.lapse()
        with ThreadPoolExecutor(16) as pool:
            views: list[KeyView] = list(pool.map(lambda _: pollers.first.look(KEY, NOW), range(32)))
        through = [view for view in views if view.hold_reason is None]
        assert len(through) == 1
        assert through[0].in_doubt
        held = pollers.second.look(KEY, NOW)
        assert held.hold_reason == "Unauthorized"
        assert held.hold_s == pytest.approx(KEY_PROBE_S, abs=1)


def test_a_pause_ends_with_its_time_by_the_servers_clock(pollers: Pollers) -> None:
    pollers.first.note(KEY, pause(0.05))
    assert pollers.is_held()
    eventually(lambda: not pollers.is_held(), within_s=3, every_s=0.01)
    assert pollers.is_held(), "the look that went through holds the others"


def test_an_answer_lifts_a_pause(pollers: Pollers) -> None:
    pollers.first.note(KEY, pause())
    pollers.first.note(KEY, NoteAnswer(job_id="job_1"))
    view = pollers.second.look(KEY, NOW)
    assert (view.hold_reason, view.hold_s, view.in_doubt) == (None, 0, False)


def test_a_hold_is_never_shortened(pollers: Pollers) -> None:
    pollers.first.note(KEY, limit(500))
    pollers.second.note(KEY, limit(5))
    assert pollers.first.look(KEY, NOW).hold_s == pytest.approx(500, abs=1)
    pollers.second.note(KEY, pause())
    view = pollers.first.look(KEY, NOW)
    assert view.hold_reason == "RateLimited"
    assert view.hold_s == pytest.approx(500, abs=1)
    pollers.second.note(KEY, limit(900))
    assert pollers.first.look(KEY, NOW).hold_s == pytest.approx(900, abs=1)


def test_after_a_rate_limit_everybody_goes_on(pollers: Pollers) -> None:
    pollers.first.note(KEY, limit(0.05))
    assert pollers.is_held()
    eventually(lambda: not pollers.is_held(), within_s=3, every_s=0.01)
    assert not pollers.is_held()
    assert pollers.first.look(KEY, NOW) == replace(NOTHING_KNOWN, fingerprint=KEY)


def test_three_different_jobs_with_403_in_a_row_pause_the_key(pollers: Pollers) -> None:
    for job in ("job_1", "job_1", "job_2", "job_1", "job_2"):
        pollers.first.note(KEY, NoteForbidden(job_id=job))
    view = pollers.second.look(KEY, NOW)
    assert (view.hold_reason, view.in_doubt) == (None, True)
    pollers.second.note(KEY, NoteForbidden(job_id="job_3"))
    view = pollers.first.look(KEY, NOW)
    assert view.hold_reason == "Unauthorized"
    assert view.hold_s == pytest.approx(KEY_PROBE_S, abs=1)
    assert not pollers.is_held(OTHER)


def test_an_answer_between_makes_the_count_of_403_begin_anew(pollers: Pollers) -> None:
    for job in ("job_1", "job_2"):
        pollers.first.note(KEY, NoteForbidden(job_id=job))
    pollers.second.note(KEY, NoteAnswer(job_id="job_9"))
    assert not pollers.first.look(KEY, NOW).in_doubt
    for job in ("job_3", "job_4"):
        pollers.first.note(KEY, NoteForbidden(job_id=job))
    assert not pollers.is_held()
    pollers.first.note(KEY, NoteForbidden(job_id="job_1"))
    assert pollers.is_held()


def test_two_different_answered_jobs_are_remembered_with_their_age(pollers: Pollers) -> None:
    pollers.first.note(KEY, NoteAnswer(job_id="job_1"))
    pollers.raw.hset(f"{QUEUE}:key:{KEY}", "at1", _now_ms(pollers) - 90_000)
    for _ in range(3):
        pollers.first.note(KEY, NoteAnswer(job_id="job_2"))
    newer, older = pollers.second.look(KEY, NOW).answered
    assert (newer.job_id, older.job_id) == ("job_2", "job_1")
    assert abs(newer.time - NOW) < timedelta(seconds=2)
    assert abs(older.time - (NOW - timedelta(seconds=90))) < timedelta(seconds=2)
    pollers.first.note(KEY, NoteAnswer(job_id="job_3"))
    assert [a.job_id for a in pollers.second.look(KEY, NOW).answered] == ["job_3", "job_2"]


def test_answers_are_remembered_through_a_pause(pollers: Pollers) -> None:
    pollers.first.note(KEY, NoteAnswer(job_id="job_1"))
    pollers.first.note(KEY, pause())
    assert [a.job_id for a in pollers.second.look(KEY, NOW).answered] == ["job_1"]


def test_nothing_of_a_key_is_kept_for_ever(pollers: Pollers) -> None:
    for note in (NoteAnswer(job_id="job_1"), NoteForbidden(job_id="job_1"), pause()):
        pollers.first.note(KEY, note)
    assert len(pollers.raw.keys("*")) == 2
    assert all(0 < pollers.raw.ttl(name) <= 2 * 86_400 for name in pollers.raw.keys("*"))


def test_trouble_is_counted_and_raised(redis_server: RedisServer) -> None:
    errors: list[int] = []
    client = connect(redis_server.url.replace(str(redis_server.port), "1"), connections=1)
    keys = KeyState(client, QUEUE, on_error=lambda: errors.append(1))
    with pytest.raises(RedisUnavailableError):
        keys.look(KEY, NOW)
    with pytest.raises(RedisUnavailableError):
        keys.note(KEY, NoteAnswer(job_id="job_1"))
    assert len(errors) == 2


def test_submissions_are_held_apart_from_reads(pollers: Pollers) -> None:
    pollers.first.note(KEY, limit(500), submissions=True)
    assert pollers.second.look(KEY, NOW).hold_reason is None
    view = pollers.second.look(KEY, NOW, submissions=True)
    assert (view.hold_reason, view.fingerprint) == ("RateLimited", KEY)
    pollers.first.note(KEY, limit(500))
    pollers.first.note(KEY, NoteAnswer(job_id="job_1"))
    assert not pollers.is_held()
    assert pollers.second.look(KEY, NOW, submissions=True).hold_reason == "RateLimited"


def _now_ms(pollers: Pollers) -> int:
    return int(pollers.raw.time()[0]) * 1000
