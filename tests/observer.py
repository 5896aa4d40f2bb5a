"""Watches renders from outside, as any client may, and keeps every version that it sees."""

import itertools
import json
import threading
from collections import defaultdict
from typing import Any

import requests

from kube import RENDERS, Body, Kube, condition, status


class Observer:
    """One watch per namespace, reconnected when it breaks; `reverts` tells what must never be."""

    def __init__(self, kube: Kube, namespaces: tuple[str, ...]) -> None:
        self._kube = kube
        self._versions: dict[str, dict[int, Body]] = defaultdict(dict)
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._watch, args=(name,), daemon=True) for name in namespaces]

    def __enter__(self) -> "Observer":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()

    @property
    def versions(self) -> int:
        """How many versions were seen of all renders."""
        return sum(len(versions) for versions in self._versions.values())

    def reasons(self, kind: str) -> dict[str, set[str]]:
        """Every reason that condition `kind` was seen to give, by `namespace/name`."""
        found: dict[str, set[str]] = defaultdict(set)
        for body in [body for versions in list(self._versions.values()) for body in list(versions.values())]:
            found[f"{body['metadata']['namespace']}/{body['metadata']['name']}"].add(condition(body, kind)[1])
        return found

    def reverts(self) -> list[str]:
        """Every change that takes something back: an end, the way it ended, a count, a job id."""
        found = []
        for uid, versions in self._versions.items():
            ordered = [status(versions[version]) for version in sorted(versions)]
            for old, new in itertools.pairwise(ordered):
                if old.get("terminal") and (new.get("terminal"), new["state"]) != (True, old["state"]):
                    found.append(f"{uid}: {old['state']} -> {new.get('state')}")
                if _count(new) < _count(old) or (old.get("jobID") and new.get("jobID") != old["jobID"]):
                    found.append(f"{uid}: {_count(old)} reads -> {_count(new)}")
        return found

    def _watch(self, namespace: str) -> None:
        while not self._stopping.is_set():
            try:
                with self._kube.request(
                    "GET",
                    f"{RENDERS}/namespaces/{namespace}/sumerenders",
                    params={"watch": "1", "timeoutSeconds": "15"},
                    stream=True,
                ) as answer:
                    answer.raise_for_status()
                    for line in answer.iter_lines():
                        self._keep(json.loads(line))
                        if self._stopping.is_set():
                            return
            except (requests.RequestException, ValueError):
                self._stopping.wait(0.2)

    def _keep(self, event: Any) -> None:
        if event["type"] in ("ADDED", "MODIFIED"):
            metadata = event["object"]["metadata"]
            self._versions[metadata["uid"]][int(metadata["resourceVersion"])] = event["object"]


def _count(body: Body) -> int:
    return int((body.get("polling") or {}).get("count") or 0)
