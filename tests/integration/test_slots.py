"""At most so many jobs of one key, on a real server: who gets a slot, who is next, and how the objects rebuild it."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from builders import FINGERPRINT, answered, asked, at, intending, requesting, submitted
from controlplane import RedisServer
from redis_flavours import start
from sume_operator.adapters.due_queue import DueQueue
from sume_operator.adapters.redis_connection import RedisUnavailableError, connect
from sume_operator.adapters.slots import Place, Slots, Taken
from sume_operator.core.job import NoSlot, Refusal
from sume_operator.core.render import Ref, Render
from sume_operator.runtime.slots_keeper import SlotsKeeper

QUEUE = "test:polls"
KEY, OTHER = FINGERPRINT, "fingerprint-2"
BAND = 1e12
YES = Taken(has_slot=True)


@pytest.fixture(scope="module", params=["redis", "valkey"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with start(request.param, tmp_path_factory.mktemp(request.param)) as server:
        yield server


@dataclass(frozen=True, slots=True)
class Bench:
    """Two slots per key; `raw` sees what is in Redis."""

    slots: Slots
    queue: DueQueue
    client: Any
    raw: Any

    def now_ms(self) -> float:
        seconds, microseconds = self.raw.time()
        return float(int(seconds) * 1000 + int(microseconds) // 1000)

    def alarm(self, *places: Place, in_s: float = 300) -> None:
        """They have an alarm, as every render that waits."""
        for place in places:
            self.raw.zadd(QUEUE, {place.ref.member: int(self.now_ms() + in_s * 1000)})

    def score(self, place: Place) -> float:
        return float(self.raw.zscore(QUEUE, place.ref.member))

    def is_woken(self, place: Place) -> bool:
        return self.score(place) < self.now_ms() - BAND / 2

    def waiting(self) -> list[str]:
        return [member.partition("/")[2].split("/")[1] for member in self.raw.zrange(f"{QUEUE}:waiting:{KEY}", 0, -1)]

    def holders(self) -> set[str]:
        return {member.split("/")[1] for member in self.raw.zrange(f"{QUEUE}:slots:{KEY}", 0, -1)}

    def age(self, place: Place, by_s: float) -> None:
        """As if the slot had been taken so long ago."""
        self.raw.zadd(f"{QUEUE}:slots:{KEY}", {place.ref.member: self.now_ms() - by_s * 1000})


@pytest.fixture(params=[2, 3], ids=["RESP2", "RESP3"])
def bench(server: RedisServer, request: pytest.FixtureRequest) -> Iterator[Bench]:
    client = connect(f"{server.url}?protocol={request.param}", connections=16)
    raw: Any = redis.Redis.from_url(server.url, decode_responses=True)
    raw.flushall()
    raw.set(f"{QUEUE}:whole", 1)
    yield Bench(Slots(client, QUEUE, most=2), DueQueue(client, QUEUE), client, raw)
    client.close()
    raw.close()


def place(name: str, priority: int = 0, age_s: float = 0) -> Place:
    created = datetime(2026, 1, 1, tzinfo=UTC) - timedelta(seconds=age_s)
    return Place(ref=Ref("ns", name, f"uid-{name}"), creation_time=created, priority=priority)


A, B, C, D, E = (place(name) for name in "abcde")


def take_all(bench: Bench, *places: Place) -> list[Taken]:
    return [bench.slots.take(KEY, each) for each in places]


# --- take -----------------------------------------------------------------------------------------


def test_so_many_and_no_more(bench: Bench) -> None:
    bench.alarm(A, B, C, D)
    assert take_all(bench, A, B, C, D) == [YES, YES, Taken(has_slot=False, ahead=0), Taken(has_slot=False, ahead=1)]
    assert bench.slots.held(KEY) == 2
    assert bench.slots.take(OTHER, C) == YES, "another key has slots of its own"


def test_taking_twice_is_one(bench: Bench) -> None:
    bench.alarm(A, B)
    assert take_all(bench, A, A, A, B) == [YES] * 4
    assert bench.slots.held(KEY) == 2
    assert bench.waiting() == []
    bench.raw.delete(f"{QUEUE}:whole")
    assert bench.slots.take(KEY, A) == YES, "who holds one needs nothing more"


def test_waiting_twice_is_one(bench: Bench) -> None:
    bench.alarm(A, B, C, D)
    take_all(bench, A, B, C, D, C, C)
    assert bench.waiting() == ["c", "d"]


def test_zero_is_no_limit(bench: Bench) -> None:
    free = Slots(bench.client, QUEUE, most=0)
    assert [free.take(KEY, place(str(number))) for number in range(50)] == [YES] * 50
    assert free.free(KEY, A) == 0
    assert bench.raw.keys("*") == [f"{QUEUE}:whole"]


def test_the_higher_priority_then_the_oldest_comes_first(bench: Bench) -> None:
    line = [
        place("second", priority=5, age_s=9),
        place("last", priority=-5, age_s=999),
        place("first", priority=10),
        place("fourth", age_s=50),
        place("third", age_s=100),
    ]
    bench.alarm(A, B, *line)
    take_all(bench, A, B, *line)
    assert bench.waiting() == ["first", "second", "third", "fourth", "last"]
    bench.slots.free(KEY, A)
    assert bench.slots.take(KEY, line[0]) == Taken(has_slot=False, ahead=1)
    assert bench.slots.take(KEY, line[2]) == YES
    assert bench.waiting() == ["second", "third", "fourth", "last"]


def test_a_changed_priority_counts_from_the_next_look(bench: Bench) -> None:
    bench.alarm(A, B, C, D)
    take_all(bench, A, B, C, D)
    assert bench.slots.take(KEY, replace(D, priority=1)).ahead == 0
    assert bench.waiting() == ["d", "c"]


def test_who_comes_first_is_not_overtaken_by_who_asks_first(bench: Bench) -> None:
    bench.alarm(A, B, C, D)
    take_all(bench, A, B, C, D)
    bench.slots.free(KEY, A)
    assert bench.slots.take(KEY, D) == Taken(has_slot=False, ahead=1)
    assert bench.slots.take(KEY, C) == YES


def test_heads_without_an_alarm_are_dropped(bench: Bench) -> None:
    dead = [place(f"dead-{number:03}", priority=9) for number in range(250)]
    bench.alarm(A, B, C)
    take_all(bench, A, B, *dead, C)
    bench.slots.free(KEY, A)
    assert bench.slots.take(KEY, C) == YES
    assert bench.waiting() == []


def test_a_head_that_holds_a_slot_already_blocks_nobody(bench: Bench) -> None:
    """A pass of the sweep may show as waiting who got a slot while it listed."""
    bench.alarm(A, B, C)
    take_all(bench, A, B, C)
    bench.slots.show_waiting(KEY, [replace(B, priority=9)])
    bench.slots.free(KEY, A)
    assert bench.is_woken(C)
    assert bench.slots.take(KEY, C) == YES


def test_never_more_than_so_many_under_eight_threads(bench: Bench) -> None:
    slots, most = Slots(bench.client, QUEUE, most=5), 5
    places = [place(f"r-{number:03}", priority=number % 3) for number in range(120)]
    bench.alarm(*places)
    lock, running, peak, done = threading.Lock(), set[Ref](), [0], []

    def work(mine: list[Place]) -> None:
        left = list(mine)
        deadline = time.monotonic() + 60
        while left and time.monotonic() < deadline:
            for each in list(left):
                if not slots.take(KEY, each).has_slot:
                    continue
                with lock:
                    running.add(each.ref)
                    peak[0] = max(peak[0], len(running))
                assert slots.held(KEY) <= most
                with lock:
                    running.discard(each.ref)
                    done.append(each.ref)
                slots.free(KEY, each)
                bench.raw.zrem(QUEUE, each.ref.member)
                left.remove(each)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, [places[number::8] for number in range(8)]))
    assert sorted(done) == sorted(each.ref for each in places)
    assert 1 < peak[0] <= most
    assert bench.slots.held(KEY) == 0
    assert bench.waiting() == []


# --- free -----------------------------------------------------------------------------------------


def test_free_wakes_exactly_the_new_heads(bench: Bench) -> None:
    bench.alarm(A, B, C, D, E)
    take_all(bench, A, B, C, D, E)
    scores = {each.ref: bench.score(each) for each in (D, E)}
    assert bench.slots.free(KEY, A) == 1
    assert bench.is_woken(C)
    assert {each.ref: bench.score(each) for each in (D, E)} == scores
    assert bench.slots.free(KEY, B) == 2
    assert bench.is_woken(D)
    assert bench.score(E) == scores[E.ref]
    (first, second) = bench.queue.claim(10, 60).claimed
    assert [first.ref, second.ref] == [C.ref, D.ref]


def test_free_marks_a_head_under_its_lease(bench: Bench) -> None:
    bench.alarm(A, B)
    bench.alarm(C, in_s=-1)
    take_all(bench, A, B, C)
    (claimed,) = bench.queue.claim(1, 60).claimed
    leased = bench.score(C)
    assert (claimed.ref, leased % 1) == (C.ref, 0.5)
    for _ in range(2):
        bench.slots.free(KEY, A)
        assert bench.score(C) == leased + 0.25, "once is enough"
    assert bench.queue.settle(claimed, 300) == "hastened"


def test_who_is_in_the_express_band_keeps_its_place(bench: Bench) -> None:
    bench.alarm(A, B, C)
    take_all(bench, A, B, C)
    bench.queue.hasten(C.ref)
    score = bench.score(C)
    bench.raw.zadd(QUEUE, {C.ref.member: score - 5000})
    bench.slots.free(KEY, A)
    assert bench.score(C) == score - 5000


def test_free_of_one_that_waits_takes_it_from_the_line(bench: Bench) -> None:
    bench.alarm(A, B, C, D)
    take_all(bench, A, B, C, D)
    assert bench.slots.free(KEY, C) == 0
    assert bench.waiting() == ["d"]
    assert bench.slots.held(KEY) == 2


def test_free_passes_over_dead_heads_however_many(bench: Bench) -> None:
    dead = [place(f"dead-{number:03}", priority=9) for number in range(250)]
    bench.alarm(A, B, C)
    take_all(bench, A, B, *dead, C)
    assert bench.slots.free(KEY, A) == 1
    assert bench.is_woken(C)
    assert bench.waiting() == ["c"]


def test_free_by_ref_alone_whatever_the_key(bench: Bench) -> None:
    bench.alarm(A, B, C)
    take_all(bench, A, B, C)
    bench.slots.take(OTHER, A)
    assert bench.slots.fingerprints() == {KEY, OTHER}
    bench.slots.free_ref(A.ref)
    assert (bench.slots.held(KEY), bench.slots.held(OTHER)) == (1, 0)
    assert bench.is_woken(C)


# --- what the objects show ------------------------------------------------------------------------


def test_nobody_gets_a_slot_while_redis_is_not_whole(bench: Bench) -> None:
    bench.raw.delete(f"{QUEUE}:whole")
    bench.alarm(A, B)
    assert take_all(bench, A, B) == [Taken(has_slot=False, ahead=None)] * 2
    assert bench.slots.held(KEY) == 0
    assert bench.waiting() == ["a", "b"]
    bench.raw.set(f"{QUEUE}:whole", 1)
    assert take_all(bench, B, A) == [YES, YES]


def test_forget_others_keeps_the_young_and_the_shown(bench: Bench) -> None:
    slots = Slots(bench.client, QUEUE, most=9)
    bench.alarm(A, B, C, D)
    for each in (A, B, C, D):
        slots.take(KEY, each)
    for each in (A, B, C):
        bench.age(each, by_s=100)
    assert slots.forget_others(KEY, [A.ref], older_than_s=45.5) == 2
    assert bench.holders() == {"a", "d"}
    assert slots.forget_others(KEY, [], older_than_s=200) == 0


def test_showing_a_holder_makes_it_no_younger(bench: Bench) -> None:
    take_all(bench, A)
    bench.age(A, by_s=100)
    bench.slots.show_holders(KEY, [A.ref, B.ref])
    assert bench.holders() == {"a", "b"}
    assert bench.slots.forget_others(KEY, [], older_than_s=45) == 1
    assert bench.holders() == {"b"}


def test_many_can_be_shown_at_once(bench: Bench) -> None:
    many = [place(f"r-{number}") for number in range(1203)]
    bench.slots.show_holders(KEY, [each.ref for each in many])
    bench.slots.show_waiting(KEY, many)
    assert (bench.slots.held(KEY), len(bench.waiting())) == (1203, 1203)
    assert bench.slots.forget_others(KEY, [each.ref for each in many], older_than_s=-1) == 0


def render(name: str, made: Render) -> Render:
    return replace(made, ref=Ref("ns", name, f"uid-{name}"))


def test_after_a_flushall_the_objects_rebuild_it(bench: Bench) -> None:
    waits = answered(requesting(), NoSlot(ahead=1)).render
    first, second = render("first", waits), replace(render("second", waits), creation_time=at(60))
    urgent = replace(render("urgent", waits), creation_time=at(90), priority=3)
    objects = [
        render("made", submitted()),
        render("asking", intending(requesting())),
        render("new", requesting()),
        render("broke", asked(requesting(), Refusal(http_status=402)).render),
        render("ended", asked(requesting(), Refusal(http_status=400)).render),
        *(second, first, urgent),
    ]
    bench.raw.flushall()
    keeper = SlotsKeeper(bench.slots, lease_s=45)
    seen = keeper.begin()
    for each in objects:
        seen.add([each])
    keeper.finish(seen)
    assert bench.holders() == {"made", "asking"}
    assert bench.waiting() == ["urgent", "first", "second"]
    assert bench.slots.fingerprints() == set(), "who shows is no taker"
    bench.raw.set(f"{QUEUE}:whole", 1)
    bench.alarm(*(Place.of(each) for each in objects))
    assert bench.slots.take(KEY, Place.of(first)) == Taken(has_slot=False, ahead=1)
    assert bench.slots.take(KEY, Place.of(objects[1])) == YES
    bench.slots.free(KEY, Place.of(objects[0]))
    assert bench.is_woken(Place.of(urgent))
    assert bench.slots.take(KEY, Place.of(urgent)) == YES


def test_a_pass_takes_away_what_no_object_shows(bench: Bench) -> None:
    take_all(bench, A, B)
    bench.age(A, by_s=46)
    keeper = SlotsKeeper(bench.slots, lease_s=45)
    keeper.finish(keeper.begin())
    assert bench.holders() == {"b"}, "a young one may belong to a turn that has not written yet"


def test_a_pass_keeps_whose_key_is_not_on_the_object(bench: Bench) -> None:
    """Restored without its status: it may be asking, with which key is not known."""
    restored = replace(render("a", requesting()), noted_key="old-uid")
    take_all(bench, A)
    bench.age(A, by_s=1000)
    keeper = SlotsKeeper(bench.slots, lease_s=45)
    seen = keeper.begin()
    seen.add([restored])
    keeper.finish(seen)
    assert bench.holders() == {"a"}


def test_trouble_is_counted_and_raised(server: RedisServer) -> None:
    errors: list[int] = []
    client = connect(server.url.replace(str(server.port), "1"), connections=1)
    slots = Slots(client, QUEUE, most=2, on_error=lambda: errors.append(1))
    for call in (lambda: slots.take(KEY, A), lambda: slots.free(KEY, A), slots.fingerprints, lambda: slots.held(KEY)):
        with pytest.raises(RedisUnavailableError):
            call()
    assert len(errors) == 4


def test_a_place_without_a_time_of_creation_comes_first(bench: Bench) -> None:
    nameless = Place(ref=Ref("ns", "x", "uid-x"), creation_time=None, priority=0)
    bench.alarm(A, B, C, nameless)
    take_all(bench, A, B, C, nameless)
    assert bench.waiting() == ["x", "c"]
