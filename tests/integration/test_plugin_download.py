"""`kubectl sumerender download` over a real API server, and a sandbox that serves the files over TLS."""

import contextlib
import hashlib
import json
import os
import pty
import shlex
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import requests
import yaml

from certificates import self_signed
from controlplane import ControlPlane, free_port
from kube import POLL_REQUESTED_AT, Body, Kube, eventually, is_finished, status
from listener import Connection, Listener
from stack import Stack
from sume_sandbox.config import SandboxConfig
from sume_sandbox.embedded import running

SAMPLE: Final = Path(__file__).parents[2] / "deploy" / "samples" / "download-job.yaml"
SIZE: Final = 300_000
SIGNED: Final = 2  # a shape that signs addresses
KEY: Final = "sk-live-marker"
DONE: Final = {"type": "Succeeded", "status": "True", "reason": "Completed", "message": "m", "observedGeneration": 1}


@dataclass(slots=True)
class Studio:
    """A sandbox with TLS, a namespace, and a person with the plugin."""

    admin_url: str
    media_url: str
    cert: Path
    kube: Kube
    kubeconfig: Path
    namespace: str
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def admin(self, method: str, path: str, body: object = None) -> Any:
        answer = requests.request(method, f"{self.admin_url}/_sandbox{path}", json=body, timeout=10)
        assert answer.ok, answer.text
        return answer.json() if answer.content else None

    def fault(self, **fault: Any) -> None:
        self.admin("POST", "/faults", {"operation": "media"} | fault)

    def job(self, job: str, *, shape: int = 0, **media: Any) -> None:
        """A completed job."""
        self.admin("PUT", f"/jobs/{job}", {"shape": shape, "script": [{"status": "completed"}], "media": media})

    def url(self, job: str) -> str:
        """The address of its first file, signed if its shape signs."""
        answer = requests.get(f"{self.admin_url}/v1/jobs/{job}/result", headers={"x-api-key": KEY}, timeout=10)
        start = answer.text.index(self.media_url)
        return answer.text[start : answer.text.index('"', start)]

    def render(self, name: str, **output: Any) -> None:
        """A render that has completed, as the operator would leave it; with one output, or those of `outputs`."""
        job = f"job_{name}"
        if "url" not in output:
            self.job(job)
        body = self.kube.create(self.namespace, name, {"jobID": job}, labels={"batch": self.namespace})
        outputs = [{"name": "video", "contentType": "video/mp4", "url": output.pop("url", None) or self.url(job)}]
        outputs[0] |= output
        done = {"terminal": True, "state": "Completed", "jobID": job, "outputs": outputs}
        conditions = [DONE | {"lastTransitionTime": body["metadata"]["creationTimestamp"]}]
        answer = self.kube.patch(self.namespace, name, {"status": done | {"conditions": conditions}}, status=True)
        assert answer.ok, answer.text

    def command(self, *arguments: str, verb: str = "download") -> list[str]:
        where = ["--kubeconfig", str(self.kubeconfig), *([] if "-A" in arguments else ["-n", self.namespace])]
        return [sys.executable, "-m", "kubectl_sumerender", verb, *where, *arguments]

    def env(self) -> dict[str, str]:
        return {**os.environ, "REQUESTS_CA_BUNDLE": str(self.cert), "COLUMNS": "200"} | self.environment

    def run(self, *arguments: str, verb: str = "download", code: int = 0) -> str:
        """What it prints; nothing of it may be a signature or a stack trace."""
        done = subprocess.run(
            self.command(*arguments, verb=verb),
            check=False,
            env=self.env(),
            capture_output=True,
            text=True,
            timeout=120,
        )
        text = done.stdout + done.stderr
        assert done.returncode == code, text
        assert "Signature" not in text
        assert "Traceback" not in text
        return text

    def download(self, *arguments: str, code: int = 0) -> str:
        chosen = arguments or ("-l", f"batch={self.namespace}")
        return self.run(*chosen, "--to", str(self.folder), code=code)

    def files(self) -> dict[str, str]:
        """The checksums of what is there, parts and index aside."""
        return {path.name: _sum(path.read_bytes()) for path in self.folder.glob("*.mp4")}

    def on_record(self) -> dict[str, str]:
        """The checksums that the index has."""
        return {each["file"]: each["sha256"] for each in json.loads((self.folder / "index.json").read_text())["files"]}

    def seen(self) -> Any:
        return self.admin("GET", "/media")["files"]


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def content_of(job: str, revision: int = 0, size: int = SIZE) -> bytes:
    """What the sandbox serves."""
    return hashlib.shake_256(f"{job}/1.mp4 revision {revision}".encode()).digest(size)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    cert, key = self_signed(tmp_path_factory.mktemp("tls"))
    port = free_port()
    url = f"https://127.0.0.1:{port}/artifacts"
    config = SandboxConfig(
        host="127.0.0.1",
        port=0,
        queue_s=0,
        process_s=0,
        media_bytes=SIZE,
        media_url=url,
        tls_port=port,
        tls_cert=str(cert),
        tls_key=str(key),
    )
    with running(config) as base:
        yield base.removesuffix("/v1"), url, cert


