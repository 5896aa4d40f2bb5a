"""How many jobs of one API key are under way at once, over all pollers: two sorted sets per fingerprint in Redis.

`slots` holds who has one (score: since when), `waiting` who wants one (score: -priority, member: creation time and
ref, so that the higher priority and then the oldest comes first). Both are rebuilt from the objects by every pass of
the sweep, so that a kill between a slot and a POST, or FLUSHALL, costs nothing but that pass.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import redis

from sume_operator.adapters.alarm_scripts import HASTEN, NOW
from sume_operator.adapters.redis_connection import translated
from sume_operator.core.render import Ref, Render
from sume_operator.core.status import format_time

CHUNK: Final = 500
# A waiting member is `2026-12-01T12:00:00Z/namespace/name/uid`: what comes after the first slash is the alarm.
_COMMON: Final = (
    NOW
    + """
local function alarm_of(member) return string.sub(member, string.find(member, '/', 1, true) + 1) end
local function drop_dead_heads(slots, waiting, queue, free)
  local dropped
  repeat
    dropped = false
    for _, head in ipairs(redis.call('ZRANGE', waiting, 0, free - 1)) do
      local ref = alarm_of(head)
      if redis.call('ZSCORE', slots, ref) or not redis.call('ZSCORE', queue, ref) then
        redis.call('ZREM', waiting, head)
        dropped = true
      end
    end
  until not dropped
end
"""
)

# KEYS: slots, waiting, the sorted set of alarms, the mark `whole`, the set of all fingerprints.
# ARGV: the ref, its waiting member, -priority, how many at most, the fingerprint.
# Answer: -1 it holds a slot now; -2 not known while Redis is not whole; else how many are ahead of it.
_TAKE: Final = (
    _COMMON
    + """
redis.call('SADD', KEYS[5], ARGV[5])
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return -1 end
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[2])
if redis.call('EXISTS', KEYS[4]) == 0 then return -2 end
local free = tonumber(ARGV[4]) - redis.call('ZCARD', KEYS[1])
if free > 0 then drop_dead_heads(KEYS[1], KEYS[2], KEYS[3], free) end
local rank = redis.call('ZRANK', KEYS[2], ARGV[2])
if not rank then
  redis.call('ZADD', KEYS[2], ARGV[3], ARGV[2])
  rank = redis.call('ZRANK', KEYS[2], ARGV[2])
end
if rank >= free then return rank end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[2])
return -1
"""
)

# KEYS: slots, waiting, the sorted set of alarms. ARGV: the ref, its waiting member, how many at most.
# Answer: how many of those that wait were woken.
_FREE: Final = (
    _COMMON
    + HASTEN
    + """
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[2])
local free = tonumber(ARGV[3]) - redis.call('ZCARD', KEYS[1])
if free <= 0 then return 0 end
drop_dead_heads(KEYS[1], KEYS[2], KEYS[3], free)
local heads = redis.call('ZRANGE', KEYS[2], 0, free - 1)
for _, head in ipairs(heads) do
  hasten(KEYS[3], alarm_of(head))
end
return #heads
"""
)

# KEYS: slots, waiting. ARGV: 's' or 'w', then refs (s), or pairs of -priority and waiting member (w). Answer: 1.
_SHOWN: Final = (
    _COMMON
    + """
if ARGV[1] == 's' then
  for i = 2, #ARGV do redis.call('ZADD', KEYS[1], 'NX', now, ARGV[i]) end
else
  for i = 2, #ARGV, 2 do redis.call('ZADD', KEYS[2], ARGV[i], ARGV[i + 1]) end
end
return 1
"""
)

# KEYS: slots. ARGV: ms before now that are young, then the refs that objects show. Answer: how many were removed.
_FORGET: Final = (
    _COMMON
    + """
local shown = {}
for i = 2, #ARGV do shown[ARGV[i]] = true end
local old = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[1])
local removed = 0
for _, ref in ipairs(old) do
  if not shown[ref] then removed = removed + redis.call('ZREM', KEYS[1], ref) end
