"""The alarm clock: one sorted set in Redis, member = Ref, score = due time in ms by Redis' own clock.

The fraction of a score says what it is: .0 a schedule, .5 a lease, .75 a lease under which somebody asked for another
look. New and hastened alarms stand 10^12 ms before all others (the express band), in order among themselves; whoever
reads a score adds that back. Scores go to redis.call as numbers and come back through string.format, since Lua's own
conversion keeps 14 digits only. All keys of a script must be on one server: Redis Cluster is not supported.
"""

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import redis

from sume_operator.adapters.alarm_scripts import HASTEN, NOW
from sume_operator.adapters.redis_connection import translated
from sume_operator.core.render import Ref

LOST: Final = "lost"
HASTENED: Final = "hastened"
REMOVED: Final = "removed"
SCHEDULE_CHUNK: Final = 500
PASS_TTL_S: Final = 86_400
# Longer than any lease that is ever taken: what is leased is found below now + this.
LONGEST_LEASE_MS: Final = 300_000
_BAND_MS: Final = 1e12

_NOW: Final = (
    NOW
    + """
local function text(score) return string.format('%.2f', score) end
"""
)

# KEYS[1] the set. ARGV[1] how many at most, ARGV[2] lease in ms.
# Answer: {lease score, ms until the next due time ('' if the set is empty), now, member, score it had, ...}
_CLAIM: Final = (
    _NOW
    + """
local lease = now + math.floor(ARGV[2]) + 0.5
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'WITHSCORES', 'LIMIT', 0, ARGV[1])
for i = 1, #due, 2 do redis.call('ZADD', KEYS[1], lease, due[i]) end
local next_in = ''
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if first[2] then next_in = text(math.max(0, tonumber(first[2]) - now)) end
local answer = {text(lease), next_in, text(now)}
for i = 1, #due, 2 do
  local score = tonumber(due[i + 1])
  answer[#answer + 1] = due[i]
  answer[#answer + 1] = text(score)
end
return answer
"""
)

# KEYS[1] the set. ARGV: triples of member, lease score, delay in ms ('' = remove).
# Answer: one text each: the score set, 'hastened' (somebody asked for another look meanwhile: due now, whatever was
# asked), 'removed', or 'lost' (the score no longer is that lease: nothing was changed).
_SETTLE: Final = (
    _NOW
    + """
local answer = {}
for i = 1, #ARGV, 3 do
  local score = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[i]) or '-1')
  local lease = tonumber(ARGV[i + 1])
  local new = 'lost'
  if score == lease + 0.25 then
    redis.call('ZADD', KEYS[1], now - BAND, ARGV[i])
    new = 'hastened'
  elseif score == lease and ARGV[i + 2] == '' then
    redis.call('ZREM', KEYS[1], ARGV[i])
    new = 'removed'
  elseif score == lease then
    local at = now + math.floor(ARGV[i + 2])
    redis.call('ZADD', KEYS[1], at, ARGV[i])
    new = text(at)
  end
  answer[#answer + 1] = new
end
return answer
"""
)

# KEYS[1] the set. ARGV: pairs of member, delay in ms (0 = at once, in the express band). Answer: how many were added.
_SCHEDULE: Final = (
    _NOW
    + """
local added = 0
for i = 1, #ARGV, 2 do
  local delay = math.floor(ARGV[i + 1])
  local at = now + delay
  if delay <= 0 then at = now - BAND end
  added = added + redis.call('ZADD', KEYS[1], 'NX', at, ARGV[i])
end
return added
"""
)

# KEYS[1] the set. ARGV[1] member. Answer: 1.
_HASTEN: Final = (
    NOW
    + HASTEN
    + """
hasten(KEYS[1], ARGV[1])
return 1
"""
)

# KEYS[1] the set. ARGV[1] member, ARGV[2] its lease score, ARGV[3] new lease in ms from now.
# Answer: the new lease score, or 'lost'. A mark left under the lease (.75) is kept.
_EXTEND: Final = (
    _NOW
    + """
local score = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '-1')
local lease = tonumber(ARGV[2])
if score ~= lease and score ~= lease + 0.25 then return 'lost' end
local new = now + math.floor(ARGV[3]) + 0.5
redis.call('ZADD', KEYS[1], new + (score - lease), ARGV[1])
return text(new)
"""
)

