"""The sorted set on a real server: every rule of the scripts, then many threads at once, then against a model."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from controlplane import RedisServer
from controlplane.redis_server import Flavour
from kube import eventually
from redis_flavours import start
from sume_operator.adapters.due_queue import HASTENED, LOST, REMOVED, Claimed, DueQueue
from sume_operator.adapters.redis_connection import RedisUnavailableError, connect
from sume_operator.core.render import Ref

KEY = "test:polls"
BAND = 1e12
LONG_S = 3600.0
A, B, C = (Ref("ns", name, f"uid-{name}") for name in "abc")
REFS = tuple(Ref("ns", f"render-{number:02}", f"uid-{number}") for number in range(40))


@pytest.fixture(scope="module", params=["redis", "valkey"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    flavour: Flavour = request.param
    with start(flavour, tmp_path_factory.mktemp(flavour)) as server:
        yield server


@dataclass(frozen=True, slots=True)
class Bench:
    """A queue, and the set behind it as anybody can see it."""

    queue: DueQueue
    raw: Any

    def now_ms(self) -> int:
        seconds, microseconds = self.raw.time()
        return int(seconds) * 1000 + int(microseconds) // 1000

    def score(self, ref: Ref, key: str = KEY) -> float | None:
        score: float | None = self.raw.zscore(key, ref.member)
        return score

    def scores(self, key: str = KEY) -> dict[str, float]:
        return dict(self.raw.zrange(key, 0, -1, withscores=True))

    def put(self, ref: Ref, score: float) -> None:
        self.raw.zadd(KEY, {ref.member: score})

    def wait_past(self, score: float) -> None:
        """Until Redis' clock has passed it."""
        eventually(lambda: self.now_ms() > score, within_s=5, every_s=0.001)

    def claim_one(self, ref: Ref, lease_s: float = 60) -> Claimed:
        """The only member that is due, which is `ref`."""
        (claimed,) = self.queue.claim(10, lease_s).claimed
        assert claimed.ref == ref
        return claimed


@pytest.fixture(params=[2, 3], ids=["RESP2", "RESP3"])
def bench(server: RedisServer, request: pytest.FixtureRequest) -> Iterator[Bench]:
    with using(server, protocol=request.param) as bench:
        yield bench


class using:  # noqa: N801  # a context manager that reads like one
    """A Bench on `server`, emptied first."""

    def __init__(self, server: RedisServer, protocol: int = 3, connections: int = 16) -> None:
        self._client = connect(f"{server.url}?protocol={protocol}", connections=connections)
        self._raw: Any = redis.Redis.from_url(server.url, decode_responses=True)

    def __enter__(self) -> Bench:
        self._raw.flushall()
        return Bench(DueQueue(self._client, KEY), self._raw)

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._raw.close()


# --- claim ----------------------------------------------------------------------------------------


def test_a_claim_takes_what_is_due_in_order_new_ones_first(bench: Bench) -> None:
    now = bench.now_ms()
    bench.put(A, now - 50)
    bench.put(B, now - 90_000)
    bench.put(C, now + 60_000)
    bench.queue.hasten(REFS[1])
    bench.wait_past(bench.now_ms())
    assert bench.queue.schedule([(REFS[0], 0.0)]) == 1
    claims = bench.queue.claim(10, 60)
    assert [c.ref for c in claims.claimed] == [REFS[1], REFS[0], B, A]
    assert claims.next_due_s == pytest.approx(60, abs=5)
    assert all(c.lateness_s < 5 for c in claims.claimed if c.ref != B)
    assert claims.claimed[2].lateness_s == pytest.approx(90, abs=5)
    assert not any(c.was_leased for c in claims.claimed)
    assert bench.score(C) == now + 60_000


def test_a_claim_takes_no_more_than_a_batch_and_leaves_the_rest_alone(bench: Bench) -> None:
    now = bench.now_ms()
    for number, ref in enumerate(REFS):
        bench.put(ref, now - 1000 + number)
    before = bench.scores()
    claims = bench.queue.claim(16, 60)
    assert [c.ref for c in claims.claimed] == list(REFS[:16])
    assert claims.next_due_s == 0
    after = bench.scores()
    assert {m: after[m] for m in after if m not in {r.member for r in REFS[:16]}} == {
        r.member: before[r.member] for r in REFS[16:]
    }
    assert {c.lease for c in claims.claimed} == {f"{after[REFS[0].member]:.2f}"}
    assert after[REFS[0].member] % 1 == 0.5
    assert after[REFS[0].member] == pytest.approx(now + 60_000, abs=5000)


