"""Faults on demand: which of the coming requests go wrong, and what they get instead."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sume_sandbox.admin_input import FaultInput, Operation
from sume_sandbox.answer import Answer, json_answer, text_answer


@dataclass(slots=True, kw_only=True)
class Fault:
    """One rule and how often it was met."""

    fault_id: str
    rule: FaultInput
    matched: int = 0  # requests it speaks of
    hits: int = 0  # those it was applied to

    def matches(self, operation: Operation, job_id: str | None, key_fingerprint: str | None) -> bool:
        """Whether the rule speaks of such a request. A submission has no job id yet."""
        wanted = (self.rule.operation, self.rule.job, self.rule.key_fingerprint)
        return all(
            want is None or want == have
            for want, have in zip(wanted, (operation, job_id, key_fingerprint), strict=True)
        )

    @property
    def spent(self) -> bool:
        """Whether it has been applied as often as it should be."""
        return self.rule.times is not None and self.hits >= self.rule.times

    def describe(self) -> dict[str, Any]:
        """The rule as it was given, with its counts."""
        rule = self.rule.model_dump(by_alias=True, exclude_unset=True)
        return {"id": self.fault_id, **rule, "matched": self.matched, "hits": self.hits}

    def apply(self, work: Callable[[], Answer]) -> Answer:
        """The answer under this fault. The work is done unless the fault replaces it."""
        rule = self.rule
        replaced = rule.drop or rule.given("http_status", "body", "json_body")
        done = work() if not replaced or rule.after_effect or rule.drop_after_effect else Answer()
        answer = self._replacement() if replaced else replace(done, headers={**done.headers, **rule.headers})
        return replace(
            answer,
            delay_s=answer.delay_s + rule.delay_s,
            trickle_s=rule.trickle_s,
            bytes_per_s=rule.bytes_per_s or 0.0,
            cut_after_bytes=rule.cut_after_bytes,
            drop=answer.drop or rule.drop or rule.drop_after_effect,
        )

    def _replacement(self) -> Answer:
        rule = self.rule
        http_status = rule.http_status or 200
        if rule.given("json_body"):
            return json_answer(http_status, rule.json_body, rule.headers)
        if rule.body is not None:
            return text_answer(http_status, rule.body, rule.headers)
        return Answer(http_status=http_status, headers=rule.headers)


class Faults:
    """The rules in the order they were added. One request meets one fault at most."""

    def __init__(self) -> None:
        self._faults: dict[str, Fault] = {}
        self._numbers = itertools.count(1)

    def add(self, rule: FaultInput) -> Fault:
        """A new rule, after all others."""
        fault = Fault(fault_id=f"fault-{next(self._numbers)}", rule=rule)
        self._faults[fault.fault_id] = fault
        return fault

    def remove(self, fault_id: str) -> bool:
        """Forget a rule; False if there is none of that id."""
        return self._faults.pop(fault_id, None) is not None

    def clear(self) -> None:
        """Forget all rules."""
        self._faults.clear()

    def describe(self) -> list[dict[str, Any]]:
        """All rules with their counts, spent ones too."""
        return [fault.describe() for fault in self._faults.values()]

    def meet(self, operation: Operation, job_id: str | None, key_fingerprint: str | None) -> Fault | None:
        """The fault that a request meets, if any; it is counted."""
        for fault in self._faults.values():
            if fault.spent or not fault.matches(operation, job_id, key_fingerprint):
                continue
            fault.matched += 1
            if fault.matched > fault.rule.after:
                fault.hits += 1
                return fault
        return None