@pytest.fixture
def studio(
    tmp_path: Path, hosts: tuple[str, str, Path], cluster: ControlPlane, request: pytest.FixtureRequest
) -> Studio:
    admin_url, media_url, cert = hosts
    kube = Kube(cluster)
    namespace = f"t-dl-{hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:8]}"
    kube.make_namespace(namespace)
    made = Studio(admin_url, media_url, cert, kube, cluster.kubeconfig, namespace, tmp_path / "films")
    made.admin("POST", "/reset")
    return made


def test_files_come_once_and_are_on_record(studio: Studio) -> None:
    names = [f"film-{number}" for number in range(6)]
    for name in names:
        studio.render(name)
    text = studio.download()
    assert "6 downloaded (1.8 MB), 0 missing" in text
    sums = {f"{name}.mp4": _sum(content_of(f"job_{name}")) for name in names}
    assert studio.files() == sums
    index = json.loads((studio.folder / "index.json").read_text())["files"]
    assert [(each["name"], each["job"], each["file"]) for each in index] == [
        (name, f"job_{name}", f"{name}.mp4") for name in names
    ]
    assert {each["file"]: each["sha256"] for each in index} == sums
    assert not [path.name for path in studio.folder.iterdir() if "part" in path.name]

    before = studio.seen()
    assert "0 downloaded (0 B), 6 were there already, 0 missing" in studio.download()
    assert studio.seen() == before


def test_a_damaged_or_deleted_file_is_fetched_again_and_no_other(studio: Studio) -> None:
    for name in ("one", "two", "three"):
        studio.render(name)
    studio.download()
    sums = studio.files()
    (studio.folder / "one.mp4").unlink()
    (studio.folder / "two.mp4").write_bytes(b"short")
    assert "2 downloaded (600.0 kB), 1 were there already" in studio.download()
    assert studio.files() == sums
    assert studio.seen()["job_three/1.mp4"]["requests"] == 1


def test_killed_half_way_it_goes_on_where_it_was(studio: Studio) -> None:
    names = [f"film-{number}" for number in range(6)]
    for name in names:
        studio.render(name)
    studio.fault(bytes_per_s=150_000)
    arguments = ("-l", f"batch={studio.namespace}", "--to", str(studio.folder), "--parallel", "2")
    with subprocess.Popen(studio.command(*arguments), env=studio.env(), stdout=subprocess.DEVNULL) as process:
        eventually(lambda: len(studio.files()) >= 2 and _part_bytes(studio.folder) > 50_000, within_s=60)
        process.kill()
    parts, done = _part_bytes(studio.folder), studio.files()
    assert 2 <= len(done) < 6
    studio.admin("DELETE", "/faults")
    before = studio.seen()
    assert f"{len(done)} were there already, 0 missing" in studio.download()
    assert studio.files() == studio.on_record() == {f"{name}.mp4": _sum(content_of(f"job_{name}")) for name in names}
    after = studio.seen()
    for file in done:  # not asked for again
        name = f"job_{file.removesuffix('.mp4')}/1.mp4"
        assert after[name] == before[name]
    sent = sum(file["bytes_sent"] for file in after.values()) - sum(file["bytes_sent"] for file in before.values())
    assert sent == (6 - len(done)) * SIZE - parts


