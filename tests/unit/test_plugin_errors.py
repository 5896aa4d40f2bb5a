"""What Kubernetes answers, in one line that says what to do."""

import json
import socket
import ssl

import pytest
import urllib3

from kubectl_sumerender import errors


def _status(message: str, reason: str = "", **details: str) -> str:
    return json.dumps({"kind": "Status", "message": message, "reason": reason, "details": details})


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        (401, _status("Unauthorized"), errors.ForbiddenError, "log in again"),
        (403, _status("cannot list", name=""), errors.ForbiddenError, "cannot list. Ask for a role"),
        (404, "404 page not found\n", errors.NotServedError, "does not serve SumeRenders"),
        (404, _status('"x" not found', "NotFound", name="x"), errors.NotFoundError, '"x" not found'),
        (409, _status("is there", "AlreadyExists", name="x"), errors.ExistsError, "is there"),
        (409, _status("was modified", "Conflict", name="x"), errors.RefusedError, "was modified"),
        (422, _status("spec.x: no", "Invalid", name="x"), errors.RefusedError, "spec.x: no"),
        (400, "no json", errors.RefusedError, "HTTP 400"),
        (410, _status("too old"), errors.ExpiredError, "too old"),
        (429, "", errors.UnavailableError, "try again"),
        (503, "<html>", errors.UnavailableError, "HTTP 503"),
        (302, None, errors.UnavailableError, "HTTP 302"),
    ],
)
def test_answers(status: int, body: str | None, kind: type[errors.ApiError], says: str) -> None:
    error = errors.from_answer("list renders in namespace a", status, body)
    assert type(error) is kind
    assert str(error).startswith("list renders in namespace a: ")
    assert says in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("cause", "says"),
    [
        (ConnectionRefusedError(111, "refused"), "connection refused; is the cluster up"),
        (socket.gaierror(-2, "unknown"), "no such host"),
        (ssl.SSLCertVerificationError(1, "bad"), "certificate is not trusted"),
        (TimeoutError("timed out"), "no answer in time"),
        (ConnectionResetError(104, "reset"), "the connection failed (ConnectionResetError)"),
    ],
)
def test_failures_below_http(cause: Exception, says: str) -> None:
    wrapped = urllib3.exceptions.HTTPError("outer")
    wrapped.__cause__ = cause
    error = errors.from_exception("list", wrapped, "https://10.0.0.1:6443")
    assert isinstance(error, errors.UnavailableError)
    assert says in str(error)
    assert "https://10.0.0.1:6443" in str(error)


@pytest.mark.parametrize(
    ("text", "line"),
    [("a\nb", "a b"), ("\x1b[31mred", "[31mred"), ("  a   b ", "a b"), ("x" * 2000, "x" * 999 + "…"), ("é", "é")],
)
def test_one_line_that_is_safe_on_a_terminal(text: str, line: str) -> None:
    assert errors.clean(text) == line
