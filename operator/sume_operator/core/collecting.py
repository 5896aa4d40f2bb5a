"""What a result read says: which outputs a completed job left, and how long a missing result is waited for."""

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from sume_operator.core.conditions import COMPLETED, NO, OUTPUTS_AVAILABLE, SUME_ANSWERED, SYNCED, YES, Says
from sume_operator.core.job import Found, Held, JobResult, Reply, Spent
from sume_operator.core.pace import Terms
from sume_operator.core.render import Render
from sume_operator.core.status import Output, Status, one_more_in_a_row
from sume_operator.core.verdict import Again, AtOnce, Verdict, ended_already, ends, goes_on
from sume_operator.core.wording import one_line

MAX_OUTPUTS: Final = 64
MAX_URL_CHARS: Final = 8192
EMPTY: Final = "ResultEmpty"
NOT_READY: Final = "ResultNotReady"
EMPTY_LOOKS_BORNE: Final = 3
NOT_READY_BORNE: Final = timedelta(minutes=10)
COLLECTING_BORNE: Final = timedelta(hours=24)
REFRESH_LOOKS_BORNE: Final = 5

_DONE: Final = Says(status=YES, reason="Completed", message="The job has completed.")
_FAMILIES: Final = ("video", "image", "audio")


def collected(render: Render, reply: JobResult, now: datetime, terms: Terms) -> Verdict:
    """An answered result read of a job that has completed."""
    status = replace(render.status, usage=reply.usage or render.status.usage)
    outputs, dropped = outputs_of(reply.found)
    if outputs:
        return _with_outputs(render, status, outputs, dropped, now)
    status = _one_more(status, EMPTY, now)
    if status.polling.streak and status.polling.streak.count >= EMPTY_LOOKS_BORNE:
        return _without_outputs(render, status, "NoOutputs", "Sume's result names no outputs.", now)
    return _waits(render, status, now, terms)


def not_ready(render: Render, now: datetime, terms: Terms) -> Verdict:
    """409: the status says completed, the result says not yet."""
    status = _one_more(render.status, NOT_READY, now)
    streak = status.polling.streak
    if streak and now - streak.since >= NOT_READY_BORNE:
        message = "Sume said for ten minutes that the completed job has no result yet."
        return _without_outputs(render, status, "NoOutputs", message, now)
    return _waits(render, status, now, terms)


def gone(render: Render, now: datetime) -> Verdict:
    """404 or 410: the job has completed, its result is no longer kept."""
    return _without_outputs(render, render.status, "ResultGone", "Sume no longer keeps the job's result.", now)


def gives_up_collecting(render: Render, now: datetime) -> Verdict | None:
    """After a day of trouble the render ends without its outputs; None: keep trying."""
    since = render.status.polling.collecting_since
    if since is None or now - since < COLLECTING_BORNE:
        return None
    return _without_outputs(render, render.status, "NoOutputs", "The result could not be read for 24 hours.", now)


def refreshed(render: Render, reply: Reply, now: datetime, terms: Terms) -> Verdict:
    """A result read of a render that had ended: fresh outputs, or the old ones; nothing else changes."""
    status = replace(render.status, polling=replace(render.status.polling, failures=0, next_poll_time=None))
    if isinstance(reply, JobResult):
        outputs, _dropped = outputs_of(reply.found)
        changed = replace(status, outputs=outputs or status.outputs)
        return ended_already(render, changed, AtOnce(), "changed")
    if isinstance(reply, Spent | Held):  # nothing was asked, so it is still to be done
        delay_s = terms.pace.clamped(reply.retry_after_s)
        failures = max(1, render.status.polling.failures)
        polling = replace(status.polling, failures=failures, next_poll_time=now + timedelta(seconds=delay_s))
        return ended_already(render, replace(status, polling=polling), Again(delay_s=delay_s), "deferred")
    failures = render.status.polling.failures + 1
    if failures >= REFRESH_LOOKS_BORNE:
        return ended_already(render, status, AtOnce(), "error")
    delay_s = terms.pace.error_delay_s(failures)
    polling = replace(status.polling, failures=failures, next_poll_time=now + timedelta(seconds=delay_s))
    return ended_already(render, replace(status, polling=polling), Again(delay_s=delay_s), "error")


def outputs_of(found: tuple[Found, ...]) -> tuple[tuple[Output, ...], int]:
    """What was found -> outputs, videos first, then images, then the rest; and how many did not fit the schema."""
    kept = [item for item in found if item.url.lower().startswith("https://") and len(item.url) <= MAX_URL_CHARS]
    kept.sort(key=_rank)  # stable: within a family Sume's own order stays
    outputs: list[Output] = []
    seen: Counter[str] = Counter()
    for item in kept[:MAX_OUTPUTS]:
        family = _family(item)
        seen[family] += 1
        name = family if seen[family] == 1 else f"{family}-{seen[family]}"
        outputs.append(
            Output(
                name=name,
                url=item.url,
                type=one_line(item.kind, 64) if item.kind else None,
                content_type=one_line(item.content_type, 128) if item.content_type else None,
                size_bytes=item.size_bytes,
                expiration_time=item.expires_at,
            )
        )
    return tuple(outputs), len(found) - len(outputs)


def _family(item: Found) -> str:
    by_content = (item.content_type or "").partition("/")[0].strip().lower()
    if by_content in _FAMILIES:
        return by_content
    kind = (item.kind or "").lower()
    return next((family for family in _FAMILIES if family in kind), "file")


def _rank(item: Found) -> int:
    family = _family(item)
    return _FAMILIES.index(family) if family in _FAMILIES[:2] else len(_FAMILIES)


def _one_more(status: Status, kind: str, now: datetime) -> Status:
    """An answer that is of no use yet, but no trouble either."""
    return replace(status, polling=replace(one_more_in_a_row(status.polling, kind, now), failures=0))


def _waits(render: Render, status: Status, now: datetime, terms: Terms) -> Verdict:
    given_up = gives_up_collecting(render, now)
    if given_up:
        return given_up
    changes = {SYNCED: SUME_ANSWERED}
    return goes_on(render, status, now, terms, delay_s=terms.pace.usual_s(None), changes=changes, outcome="unchanged")


def _with_outputs(render: Render, status: Status, outputs: tuple[Output, ...], dropped: int, now: datetime) -> Verdict:
    note = f" {dropped} more did not fit this record (not https, too long a URL, or too many)." if dropped else ""
    available = Says(status=YES, reason="Collected", message=f"{len(outputs)} collected.{note}")
    result = replace(_DONE, message=_DONE.message + note)
    status = replace(status, outputs=outputs, error=None)
    changes = {SYNCED: SUME_ANSWERED, OUTPUTS_AVAILABLE: available}
    return ends(render, status, now, state=COMPLETED, result=result, changes=changes)


def _without_outputs(render: Render, status: Status, reason: str, message: str, now: datetime) -> Verdict:
    result = replace(_DONE, message=f"{_DONE.message} {message}")
    changes = {SYNCED: SUME_ANSWERED, OUTPUTS_AVAILABLE: Says(status=NO, reason=reason, message=message)}
    return ends(render, replace(status, error=None), now, state=COMPLETED, result=result, changes=changes)