def test_killed_between_index_and_name_nothing_is_fetched_twice(studio: Studio) -> None:
    studio.render("film")
    studio.download()
    file, part = studio.folder / "film.mp4", studio.folder / "film.mp4.part"
    etag = requests.get(studio.url("job_film"), verify=str(studio.cert), timeout=10).headers["ETag"]
    for known in (True, False):  # in the index already, or not yet
        file.rename(part)
        identity = f"{studio.namespace}/film/job_film/video"
        about = {"identity": identity, "validator": etag}
        part.with_name("film.mp4.part.about").write_text(json.dumps(about))
        if not known:
            (studio.folder / "index.json").unlink()
        before = studio.seen()["job_film/1.mp4"]["bytes_sent"]
        studio.download()
        assert studio.files() == {"film.mp4": _sum(content_of("job_film"))}
        assert studio.seen()["job_film/1.mp4"]["bytes_sent"] == before
        assert studio.seen()["job_film/1.mp4"]["answers"]["416"] == (1 if known else 2)


def test_interrupted_it_ends_cleanly_and_goes_on(studio: Studio) -> None:
    studio.render("film")
    for number in (signal.SIGINT, signal.SIGTERM):
        studio.fault(bytes_per_s=60_000, times=1)
        had = _part_bytes(studio.folder)
        command = studio.command("film", "--to", str(studio.folder))
        with subprocess.Popen(command, env=studio.env(), stderr=subprocess.PIPE, text=True) as process:
            eventually(partial(_has_grown, studio.folder, had + 20_000), within_s=30)
            process.send_signal(number)
            _, text = process.communicate(timeout=10)
        assert process.returncode == 130
        assert text.strip() == "interrupted"
    parts = _part_bytes(studio.folder)
    before = studio.seen()["job_film/1.mp4"]["bytes_sent"]
    studio.download("film")
    assert studio.seen()["job_film/1.mp4"]["bytes_sent"] - before == SIZE - parts
    assert studio.files() == {"film.mp4": _sum(content_of("job_film"))}


def test_a_cut_transfer_is_gone_on_with(studio: Studio) -> None:
    studio.render("film")
    studio.fault(cut_after_bytes=100_000, times=2)
    studio.download("film")
    seen = studio.seen()["job_film/1.mp4"]
    assert seen["ranges"] == ["", "bytes=100000-", "bytes=200000-"]
    assert (seen["bytes_sent"], seen["answers"]) == (SIZE, {"200": 1, "206": 2})
    assert studio.files() == studio.on_record() == {"film.mp4": _sum(content_of("job_film"))}


def test_a_file_that_changed_meanwhile_starts_over(studio: Studio) -> None:
    studio.render("film")
    studio.fault(cut_after_bytes=100_000, times=1)
    studio.fault(drop=True)
    assert "the connection was cut, again and again" in studio.download("film", code=1)
    assert _part_bytes(studio.folder) == 100_000
    studio.admin("DELETE", "/faults")
    studio.job("job_film", revision=1)
    studio.download("film")
    assert studio.files() == {"film.mp4": _sum(content_of("job_film", revision=1))}
    answers = studio.seen()["job_film/1.mp4"]["answers"]
    assert (answers["200"], "206" in answers) == (2, False)  # If-Range spares the part of another file


@pytest.mark.parametrize("told", [SIZE - 1, SIZE + 1])
def test_a_wrong_length_is_refused(studio: Studio, told: int) -> None:
    studio.render("film", sizeBytes=told)
    text = studio.download("film", code=1)
    assert f"the host's file has {SIZE} bytes, but Sume told of {told}: it is not that file" in text
    assert studio.files() == {}
    assert _part_bytes(studio.folder) == 0


