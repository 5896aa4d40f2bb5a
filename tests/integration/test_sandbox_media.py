"""The files of the sandbox's jobs over real HTTP: always the same bytes, in parts, while their address works."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from certificates import self_signed
from controlplane import free_port
from sume_sandbox.config import SandboxConfig
from sume_sandbox.embedded import running
from sume_sandbox.outputs import MEDIA_BASE

SIZE = 200_000
PLAIN, SIGNED = 0, 2  # shapes
CONFIG = SandboxConfig(host="127.0.0.1", port=0, queue_s=0, process_s=0, media_bytes=SIZE)


class Files:
    """A client of a sandbox's files."""

    def __init__(self, base: str) -> None:
        self.root = base.removesuffix("/v1")
        self.session = requests.Session()
        self.session.trust_env = False

    def admin(self, method: str, path: str, body: object = None) -> Any:
        answer = self.session.request(method, f"{self.root}/_sandbox{path}", json=body, timeout=10)
        assert answer.ok, answer.text
        return answer.json() if answer.content else None

    def complete(self, job_id: str, shape: int, **script: Any) -> str:
        """Have a job completed; answers the path of its first file, with its signature."""
        entry = {"status": "completed"}
        self.admin("PUT", f"/jobs/{job_id}", {"shape": shape, "script": [entry], **script})
        return self.path(job_id)

    def path(self, job_id: str) -> str:
        headers = {"Authorization": "Bearer key"}
        answer = self.session.get(f"{self.root}/v1/jobs/{job_id}/result", headers=headers, timeout=10)
        found = re.search(rf'{MEDIA_BASE}([^"]+)"', answer.text)
        assert found is not None, answer.text
        return f"/artifacts{found.group(1)}"

    def get(self, path: str, **headers: str) -> requests.Response:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.session.get(f"{self.root}{path}", headers=names, timeout=10)


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    with running(CONFIG) as url:
        yield url


@pytest.fixture
def files(base: str) -> Iterator[Files]:
    client = Files(base)
    client.admin("POST", "/reset")
    yield client
    client.session.close()


def test_a_file_is_always_the_same(files: Files) -> None:
    first, again = files.get(files.complete("job_1", PLAIN)), files.get("/artifacts/job_1/1.mp4")
    other = files.get(files.complete("job_2", PLAIN))
    assert (first.status_code, len(first.content), first.headers["Content-Type"]) == (200, SIZE, "video/mp4")
    assert (first.content, first.headers["ETag"]) == (again.content, again.headers["ETag"])
    assert other.content != first.content
    assert other.headers["ETag"] != first.headers["ETag"]


@pytest.mark.parametrize(
    ("wanted", "status", "content_range", "part"),
    [
        ("bytes=0-", 206, f"bytes 0-{SIZE - 1}/{SIZE}", slice(None)),
        ("bytes=1000-", 206, f"bytes 1000-{SIZE - 1}/{SIZE}", slice(1000, None)),
        ("bytes=1000-1999", 206, f"bytes 1000-1999/{SIZE}", slice(1000, 2000)),
        ("bytes=-10", 206, f"bytes {SIZE - 10}-{SIZE - 1}/{SIZE}", slice(-10, None)),
        (f"bytes={SIZE}-", 416, f"bytes */{SIZE}", slice(0)),
        ("lines=1-2", 200, None, slice(None)),
    ],
)
def test_parts_of_a_file(files: Files, wanted: str, status: int, content_range: str | None, part: slice) -> None:
    path = files.complete("job_1", PLAIN)
    whole, answer = files.get(path), files.get(path, Range=wanted)
    assert (answer.status_code, answer.headers.get("Content-Range")) == (status, content_range)
    assert answer.content == whole.content[part]


