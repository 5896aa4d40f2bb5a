"""The object that repeats another one."""

from typing import Any

from kubectl_sumerender.retry_command import successor


def _body(name: str = "intro", **request: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "a",
            "uid": "u-1",
            "resourceVersion": "7",
            "finalizers": ["render.sume.com/cancel"],
            "labels": {"render.sume.com/batch": "july"},
            "annotations": {
                "render.sume.com/source": "Intro",
                "render.sume.com/job-id": "a/intro/job_1",
                "render.sume.com/idempotency-key": "a/intro/k",
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
                "mine": "1",
            },
        },
        "spec": {"request": {"model": "m", "arguments": {"p": "x"}, **request}, "cancel": True, "priority": 3},
        "status": {"state": "Failed"},
    }


def test_all_that_makes_the_video_is_kept_and_nothing_of_the_old_job() -> None:
    assert successor(_body(idempotencyKey="july/intro")) == {
        "apiVersion": "render.sume.com/v1alpha1",
        "kind": "SumeRender",
        "metadata": {
            "name": "intro-r2",
            "namespace": "a",
            "labels": {"render.sume.com/batch": "july"},
            "annotations": {"render.sume.com/source": "Intro", "mine": "1", "render.sume.com/retry-of": "intro"},
        },
        "spec": {
            "request": {"model": "m", "arguments": {"p": "x"}, "idempotencyKey": "july/intro-r2"},
            "priority": 3,
        },
    }


def test_each_retry_has_a_key_of_its_own_and_the_same_at_every_try() -> None:
    def key(body: dict[str, Any]) -> str:
        return str(successor(body)["spec"]["request"]["idempotencyKey"])

    keys = [
        key(_body(idempotencyKey="july/intro")),
        key(_body("intro-r2", idempotencyKey="july/intro-r2")),
        key(_body()),
        key(_body(idempotencyKey="mine")),
        key(_body(idempotencyKey="x" * 247 + "/intro")),
    ]
    assert keys[:3] == ["july/intro-r2", "july/intro-r3", "u-1/intro-r2"]
    assert keys[3] == keys[4] == "u-1/intro-r2"
    assert key(_body()) == keys[2]
