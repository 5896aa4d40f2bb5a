"""Addresses of the files that jobs made: signed ones cease to work, at their time or at the admin's word."""

from collections.abc import Mapping

from sume_sandbox import digest

EXPIRES = "X-Sume-Expires"
SIGNATURE = "X-Sume-Signature"


def signed(url: str, expires_at_s: int, link_round: int) -> str:
    """The address with its signature."""
    return f"{url}?{EXPIRES}={expires_at_s}&{SIGNATURE}={_signature(url, str(expires_at_s), link_round)}"


def is_good(url: str, query: Mapping[str, str], now_s: float, link_round: int) -> bool:
    """Whether such a query was given out for the address in this round, and still works."""
    expires = query.get(EXPIRES, "")
    return query.get(SIGNATURE) == _signature(url, expires, link_round) and now_s < float(expires)


class Links:
    """How long addresses work, and since when: a new round makes all earlier signatures worthless."""

    def __init__(self, life_s: float) -> None:
        self.life_s = life_s
        self.round = 0

    def expire_all(self) -> None:
        """Every signed address that was given out ceases to work now."""
        self.round += 1


def _signature(url: str, expires: str, link_round: int) -> str:
    return digest.fingerprint(f"{url} until {expires} in round {link_round}")
