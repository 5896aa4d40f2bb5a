"""Lua that more than one script over the sorted set begins with."""

from typing import Final

# `now`: ms by Redis' own clock. `BAND`: how far before all others new and hastened alarms stand.
NOW: Final = """
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local BAND = 1000000000000
"""

# A running lease is kept and marked; anything else becomes due now. Who stands in the express band keeps its place.
HASTEN: Final = """
local function hasten(queue, member)
  local score = tonumber(redis.call('ZSCORE', queue, member) or now)
  if score > now and score % 1 == 0.5 then
    redis.call('ZADD', queue, score + 0.25, member)
  elseif score > now - BAND / 2 and not (score > now and score % 1 == 0.75) then
    redis.call('ZADD', queue, now - BAND, member)
  end
end
"""
