"""The renders while they change: shows them, does half way what the samples ask for, and notes how each ends."""

import time
from dataclasses import dataclass, field
from typing import Final

from deploy.demo.errors import DemoError
from deploy.demo.kubectl import Kubectl
from deploy.demo.processes import Fleet
from deploy.demo.samples import Key, Sample, Samples
from deploy.demo.screen import Screen
from deploy.demo.standing import Standing, key_of, standing_of

LOOK_EVERY_S: Final = 0.7
FAILURES_BORNE: Final = 5


@dataclass(slots=True, kw_only=True)
class Watching:
    """`standings`: the last that was seen of each sample. One that deleted itself after its end stays there."""

    kubectl: Kubectl
    samples: Samples
    fleet: Fleet
    screen: Screen
    standings: dict[Key, Standing] = field(default_factory=dict)
    gone: set[Key] = field(default_factory=set)  # seen before, and not there any more
    _seen: list[str] = field(default_factory=list)
    _midway_done: bool = False

    def until_ended(self, timeout_s: float) -> None:
        """Until all have ended, or `timeout_s` are over."""
        over_s, failures = time.monotonic() + timeout_s, 0
        while not self._all_ended() and time.monotonic() < over_s:
            self.fleet.check()
            try:
                self._look()
                failures = 0
            except DemoError:
                self.fleet.check()  # says more than that kubectl was refused
                failures += 1
                if failures > FAILURES_BORNE:
                    raise
            time.sleep(LOOK_EVERY_S)
        self._show(self._table())  # the last end may be younger than the table
        self.screen.end_table()

    def _look(self) -> None:
        lines = self._table()
        ageless = self._show(lines)
        if ageless == self._seen:
            return
        found = {
            key_of(body): standing_of(body)
            for namespace in self.samples.namespace_names
            for body in self.kubectl.json("get", "sumerenders", "-n", namespace)["items"]
        }
        self.standings |= found
        self.gone = self.standings.keys() - found.keys()
        self._seen = ageless
        self._half_way()

    def _show(self, lines: list[str]) -> list[str]:
        """Answers them without their last column, the age, which always changes."""
        ageless = [line.rsplit(maxsplit=1)[0].rstrip() for line in lines]
        self.screen.table(["$ kubectl get sumerenders -A", *lines], ageless)
        return ageless

    def _table(self) -> list[str]:
        """What kubectl prints, without renders that are not ours: on a shared cluster there may be others."""
        head, *rows = self.kubectl.run("get", "sumerenders", "-A").splitlines() or [""]
        return [head, *(row for row in rows if row.split(maxsplit=1)[0] in self.samples.namespace_names)]

    def _half_way(self) -> None:
        ended = [sample for sample in self.samples.renders if self._has_ended(sample)]
        if self._midway_done or 2 * len(ended) < len(self.samples.renders):
            return
        self._midway_done = True
        patches = [(sample.key, sample.midway) for sample in self.samples.renders if sample.midway is not None]
        if patches:
            self.screen.say("Half of them have ended. Now, as somebody would by hand:")
        for key, patch in patches:
            command = ("patch", f"srender/{key.name}", "-n", key.namespace, "--type", "merge", "-p")
            self.kubectl.run(*command, patch)
            self.screen.say(f"$ kubectl {' '.join(command)} '{patch}'")

    def _has_ended(self, sample: Sample) -> bool:
        standing = self.standings.get(sample.key)
        return standing is not None and standing.has_ended

    def _all_ended(self) -> bool:
        return all(map(self._has_ended, self.samples.renders))
