"""How a render stands, and whether that is how its sample said it would end."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deploy.demo.samples import Key, Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What matters of a render's status. `result`: STATE/REASON; `outputs`: reason of OutputsAvailable."""

    has_ended: bool
    result: str
    outputs: str
    message: str


def key_of(body: Mapping[str, Any]) -> Key:
    """Of a render as the API server gives it."""
    return Key(str(body["metadata"]["namespace"]), str(body["metadata"]["name"]))


def standing_of(body: Mapping[str, Any]) -> Standing:
    """Of a render as the API server gives it."""
    status = body.get("status") or {}
    reasons = {each["type"]: str(each["reason"]) for each in status.get("conditions") or ()}
    return Standing(
        has_ended=status.get("terminal") is True,
        result=f"{status.get('state') or '-'}/{reasons.get('Succeeded') or '-'}",
        outputs=reasons.get("OutputsAvailable", "-"),
        message=str(status.get("message") or ""),
    )


def mismatch(sample: Sample, standing: Standing | None) -> str | None:
    """What is not as the sample says, in one line; None: all is."""
    if standing is None:
        return "was never seen"
    if not standing.has_ended:
        return f"has not ended, it stands at {standing.result}: {standing.message}"
    if standing.result != sample.result:
        return f"ended as {standing.result}, not as {sample.result}: {standing.message}"
    if sample.outputs is not None and standing.outputs != sample.outputs:
        return f"its outputs are {standing.outputs}, not {sample.outputs}: {standing.message}"
    return None
