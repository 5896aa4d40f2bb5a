"""The door to the hosts where outputs lie: TLS only, and never a credential, whatever the machine has for that host."""

import socket
import ssl
from http.cookiejar import DefaultCookiePolicy
from typing import Final
from urllib.parse import urljoin, urlsplit

import requests
import urllib3

_CHAIN_LIMIT: Final = 20


class InsecureError(requests.RequestException):
    """An address without TLS. The text names the host alone."""


class _NoCredentials(requests.auth.AuthBase):
    """Keeps requests from looking into ~/.netrc, and from taking a user out of an address."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers.pop("Authorization", None)
        return request


class OutputSession(requests.Session):
    """Proxies and certificates as the environment says, like curl; credentials and cookies never."""

    def __init__(self) -> None:
        super().__init__()
        self.auth = _NoCredentials()
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        self.headers["User-Agent"] = "kubectl-sumerender"

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:  # noqa: ARG002
        """After a redirect: ~/.netrc may know the other host."""
        prepared_request.headers.pop("Authorization", None)

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """A redirect to a host without TLS is not followed."""
        target = super().get_redirect_target(resp)
        if target is not None:
            check_secure(urljoin(resp.url, target))
        return target


def check_secure(url: str) -> None:
    """InsecureError unless the address is one of TLS."""
    if urlsplit(url).scheme.lower() != "https":
        raise InsecureError(f"{host_of(url) or 'the host'} would be asked without TLS (not https)")


def host_of(url: str) -> str:
    """All of an address that may be shown."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def cause_of(error: BaseException) -> str:
    """Why a connection failed, in words of ours: the libraries' own quote the address."""
    chain: list[BaseException] = [error]
    while len(chain) < _CHAIN_LIMIT:
        last = chain[-1]
        inner = getattr(last, "reason", None) or next(
            (arg for arg in last.args if isinstance(arg, BaseException)), None
        )
        inner = inner or last.__cause__ or last.__context__
        if not isinstance(inner, BaseException) or inner in chain:
            break
        chain.append(inner)
    for kinds, text in _CAUSES:
        if any(isinstance(each, kinds) for each in chain):
            return text
    return f"the connection failed ({type(chain[-1]).__name__})"


_CAUSES: Final[tuple[tuple[tuple[type[BaseException], ...], str], ...]] = (
    ((socket.gaierror, urllib3.exceptions.NameResolutionError), "no such host"),
    ((ConnectionRefusedError,), "connection refused"),
    ((TimeoutError, urllib3.exceptions.TimeoutError), "no answer in time"),
    ((urllib3.exceptions.IncompleteRead, ConnectionError), "the connection was cut"),
    ((urllib3.exceptions.ProxyError,), "the proxy does not let it through"),
    ((ssl.SSLError,), "TLS failed"),
)
