"""The command line itself: quick help with an example for each verb, usage errors, completion."""

import subprocess
import sys
from pathlib import Path

import pytest

from kubectl_sumerender.cli import VERBS
from plugin import COMMAND, Result, environment

HEAVY = ("kubernetes", "rich", "redis", "requests")


def _run(*arguments: str, **env: str) -> Result:
    return subprocess.run(
        [*COMMAND, *arguments], env=environment(None, **env), capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_help_with_an_example(verb: str) -> None:
    result = _run(verb, "--help")
    assert result.returncode == 0
    assert f"kubectl sumerender {verb}" in result.stdout.partition("Example")[2]


def test_help_does_not_wait_for_libraries() -> None:
    code = (
        "import sys\nfrom kubectl_sumerender.cli import group\n"
        "for words in ([], ['wait'], ['import'], ['list'], ['watch'], ['cancel'], ['retry']):\n"
        "    group.main([*words, '--help'], standalone_mode=False)\n"
        f"print('loaded:', [name for name in {HEAVY} if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "loaded: []" in result.stdout
    assert all(f"\n  {verb} " in result.stdout for verb in VERBS)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("bogus",), "No such command"),
        (("wait",), "say what to wait for"),
        (("wait", "x", "--timeout", "5x"), "'5x' is no time"),
        (("wait", "x", "-l", "a=b"), "exclude each other"),
        (("wait", "x", "-A"), "a name is in one namespace"),
        (("list", "-n", "a", "-A"), "exclude each other"),
        (("list", "--state", "Nope"), "is not one of"),
        (("cancel",), "say what to cancel"),
        (("import",), "give a FILE"),
        (("import", "x", "--from-redis", "y"), "give a FILE"),
        (("import", "/absent.csv"), "/absent.csv: No such file"),
        (("import", "/"), "/: Is a directory"),
        (("import", "-", "--batch", "a b"), "--batch a b: it becomes a label"),
        (("import", "-", "--model", "../x"), "--model"),
        (("import", "-", "--apply", "--dry-run"), "exclude each other"),
        (("import", "-", "-A"), "one namespace"),
        (("import", "--from-redis", "nonsense"), "--from-redis: wants a URL"),
    ],
)
def test_wrong_use(arguments: tuple[str, ...], says: str) -> None:
    result = _run(*arguments)
    assert result.returncode == 2
    assert says in result.stderr
    assert "Traceback" not in result.stderr


def test_redis_that_is_not_there_and_its_password() -> None:
    result = _run("import", "--from-redis", "redis://:hunter2@127.0.0.1:1/0")
    assert result.returncode == 2
    assert "redis://127.0.0.1:1/0: Redis does not answer (ConnectionError)" in result.stderr
    assert "hunter2" not in result.stdout + result.stderr


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(
        "current-context: a\n"
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "users: [{name: a, user: {token: t}}]\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\n",
        encoding="utf-8",
    )
    for verb in ("list", "watch", "wait"):
        result = _run(verb, "--kubeconfig", str(path), *(["x"] if verb == "wait" else []))
        assert result.returncode == 2
        assert "http://127.0.0.1:1: connection refused; is the cluster up" in result.stderr
        assert "Traceback" not in result.stderr


def test_the_output_may_be_cut_off() -> None:
    command = " ".join([*COMMAND, "import", "-", "|", "head", "-1"])
    ids = "".join(f"job_{number}\n" for number in range(5000))
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], input=ids, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.stdout == "---\n"
    assert result.stderr == ""
    assert result.returncode == 141


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    result = _run("completion", shell)
    assert result.returncode == 0
    assert "_KUBECTL_SUMERENDER_COMPLETE" in result.stdout
    variables = {
        "_KUBECTL_SUMERENDER_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": "kubectl-sumerender sus",
        "COMP_CWORD": "sus" if shell == "fish" else "1",
    }
    completed = _run(**variables)
    assert "suspend" in completed.stdout
    assert "resume" not in completed.stdout


@pytest.mark.parametrize(
    ("words", "lines", "directive"),
    [
        (["sus"], ["suspend"], 4),
        (["list", "--state", "Fa"], ["failed"], 4),
        (["completion", ""], ["bash", "zsh", "fish"], 4),
        (["import", "x"], [], 0),
        (["list", "--outp"], ["--output"], 4),
    ],
)
def test_completion_for_kubectl(words: list[str], lines: list[str], directive: int) -> None:
    code = "from kubectl_sumerender.completion_command import for_kubectl; for_kubectl()"
    result = subprocess.run(
        [sys.executable, "-c", code, *words],
        env=environment(None),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    *found, last = result.stdout.splitlines()
    assert [line.partition("\t")[0].lower() for line in found] == [line.lower() for line in lines]
    assert last == f":{directive}"