def test_an_empty_set_says_so(bench: Bench) -> None:
    claims = bench.queue.claim(5, 60)
    assert (claims.claimed, claims.next_due_s, claims.foreign) == ((), None, ())
    assert not bench.raw.exists(KEY)


@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.75])
def test_scores_come_back_exactly(bench: Bench, fraction: float) -> None:
    score = bench.now_ms() - 7 + fraction
    bench.put(A, score)
    claimed = bench.claim_one(A)
    assert claimed.score == f"{score:.2f}"
    assert claimed.was_leased == (fraction > 0)
    assert float(claimed.lease) == bench.score(A)


def test_a_lapsed_lease_is_claimed_again_and_the_late_one_cannot_settle(bench: Bench) -> None:
    bench.queue.hasten(A)
    first = bench.claim_one(A, lease_s=0.02)
    assert bench.queue.claim(10, 60).claimed == ()
    bench.wait_past(float(first.lease))
    second = bench.claim_one(A, lease_s=60)
    assert second.was_leased
    assert second.score == first.lease
    assert bench.queue.settle(first, None) == LOST
    assert bench.queue.settle(first, 5) == LOST
    assert bench.queue.extend(first, 60) == LOST
    assert bench.score(A) == float(second.lease)
    assert bench.queue.settle(second, None) == REMOVED


def test_a_claim_that_runs_twice_strands_nobody(bench: Bench) -> None:
    """The reply of the first is lost: its members come back when its lease ends, all of them."""
    for ref in REFS[:6]:
        bench.queue.hasten(ref)
    lost = bench.queue.claim(4, 0.05)
    again = bench.queue.claim(4, 60)
    assert {c.ref for c in (*lost.claimed, *again.claimed)} == set(REFS[:6])
    assert len(again.claimed) == 2
    bench.wait_past(float(lost.claimed[0].lease))
    assert {c.ref for c in bench.queue.claim(10, 60).claimed} == {c.ref for c in lost.claimed}
    assert set(bench.scores()) == {r.member for r in REFS[:6]}


# --- settle ---------------------------------------------------------------------------------------


def test_a_settled_alarm_is_due_after_its_delay(bench: Bench) -> None:
    bench.queue.hasten(A)
    score = bench.queue.settle(bench.claim_one(A), 12.3456)
    assert float(score) == bench.score(A)
    assert float(score) % 1 == 0
    assert float(score) == pytest.approx(bench.now_ms() + 12_345, abs=2000)
    bench.put(A, bench.now_ms() - 1)
    score = bench.queue.settle(bench.claim_one(A), 0)
    assert bench.claim_one(A).score == score


def test_many_are_settled_in_one_call_each_for_itself(bench: Bench) -> None:
    for ref in REFS[:5]:
        bench.queue.hasten(ref)
    kept, removed, lost, hastened, dropped = bench.queue.claim(5, 60).claimed
    bench.queue.hasten(hastened.ref)
    bench.queue.drop(dropped.ref)
    stale = replace(lost, lease=f"{float(lost.lease) - 1:.2f}")
    answers = bench.queue.settle_many([(kept, 30), (removed, None), (stale, 30), (hastened, 30), (dropped, 30)])
    assert answers[1:] == [REMOVED, LOST, HASTENED, LOST]
    assert float(answers[0]) == bench.score(kept.ref)
    assert bench.score(lost.ref) == float(lost.lease)
    assert bench.score(removed.ref) is None
    assert bench.score(dropped.ref) is None
    assert bench.queue.settle_many([]) == []


@pytest.mark.parametrize("delay_s", [None, 0.0, 300.0])
def test_a_look_asked_for_under_a_lease_comes_up_at_once_whatever_settle_wants(
    bench: Bench, delay_s: float | None
) -> None:
    bench.queue.hasten(A)
    claimed = bench.claim_one(A)
    bench.queue.hasten(A)
    bench.queue.hasten(A)
    assert bench.score(A) == float(claimed.lease) + 0.25
    assert bench.queue.claim(10, 60).claimed == ()
    assert bench.queue.settle(claimed, delay_s) == HASTENED
    again = bench.claim_one(A)
    assert float(again.score) < bench.now_ms() - BAND + 1
    assert (again.was_leased, again.lateness_s < 5) == (False, True)


