"""How long a batch will take, from what one render takes and what the plan allows. An estimate, and said to be one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kubectl_sumerender.entries import Entry
from kubectl_sumerender.screen import counted

MINUTES_A_DAY = 24 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What bounds the pace. 0 submissions: no limit."""

    slots: int
    minutes_per_render: float
    submissions_per_minute: int
    submissions_per_day: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Counts, and hours until the last one ends."""

    total: int
    follows: int
    models: dict[str, int]
    hours: float
    bound: str  # what makes it take that long

    def lines(self, limits: Limits) -> list[str]:
        """For people."""
        asked = self.total - self.follows
        told = [f"{counted(self.total)}, {asked} of them new at Sume"]
        told += [f"  {count:6}  {model}" for model, count in sorted(self.models.items())]
        if self.follows:
            told.append(f"  {self.follows:6}  of jobs that exist")
        if asked:
            told.append(f"about {self.hours:.1f} h for the new ones, bound by {self.bound}")
            told.append(
                f"(reckoned with {limits.minutes_per_render:g} min a render, {limits.slots} at once, "
                f"{_limit(limits.submissions_per_minute)} submissions a minute, "
                f"{_limit(limits.submissions_per_day)} a day)"
            )
        return told


def estimate(entries: Sequence[Entry], limits: Limits) -> Estimate:
    """The longest of three: the work itself, submitting it, and the days that a daily limit spreads it over."""
    models = Counter(entry.model for entry in entries if not entry.job)
    asked = sum(models.values())
    each = limits.minutes_per_render
    bounds = {"slots": asked * each / limits.slots if asked > limits.slots else each * bool(asked)}
    if limits.submissions_per_minute and asked:
        bounds["submissions a minute"] = (asked - 1) / limits.submissions_per_minute + each
    if limits.submissions_per_day and asked:
        whole_days = (asked - 1) // limits.submissions_per_day
        bounds["submissions a day"] = whole_days * MINUTES_A_DAY + each
    bound = max(bounds, key=lambda name: bounds[name])
    return Estimate(
        total=len(entries),
        follows=len(entries) - asked,
        models=dict(models),
        hours=bounds[bound] / 60,
        bound=bound,
    )


def _limit(number: int) -> str:
    return str(number) if number else "any number of"
