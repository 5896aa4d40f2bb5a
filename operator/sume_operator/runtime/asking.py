"""One call to Sume for one render: find its key, see that the key is not on hold, ask, remember what that showed."""

from dataclasses import dataclass
from datetime import datetime

from sume_operator.adapters.budget import Budget
from sume_operator.adapters.credentials import Credential, Credentials
from sume_operator.adapters.key_state import KeyState
from sume_operator.adapters.sume_api import SumeAPI
from sume_operator.core.job import Cancel, Held, JobCall, NoCredentials, Reply, Spent
from sume_operator.core.keys import NOTHING_KNOWN, KeyView, Pause, key_note
from sume_operator.core.pace import Terms
from sume_operator.core.render import Render
from sume_operator.metrics import PollerMetrics
from sume_operator.runtime.failpoints import Failpoint, reach
from sume_operator.runtime.lease import Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A reply, and what was known of the key when it was asked."""

    reply: Reply
    key: KeyView = NOTHING_KNOWN


class Asking:
    """Shared by all threads of a poller."""

    def __init__(
        self,
        api: SumeAPI,
        credentials: Credentials,
        keys: KeyState,
        budget: Budget,
        terms: Terms,
        metrics: PollerMetrics,
        *,
        timeout_s: float,
    ) -> None:
        self._api = api
        self._credentials = credentials
        self._keys = keys
        self._budget = budget
        self._terms = terms
        self._metrics = metrics
        self._timeout_s = timeout_s
        self._shown: set[tuple[str, str]] = set()

    def ask(self, render: Render, call: JobCall, now: datetime, lease: Lease) -> Answer:
        """Send `call` if the render's key may be used now. Never raises for Sume's trouble."""
        credential = self._credentials.resolve(render, lease.bound(self._timeout_s))
        if isinstance(credential, NoCredentials):
            return Answer(reply=credential)
        key = self._keys.look(credential.fingerprint, now)
        if key.hold_reason:
            self._show_hold(credential, key.hold_reason)
            return Answer(reply=Held(reason=key.hold_reason, retry_after_s=key.hold_s), key=key)
        wait_s = 0.0 if isinstance(call, Cancel) else self._budget.spend(credential.fingerprint, "read", render.ref)
        if wait_s:
            return Answer(reply=Spent(retry_after_s=wait_s), key=key)
        reach(Failpoint.BEFORE_CALL)
        exchange = self._api.exchange(call, credential.key, lease.bound(self._timeout_s))
        reply = exchange.reply
        reach(Failpoint.AFTER_CALL)
        if exchange.hint is not None:
            self._budget.tighten(credential.fingerprint, "read", exchange.hint.remaining, exchange.hint.reset_s)
        note = key_note(call, reply, key, now, self._terms.pace)
        if note is not None:
            self._keys.note(credential.fingerprint, note)
        self._show_hold(credential, note.reason if isinstance(note, Pause) else None)
        return Answer(reply=reply, key=key)

    def _show_hold(self, credential: Credential, reason: str | None) -> None:
        for each in ("Unauthorized", "RateLimited"):
            if reason == each or (credential.source, each) in self._shown:
                self._metrics.key_paused.labels(credential.source, each).set(reason == each)
                self._shown.add((credential.source, each))
