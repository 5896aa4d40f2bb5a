"""Which cluster and namespace: as kubectl reads it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_sumerender.connection import Connection
from kubectl_sumerender.errors import WrongUseError


def _config(path: Path, *, current: str = "", **contexts: str | None) -> Path:
    """A kubeconfig: context -> namespace. Its cluster is called after the file, so that one sees whose it is."""
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": path.stem, "cluster": {"server": f"https://{path.stem}.example:6443"}}],
        "users": [{"name": path.stem, "user": {"token": "t"}}],
        "contexts": [
            {
                "name": name,
                "context": {"cluster": path.stem, "user": path.stem} | ({"namespace": space} if space else {}),
            }
            for name, space in contexts.items()
        ],
    }
    path.write_text(yaml.safe_dump(body | ({"current-context": current} if current else {})), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_the_contexts_namespace_is_honoured(tmp_path: Path) -> None:
    path = _config(tmp_path / "one", current="a", a="studio-a", b=None)
    opened = Connection(kubeconfig=str(path)).open()
    assert (opened.namespace, opened.host) == ("studio-a", "https://one.example:6443")
    assert Connection(kubeconfig=str(path), context="b").open().namespace == "default"
    assert Connection(kubeconfig=str(path), namespace="other").open().namespace == "other"
    assert Connection(kubeconfig=str(path), all_namespaces=True).open().namespace is None


def test_of_several_files_the_first_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = _config(tmp_path / "one", current="a", a="first", shared="one")
    two = _config(tmp_path / "two", current="b", b="second", shared="two")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'absent'}:{one}:{two}")
    opened = Connection().open()
    assert (opened.namespace, opened.host) == ("first", "https://one.example:6443")
    opened = Connection(context="b").open()
    assert (opened.namespace, opened.host) == ("second", "https://two.example:6443")
    assert Connection(context="shared").open().namespace == "one"


def test_the_file_at_home(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    _config(tmp_path / ".kube" / "config", current="a", a="home")
    assert Connection().open().namespace == "home"


@pytest.mark.parametrize(
    ("connection", "says"),
    [
        (Connection(), "not in a pod"),
        (Connection(context="x"), "there is no kubeconfig"),
        (Connection(kubeconfig="/absent"), "--kubeconfig /absent: there is no such file"),
    ],
)
def test_nowhere_to_go(connection: Connection, says: str) -> None:
    with pytest.raises(WrongUseError, match=says):
        connection.open()


def test_a_context_that_is_not_there(tmp_path: Path) -> None:
    path = _config(tmp_path / "one", current="gone", a=None, b=None)
    with pytest.raises(WrongUseError, match=r"no context 'gone' in .*; it has: a, b"):
        Connection(kubeconfig=str(path)).open()


@pytest.mark.parametrize("text", ["", "[1, 2]", "a: [", "\x00", "contexts: 5\ncurrent-context: a"])
def test_a_file_that_is_no_kubeconfig(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(WrongUseError, match="odd"):
        Connection(kubeconfig=str(path)).open()