# KEYS[1] the set, KEYS[2] where foreign members are kept. ARGV: pairs of member, score it had. Answer: how many moved.
_SET_ASIDE: Final = """
for i = 1, #ARGV, 2 do
  redis.call('ZADD', KEYS[2], tonumber(ARGV[i + 1]), ARGV[i])
  redis.call('ZREM', KEYS[1], ARGV[i])
end
return #ARGV / 2
"""

# KEYS[1] the set. Answer: {members, members due, age of the oldest due alarm in ms}.
_MEASURE: Final = (
    _NOW
    + """
local lag = 0
local between = now - BAND / 2
local express = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', between, 'WITHSCORES', 'LIMIT', 0, 1)
if express[2] then lag = math.max(lag, now - tonumber(express[2]) - BAND) end
local ordinary = redis.call('ZRANGEBYSCORE', KEYS[1], between, now, 'WITHSCORES', 'LIMIT', 0, 1)
if ordinary[2] then lag = math.max(lag, now - tonumber(ordinary[2])) end
return {redis.call('ZCARD', KEYS[1]), redis.call('ZCOUNT', KEYS[1], '-inf', now), math.floor(lag)}
"""
)

# KEYS[1] the mark, KEYS[2] the token of the pass. ARGV[1] the token. Answer: 1 if the mark stands, 0 if Redis was
# emptied since the pass began.
_FINISH: Final = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
return 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """One alarm that is ours until its lease ends. Scores as they stand in the set; `lateness_s` >= 0."""

    ref: Ref
    lease: str
    score: str
    lateness_s: float
    was_leased: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What one claim brought. `next_due_s`: seconds until the next alarm, None for an empty set."""

    claimed: tuple[Claimed, ...]
    next_due_s: float | None
    foreign: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """How the set stands. `lag_s`: age of the oldest alarm that is due."""

    size: int
    due: int
    lag_s: float


class DueQueue:
    """The sorted set. Every method is one round trip (or one per 500 refs) and raises RedisUnavailableError."""

    def __init__(self, client: "redis.Redis", key: str, on_error: Callable[[], None] = lambda: None) -> None:
        self._client = client
        self._key = key
        self._on_error = on_error
        register = client.register_script
        self._claim, self._settle, self._schedule = register(_CLAIM), register(_SETTLE), register(_SCHEDULE)
        self._hasten, self._extend, self._measure = register(_HASTEN), register(_EXTEND), register(_MEASURE)
        self._set_aside, self._end_pass = register(_SET_ASIDE), register(_FINISH)

    def claim(self, batch: int, lease_s: float) -> Claims:
        """Take up to `batch` alarms that are due, each for `lease_s` seconds. Members that are no Ref are set aside."""
        answer = self._run(self._claim, [self._key], [batch, lease_s * 1000])
        lease, next_in, now_ms = answer[0], answer[1], float(answer[2])
        pairs = list(zip(answer[3::2], answer[4::2], strict=True))
        foreign = [(member, score) for member, score in pairs if Ref.parse(member) is None]
        if foreign:
            self._run(self._set_aside, [self._key, f"{self._key}:foreign"], [x for pair in foreign for x in pair])
        claimed = [_claimed(ref, lease, score, now_ms) for m, score in pairs if (ref := Ref.parse(m))]
        return Claims(
            claimed=tuple(claimed),
            next_due_s=float(next_in) / 1000 if next_in else None,
            foreign=tuple(member for member, _ in foreign),
        )

    def settle(self, claimed: Claimed, delay_s: float | None) -> str:
        """Give back one alarm: due again in `delay_s`, or (None) gone. As settle_many."""
        return self.settle_many([(claimed, delay_s)])[0]

    def settle_many(self, settled: Sequence[tuple[Claimed, float | None]]) -> list[str]:
        """Give back alarms. Answers for each the score set, REMOVED, HASTENED, or LOST if it was no longer ours.

        HASTENED is no score on purpose: what was known of such an object is out of date, and must not be found by it.
        """
        argv: list[Any] = []
        for claimed, delay_s in settled:
            argv += [claimed.ref.member, claimed.lease, "" if delay_s is None else max(0.0, delay_s) * 1000]
        return list(self._run(self._settle, [self._key], argv)) if argv else []

    def schedule(self, alarms: Iterable[tuple[Ref, float]]) -> int:
        """Add an alarm for each ref that has none, in so many seconds (0: at once, before others). Answers how many."""
        argv: list[Any] = [x for ref, delay_s in alarms for x in (ref.member, max(0.0, delay_s) * 1000)]
        chunks = (argv[i : i + 2 * SCHEDULE_CHUNK] for i in range(0, len(argv), 2 * SCHEDULE_CHUNK))
        return sum(int(self._run(self._schedule, [self._key], chunk)) for chunk in chunks)

    def hasten(self, ref: Ref) -> None:
        """Make an alarm due now; one that is being worked on comes up again as soon as it is given back."""
        self._run(self._hasten, [self._key], [ref.member])

    def extend(self, claimed: Claimed, lease_s: float) -> str:
        """Keep an alarm for `lease_s` from now. Answers the new lease, or LOST."""
        return str(self._run(self._extend, [self._key], [claimed.ref.member, claimed.lease, lease_s * 1000]))

    def drop(self, ref: Ref) -> None:
        """Take an alarm away."""
        with translated(self._on_error):
            self._client.zrem(self._key, ref.member)

    def measure(self) -> Measures:
        """Size, due, lag."""
        size, due, lag_ms = self._run(self._measure, [self._key], [])
        return Measures(size=int(size), due=int(due), lag_s=int(lag_ms) / 1000)

    def count_leased(self) -> int:
        """How many alarms are being worked on. Reads every score up to the longest lease: for people, not for loops."""
        with translated(self._on_error):
            seconds, microseconds = self._client.time()
            now_ms = seconds * 1000 + microseconds // 1000
            rows: Any = self._client.zrange(self._key, now_ms, now_ms + LONGEST_LEASE_MS, byscore=True, withscores=True)
        return sum(1 for _member, score in rows if score % 1)

    def count_foreign(self) -> int:
        """How many members were set aside since they are no Ref."""
        with translated(self._on_error):
            return int(self._client.zcard(f"{self._key}:foreign"))

    def is_whole(self) -> bool:
        """Whether a complete pass of the sweep is known to be in Redis."""
        with translated(self._on_error):
            return bool(self._client.exists(f"{self._key}:whole"))

    def begin_pass(self) -> str:
        """A complete pass begins; its token proves at the end that Redis was not emptied meanwhile."""
        token = uuid.uuid4().hex
        with translated(self._on_error):
            self._client.set(f"{self._key}:pass", token, ex=PASS_TTL_S)
        return token

    def end_pass(self, token: str) -> bool:
        """The pass is complete. False: Redis was emptied meanwhile, so the set is not known to be whole."""
        return bool(self._run(self._end_pass, [f"{self._key}:whole", f"{self._key}:pass"], [token]))

    def ping(self) -> None:
        """Answers, or raises RedisUnavailableError."""
        with translated(self._on_error):
            self._client.ping()

    def _run(self, script: Any, keys: list[str], argv: list[Any]) -> Any:
        with translated(self._on_error):
            return script(keys=keys, args=argv)


def _claimed(ref: Ref, lease: str, score: str, now_ms: float) -> Claimed:
    due_ms = float(score)
    if now_ms - due_ms > _BAND_MS / 2:  # not a fixed limit: in 2033 the express band itself passes 10^12
        due_ms += _BAND_MS
    return Claimed(
        ref=ref,
        lease=lease,
        score=score,
        lateness_s=max(0.0, now_ms - due_ms) / 1000,
        was_leased=due_ms % 1 != 0,
    )
