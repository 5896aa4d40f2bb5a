"""How often one key may ask, on a real server: the limit, the order of those turned away, and what headers tighten."""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
import redis
from limits import RateLimitItemPerDay, RateLimitItemPerMinute, RateLimitItemPerSecond

from controlplane import RedisServer
from kube import eventually
from redis_flavours import start
from sume_operator.adapters.budget import Budget, Kind, Limits
from sume_operator.adapters.redis_connection import RedisUnavailableError, connect
from sume_operator.core.render import Ref

QUEUE = "test:polls"
KEY, OTHER = "fingerprint-1", "fingerprint-2"
REFS = tuple(Ref("ns", f"render-{number:02}", f"uid-{number}") for number in range(60))
A, B, C = REFS[:3]
PER_SECOND = 10


@pytest.fixture(scope="module", params=["redis", "valkey"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with start(request.param, tmp_path_factory.mktemp(request.param)) as server:
        yield server


@dataclass(frozen=True, slots=True)
class Bench:
    """Every ref of REFS has an alarm."""

    client: Any
    raw: Any

    def budget(self, reads: Limits | None = None, submissions: Limits | None = None) -> Budget:
        return Budget(self.client, QUEUE, reads=reads or Limits(), submissions=submissions or Limits())

    def line(self, kind: Kind = "read") -> list[str]:
        members: list[str] = self.raw.zrange(f"{QUEUE}:line:{kind}:{KEY}", 0, -1)
        return members

    def silence(self, *refs: Ref) -> None:
        """Their alarms are gone: ended, deleted or suspended."""
        for ref in refs:
            self.raw.zrem(QUEUE, ref.member)


@pytest.fixture(params=[2, 3], ids=["RESP2", "RESP3"])
def bench(server: RedisServer, request: pytest.FixtureRequest) -> Iterator[Bench]:
    client = connect(f"{server.url}?protocol={request.param}", connections=16)
    raw: Any = redis.Redis.from_url(server.url, decode_responses=True)
    raw.flushall()
    raw.zadd(QUEUE, {ref.member: time.time() * 1000 for ref in REFS})
    yield Bench(client, raw)
    client.close()
    raw.close()


def spend(budget: Budget, *refs: Ref, kind: Kind = "read", key: str = KEY) -> list[float]:
    return [budget.spend(key, kind, ref) for ref in refs]


def granted(waits: list[float]) -> int:
    return waits.count(0.0)


def test_without_limits_everything_goes(bench: Bench) -> None:
    assert granted(spend(bench.budget(), *REFS)) == 60
    assert bench.raw.keys("*") == [QUEUE]


def test_the_limits_of_the_settings() -> None:
    limits = Limits(per_minute=120, per_day=10_000)
    assert limits.items == (RateLimitItemPerMinute(120), RateLimitItemPerDay(10_000))
    assert Limits().items == ()


def test_so_many_and_no_more(bench: Bench) -> None:
    budget = bench.budget(Limits(per_minute=3))
    waits = spend(budget, *REFS[:6])
    assert waits[:3] == [0.0] * 3
    assert waits[3:] == pytest.approx([20.0, 40.0, 60.0])
    assert bench.line() == [ref.member for ref in REFS[3:6]]
    assert granted(spend(budget, *REFS[:6], key=OTHER)) == 3, "another key has a budget of its own"


def test_the_day_counts_too(bench: Bench) -> None:
    budget = bench.budget(Limits(per_minute=100, per_day=2))
    assert granted(spend(budget, *REFS[:9])) == 2
    assert spend(budget, REFS[2]) == [pytest.approx(86_400 / 2)]


def test_reads_and_submissions_do_not_share(bench: Bench) -> None:
    budget = bench.budget(Limits(per_minute=2), Limits(per_minute=1))
    assert granted(spend(budget, A, B, C)) == 2
    assert granted(spend(budget, A, B, kind="submit")) == 1
    assert (bench.line(), bench.line("submit")) == ([C.member], [B.member])
    budget.tighten(KEY, "submit", remaining=1, reset_s=50)
    assert bench.raw.exists(f"{QUEUE}:gap:submit:{KEY}") == 1
    assert bench.raw.exists(f"{QUEUE}:gap:read:{KEY}") == 0


def test_asking_again_keeps_the_place_in_the_line(bench: Bench) -> None:
    budget = bench.budget(Limits(per_minute=1))
    spend(budget, *REFS[:4])
    spend(budget, *reversed(REFS[1:4]))
    assert bench.line() == [ref.member for ref in REFS[1:4]]


def test_never_more_than_the_limit_under_eight_threads(bench: Bench) -> None:
    budget = bench.budget(Limits(per_minute=50))

    def work(mine: tuple[Ref, ...]) -> int:
        return sum(granted(spend(budget, *mine)) for _ in range(10))

    with ThreadPoolExecutor(8) as pool:
        total = sum(pool.map(work, [REFS[number::8] for number in range(8)]))
    # A sliding window lets go of a little where the clock's minute turns meanwhile.
    assert 30 <= total <= 51


def turns(budget: Budget, refs: list[Ref], rounds: int) -> list[Ref]:
    """Everybody asks over and over, always in the same order; who got through, in order."""
    through: list[Ref] = []
    deadline = time.monotonic() + 60
    while len(through) < rounds and time.monotonic() < deadline:
        through += [ref for ref in refs if budget.spend(KEY, "read", ref) == 0.0]
        time.sleep(0.02)
    return through


def test_each_gets_its_turn_before_any_gets_a_second(bench: Bench) -> None:
    """Those that are asked last would else never get one."""
    budget = bench.budget(Limits(others=(RateLimitItemPerSecond(PER_SECOND),)))
    spend(budget, *REFS)
    waiting = [ref for ref in REFS if ref.member in bench.line()]
    assert len(waiting) >= 60 - 2 * PER_SECOND - 5
    through = turns(budget, list(REFS), 60)
    firsts = through[: len(waiting)]
    seen = Counter(firsts)
    assert [ref for ref in firsts if ref in waiting] == [ref for ref in waiting if seen[ref]]
    assert max(seen.values()) == 1
    assert len(seen) == len(waiting)


def test_a_newcomer_does_not_overtake(bench: Bench) -> None:
    budget = bench.budget(Limits(others=(RateLimitItemPerSecond(2),)))
    spend(budget, *REFS[:8])
    line = bench.line()
    assert len(line) >= 4
    through: list[Ref] = []

    def asked_by_all() -> bool:
        for ref in (REFS[20], *reversed(REFS[:8])):
            if budget.spend(KEY, "read", ref) == 0.0:
                through.append(ref)
        return len(through) >= len(line)

    eventually(asked_by_all, within_s=20, every_s=0.05)
    assert {ref.member for ref in through[: len(line)]} == set(line)


def test_heads_without_an_alarm_drop_out(bench: Bench) -> None:
    budget = bench.budget(Limits(others=(RateLimitItemPerSecond(1),)))
    spend(budget, *REFS)
    assert len(bench.line()) >= 57
    bench.silence(*REFS[:59])
    eventually(lambda: budget.spend(KEY, "read", REFS[59]) == 0.0, within_s=5, every_s=0.05)
    assert bench.line() == []


def test_who_asks_for_nothing_any_more_leaves_the_line(bench: Bench) -> None:
    budget = bench.budget(Limits(per_minute=1))
    spend(budget, *REFS[:4])
    budget.leave(KEY, "read", REFS[2])
    assert bench.line() == [REFS[1].member, REFS[3].member]


def test_a_line_is_not_kept_for_ever(bench: Bench) -> None:
    spend(bench.budget(Limits(per_minute=1)), A, B)
    assert all(0 < bench.raw.ttl(name) <= 172_800 for name in bench.raw.keys("*") if name != QUEUE)


# --- what headers say -----------------------------------------------------------------------------


def test_tighten_makes_a_gap_from_now_on(bench: Bench) -> None:
    budget = bench.budget()
    budget.tighten(KEY, "read", remaining=0, reset_s=0.6)
    (wait_s,) = spend(budget, A)
    assert 0.3 < wait_s <= 0.6 + 1.0
    assert granted(spend(budget, A, key=OTHER)) == 1
    eventually(lambda: budget.spend(KEY, "read", A) == 0.0, within_s=5, every_s=0.02)


def test_a_gap_lies_between_any_two_requests(bench: Bench) -> None:
    budget = bench.budget()
    budget.tighten(KEY, "read", remaining=20, reset_s=10)  # half a second
    times: list[float] = []

    def asked_by_all() -> bool:
        for ref in REFS[:3]:
            if budget.spend(KEY, "read", ref) == 0.0:
                times.append(time.monotonic())
        return len(times) >= 4

    eventually(asked_by_all, within_s=20, every_s=0.02)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert all(0.4 < gap < 1.5 for gap in gaps)


def test_hints_that_follow_each_other_do_not_push_the_gap_ahead(bench: Bench) -> None:
    budget = bench.budget()
    deadline = time.monotonic() + 5
    through = 0
    while not through and time.monotonic() < deadline:
        budget.tighten(KEY, "read", remaining=50, reset_s=10)
        time.sleep(0.05)
        through = granted(spend(budget, A))
    assert through == 1


@pytest.mark.parametrize(
    ("remaining", "reset_s", "gap_ms"),
    [(100, 60, 600), (0, 30, 30_000), (0, 86_400, 60_000), (0.5, 10, 10_000), (1e9, 1, 1)],
)
def test_how_long_a_gap_is(bench: Bench, remaining: float, reset_s: float, gap_ms: int) -> None:
    bench.budget().tighten(KEY, "read", remaining, reset_s)
    assert int(bench.raw.get(f"{QUEUE}:gap:read:{KEY}")) == gap_ms
    assert 0 < bench.raw.pttl(f"{QUEUE}:gap:read:{KEY}") <= reset_s * 1000


def test_a_gap_ends_with_the_window_that_it_is_of(bench: Bench) -> None:
    budget = bench.budget()
    budget.tighten(KEY, "read", remaining=0, reset_s=0.2)
    eventually(lambda: budget.spend(KEY, "read", A) == 0.0, within_s=5, every_s=0.02)
    assert granted(spend(budget, *REFS[:9])) >= 8


def test_the_last_request_of_a_window_asks_for_no_gap_after_its_end(bench: Bench) -> None:
    budget, gap = bench.budget(), f"{QUEUE}:gap:read:{KEY}"
    budget.tighten(KEY, "read", remaining=1, reset_s=60)
    bench.raw.delete(f"{gap}:next")
    bench.raw.pexpire(gap, 20_000)  # 40 s later
    assert granted(spend(budget, A)) == 1
    window_ms, next_ms = bench.raw.pttl(gap), bench.raw.pttl(f"{gap}:next")
    assert 0 < next_ms <= window_ms


def test_trouble_is_counted_and_raised(server: RedisServer) -> None:
    errors: list[int] = []
    client = connect(server.url.replace(str(server.port), "1"), connections=1)
    budget = Budget(client, QUEUE, reads=Limits(per_minute=1), submissions=Limits(), on_error=lambda: errors.append(1))
    with pytest.raises(RedisUnavailableError):
        budget.spend(KEY, "read", A)
    with pytest.raises(RedisUnavailableError):
        budget.tighten(KEY, "read", 1, 1)
    assert len(errors) == 2