# --- hasten, schedule, drop, extend ---------------------------------------------------------------


def test_hasten(bench: Bench) -> None:
    bench.queue.hasten(A)
    assert bench.score(A) == pytest.approx(bench.now_ms() - BAND, abs=2000)
    bench.queue.schedule([(B, 300)])
    bench.queue.hasten(B)
    assert bench.score(B) == pytest.approx(bench.now_ms() - BAND, abs=2000)
    for fraction in (0.5, 0.75):  # a lease that has lapsed protects nobody
        bench.put(C, bench.now_ms() - 10 + fraction)
        bench.queue.hasten(C)
        assert bench.score(C) == pytest.approx(bench.now_ms() - BAND, abs=2000)
    bench.put(C, bench.now_ms() + 60_000.75)
    before = bench.score(C)
    bench.queue.hasten(C)
    assert bench.score(C) == before


def test_schedule_adds_only_what_is_not_there(bench: Bench) -> None:
    bench.queue.hasten(A)
    claimed = bench.claim_one(A)
    bench.queue.schedule([(B, 300)])
    before = bench.scores()
    assert bench.queue.schedule([(A, 0), (B, 0), (C, 90)]) == 1
    assert {m: s for m, s in bench.scores().items() if m != C.member} == before
    assert bench.score(C) == pytest.approx(bench.now_ms() + 90_000, abs=2000)
    assert bench.queue.settle(claimed, None) == REMOVED
    many = [(Ref("ns", f"n{number}", "uid"), 60.0) for number in range(1234)]
    assert bench.queue.schedule(many) == 1234
    assert bench.queue.schedule(iter(many)) == 0
    assert bench.queue.schedule([]) == 0


def test_drop(bench: Bench) -> None:
    bench.queue.hasten(A)
    claimed = bench.claim_one(A)
    bench.queue.drop(A)
    bench.queue.drop(A)
    assert bench.queue.settle(claimed, 30) == LOST
    assert bench.scores() == {}


def test_extend_keeps_what_was_asked_for_under_the_lease(bench: Bench) -> None:
    bench.queue.hasten(A)
    first = bench.claim_one(A)
    longer = bench.queue.extend(first, 120.5)
    assert float(longer) == bench.score(A) == pytest.approx(bench.now_ms() + 120_500, abs=2000)
    assert bench.queue.extend(first, 60) == LOST
    assert bench.queue.settle(first, 1) == LOST
    bench.queue.hasten(A)
    longest = bench.queue.extend(replace(first, lease=longer), 200)
    assert bench.score(A) == float(longest) + 0.25
    assert bench.queue.settle(replace(first, lease=longest), None) == HASTENED


# --- foreign members ------------------------------------------------------------------------------


def test_foreign_members_are_set_aside_with_their_score(bench: Bench) -> None:
    foreign = {"job_0b6f": 1_700_000_000.0, "a/b": 5.0, "": 6.0, "a//b": 7.25, "with blanks \n and ünicode": 8.0}
    bench.raw.zadd(KEY, foreign)
    bench.raw.zadd(KEY, {"not-due-yet": 9e15})
    bench.queue.hasten(A)
    claims = bench.queue.claim(10, 60)
    assert [c.ref for c in claims.claimed] == [A]
    assert set(claims.foreign) == set(foreign)
    assert bench.scores(f"{KEY}:foreign") == foreign
    assert bench.queue.count_foreign() == len(foreign)
    assert set(bench.scores()) == {A.member, "not-due-yet"}


def test_a_member_that_is_no_text_is_set_aside_unchanged(bench: Bench, server: RedisServer) -> None:
    with redis.Redis.from_url(server.url) as raw:
        raw.zadd(KEY, {b"\xff\xfe\x00binary": 5})
        bench.queue.hasten(A)
        claims = bench.queue.claim(10, 60)
        assert [c.ref for c in claims.claimed] == [A]
        assert len(claims.foreign) == 1
        assert [tuple(row) for row in raw.zrange(f"{KEY}:foreign", 0, -1, withscores=True)] == [
            (b"\xff\xfe\x00binary", 5.0)
        ]
    assert set(bench.scores()) == {A.member}


# --- what it says of itself -----------------------------------------------------------------------


