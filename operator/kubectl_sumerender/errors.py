"""What can go wrong, as one line for people, and the exit code that it ends with.

PluginError                 the root: its text names what is wrong and what to do
+-- WrongUseError           the command line or a file is not as it must be
+-- ApiError                Kubernetes did not do what it was asked
    +-- NotFoundError       no such object (or namespace)
    +-- NotServedError      the cluster does not know SumeRenders
    +-- ExistsError         there is one of that name already
    +-- ForbiddenError      401, 403
    +-- RefusedError        400, 409, 413, 422: it will not take this, however often it is asked
    +-- ExpiredError        410: a list or a watch took too long to be continued
    +-- UnavailableError    no answer, or not now
"""

import json
import socket
import ssl
from typing import Any, Final

# Exit codes. A verb adds 1 (some did not) and `wait` 124; see README.md.
OK: Final = 0
SOME_DID_NOT: Final = 1
WRONG_USE: Final = 2
NOTHING_MATCHED: Final = 3
TIMED_OUT: Final = 124
INTERRUPTED: Final = 130

_INSTALL: Final = (
    "this cluster does not serve SumeRenders (render.sume.com/v1alpha1). Install the operator with its Helm chart, or "
    "the definition alone with `kubectl apply -f crds/`; or choose another cluster with --context"
)


class PluginError(Exception):
    """Ends the command with `exit_code` and its text on stderr."""

    exit_code: int = WRONG_USE


class WrongUseError(PluginError):
    """The command line or a file is not as it must be."""


class ApiError(PluginError):
    """Kubernetes did not do what it was asked."""


class NotFoundError(ApiError):
    """There is no such object."""


class NotServedError(ApiError):
    """The cluster does not know SumeRenders."""


class ExistsError(ApiError):
    """There is an object of that name already."""


class ForbiddenError(ApiError):
    """This account may not do that."""


class RefusedError(ApiError):
    """The request itself is not acceptable."""


class ExpiredError(ApiError):
    """A list or a watch took too long to be continued: start over."""


class UnavailableError(ApiError):
    """No answer, or not now."""


def from_answer(what: str, status: int, body: str | bytes | None) -> ApiError:
    """An answer that is no success -> the tree above. `what` names the call: `list renders in studio-a`."""
    told = _told(body)
    message = clean(str(told.get("message") or "")) or f"HTTP {status}"
    match status:
        case 401:
            return ForbiddenError(
                f"{what}: Kubernetes does not accept these credentials; log in again, or see --context"
            )
        case 403:
            return ForbiddenError(f"{what}: {message}. Ask for a role that allows it (`kubectl auth can-i --list`)")
        case 404 if not told.get("details"):
            return NotServedError(f"{what}: {_INSTALL}")
        case 404:
            return NotFoundError(f"{what}: {message}")
        case 409 if told.get("reason") == "AlreadyExists":
            return ExistsError(f"{what}: {message}")
        case 410:
            return ExpiredError(f"{what}: {message}")
        case 400 | 409 | 413 | 422:
            return RefusedError(f"{what}: {message}")
        case _:
            return UnavailableError(f"{what}: {message}; try again")


def from_exception(what: str, error: BaseException, host: str) -> ApiError:
    """A failure below HTTP -> the tree above, with the cause that a person can act on."""
    cause = _root_cause(error)
    if isinstance(cause, ssl.SSLError):
        text = "its certificate is not trusted, or it does not speak TLS; see certificate-authority in the kubeconfig"
    elif isinstance(cause, ConnectionRefusedError):
        text = "connection refused; is the cluster up, and is this the right --context?"
    elif isinstance(cause, socket.gaierror):
        text = "no such host; see `server` in the kubeconfig, or --context"
    elif "timed out" in str(cause) or isinstance(cause, TimeoutError):
        text = "no answer in time; is the cluster up, and can it be reached from here?"
    else:
        text = f"the connection failed ({type(cause).__name__})"
    return UnavailableError(f"{what}: {host}: {text}")


def clean(text: str, limit: int = 1000) -> str:
    """One line that is safe on a terminal: no control characters, and not endless."""
    if len(text) <= limit and text.isprintable() and "  " not in text:  # nearly always, and ten thousand times over
        return text.strip()
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _told(body: str | bytes | None) -> dict[str, Any]:
    """The Status object of an answer; empty if it is none (a proxy's page, `404 page not found`)."""
    try:
        told = json.loads(body or b"")
    except ValueError:
        return {}
    return told if isinstance(told, dict) and told.get("kind") == "Status" else {}


def _root_cause(error: BaseException) -> BaseException:
    """The innermost cause: urllib3 wraps the socket's error in two of its own."""
    seen: set[int] = set()
    while id(error) not in seen:
        seen.add(id(error))
        inner = getattr(error, "reason", None) or error.__cause__ or error.__context__
        if isinstance(inner, BaseException):
            error = inner
    return error
