"""Asking Sume for a job, step by step, so that a crash between any two of them makes at most one job.

    slot -> budget -> key noted on the object -> intent in the status -> longer lease -> POST

What has been done is on the object before the next step begins. Whoever comes after a crash starts from the object,
finds the same key, and asks again: the key makes that the same job.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from sume_operator.adapters.budget import Budget
from sume_operator.adapters.cluster import Cluster
from sume_operator.adapters.credentials import Credential, Credentials
from sume_operator.adapters.key_state import KeyState
from sume_operator.adapters.slots import Place, Slots
from sume_operator.adapters.sume_api import SumeAPI
from sume_operator.core.events import events_between
from sume_operator.core.job import Cancel, Held, NoCredentials, NoSlot, Reply, Spent, Submit, Submitted
from sume_operator.core.keys import UNAUTHORIZED, KeyView, key_note
from sume_operator.core.pace import Terms
from sume_operator.core.render import IDEMPOTENCY_KEY, JOB_ID, Ref, Render, note_of
from sume_operator.core.submitting import intended
from sume_operator.metrics import PollerMetrics
from sume_operator.runtime.announcer import Announcer
from sume_operator.runtime.asking import Answer
from sume_operator.runtime.failpoints import Failpoint, reach
from sume_operator.runtime.lease import Lease

SUBMIT_SPARE_S = 30.0
CANCEL_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """`base`: the object as it is on record after the intent was written; `answer`: what came of it."""

    base: Render
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """Shared by all threads of a poller."""

    api: SumeAPI
    credentials: Credentials
    keys: KeyState
    slots: Slots
    budget: Budget
    cluster: Cluster
    announcer: Announcer
    terms: Terms
    metrics: PollerMetrics
    clock: Callable[[], datetime]
    timeout_s: float
    kubernetes_timeout_s: float

    def ask(self, base: Render, call: Submit, lease: Lease) -> Asked:
        """Ask for the job of `base`, which must be fresh from the API server. Raises what the adapters raise."""
        credential = self.credentials.resolve(base, lease.bound(self.kubernetes_timeout_s))
        if isinstance(credential, NoCredentials):
            return Asked(base=base, answer=Answer(reply=credential))
        view = self._view(credential)
        obstacle = self._obstacle(base, credential, view)
        if obstacle is not None:
            return Asked(base=base, answer=Answer(reply=obstacle, key=view))
        reach(Failpoint.AFTER_SLOT)
        base = self._on_record(base, call, credential, lease)
        reach(Failpoint.AFTER_INTENT)
        lease.extend(self.timeout_s + SUBMIT_SPARE_S)
        reach(Failpoint.BEFORE_CALL)
        exchange = self.api.exchange(call, credential.key, lease.bound(self.timeout_s))
        reach(Failpoint.AFTER_CALL)
        self._learn(call, exchange.reply, view, credential)
        if exchange.hint is not None:
            self.budget.tighten(credential.fingerprint, "submit", exchange.hint.remaining, exchange.hint.reset_s)
        self.metrics.submissions.labels(base.ref.namespace, exchange.code).inc()
        return Asked(base=base, answer=Answer(reply=exchange.reply, key=view))

    def note_job(self, base: Render, lease: Lease) -> Render:
        """The job's id as an annotation too: a backup keeps it, and does not pay again."""
        note = {JOB_ID: note_of(base.ref, str(base.status.job_id))}
        timeout_s = lease.bound(self.kubernetes_timeout_s)
        return self.cluster.annotate(base, note, finalizer=False, timeout_s=timeout_s)

    def abandon(self, render: Render, reply: Submitted) -> Reply | NoCredentials:
        """The object is gone, and nobody would ever know of this job: cancel it."""
        credential = self.credentials.resolve(render)
        if isinstance(credential, NoCredentials):
            return credential
        return self.api.perform(Cancel(job_id=reply.job_id), credential.key, CANCEL_S)

    def free(self, render: Render) -> None:
        """The render has no job under way any more."""
        submission = render.status.submission
        if render.request is not None and submission is not None and submission.key_fingerprint is not None:
            self.slots.free(submission.key_fingerprint, Place.of(render))
            self.budget.leave(submission.key_fingerprint, "submit", render.ref)

    def free_gone(self, ref: Ref) -> None:
        """As free, where only the ref is known: its place in a line drops out by itself, having no alarm."""
        self.slots.free_ref(ref)

    def _view(self, credential: Credential) -> KeyView:
        """What is known of the key: a hold of its submissions, or of the key as a whole."""
        now = self.clock()
        whole = self.keys.look(credential.fingerprint, now)
        if whole.hold_reason == UNAUTHORIZED:
            return whole
        own = self.keys.look(credential.fingerprint, now, submissions=True)
        return replace(own, in_doubt=whole.in_doubt)  # a job that is made proves the whole key

    def _obstacle(self, base: Render, credential: Credential, view: KeyView) -> Held | NoSlot | Spent | None:
        if view.hold_reason:
            return Held(reason=view.hold_reason, retry_after_s=view.hold_s)
        taken = self.slots.take(credential.fingerprint, Place.of(base))
        if not taken.has_slot:
            return NoSlot(ahead=taken.ahead)
        wait_s = self.budget.spend(credential.fingerprint, "submit", base.ref)
        return Spent(retry_after_s=wait_s) if wait_s else None

    def _on_record(self, base: Render, call: Submit, credential: Credential, lease: Lease) -> Render:
        asked_before = base.is_being_submitted
        if base.noted_key != base.base_key or base.has_finalizer != base.deletion_cancels:
            note = {IDEMPOTENCY_KEY: note_of(base.ref, base.base_key)}
            timeout_s = lease.bound(self.kubernetes_timeout_s)
            finalizer = base.deletion_cancels and base.deletion_time is None
            base = self.cluster.annotate(base, note, finalizer=finalizer, timeout_s=timeout_s)
        status = intended(
            base,
            call,
            self.clock(),
            self.terms,
            fingerprint=credential.fingerprint,
            asked_before=asked_before,
        )
        recorded = self.cluster.write_status(base, status, lease.bound(self.kubernetes_timeout_s))
        # After a crash this write is the one that says OutcomeUnknown: what the turn writes later adds nothing to it.
        bound_s = partial(lease.bound, self.kubernetes_timeout_s)
        self.announcer.announce(base.ref, events_between(base.status, recorded), bound_s)
        return recorded

    def _learn(self, call: Submit, reply: Reply, view: KeyView, credential: Credential) -> None:
        note = key_note(call, reply, view, self.clock(), self.terms.pace)
        if note is not None:
            submissions = getattr(note, "reason", UNAUTHORIZED) != UNAUTHORIZED
            self.keys.note(credential.fingerprint, note, submissions=submissions)
