"""Answers that make no sense, and keys that are not accepted: said in the status, and never the end of a render."""

from typing import Any

import pytest

from kube import Body, condition, eventually, is_finished, status
from stack import Stack, scripted

HTML = "<html><body>Bad gateway</body></html>"
UNAUTHORIZED = {"error": {"code": "unauthorized", "message": "The key is not known."}}
UNKNOWN_JOB = {"error": {"code": "not_found", "message": "No such job."}}

TROUBLE: dict[str, tuple[dict[str, Any], str]] = {
    "200 with HTML": ({"http_status": 200, "body": HTML}, "InvalidResponse"),
    "half a JSON": ({"http_status": 200, "body": '{"data": {"status": "proc'}, "InvalidResponse"),
    "empty": ({"http_status": 200, "body": ""}, "InvalidResponse"),
    "a list": ({"http_status": 200, "body": [1, 2]}, "InvalidResponse"),
    "null": ({"http_status": 200, "body": "null"}, "InvalidResponse"),
    "wrong types": (
        {
            "http_status": 200,
            "body": {"data": {"status": 5, "terminal": "yes", "job": [], "next_poll_after_seconds": {}}},
        },
        "InvalidResponse",
    ),
    "no word at all": ({"http_status": 200, "body": {"data": {"request_id": "job_x"}}}, "InvalidResponse"),
    "a redirect": ({"http_status": 302, "headers": {"Location": "http://127.0.0.1:9/x"}}, "InvalidResponse"),
    "a bare 404": ({"http_status": 404, "body": ""}, "InvalidResponse"),
    "an HTML 404": ({"http_status": 404, "body": HTML}, "InvalidResponse"),
    "404 in Sume's words": ({"http_status": 404, "body": UNKNOWN_JOB}, "JobNotFound"),
    "500": ({"http_status": 500, "body": HTML}, "APIUnavailable"),
    "503, Retry-After a word": ({"http_status": 503, "headers": {"Retry-After": "soon"}}, "APIUnavailable"),
    "503, Retry-After negative": ({"http_status": 503, "headers": {"Retry-After": "-5"}}, "APIUnavailable"),
    "503, Retry-After NaN": ({"http_status": 503, "headers": {"Retry-After": "nan"}}, "APIUnavailable"),
    "503, Retry-After huge": ({"http_status": 503, "headers": {"Retry-After": "9" * 400}}, "APIUnavailable"),
    "408": ({"http_status": 408, "body": ""}, "APIUnavailable"),
    "dropped": ({"drop": True}, "APIUnavailable"),
    "400 in Sume's words": ({"http_status": 400, "body": {"error": {"code": "bad_request"}}}, "InvalidResponse"),
    "403": ({"http_status": 403, "body": UNAUTHORIZED}, "Unauthorized"),
}


def _slug(name: str) -> str:
    return f"r-{list(TROUBLE).index(name)}"


@pytest.mark.timeout(120)
def test_every_kind_of_trouble(stack: Stack) -> None:
    """All at once: each render of its own reason, none of them ended, and all go on when Sume is well again."""
    stack.start_all(SUME_ERROR_SECONDS="2", SUME_POLL_MAX_SECONDS="3")
    namespace = stack.namespaces[0]
    healthy = {"status": "processing", "next_poll_after_seconds": 0.5}
    for name, (answer, _reason) in TROUBLE.items():
        slug = _slug(name)
        script = [healthy, answer, answer, healthy, {"status": "completed"}]
        stack.sandbox.script({f"job_{slug}": {"script": script}})
        # 403 on three jobs in a row puts a key on hold, and a hold would hide the others: each has its own key
        stack.kube.make_secret(namespace, slug, {"apiKey": f"key-{slug}"})
        stack.kube.create(namespace, slug, {"jobID": f"job_{slug}", "credentialsSecretRef": {"name": slug}})
    seen: dict[str, Body] = {}

    def all_seen() -> bool:
        for render in stack.kube.all_in([namespace]):
            if status(render).get("polling", {}).get("failures"):
                seen.setdefault(render["metadata"]["name"], render)
        return len(seen) == len(TROUBLE)

    eventually(all_seen, within_s=30, what="a failed look of each")
    for name, (_answer, reason) in TROUBLE.items():
        render = seen[_slug(name)]
        assert condition(render, "Synced") == ("False", reason), name
        assert condition(render, "Succeeded") == ("Unknown", reason), name
        assert status(render)["state"] == "Processing", name
        assert status(render)["polling"]["count"] == 1, name
    eventually(lambda: all(map(is_finished, stack.kube.all_in([namespace]))), within_s=40, every_s=0.3)
    for render in stack.kube.all_in([namespace]):
        assert condition(render, "Succeeded") == ("True", "Completed"), render["metadata"]["name"]
        assert status(render)["polling"]["count"] == 3


