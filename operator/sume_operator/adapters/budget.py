"""How often one API key may ask, over all pollers: so many a minute and a day, tightened by what Sume's headers say.

The counting is the library's (limits: a sliding-window counter, on Redis' clock). What is added here is the order: who
was turned away stands in a line, and only as many get through as there is budget for those before them. So of many
renders of one key none starves.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import redis
from limits import RateLimitItem, RateLimitItemPerDay, RateLimitItemPerMinute
from limits.storage import RedisStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from sume_operator.adapters.redis_connection import translated
from sume_operator.core.render import Ref

Kind = Literal["read", "submit"]
LONGEST_GAP_S: Final = 60.0

# KEYS: the line, the sorted set of alarms, the gap. ARGV[1] the ref.
# Answer: {how many are before it, 1 if it stands in the line already, ms that the gap still asks for}.
# Heads of the line whose render has no alarm any more are dropped.
_LOOK: Final = """
while true do
  local head = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
  if not head or redis.call('ZSCORE', KEYS[2], head) then break end
  redis.call('ZREM', KEYS[1], head)
end
local rank = redis.call('ZRANK', KEYS[1], ARGV[1])
local gap = redis.call('PTTL', KEYS[3] .. ':next')
return {rank or redis.call('ZCARD', KEYS[1]), rank and 1 or 0, math.max(0, gap)}
"""

# KEYS: the line. ARGV[1] the ref. Answer: how many are before it, now that it stands there.
_JOIN: Final = """
local t = redis.call('TIME')
redis.call('ZADD', KEYS[1], 'NX', t[1] * 1000 + math.floor(t[2] / 1000), ARGV[1])
redis.call('EXPIRE', KEYS[1], 172800)
return redis.call('ZRANK', KEYS[1], ARGV[1])
"""

# KEYS: the line, the gap. ARGV[1] the ref. Answer: 1. It goes; where a gap is asked for, the next one waits for it, but
# not beyond the window that the gap is of.
_GO: Final = """
redis.call('ZREM', KEYS[1], ARGV[1])
local gap = redis.call('GET', KEYS[2])
local left = redis.call('PTTL', KEYS[2])
if gap and left > 0 then redis.call('SET', KEYS[2] .. ':next', 1, 'PX', math.min(gap, left)) end
return 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Per API key; 0: no limit."""

    per_minute: int = 0
    per_day: int = 0
    others: tuple[RateLimitItem, ...] = ()

    @property
    def items(self) -> tuple[RateLimitItem, ...]:
        """As the library has them."""
        minute = (RateLimitItemPerMinute(self.per_minute),) if self.per_minute else ()
        day = (RateLimitItemPerDay(self.per_day),) if self.per_day else ()
        return (*minute, *day, *self.others)


class Budget:
    """Shared by all pollers through Redis. Raises RedisUnavailableError."""

    def __init__(
        self,
        client: "redis.Redis",
        key: str,
        *,
        reads: Limits,
        submissions: Limits,
        on_error: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._key = key
        self._on_error = on_error
        self._items = {"read": reads.items, "submit": submissions.items}
        pool: Any = client.connection_pool  # ours, so that our time-outs and no-retry hold
        self._limiter = SlidingWindowCounterRateLimiter(
            RedisStorage("redis://", connection_pool=pool, key_prefix=f"{key}:limits")
        )
        register = client.register_script
        self._look, self._join, self._go = register(_LOOK), register(_JOIN), register(_GO)

    def spend(self, fingerprint: str, kind: Kind, ref: Ref) -> float:
        """Spend one request of `kind`. Answers 0.0 if there was one; else the seconds after which to try again."""
        with translated(self._on_error):
            return self._spend(fingerprint, kind, ref)

    def leave(self, fingerprint: str, kind: Kind, ref: Ref) -> None:
        """It asks for nothing any more: nobody is to wait behind it."""
        with translated(self._on_error):
            self._client.zrem(f"{self._key}:line:{kind}:{fingerprint}", ref.member)

    def tighten(self, fingerprint: str, kind: Kind, remaining: float, reset_s: float) -> None:
        """Sume says that `remaining` requests are left for `reset_s` seconds: spread them."""
        gap_s = min(reset_s / max(remaining, 1.0), LONGEST_GAP_S)
        if gap_s > 0:
            with translated(self._on_error):
                name, gap_ms = self._gap(fingerprint, kind), int(gap_s * 1000) or 1
                before = self._client.set(name, gap_ms, px=max(1, int(reset_s * 1000)), get=True)
                if before is None:  # from now on
                    self._client.set(f"{name}:next", 1, px=gap_ms)

    def _spend(self, fingerprint: str, kind: Kind, ref: Ref) -> float:
        line, gap = f"{self._key}:line:{kind}:{fingerprint}", self._gap(fingerprint, kind)
        before, in_line, gap_ms = (int(x) for x in self._look(keys=[line, self._key, gap], args=[ref.member]))
        items = self._items[kind]
        spread_s = max((item.get_expiry() / item.amount for item in items), default=1.0)
        if gap_ms or not all(self._is_entitled(item, fingerprint, kind, before) for item in items):
            return self._wait(line, ref, gap_ms / 1000, spread_s)
        for item in items:
            if not self._limiter.hit(item, fingerprint, kind):
                return self._wait(line, ref, 0.0, spread_s)
        if in_line or self._client.exists(gap):
            self._go(keys=[line, gap], args=[ref.member])
        return 0.0

    def _is_entitled(self, item: RateLimitItem, fingerprint: str, kind: Kind, before: int) -> bool:
        """Whether there is budget for all who stand before, and for one more."""
        return not before or self._limiter.get_window_stats(item, fingerprint, kind).remaining > before

    def _wait(self, line: str, ref: Ref, gap_s: float, spread_s: float) -> float:
        before = int(self._join(keys=[line], args=[ref.member]))
        return gap_s + spread_s * (before + 1)

    def _gap(self, fingerprint: str, kind: Kind) -> str:
        return f"{self._key}:gap:{kind}:{fingerprint}"
