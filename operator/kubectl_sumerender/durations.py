"""Times on the command line: 90, 90s, 30m, 2h, 1h30m, 1d."""

import re
from typing import Final

import click

_UNITS_S: Final = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_PARTS: Final = re.compile(r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


def parse_duration(text: str) -> float:
    """Seconds. ValueError if it is none."""
    found = _PARTS.fullmatch(text.strip())
    if not found or not any(found.groups()):
        raise ValueError(f"{text!r} is no time; write 90s, 30m, 2h or 1h30m")
    return sum(float(part) * size_s for part, size_s in zip(found.groups(), _UNITS_S.values(), strict=True) if part)


def duration(text: str) -> float:
    """For click's `type`."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
