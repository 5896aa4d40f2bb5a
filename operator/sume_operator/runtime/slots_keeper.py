"""Rebuilds the slots of every key from the objects that a pass of the sweep saw."""

import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from sume_operator.adapters.slots import Place, Slots
from sume_operator.core.conditions import SUBMITTED
from sume_operator.core.render import Ref, Render
from sume_operator.core.step import holds_slot


@dataclass(slots=True, kw_only=True)
class Seen:
    """What one pass has seen, by fingerprint. `in_doubt`: asked for, but with which key is not on the object."""

    started_s: float
    holders: dict[str, set[Ref]] = field(default_factory=lambda: defaultdict(set))
    waiting: dict[str, list[Place]] = field(default_factory=lambda: defaultdict(list))
    in_doubt: set[Ref] = field(default_factory=set)

    def add(self, renders: Iterable[Render]) -> None:
        """One page of the pass."""
        for render in renders:
            if render.request is None or render.status.terminal:
                continue
            submission = render.status.submission
            fingerprint = submission.key_fingerprint if submission else None
            submitted = render.status.condition(SUBMITTED)
            if holds_slot(render):
                if fingerprint is None:
                    self.in_doubt.add(render.ref)
                else:
                    self.holders[fingerprint].add(render.ref)
            elif fingerprint is not None and submitted is not None and submitted.reason == "WaitingForSlot":
                self.waiting[fingerprint].append(Place.of(render))


class SlotsKeeper:
    """Raises RedisUnavailableError. `lease_s`: a younger slot may belong to a turn that has not written yet."""

    def __init__(self, slots: Slots, lease_s: float) -> None:
        self._slots = slots
        self._lease_s = lease_s

    def begin(self) -> Seen:
        """A pass begins."""
        return Seen(started_s=time.monotonic())

    def finish(self, seen: Seen) -> None:
        """The pass is complete: what objects show is added, what none shows is taken away."""
        older_than_s = self._lease_s + time.monotonic() - seen.started_s
        for fingerprint in self._slots.fingerprints() | set(seen.holders) | set(seen.waiting):
            holders = seen.holders.get(fingerprint, set())
            self._slots.show_holders(fingerprint, holders)
            self._slots.show_waiting(fingerprint, seen.waiting.get(fingerprint, []))
            self._slots.forget_others(fingerprint, holders | seen.in_doubt, older_than_s)
