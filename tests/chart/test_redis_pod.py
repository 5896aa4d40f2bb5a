"""The chart's scripts of its Redis, run by a real shell with a real server: the same lines, at other paths."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import redis

from controlplane import Child, free_port
from helm import Helm, named
from kube import Body, eventually

PASSWORDS: Final = ("plain-Pa55word", "with \"quotes\" and 'others'", 'back\\slash \\" $HOME `id` %s #x', "é–ß")


class Pod:
    """The container's files in `directory`, with its paths and port replaced."""

    def __init__(self, config: Body, directory: Path) -> None:
        self.port = free_port()
        self._directory = directory
        for name in ("etc-redis", "etc-redis-password", "run", "data"):
            (directory / name).mkdir()
        for name, text in config["data"].items():
            (directory / "etc-redis" / name).write_text(self._moved(text), encoding="utf-8")
        self.process = Child("redis", self._script("start.sh"), directory / "redis.log")

    def _moved(self, text: str) -> str:
        for path in ("/etc/redis-password", "/etc/redis", "/run/redis"):
            here = "run" if path == "/run/redis" else path[1:].replace("/", "-")
            text = text.replace(f"{path}/", f"{self._directory / here}/")
        text = text.replace("dir /data", f"dir {self._directory / 'data'}").replace("port 6379", f"port {self.port}")
        return text.replace("redis-cli ping", f"redis-cli -p {self.port} ping")

    def _script(self, name: str) -> list[str | Path]:
        return [shutil.which("dash") or "sh", self._directory / "etc-redis" / name]

    def set_password(self, text: str) -> None:
        (self._directory / "etc-redis-password" / "password").write_text(text, encoding="utf-8")

    def ping(self) -> bool:
        """What the probe says."""
        return not subprocess.run(self._script("ping.sh"), capture_output=True, check=False).returncode

    def client(self, password: str | None) -> "redis.Redis":
        return redis.Redis(port=self.port, password=password, decode_responses=True)


@pytest.fixture
def pod(helm: Helm, tmp_path: Path) -> Iterator[Pod]:
    made = Pod(named(helm.objects(), "ConfigMap", "-redis"), tmp_path)
    yield made
    made.process.kill()


@pytest.mark.parametrize("password", PASSWORDS)
def test_the_password_of_the_file_is_the_one_that_is_asked_for(pod: Pod, tmp_path: Path, password: str) -> None:
    """Whatever it is made of. It is on no command line, and in no file that others can read."""
    pod.set_password(f"{password}\n")
    pod.process.start()
    eventually(pod.ping, within_s=10, what="a probe that passes")
    with pod.client(password) as client:
        assert client.ping()
        settings = client.config_get("*")
    with pod.client(None) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()
    assert settings["maxmemory-policy"] == "noeviction"
    assert settings["maxmemory"] == str(192 * 1024**2)
    assert (settings["save"], settings["appendonly"]) == ("", "no")
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert password.encode() not in line.read_bytes()
        except OSError:  # it has ended
            continue
    assert (tmp_path / "run" / "redis.conf").stat().st_mode & 0o077 == 0


def test_another_password_in_the_file_fails_the_probe_and_a_restart_takes_it_up(pod: Pod) -> None:
    pod.set_password("first")
    pod.process.start()
    eventually(pod.ping, within_s=10)
    pod.set_password("second")
    assert not pod.ping()
    pod.process.kill()
    pod.process.start()
    eventually(pod.ping, within_s=10)
    with pod.client("second") as client:
        assert client.ping()


def test_it_ends_on_sigterm_by_itself(pod: Pod) -> None:
    """No shell in between that keeps the signal."""
    pod.set_password("any")
    pod.process.start()
    eventually(pod.ping, within_s=10)
    assert pod.process.stop() == 0


def test_an_empty_password_is_an_error_and_not_an_open_door(pod: Pod, tmp_path: Path) -> None:
    pod.set_password("\n")
    pod.process.start()
    eventually(lambda: not pod.process.is_running, within_s=10, what="an end")
    assert "empty" in (tmp_path / "redis.log").read_text(encoding="utf-8")


def test_without_a_password(helm: Helm, pod: Pod) -> None:
    """No file is mounted then."""
    pod.process.start()
    eventually(pod.ping, within_s=10)
    with pod.client(None) as client:
        assert client.ping()
