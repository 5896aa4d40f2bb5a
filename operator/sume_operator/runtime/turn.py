"""One claimed alarm, from claim to settle. The order of steps; what they are is decided in core.

    fetch -> next_step -> ask -> settle -> ... -> write status -> events -> give the alarm back

A crash anywhere repeats the turn when the lease ends, and loses nothing. A write is conditional: where the object has
changed meanwhile, the same replies are settled on the fresh copy, and Sume is not asked again.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from sume_operator.adapters.cluster import Cluster
from sume_operator.adapters.due_queue import HASTENED, LOST, REMOVED, Claimed, DueQueue
from sume_operator.adapters.kubernetes_errors import ClusterError, ConflictError, GoneError, RefusedError
from sume_operator.core.events import events_between, ttl_expired
from sume_operator.core.job import Call, JobStatus, Submit, Submitted
from sume_operator.core.noting import noted
from sume_operator.core.observing import state_of
from sume_operator.core.pace import Terms
from sume_operator.core.render import MalformedObjectError, Ref, Render
from sume_operator.core.settle import settle
from sume_operator.core.step import Expire, Note, Rest, SetFinalizer, Sleep, next_step
from sume_operator.core.verdict import Again, AtOnce, Never, Next, is_worth_writing
from sume_operator.metrics import PollerMetrics
from sume_operator.runtime.announcer import Announcer
from sume_operator.runtime.asking import Answer, Asking
from sume_operator.runtime.copies import Copies, Copy
from sume_operator.runtime.failpoints import Failpoint, reach
from sume_operator.runtime.lease import Lease, LeaseOverError
from sume_operator.runtime.submission import Submission

log = logging.getLogger(__name__)

STEPS_IN_ONE_TURN = 8
CONFLICTS_BORNE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What Sume answered in this turn. Kept, so that it can be settled again on a fresh copy."""

    call: Call
    answer: Answer
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The turn so far. `base`: as the API server has it; `render`: with what this turn has learnt."""

    base: Render
    render: Render
    confirmed_s: float
    readings: tuple[Reading, ...] = ()
    next: Next = field(default_factory=AtOnce)
    outcome: str = "unchanged"
    has_moved: bool = False
    is_copy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a turn works with, shared by all threads of a poller; all state of one turn is in its Draft."""

    queue: DueQueue
    cluster: Cluster
    asking: Asking
    submission: Submission
    announcer: Announcer
    copies: Copies
    terms: Terms
    metrics: PollerMetrics
    clock: Callable[[], datetime]
    kubernetes_timeout_s: float

    def work_off(self, lease: Lease) -> None:
        """The whole turn. Raises RedisUnavailableError: then the alarm is left to its lease."""
        claimed = lease.claimed
        self.metrics.lateness.observe(claimed.lateness_s)
        if claimed.was_leased:
            self.metrics.leases_expired.inc()
        draft: Draft | None = None
        try:
            draft = self._worked_off(claimed, lease)
            delay_s, outcome = _delay_of(draft), draft.outcome
        except GoneError:
            self.submission.free_gone(claimed.ref)
            delay_s, outcome = None, "gone"
        except LeaseOverError:
            log.warning("%s: the turn ran out of its lease; it is taken up again when the lease ends", claimed.ref)
            self.metrics.polls.labels("error").inc()
            return
        except MalformedObjectError as error:
            log.error("unreadable object: %s", error)
            delay_s, outcome = self.terms.pace.max_s, "error"
        except ClusterError as error:
            log.warning("%s: %s", claimed.ref, error)
            delay_s, outcome = self.terms.pace.error_delay_s(1), "error"
        self.metrics.polls.labels(outcome).inc()
        self._give_back(lease.claimed, delay_s, draft)

    def _give_back(self, claimed: Claimed, delay_s: float | None, draft: Draft | None) -> None:
        reach(Failpoint.BEFORE_SETTLE)
        score = self.queue.settle(claimed, delay_s)
        reach(Failpoint.AFTER_SETTLE)
        if draft is not None and delay_s and score not in (LOST, REMOVED, HASTENED):
            copy = Copy(base=draft.base, render=draft.render, confirmed_s=draft.confirmed_s)
            self.copies.keep(claimed.ref, score, copy)

    def _worked_off(self, claimed: Claimed, lease: Lease) -> Draft:
        draft = self._begin(claimed, lease)
        reach(Failpoint.AFTER_FETCH)
        try:
            for _ in range(CONFLICTS_BORNE + 1):
                try:
                    for _ in range(STEPS_IN_ONE_TURN):
                        if not isinstance(draft.next, AtOnce):
                            break
                        draft = self._step(draft, lease)
                    return self._written(draft, lease)
                except ConflictError:
                    self.metrics.status_writes.labels("conflict").inc()
                    draft = self._rebased(draft, lease)
        except GoneError:
            self._abandon(draft)
            raise
        log.warning("%s: changed too often while it was worked on; it is looked at again", claimed.ref)
        return replace(draft, next=Again(delay_s=self.terms.pace.error_delay_s(1)), outcome="error")

    def _begin(self, claimed: Claimed, lease: Lease) -> Draft:
        copy = self.copies.take(claimed.ref, claimed.score)
        if copy is not None:
            return Draft(base=copy.base, render=copy.render, confirmed_s=copy.confirmed_s, is_copy=True)
        return self._fetched(claimed.ref, lease)

    def _fetched(self, ref: Ref, lease: Lease) -> Draft:
        render = self.cluster.fetch(ref, lease.bound(self.kubernetes_timeout_s))
        return Draft(base=render, render=render, confirmed_s=time.monotonic())

    def _step(self, draft: Draft, lease: Lease) -> Draft:
        """One step: what next_step says, done."""
        now, render = self.clock(), draft.render
        step = next_step(render, now, self.terms)
        match step:
            case Rest():
                return replace(draft, next=Never())
            case Sleep(delay_s=delay_s):
                return replace(draft, next=Again(delay_s=delay_s))
            case Note():
                verdict = noted(render, step, now, self.terms)
                return replace(draft, render=verdict.render, next=verdict.next, outcome=verdict.outcome)
            case SetFinalizer(present=present):
                timeout_s = lease.bound(self.kubernetes_timeout_s)
                base = self.cluster.set_finalizer(draft.base, present=present, timeout_s=timeout_s)
                return replace(draft, base=base, render=base.with_status(render.status), confirmed_s=time.monotonic())
            case Expire():
                return self._expired(draft, lease)
            case Submit():
                return self._submission(draft, step, lease)
            case call:
                answer = self.asking.ask(render, call, now, lease)
                reading = Reading(call=call, answer=answer, at=self.clock())
                self._count_unknown_word(answer)
                return self._settled(replace(draft, readings=(*draft.readings, reading)), reading)

    def _settled(self, draft: Draft, reading: Reading) -> Draft:
        answer = reading.answer
        verdict = settle(draft.render, reading.call, answer.reply, reading.at, self.terms, answer.key)
        return replace(draft, render=verdict.render, next=verdict.next, outcome=verdict.outcome)

    def _submission(self, draft: Draft, call: Submit, lease: Lease) -> Draft:
        """What spends money starts from the object itself: never from a copy, nor from what is not on record yet."""
        if draft.is_copy or draft.render != draft.base:
            self._written(draft, lease)
            return self._fetched(draft.base.ref, lease)
        asked = self.submission.ask(draft.base, call, lease)
        reading = Reading(call=call, answer=asked.answer, at=self.clock())
        draft = replace(draft, base=asked.base, render=asked.base, readings=(*draft.readings, reading))
        return self._settled(draft, reading)

    def _abandon(self, draft: Draft) -> None:
        """The object went while its job was being asked for: nobody would ever know of that job."""
        if draft.render.status.cancellation is not None:
            return
        for reading in draft.readings:
            if isinstance(reading.answer.reply, Submitted):
                reply = self.submission.abandon(draft.base, reading.answer.reply)
                log.warning(
                    "%s is gone; its job %s was just made, and is canceled: %s",
                    draft.base.ref,
                    reading.answer.reply.job_id,
                    type(reply).__name__,
                )

    def _expired(self, draft: Draft, lease: Lease) -> Draft:
        """The end is on record before the object goes."""
        draft = self._written(draft, lease)
        self.announcer.announce(
            draft.base.ref, [ttl_expired(draft.base)], partial(lease.bound, self.kubernetes_timeout_s)
        )
        self.cluster.delete(draft.base, lease.bound(self.kubernetes_timeout_s))
        return replace(draft, next=Never())

    def _written(self, draft: Draft, lease: Lease) -> Draft:
        """The draft with its status on record, if it says more than the record does; then the events."""
        before, after = draft.base.status, draft.render.status
        if not is_worth_writing(before, after, self.terms.pace.status_refresh_s):
            return draft
        reach(Failpoint.BEFORE_WRITE)
        timeout_s = lease.bound(self.kubernetes_timeout_s)
        try:
            base = self.cluster.write_status(draft.base, after, timeout_s)
        except RefusedError as error:
            log.error("%s: the API server refused a status (a bug): %s", draft.base.ref, error)
            self.metrics.status_writes.labels("refused").inc()
            return replace(draft, next=Again(delay_s=self.terms.pace.max_s), outcome="error")
        reach(Failpoint.AFTER_WRITE)
        self.metrics.status_writes.labels("written").inc()
        self.announcer.announce(
            base.ref, events_between(before, draft.render), partial(lease.bound, self.kubernetes_timeout_s)
        )
        reach(Failpoint.AFTER_EVENTS)
        if after.terminal and not before.terminal:
            self._count_end(draft)
            self.submission.free(draft.render)
        base = self._job_noted(base, lease)
        return replace(draft, base=base, render=base, readings=(), is_copy=False, confirmed_s=time.monotonic())

    def _job_noted(self, base: Render, lease: Lease) -> Render:
        """With the job's id as an annotation; where that does not succeed, the next write of a status tries again."""
        if base.request is None or base.status.job_id is None or base.noted_job_id == base.status.job_id:
            return base
        try:
            base = self.submission.note_job(base, lease)
        except (ConflictError, GoneError):  # its status has been written: no job is lost if the object goes now
            log.debug("%s: changed or went before its job could be noted on it", base.ref)
        reach(Failpoint.AFTER_JOB_NOTE)
        return base

    def _rebased(self, draft: Draft, lease: Lease) -> Draft:
        """The same replies, settled on the object as it is now."""
        fresh = self.cluster.fetch(draft.base.ref, lease.bound(self.kubernetes_timeout_s))
        rebased = Draft(
            base=fresh,
            render=fresh,
            confirmed_s=time.monotonic(),
            readings=draft.readings,
            has_moved=draft.has_moved or _was_edited(draft.base, fresh),
        )
        for reading in draft.readings:
            rebased = self._settled(rebased, reading)
        return rebased

    def _count_unknown_word(self, answer: Answer) -> None:
        reply = answer.reply
        if isinstance(reply, JobStatus) and reply.word and state_of(reply.word) == "Unknown":
            self.metrics.unknown_words.inc()

    def _count_end(self, draft: Draft) -> None:
        after = draft.render.status
        succeeded = after.condition("Succeeded")
        reason = succeeded.reason if succeeded else ""
        self.metrics.finished.labels(draft.base.ref.namespace, reason).inc()
        if after.start_time and after.completion_time:
            seconds = (after.completion_time - after.start_time).total_seconds()
            self.metrics.render_duration.labels(after.state).observe(seconds)


def _was_edited(old: Render, new: Render) -> bool:
    """Whether its owner wants something else now: then it is looked at again at once."""
    return (old.generation, old.poll_request, old.deletion_time) != (
        new.generation,
        new.poll_request,
        new.deletion_time,
    )


def _delay_of(draft: Draft) -> float | None:
    if draft.has_moved:
        return 0.0
    match draft.next:
        case Again(delay_s=delay_s):
            return delay_s
        case AtOnce():  # more steps than one turn takes: go on in the next
            return 0.0
        case _:
            return None
