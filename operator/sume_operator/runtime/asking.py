"""One call to Sume for one render: find its key, see that the key is not on hold, ask, remember what that showed."""

from dataclasses import dataclass
from datetime import datetime

from sume_operator.adapters.credentials import Credential, Credentials
from sume_operator.adapters.key_state import KeyState
from sume_operator.adapters.sume_api import SumeAPI
from sume_operator.core.job import Call, Held, NoCredentials, Reply
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
        terms: Terms,
        metrics: PollerMetrics,
        *,
        timeout_s: float,
    ) -> None:
        self._api = api
        self._credentials = credentials
        self._keys = keys
        self._terms = terms
        self._metrics = metrics
        self._timeout_s = timeout_s
        self._shown: set[tuple[str, str]] = set()

    def ask(self, render: Render, call: Call, now: datetime, lease: Lease) -> Answer:
        """Send `call` if the render's key may be used now. Never raises for Sume's trouble."""
        credential = self._credentials.resolve(render)
        if isinstance(credential, NoCredentials):
            return Answer(reply=credential)
        key = self._keys.look(credential.fingerprint, now)
        if key.hold_reason:
            self._show_hold(credential, key.hold_reason)
            return Answer(reply=Held(reason=key.hold_reason, retry_after_s=key.hold_s), key=key)
        reach(Failpoint.BEFORE_CALL)
        reply = self._api.perform(call, credential.key, lease.bound(self._timeout_s))
        reach(Failpoint.AFTER_CALL)
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