def test_measures_look_into_both_bands(bench: Bench) -> None:
    measures = bench.queue.measure()
    assert (measures.size, measures.due, measures.lag_s) == (0, 0, 0)
    now = bench.now_ms()
    bench.put(A, now - 30_000)
    bench.put(B, now + 90_000)
    measures = bench.queue.measure()
    assert (measures.size, measures.due) == (2, 1)
    assert measures.lag_s == pytest.approx(30, abs=2)
    bench.put(C, now - BAND - 70_000)
    measures = bench.queue.measure()
    assert (measures.size, measures.due) == (3, 2)
    assert measures.lag_s == pytest.approx(70, abs=2)
    bench.queue.claim(10, 60)
    assert bench.queue.measure().lag_s == 0
    assert bench.queue.count_leased() == 2


def test_an_express_alarm_is_not_taken_for_an_old_one_by_a_clock_that_was_set_back(bench: Bench) -> None:
    bench.put(A, bench.now_ms() - BAND + 400)
    bench.put(B, bench.now_ms() - BAND + 60_000)
    assert bench.queue.measure().lag_s < 5
    assert all(c.lateness_s < 5 for c in bench.queue.claim(10, 60).claimed)


def test_the_mark_of_a_whole_pass_goes_with_the_data(bench: Bench) -> None:
    assert not bench.queue.is_whole()
    assert bench.queue.end_pass(bench.queue.begin_pass())
    assert bench.queue.is_whole()
    bench.raw.flushall()
    assert not bench.queue.is_whole()


def test_a_pass_in_which_redis_was_emptied_is_not_whole(bench: Bench) -> None:
    token = bench.queue.begin_pass()
    bench.raw.flushall()
    assert not bench.queue.end_pass(token)
    other = bench.queue.begin_pass()
    assert not bench.queue.end_pass(token)
    assert not bench.queue.is_whole()
    assert bench.queue.end_pass(other)
    assert not bench.queue.end_pass(other)


# --- trouble --------------------------------------------------------------------------------------


def test_a_full_redis_refuses_claims_whole_and_loses_nobody(bench: Bench) -> None:
    for ref in REFS[:8]:
        bench.queue.hasten(ref)
    mine = bench.queue.claim(4, 60).claimed
    before = bench.scores()
    used = int(bench.raw.info("memory")["used_memory"])
    bench.raw.config_set("maxmemory-policy", "noeviction")
    bench.raw.config_set("maxmemory", used // 2)
    try:
        for refused in (
            lambda: bench.queue.claim(10, 60),
            lambda: bench.queue.settle(mine[0], 30),
            lambda: bench.queue.schedule([(C, 60)]),
            lambda: bench.queue.hasten(mine[1].ref),
        ):
            with pytest.raises(RedisUnavailableError, match=r"OOM|OutOfMemory"):
                refused()
        assert bench.scores() == before
        assert bench.queue.measure().size == 8
    finally:
        bench.raw.config_set("maxmemory", 0)
    assert len(bench.queue.claim(10, 60).claimed) == 4
    assert bench.queue.settle_many([(claimed, None) for claimed in mine]) == [REMOVED] * 4


def test_forgotten_scripts_are_taught_again(bench: Bench) -> None:
    bench.queue.hasten(A)
    bench.raw.script_flush()
    claimed = bench.claim_one(A)
    bench.raw.script_flush()
    assert bench.queue.settle(claimed, None) == REMOVED


def test_a_restart_costs_errors_but_no_new_client(tmp_path: Path) -> None:
    errors: list[int] = []
    with RedisServer(tmp_path) as server:
        client = connect(server.url, connections=4)
        queue = DueQueue(client, KEY, on_error=lambda: errors.append(1))
        queue.hasten(A)
        server.stop()
        for call in (lambda: queue.claim(1, 60), lambda: queue.drop(A), queue.ping, queue.is_whole, queue.measure):
            with pytest.raises(RedisUnavailableError):
                call()
        assert len(errors) == 5
        server.start()
        assert queue.claim(1, 60).claimed == ()  # what it held is lost; the sweep knows by the missing mark
        queue.hasten(A)
        assert [c.ref for c in queue.claim(1, 60).claimed] == [A]
        assert len(errors) == 5
        client.close()


# --- many at once ---------------------------------------------------------------------------------


def test_two_pollers_never_hold_one_alarm(server: RedisServer, figures: Callable[[str], None]) -> None:
    """Eight threads claim, hold, settle and hasten; who holds what is written down from outside."""
    holders: Counter[Ref] = Counter()
    held = threading.Lock()
    turns: Counter[Ref] = Counter()
    over_s = time.monotonic() + 1.5
    with using(server, connections=8) as bench:
        queue = bench.queue
        queue.schedule([(ref, 0.0) for ref in REFS])

        def work(seed: int) -> None:
            dice = random.Random(seed)
            while time.monotonic() < over_s:
                claimed = queue.claim(dice.randint(1, 6), 30).claimed
                with held:
                    holders.update(c.ref for c in claimed)
                    assert not [ref for ref, count in holders.items() if count > 1]
                    turns.update(c.ref for c in claimed)
                queue.hasten(dice.choice(REFS))
                with held:  # let go of before it is given back: afterwards another may have it
                    holders.subtract(c.ref for c in claimed)
                answers = queue.settle_many([(c, dice.choice([0.0, 0.001, 0.003])) for c in claimed])
                assert LOST not in answers

        with ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(work, seed) for seed in range(8)]:
                done.result()
        assert set(turns) == set(REFS)
        assert set(bench.scores()) == {ref.member for ref in REFS}
        figures(f"due queue, 8 threads, claim + hasten + settle: {sum(turns.values()) / 1.5:,.0f} alarms/s")