end
return removed
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a render stands in the line of its key. Made from the object alone."""

    ref: Ref
    creation_time: datetime | None
    priority: int

    @classmethod
    def of(cls, render: Render) -> "Place":
        """The place of `render`."""
        return cls(ref=render.ref, creation_time=render.creation_time, priority=render.priority)

    @property
    def member(self) -> str:
        """As it stands among those that wait."""
        return f"{format_time(self.creation_time) or '0'}/{self.ref.member}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """`has_slot`: it may ask for its job. Else `ahead`: how many are before it, None while that is not known."""

    has_slot: bool
    ahead: int | None = None


class Slots:
    """At most `most` jobs of one fingerprint; 0: no limit. Raises RedisUnavailableError."""

    def __init__(
        self, client: "redis.Redis", key: str, *, most: int, on_error: Callable[[], None] = lambda: None
    ) -> None:
        self._client = client
        self._key = key
        self._most = most
        self._on_error = on_error
        register = client.register_script
        self._take, self._free = register(_TAKE), register(_FREE)
        self._shown, self._forget = register(_SHOWN), register(_FORGET)

    def take(self, fingerprint: str, place: Place) -> Taken:
        """Take a slot, or a place in the line. Taking one that is held already changes nothing."""
        if self._most == 0:
            return Taken(has_slot=True)
        keys = [*self._sets(fingerprint), self._key, f"{self._key}:whole", f"{self._key}:slots"]
        argv = [place.ref.member, place.member, -place.priority, self._most, fingerprint]
        ahead = int(self._run(self._take, keys, argv))
        if ahead == -1:
            return Taken(has_slot=True)
        return Taken(has_slot=False, ahead=None if ahead == -2 else ahead)

    def free(self, fingerprint: str, place: Place) -> int:
        """Give slot and place back, and wake those who are next. How many were woken."""
        if self._most == 0:
            return 0
        argv = [place.ref.member, place.member, self._most]
        return int(self._run(self._free, [*self._sets(fingerprint), self._key], argv))

    def free_ref(self, ref: Ref) -> None:
        """As free, where the fingerprint is not known."""
        if self._most:
            for fingerprint in self.fingerprints():
                self._run(self._free, [*self._sets(fingerprint), self._key], [ref.member, "", self._most])

    def held(self, fingerprint: str) -> int:
        """How many hold a slot."""
        with translated(self._on_error):
            return int(self._client.zcard(self._sets(fingerprint)[0]))

    def fingerprints(self) -> frozenset[str]:
        """Every fingerprint that ever took one."""
        with translated(self._on_error):
            members: Any = self._client.smembers(f"{self._key}:slots")
        return frozenset(members)

    def show_holders(self, fingerprint: str, refs: Iterable[Ref]) -> None:
        """The objects show that these have a job under way, or are asking for one."""
        members = [ref.member for ref in refs]
        for chunk in _chunks(members, CHUNK):
            self._run(self._shown, list(self._sets(fingerprint)), ["s", *chunk])

    def show_waiting(self, fingerprint: str, places: Iterable[Place]) -> None:
        """The objects show that these wait."""
        flat: list[Any] = [x for place in places for x in (-place.priority, place.member)]
        for chunk in _chunks(flat, 2 * CHUNK):
            self._run(self._shown, list(self._sets(fingerprint)), ["w", *chunk])

    def forget_others(self, fingerprint: str, refs: Iterable[Ref], older_than_s: float) -> int:
        """Remove holders that took their slot more than `older_than_s` ago and that no object shows. How many."""
        argv = [older_than_s * 1000, *(ref.member for ref in refs)]
        return int(self._run(self._forget, [self._sets(fingerprint)[0]], argv))

    def _sets(self, fingerprint: str) -> tuple[str, str]:
        return f"{self._key}:slots:{fingerprint}", f"{self._key}:waiting:{fingerprint}"

    def _run(self, script: Any, keys: list[str], argv: list[Any]) -> Any:
        with translated(self._on_error):
            return script(keys=keys, args=argv)


def _chunks(items: list[Any], size: int) -> Iterable[list[Any]]:
    return (items[i : i + size] for i in range(0, len(items), size))