def test_a_part_of_a_file_that_has_changed_is_the_whole(files: Files) -> None:
    path = files.complete("job_1", PLAIN)
    etag = files.get(path).headers["ETag"]
    assert files.get(path, Range="bytes=5-", If_Range=etag).status_code == 206
    files.admin("PUT", "/jobs/job_1", {"shape": PLAIN, "script": [{"status": "completed"}], "media": {"revision": 1}})
    changed = files.get(path, Range="bytes=5-", If_Range=etag)
    assert (changed.status_code, len(changed.content)) == (200, SIZE)
    assert changed.headers["ETag"] != etag


def test_an_address_works_for_its_time(files: Files) -> None:
    path = files.complete("job_1", SIGNED)
    assert files.get(path).status_code == 200
    for wrong in (path.partition("?")[0], path.replace("Expires=", "Expires=9"), path + "0"):
        assert files.get(wrong).status_code == 403, wrong
    files.admin("PUT", "/links", {"expire_all": True})
    assert files.get(path).status_code == 403
    assert files.get(files.path("job_1")).status_code == 200
    files.admin("PUT", "/links", {"life_s": 0})
    assert files.get(files.path("job_1")).status_code == 403


@pytest.mark.parametrize("path", ["/artifacts/job_1/2.mp4", "/artifacts/job_2/1.mp4", "/artifacts/job_3/1.mp4"])
def test_only_a_completed_job_has_files(files: Files, path: str) -> None:
    files.complete("job_1", PLAIN)
    files.admin("PUT", "/jobs/job_3", {"script": [{"status": "processing"}]})
    assert files.get(path).status_code == 404


def test_a_transfer_is_cut_and_counted(files: Files) -> None:
    path = files.complete("job_1", PLAIN)
    files.admin("POST", "/faults", {"operation": "media", "cut_after_bytes": 70_000, "times": 1})
    with pytest.raises(requests.exceptions.RequestException):
        files.get(path)
    assert files.get(path, Range="bytes=70000-", Authorization="Bearer no").status_code == 206
    seen = files.admin("GET", "/media")
    assert seen["files"]["job_1/1.mp4"] == {
        "requests": 2,
        "bytes_sent": SIZE,
        "ranges": ["", "bytes=70000-"],
        "answers": {"200": 1, "206": 1},
    }
    assert "authorization" in seen["header_names"]
    assert "no" not in seen["header_names"]
    assert files.admin("GET", "/stats")["requests"]["media"] == {"200": 1, "206": 1}


def test_a_slow_transfer_arrives_whole(files: Files) -> None:
    path = files.complete("job_1", PLAIN, media={"size_bytes": 3000})
    files.admin("POST", "/faults", {"operation": "media", "bytes_per_s": 30_000})
    answer = files.get(path)
    assert len(answer.content) == 3000
    assert answer.elapsed.total_seconds() < 5


def test_the_same_over_tls(tmp_path: Path) -> None:
    (cert, key), port = self_signed(tmp_path), free_port()
    url = f"https://127.0.0.1:{port}/artifacts"
    config = SandboxConfig(
        host="127.0.0.1",
        port=0,
        process_s=0,
        queue_s=0,
        media_url=url,
        tls_port=port,
        tls_cert=str(cert),
        tls_key=str(key),
    )
    with running(config) as base, requests.Session() as session:
        session.trust_env, session.verify = False, str(cert)
        headers = {"Authorization": "Bearer key"}
        session.get(f"{base}/jobs/job_1/status", headers=headers, timeout=10)
        result = session.get(f"{base}/jobs/job_1/result", headers=headers, timeout=10).text
        found = re.search(rf'{url}[^"]+', result)
        assert found is not None, result
        content = session.get(found.group(), timeout=10).content
    assert hashlib.sha256(content).hexdigest()[:16] == hashlib.sha256(_shake("job_1/1.mp4")).hexdigest()[:16]


def _shake(file: str) -> bytes:
    return hashlib.shake_256(f"{file} revision 0".encode()).digest(64 * 1024)


def test_a_certificate_that_is_not_there_is_named() -> None:
    config = SandboxConfig(host="127.0.0.1", port=0, tls_cert="/nowhere/cert.pem")
    with pytest.raises(OSError, match=r"no TLS with certificate /nowhere/cert\.pem"), running(config):
        pass