def test_a_backlog_of_200000_slows_nobody_down(server: RedisServer, figures: Callable[[str], None]) -> None:
    with using(server) as bench:
        first_ms = bench.now_ms() - 10_000_000
        for start_at in range(0, 200_000, 20_000):
            members = {f"ns/r{n}/uid-{n}": first_ms + n for n in range(start_at, start_at + 20_000)}
            bench.raw.zadd(KEY, members)
        bench.queue.schedule([(A, 0.0)])
        bench.wait_past(bench.now_ms())
        bench.queue.hasten(Ref("ns", "r199999", "uid-199999"))
        claimed: list[Claimed] = []
        seconds: list[float] = []
        for _ in range(50):
            began_s = time.perf_counter()
            claims = bench.queue.claim(16, 60)
            seconds.append(time.perf_counter() - began_s)
            claimed += claims.claimed
        assert [c.ref.name for c in claimed[:4]] == ["a", "r199999", "r0", "r1"]
        assert len(claimed) == 800
        median_s = sorted(seconds)[25]
        assert median_s < 0.02, seconds
        began_s = time.perf_counter()
        assert bench.queue.measure().due == 200_001 - 800
        figures(
            f"due queue, 200,000 overdue: a claim of 16 takes {median_s * 1000:.2f} ms (median), "
            f"measure {(time.perf_counter() - began_s) * 1000:.2f} ms"
        )


def test_claims_per_second(server: RedisServer, figures: Callable[[str], None]) -> None:
    with using(server) as bench:
        bench.queue.schedule([(ref, 0.0) for ref in REFS])
        rates = {}
        for batch in (1, 16):
            count, began_s = 0, time.perf_counter()
            while time.perf_counter() - began_s < 0.4:
                claimed = bench.queue.claim(batch, 60).claimed
                assert len(claimed) == batch
                bench.queue.settle_many([(c, 0.0) for c in claimed])
                count += batch
            rates[batch] = count / (time.perf_counter() - began_s)
            figures(f"due queue, one thread, claim + settle of {batch}: {rates[batch]:,.0f} alarms/s")
        assert rates[16] > 2 * rates[1]  # a ratio within one run: how busy the machine is does not matter