@pytest.mark.parametrize(
    ("fault", "why", "requests_made"),
    [
        ({"http_status": 503, "headers": {"Retry-After": "0"}}, "127.0.0.1 answers 503, again and again", 5),
        ({"http_status": 418}, "127.0.0.1 answers 418", 1),
        ({"headers": {"Content-Encoding": "br"}}, "sends the file packed (br)", 1),
    ],
)
def test_what_is_missing_says_why(studio: Studio, fault: Body, why: str, requests_made: int) -> None:
    studio.render("film")
    studio.fault(**fault)
    assert f"{studio.namespace}/film: {why}" in studio.download("film", code=1).replace("127.0.0.1 sends", "sends")
    assert studio.seen()["job_film/1.mp4"]["requests"] == requests_made


def test_everything_missing_is_listed_and_the_rest_comes(studio: Studio) -> None:
    studio.render("film")
    studio.kube.create(studio.namespace, "young", {"jobID": "job_young"}, labels={"batch": studio.namespace})
    text = studio.download(code=1)
    assert "1 downloaded (300.0 kB), 1 missing" in text
    assert f"{studio.namespace}/young: has not ended yet (nothing has looked at it). Wait: kubectl sumerender" in text
    assert f"{studio.namespace}/nobody: there is no such render" in studio.download("film", "nobody", code=1)
    assert "1 were there already, 0 missing" in studio.download("--state", "Completed")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("-l", "batch=none"), 3, "nothing matched -l batch=none in namespace"),
        (("nobody",), 3, "nothing matched nobody in namespace"),
        (("-l", "no,,sense=("), 2, "identifier after"),
        (("film", "-l", "a=b"), 2, "names and -l exclude each other"),
        (("film", "--parallel", "0"), 2, "--parallel"),
    ],
)
def test_exit_codes(studio: Studio, arguments: tuple[str, ...], code: int, text: str) -> None:
    assert text in studio.download(*arguments, code=code)
    assert not studio.folder.exists()


def test_nothing_chosen_is_not_everything(studio: Studio) -> None:
    assert "which renders?" in studio.run("--to", str(studio.folder), code=2)


def test_json_for_scripts(studio: Studio) -> None:
    studio.render("film")
    told = json.loads(studio.download("film", "nobody", "-o", "json", code=1))
    assert told["files"] == [
        {"namespace": studio.namespace, "name": "film", "file": "film.mp4", "sizeBytes": SIZE, "downloaded": True}
    ]
    assert told["missing"] == [{"render": f"{studio.namespace}/nobody", "why": "there is no such render"}]


def test_all_namespaces_have_folders_of_their_own(studio: Studio) -> None:
    studio.render("film")
    studio.run("-A", "-l", f"batch={studio.namespace}", "--to", str(studio.folder))
    assert _sum((studio.folder / studio.namespace / "film.mp4").read_bytes()) == _sum(content_of("job_film"))


def test_no_credential_leaves_the_machine(studio: Studio, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password s3cret\n")
    netrc.chmod(0o600)
    studio.environment = {"NETRC": str(netrc), "SUME_API_KEY": KEY}
    other = studio.media_url.replace("127.0.0.1", "someone:s3cret@127.0.0.1")
    studio.render("film")
    studio.job("job_user")
    studio.render("user", url=f"{other}/job_user/1.mp4")
    studio.fault(http_status=302, headers={"Location": f"{studio.media_url}/job_film/1.mp4"}, times=1)
    studio.download()
    assert len(studio.files()) == 2
    names = set(studio.admin("GET", "/media")["header_names"])
    assert names == {"host", "user-agent", "accept", "accept-encoding", "connection"}


def test_a_redirect_to_a_host_without_tls_is_not_followed(studio: Studio) -> None:
    studio.render("film")
    plain = studio.media_url.replace("https", "http")
    studio.fault(http_status=302, headers={"Location": f"{plain}/job_film/1.mp4?X-Sume-Signature=Signature"})
    assert "127.0.0.1 would be asked without TLS (not https)" in studio.download("film", code=1)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:9/1.mp4?X-Sume-Signature=1", "127.0.0.1 would be asked without TLS (not https)"),
        ("https://127.0.0.1:9/1.mp4?X-Sume-Signature=1", "127.0.0.1: connection refused, again and again"),
        ("https:///1.mp4?X-Sume-Signature=1", "the address on record is none"),
    ],
)
def test_an_address_that_leads_nowhere(studio: Studio, url: str, why: str) -> None:
    studio.render("film", url=url)
    assert f"{studio.namespace}/film: {why}" in studio.download("film", code=1)


