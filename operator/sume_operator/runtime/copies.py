"""Objects as a poller last wrote them, so that an ordinary turn needs no fetch.

A copy may be used only if nobody touched the alarm since: the claim must find exactly the score that this poller's own
settle had set. A suspend, a cancel, an edit or a deletion hastens the alarm, and so changes that score.
"""

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

from sume_operator.core.render import Ref, Render


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """`base`: as the API server has it. `render`: the same with what was learnt since but not worth a write."""

    base: Render
    render: Render
    confirmed_s: float


class Copies:
    """A bounded store, oldest out first. Safe to share between threads."""

    def __init__(self, *, max_age_s: float, max_entries: int) -> None:
        self._max_age_s = max_age_s
        self._max_entries = max_entries
        self._by_ref: OrderedDict[Ref, tuple[str, Copy]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, ref: Ref, score: str) -> Copy | None:
        """The copy that belongs to an alarm claimed at `score`, if there is one and it is fresh. Taken out for good."""
        with self._lock:
            found = self._by_ref.pop(ref, None)
        if found is None or found[0] != score:
            return None
        return found[1] if time.monotonic() - found[1].confirmed_s < self._max_age_s else None

    def keep(self, ref: Ref, score: str, copy: Copy) -> None:
        """Remember `copy` for the alarm that was given back at `score`."""
        with self._lock:
            self._by_ref[ref] = (score, copy)
            self._by_ref.move_to_end(ref)
            while len(self._by_ref) > self._max_entries:
                self._by_ref.popitem(last=False)
