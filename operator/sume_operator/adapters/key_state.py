"""What all pollers know of one API key together: is it on hold, and which jobs were answered with it. In Redis.

One hash per key's fingerprint. Losing it costs at most one more look per poller: nothing here is the truth.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import redis

from sume_operator.adapters.redis_connection import translated
from sume_operator.core.keys import (
    FORBIDDEN_JOBS_THAT_PAUSE,
    UNAUTHORIZED,
    Answered,
    KeyNote,
    KeyView,
    NoteAnswer,
    NoteForbidden,
    Pause,
)
from sume_operator.core.pace import KEY_PROBE_S

TTL_S: Final = 2 * 86_400

_NOW: Final = "local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"

# KEYS[1] the hash, KEYS[2] the jobs that got 403. ARGV[1] ms that a probe holds the others.
# Answer: {reason of the hold or '', ms it lasts, in doubt (0/1), job, ms ago, job, ms ago}; the jobs may be ''.
# A hold that is probed lets one look through when its time is over, and goes on for everybody else.
_LOOK: Final = (
    _NOW
    + """
local f = redis.call('HMGET', KEYS[1], 'reason', 'until', 'probe', 'job1', 'at1', 'job2', 'at2')
local reason, left = '', 0
if f[1] then
  left = tonumber(f[2]) - now
  if left > 0 then
    reason = f[1]
  elseif f[3] == '1' then
    redis.call('HSET', KEYS[1], 'until', now + ARGV[1])
  else
    redis.call('HDEL', KEYS[1], 'reason', 'until', 'probe')
  end
end
local doubt = (f[1] or redis.call('EXISTS', KEYS[2]) == 1) and 1 or 0
local function ago(at) return at and now - tonumber(at) or 0 end
return {reason, math.max(0, left), doubt, f[4] or '', ago(f[5]), f[6] or '', ago(f[7])}
"""
)

# KEYS as above. ARGV[1] the job answered, ARGV[2] TTL in s. Answer: 1. Lifts every hold.
_ANSWERED: Final = (
    _NOW
    + """
redis.call('DEL', KEYS[2])
redis.call('HDEL', KEYS[1], 'reason', 'until', 'probe')
local f = redis.call('HMGET', KEYS[1], 'job1', 'at1')
if f[1] and f[1] ~= ARGV[1] then redis.call('HSET', KEYS[1], 'job2', f[1], 'at2', f[2]) end
redis.call('HSET', KEYS[1], 'job1', ARGV[1], 'at1', now)
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
"""
)

# KEYS[1] as above. ARGV[1] reason, ARGV[2] ms, ARGV[3] '1' if probed afterwards, ARGV[4] TTL in s. Answer: 1.
# A longer hold is never shortened.
_PAUSE: Final = (
    _NOW
    + """
local till = tonumber(redis.call('HGET', KEYS[1], 'until') or '0')
local new = now + math.floor(ARGV[2])
if new > till then redis.call('HSET', KEYS[1], 'reason', ARGV[1], 'until', new, 'probe', ARGV[3]) end
redis.call('EXPIRE', KEYS[1], ARGV[4])
return 1
"""
)

# KEYS[2] the jobs that got 403. ARGV[1] the job, ARGV[2] TTL in s. Answer: how many different ones in a row.
_FORBIDDEN: Final = """
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[2])
return redis.call('SCARD', KEYS[2])
"""


class KeyState:
    """Per fingerprint, shared by all pollers. Raises RedisUnavailableError."""

    def __init__(self, client: "redis.Redis", key: str, on_error: Callable[[], None] = lambda: None) -> None:
        self._key = key
        self._on_error = on_error
        register = client.register_script
        self._look, self._answered = register(_LOOK), register(_ANSWERED)
        self._pause, self._forbidden = register(_PAUSE), register(_FORBIDDEN)

    def look(self, fingerprint: str, now: datetime, *, submissions: bool = False) -> KeyView:
        """How the key stands, or its submissions alone; `now` turns Redis' ages into the caller's times."""
        name = _name(fingerprint, submissions)
        reason, hold_ms, in_doubt, *jobs = self._run(self._look, name, [KEY_PROBE_S * 1000])
        answered = [
            Answered(job_id=job, time=now - timedelta(milliseconds=int(age_ms)))
            for job, age_ms in zip(jobs[0::2], jobs[1::2], strict=True)
            if job
        ]
        return KeyView(
            hold_reason=reason or None,
            hold_s=int(hold_ms) / 1000,
            in_doubt=bool(in_doubt),
            fingerprint=fingerprint,
            answered=tuple(answered),
        )

    def note(self, fingerprint: str, note: KeyNote, *, submissions: bool = False) -> None:
        """Remember what an answer showed of the key, or (a 429 to a request) of its submissions alone."""
        fingerprint = _name(fingerprint, submissions)
        match note:
            case NoteAnswer(job_id=job_id):
                self._run(self._answered, fingerprint, [job_id, TTL_S])
            case Pause(reason=reason, hold_s=hold_s, probe=probe):
                self._run(self._pause, fingerprint, [reason, hold_s * 1000, "1" if probe else "0", TTL_S])
            case NoteForbidden(job_id=job_id):
                jobs = self._run(self._forbidden, fingerprint, [job_id, TTL_S])
                if int(jobs) >= FORBIDDEN_JOBS_THAT_PAUSE:
                    self._run(self._pause, fingerprint, [UNAUTHORIZED, KEY_PROBE_S * 1000, "1", TTL_S])

    def _run(self, script: Any, fingerprint: str, argv: list[Any]) -> Any:
        name = f"{self._key}:key:{fingerprint}"
        with translated(self._on_error):
            return script(keys=[name, f"{name}:forbidden"], args=argv)


def _name(fingerprint: str, submissions: bool) -> str:
    return f"{fingerprint}:submit" if submissions else fingerprint
