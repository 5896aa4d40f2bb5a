"""What can go wrong at the API server, as the rest of the operator sees it.

ClusterError                 the root; its text is stable and names no secret
+-- GoneError                404, or another object under the same name
+-- ConflictError            409: the object has changed since it was read
+-- RefusedError             400, 422: the API server will not take this, however often it is asked
+-- NotPermittedError        401, 403
+-- ExpiredListError         410 in the middle of a list
+-- ClusterUnavailableError  429, 5xx, time-outs, no connection
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import urllib3
from kubernetes.client.exceptions import ApiException

from sume_operator.core.wording import one_line


class ClusterError(Exception):
    """The API server did not do what it was asked."""


class GoneError(ClusterError):
    """There is no such object any more."""


class ConflictError(ClusterError):
    """The object has changed since it was read."""


class RefusedError(ClusterError):
    """The request itself is not acceptable."""


class NotPermittedError(ClusterError):
    """The account of this process may not do that."""


class ExpiredListError(ClusterError):
    """A list took too long to be continued."""


class ClusterUnavailableError(ClusterError):
    """No answer, or not now."""


_BY_STATUS: Final = {
    400: RefusedError,
    401: NotPermittedError,
    403: NotPermittedError,
    404: GoneError,
    409: ConflictError,
    410: ExpiredListError,
    422: RefusedError,
}


@contextmanager
def translated(what: str) -> Iterator[None]:
    """The client's exceptions -> the tree above. `what` names the call for people."""
    try:
        yield
    except ApiException as error:
        status = int(error.status or 0)
        kind = _BY_STATUS.get(status, ClusterUnavailableError)
        # It can hold what was refused, and so a signed address.
        detail = f": {one_line(str(error.body), 500)}" if kind is RefusedError and error.body else ""
        raise kind(f"{what}: HTTP {status}{detail}") from None
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        # Not the text: urllib3's holds addresses of objects, which would make every message another one.
        raise ClusterUnavailableError(f"{what}: {type(error).__name__}") from None