def test_a_certificate_that_is_not_trusted(studio: Studio) -> None:
    studio.render("film")
    studio.environment = {"REQUESTS_CA_BUNDLE": ""}
    text = studio.download("film", code=1)
    assert "the certificate of 127.0.0.1 is not trusted" in text
    assert "set REQUESTS_CA_BUNDLE" in text


def _tls_listener(studio: Studio, handle: Any) -> Listener:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(studio.cert, studio.cert.with_name("key.pem"))
    return Listener(handle, context)


def test_a_host_that_does_not_tell_the_length_is_not_believed(studio: Studio) -> None:
    def handle(connection: Connection) -> None:
        connection.read_request()
        connection.sock.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b"x" * 1000)

    with _tls_listener(studio, handle) as listener:
        studio.render("film", url=f"{listener.url}/1.mp4")
        assert "does not tell how long the file is" in studio.download("film", code=1)
    with _tls_listener(studio, handle) as listener:
        studio.render("known", url=f"{listener.url}/1.mp4", sizeBytes=1000)
        studio.download("known")


def test_a_host_that_sends_another_part_than_asked_for(studio: Studio) -> None:
    def handle(connection: Connection) -> None:
        while request := connection.read_request():
            part = "Content-Range: bytes 5-9/10"
            if b"Range:" in request:
                connection.answer(b"56789", "206 Partial Content", part, 'ETag: "1"')
            else:
                connection.sock.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: "1"\r\n\r\n012')
                return

    with _tls_listener(studio, handle) as listener:
        studio.render("film", url=f"{listener.url}/1.mp4")
        text = studio.download("film", code=1)
        assert "again and again" in text
        assert studio.files() == {}


def test_an_existing_file_of_another_hand_is_left_alone(studio: Studio) -> None:
    studio.render("film")
    studio.folder.mkdir()
    (studio.folder / "film.mp4").write_text("my own")
    assert "film.mp4 is there, but not in index.json: move it away" in studio.download("film", code=1)
    assert (studio.folder / "film.mp4").read_text() == "my own"