def test_odd_answers_that_are_none_the_less_answers(stack: Stack) -> None:
    """Delays out of all bounds are clamped; a word that nobody knows is kept, and the render goes on."""
    stack.start_all()
    namespace = stack.namespaces[0]
    delays: list[Any] = [0, -3, "NaN", 1e300, "huge", None, True]
    script = [
        {"http_status": 200, "body": {"data": {"status": "processing", "next_poll_after_seconds": d}}} for d in delays
    ]
    stack.sandbox.script(
        {
            "job_delays": {"script": [*script[:3], *script[4:], {"status": "completed"}]},
            "job_word": {
                "script": [{"status": "marinating", "next_poll_after_seconds": 1}] * 3 + [{"status": "completed"}]
            },
        }
    )
    for name in ("delays", "word"):
        stack.kube.create(namespace, name, {"jobID": f"job_{name}"})
    word = eventually(lambda: _if_state(stack, namespace, "word", "Unknown"), within_s=10)
    assert status(word)["sumeStatus"] == "marinating"
    assert condition(word, "Finished") == ("False", "Active")
    eventually(lambda: all(map(is_finished, stack.kube.all_in([namespace]))), within_s=20)
    assert stack.metric("poller-0", "sumerender_unknown_words_total") == 3


def _if_state(stack: Stack, namespace: str, name: str, state: str) -> Body | None:
    render = stack.kube.get(namespace, name)
    return render if status(render).get("state") == state else None


def test_no_key_at_all(stack: Stack) -> None:
    stack.start_all(SUME_API_KEY="", SUME_ERROR_SECONDS="1")
    namespace = stack.namespaces[0]
    stack.sandbox.script({"job_a": scripted("completed"), "job_b": scripted("completed")})
    stack.kube.create(namespace, "default", {"jobID": "job_a"})
    stack.kube.create(namespace, "named", {"jobID": "job_b", "credentialsSecretRef": {"name": "later"}})

    def reasons() -> dict[str, tuple[str, str]]:
        renders = stack.kube.all_in([namespace])
        return {render["metadata"]["name"]: condition(render, "Accepted") for render in renders}

    missing = ("False", "CredentialsNotFound")
    eventually(lambda: reasons() == {"default": missing, "named": missing}, within_s=10)
    stack.kube.make_secret(namespace, "later", {"other": "x"})
    eventually(lambda: reasons()["named"] == ("False", "CredentialsKeyMissing"), within_s=20)
    stack.kube.make_secret(namespace, "later", {"apiKey": "bad\x07key"})
    eventually(lambda: reasons()["named"] == ("False", "CredentialsInvalid"), within_s=20)
    stack.kube.make_secret(namespace, "later", {"apiKey": "a-key\n"})
    eventually(lambda: is_finished(stack.kube.get(namespace, "named")), within_s=20)


def test_another_endpoint_ends_nothing(stack: Stack) -> None:
    """A job is bound to the API it was seen at: elsewhere it would be unknown, and seem lost."""
    stack.start_all(SUME_POLL_MAX_SECONDS="1")
    namespace = stack.namespaces[0]
    stack.sandbox.script({"job_one": scripted("processing")})
    stack.kube.create(namespace, "one", {"jobID": "job_one"})
    eventually(lambda: stack.sandbox.reads("job_one") >= 1, within_s=10)
    eventually(lambda: status(stack.kube.get(namespace, "one")).get("apiURL"), within_s=5)
    stack.processes["poller-0"].stop()
    stack.start("poller", "elsewhere", SUME_API_URL="http://127.0.0.1:9/v1", SUME_POLL_MAX_SECONDS="1")
    eventually(lambda: condition(stack.kube.get(namespace, "one"), "Synced")[1] == "WrongEndpoint", within_s=15)
    assert status(stack.kube.get(namespace, "one"))["state"] == "Processing"
    stack.processes["elsewhere"].stop()
    stack.start("poller", "back", SUME_POLL_MAX_SECONDS="1")
    eventually(lambda: condition(stack.kube.get(namespace, "one"), "Synced")[1] == "Observed", within_s=15)