# --- against a model ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """An alarm as the model has it. `kind`: express, due, far, leased or marked; `at`: when it was put there.

    A lease that has lapsed is due, and still is a lease as long as nobody else has claimed it.
    """

    kind: str
    at: int
    lease: int | None = None


class Model:
    """What section by section the scripts promise, in plain Python. Time is a count of operations."""

    def __init__(self) -> None:
        self.entries: dict[Ref, Entry] = {}
        self.tick = 0

    def due(self) -> list[Ref]:
        order = {"express": 0, "due": 1}
        found = [(order[e.kind], e.at, ref.member, ref) for ref, e in self.entries.items() if e.kind in order]
        return [ref for *_, ref in sorted(found)]

    def schedule(self, ref: Ref, *, far: bool) -> bool:
        if ref in self.entries:
            return False
        self.entries[ref] = Entry("far" if far else "express", self.tick)
        return True

    def hasten(self, ref: Ref) -> None:
        entry = self.entries.get(ref)
        if entry is not None and entry.kind in ("leased", "marked"):
            self.entries[ref] = replace(entry, kind="marked")
        elif entry is None or entry.kind != "express":  # who is in front already keeps its place
            self.entries[ref] = Entry("express", self.tick)

    def claim(self, batch: int, *, lapses: bool) -> list[Ref]:
        taken = self.due()[:batch]
        for ref in taken:
            self.entries[ref] = Entry("due" if lapses else "leased", self.tick, self.tick)
        return taken

    def settle(self, ref: Ref, lease: int, delay: str | None) -> str:
        entry = self.entries.get(ref)
        if entry is None or entry.lease != lease:
            return LOST
        if entry.kind == "marked":
            self.entries[ref] = Entry("express", self.tick)
            return HASTENED
        if delay is None:
            del self.entries[ref]
            return REMOVED
        self.entries[ref] = Entry(delay, self.tick)
        return "set"

    def extend(self, ref: Ref, lease: int) -> bool:
        entry = self.entries.get(ref)
        if entry is None or entry.lease != lease:
            return False
        self.entries[ref] = Entry("marked" if entry.kind == "marked" else "leased", self.tick, self.tick)
        return True


refs = st.sampled_from(REFS[:5])
DELAY_S = {"due": 0.0, "far": LONG_S, None: None}


def machine_on(bench: Bench) -> type[RuleBasedStateMachine]:
    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            bench.raw.delete(KEY)
            self.model = Model()
            self.claims: list[tuple[Claimed, int]] = []

        def step(self) -> None:
            """Every operation in a millisecond of its own, so that the order is known."""
            bench.wait_past(bench.now_ms())
            self.model.tick += 1

        @rule(ref=refs, far=st.booleans())
        def schedule(self, ref: Ref, far: bool) -> None:
            self.step()
            added = bench.queue.schedule([(ref, LONG_S if far else 0.0)])
            assert added == self.model.schedule(ref, far=far)

        @rule(ref=refs)
        def hasten(self, ref: Ref) -> None:
            self.step()
            bench.queue.hasten(ref)
            self.model.hasten(ref)

        @rule(ref=refs)
        def drop(self, ref: Ref) -> None:
            bench.queue.drop(ref)
            self.model.entries.pop(ref, None)

        @rule(batch=st.integers(1, 4), lapses=st.booleans())
        def claim(self, batch: int, lapses: bool) -> None:
            self.step()
            claimed = bench.queue.claim(batch, 0.001 if lapses else 600).claimed
            assert [c.ref for c in claimed] == self.model.claim(batch, lapses=lapses)
            self.claims += [(c, self.model.tick) for c in claimed]
            if lapses and claimed:
                bench.wait_past(float(claimed[0].lease))

        @rule(data=st.data(), delay=st.sampled_from([None, "due", "far"]))
        def settle(self, data: st.DataObject, delay: str | None) -> None:
            if self.claims:
                self.step()
                claimed, lease = data.draw(st.sampled_from(self.claims))
                answer = bench.queue.settle(claimed, DELAY_S[delay])
                expected = self._expected_settle(claimed.ref, lease, delay)
                assert answer == expected or (expected == "set" and float(answer) == bench.score(claimed.ref))

        def _expected_settle(self, ref: Ref, lease: int, delay: str | None) -> str:
            return self.model.settle(ref, lease, delay)

        @rule(data=st.data())
        def extend(self, data: st.DataObject) -> None:
            if self.claims:
                self.step()
                claimed, lease = data.draw(st.sampled_from(self.claims))
                answer = bench.queue.extend(claimed, 900)
                assert (answer != LOST) == self.model.extend(claimed.ref, lease)
                if answer != LOST:
                    self.claims.append((replace(claimed, lease=answer), self.model.tick))

        @invariant()
        def is_as_the_model_has_it(self) -> None:
            now, scores = bench.now_ms(), bench.scores()
            assert set(scores) == {ref.member for ref in self.model.entries}
            for ref, entry in self.model.entries.items():
                score = scores[ref.member]
                assert (score <= now) == (entry.kind in ("express", "due")), (ref, entry)
                assert (score < BAND) == (entry.kind == "express"), (ref, entry)
                if entry.kind in ("far", "leased", "marked"):
                    assert score % 1 == {"far": 0, "leased": 0.5, "marked": 0.75}[entry.kind]

    return Machine


def test_it_is_as_a_model_of_it(server: RedisServer) -> None:
    with using(server) as bench:
        run_state_machine_as_test(
            machine_on(bench),
            settings=settings(
                max_examples=30,
                stateful_step_count=30,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