def test_two_at_once_in_one_folder(studio: Studio) -> None:
    studio.render("film")
    studio.fault(bytes_per_s=20_000, times=1)
    command = studio.command("film", "--to", str(studio.folder))
    with subprocess.Popen(command, env=studio.env(), stdout=subprocess.DEVNULL) as process:
        eventually(lambda: _part_bytes(studio.folder) > 0, within_s=30)
        assert "another download is at work in this folder" in studio.download("film", code=2)
        process.kill()
    assert "1 downloaded" in studio.download("film")  # the lock went with its process


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("size=200k", "the disk is full. Make room, and run the same again"),
        ("ro", "it cannot be written to. Choose another folder"),
    ],
)
def test_a_disk_that_takes_nothing(studio: Studio, options: str, text: str) -> None:
    studio.render("film")
    studio.folder.mkdir()
    mount = f'mount -t tmpfs -o {options} tmpfs {studio.folder} && exec "$@"'
    command = ["unshare", "-rm", "sh", "-c", mount, "sh", *studio.command("film", "--to", str(studio.folder))]
    done = subprocess.run(command, check=False, env=studio.env(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    assert done.stderr.strip().endswith(text) or text in done.stderr
    assert str(studio.folder) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_is_none(studio: Studio, tmp_path: Path) -> None:
    studio.render("film")
    (tmp_path / "file").touch()
    text = studio.run("film", "--to", str(tmp_path / "file"), code=2)
    assert "it is not a folder. Choose another with --to" in text
    assert "it is not a folder" in studio.run("film", "--to", str(tmp_path / "file" / "deeper"), code=2)


def test_bars_on_a_terminal(studio: Studio) -> None:
    studio.render("film")
    studio.fault(bytes_per_s=300_000, times=1)
    ours, theirs = pty.openpty()
    env = studio.env() | {"TERM": "xterm-256color"}
    command = studio.command("film", "--to", str(studio.folder))
    with subprocess.Popen(command, env=env, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        text = _everything(ours)
    assert process.returncode == 0
    for word in ("all files", "film.mp4", "0/1", "of 300.0 kB", "1 downloaded (300.0 kB), 0 missing"):
        assert word in text, text


def _has_grown(folder: Path, bytes_: int) -> bool:
    return _part_bytes(folder) > bytes_


def _everything(descriptor: int) -> str:
    read = b""
    with contextlib.suppress(OSError):  # a terminal whose other end has closed
        while more := os.read(descriptor, 65536):
            read += more
    os.close(descriptor)
    return read.decode(errors="replace")


def _part_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.part")) if folder.exists() else 0


def test_the_sample_job_has_the_rights_that_it_needs_and_no_more(studio: Studio, cluster: ControlPlane) -> None:
    cluster.kubectl("apply", "-n", studio.namespace, "-f", str(SAMPLE))
    *_, job = yaml.safe_load_all(SAMPLE.read_text(encoding="utf-8"))
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["command"] == ["kubectl-sumerender", "download"]
    token = cluster.kubectl("create", "token", "-n", studio.namespace, pod["serviceAccountName"]).stdout.strip()
    kubeconfig = studio.folder.with_name("kubeconfig")
    kubeconfig.write_text(cluster.kubeconfig.read_text().replace(cluster.token, token))
    studio.kubeconfig = kubeconfig

    studio.render("film")
    studio.kube.patch(studio.namespace, "film", {"metadata": {"labels": {"render.sume.com/batch": "july"}}})
    arguments = [each.replace("=/renders", f"={studio.folder}") for each in container["args"]]
    assert "1 downloaded (300.0 kB), 0 missing" in studio.run(*arguments)
    (studio.folder / "film.mp4").unlink()
    studio.fault(http_status=403)
    assert "did not answer within 1 s" in studio.run(*arguments, "--refresh-timeout", "1", code=1)
    assert "cannot list resource" in studio.run("-l", "a=b", "--to", str(studio.folder), "-A", code=2)
    assert cluster.kubectl("get", "secrets", "--token", token, check=False).returncode != 0


# --- with the operator ---


@pytest.fixture
def whole(stack: Stack, studio: Studio, tmp_path: Path) -> Studio:
    """A studio whose renders are looked after by a real operator."""
    key, port = studio.cert.with_name("key.pem"), free_port()
    url = f"https://127.0.0.1:{port}/artifacts"
    tls = ("--tls-cert", str(studio.cert), "--tls-key", str(key), "--tls-port", str(port), "--media-url", url)
    stack.start_sandbox(*tls, "--queue-s", "0", "--process-s", "0.5", "--media-bytes", str(SIZE))
    stack.start("controller", ready=False)
    stack.start("poller")
    studio.admin_url, studio.media_url, studio.namespace = stack.sandbox.url, url, stack.namespaces[0]
    return studio


@pytest.mark.timeout(180)
def test_an_expired_address_is_refreshed_once(whole: Studio) -> None:
    for number in range(3):
        whole.job(f"job_{number}", shape=SIGNED)
        whole.kube.create(whole.namespace, f"film-{number}", {"jobID": f"job_{number}"}, labels={"batch": "b"})
    eventually(lambda: all(map(is_finished, whole.kube.all_in([whole.namespace]))), within_s=60)
    old = status(whole.kube.get(whole.namespace, "film-0"))["outputs"][0]["url"]
    whole.admin("PUT", "/links", {"expire_all": True})
    assert "3 downloaded (900.0 kB), 0 missing" in whole.download("-l", "batch=b")
    for number in range(3):
        assert whole.files()[f"film-{number}.mp4"] == _sum(content_of(f"job_{number}"))
        assert whole.seen()[f"job_{number}/1.mp4"]["answers"] == {"403": 1, "200": 1}
    new = whole.kube.get(whole.namespace, "film-0")
    assert status(new)["outputs"][0]["url"] != old
    assert status(new)["lastHandledPollRequest"] == new["metadata"]["annotations"][POLL_REQUESTED_AT]


@pytest.mark.timeout(300)
def test_import_wait_download_as_one_script(whole: Studio, tmp_path: Path) -> None:
    """Twenty prompts in a file, twenty films in a folder."""
    prompts = tmp_path / "prompts.csv"
    rows = "\n".join(f'shot-{number},"A dog, number ""{number}"""' for number in range(20))
    prompts.write_text(f"name,prompt\n{rows}\n", encoding="utf-8")
    words = ("import", "wait", "download")
    extra = {
        "import": f"{prompts} --batch july --model sume/clip --apply",
        "wait": "-l render.sume.com/batch=july --timeout 4m",
        "download": f"-l render.sume.com/batch=july --to {whole.folder}",
    }
    script = " && ".join(f"{shlex.join(whole.command(verb=verb))} {extra[verb]}" for verb in words)
    done = subprocess.run(
        ["sh", "-c", script], check=False, env=whole.env(), capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 downloaded (6.0 MB), 0 missing" in done.stdout
    index = json.loads((whole.folder / "index.json").read_text())["files"]
    jobs = {each["name"]: each["job"] for each in index}
    assert len(jobs) == len(set(jobs.values())) == 20
    assert whole.files() == {f"{name}.mp4": _sum(content_of(job)) for name, job in jobs.items()}
    assert whole.admin("GET", "/stats")["jobs"]["submitted"] == 20
    assert done.stdout.count("Signature") == done.stderr.count("Signature") == 0


@pytest.mark.timeout(180)
def test_an_address_that_is_known_to_have_expired_is_not_even_tried(whole: Studio) -> None:
    whole.admin("PUT", "/links", {"life_s": 0})
    whole.job("job_1", shape=SIGNED)
    whole.kube.create(whole.namespace, "film", {"jobID": "job_1"})
    eventually(lambda: is_finished(whole.kube.get(whole.namespace, "film")), within_s=60)
    whole.admin("PUT", "/links", {"life_s": 600})
    whole.download("film")
    assert whole.seen()["job_1/1.mp4"]["answers"] == {"200": 1}


@pytest.mark.timeout(180)
def test_a_fresh_address_that_is_refused_too_is_the_end(whole: Studio) -> None:
    whole.job("job_1", shape=SIGNED)
    whole.kube.create(whole.namespace, "film", {"jobID": "job_1"})
    eventually(lambda: is_finished(whole.kube.get(whole.namespace, "film")), within_s=60)
    whole.fault(http_status=410)
    assert "127.0.0.1 answers 410, also to a fresh address: the file is probably gone" in whole.download("film", code=1)
    assert whole.seen()["job_1/1.mp4"]["requests"] == 2


def test_without_an_operator_a_fresh_address_is_waited_for_in_vain(studio: Studio) -> None:
    studio.render("film")
    studio.fault(http_status=403)
    text = studio.download("film", "--refresh-timeout", "1.5", code=1)
    assert "the operator was asked for a fresh address and did not answer within 1.5 s" in text
    assert f"kubectl sumerender why -n {studio.namespace} film" in text
