"""`kubectl sumerender` as a person or a script runs it: a real process, without a terminal unless a test makes one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controlplane import ControlPlane

COMMAND: Final = (sys.executable, "-m", "kubectl_sumerender")
LONGEST_S: Final = 240.0

Result = subprocess.CompletedProcess[str]


def environment(kubeconfig: Path | None, **more: str) -> dict[str, str]:
    """This process', without what would change what the plugin does."""
    names = ("KUBECONFIG", "NO_COLOR", "TERM", "KUBERNETES_SERVICE_HOST")
    plain = {name: value for name, value in os.environ.items() if name not in names}
    return plain | ({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {}) | more


class Plugin:
    """The plugin on one control plane, in one namespace."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        self.env = environment(control_plane.kubeconfig)
        self.namespace = namespace

    def command(self, verb: str, *arguments: str) -> list[str]:
        """The command line."""
        return [*COMMAND, verb, *([] if "-A" in arguments else ["-n", self.namespace]), *arguments]

    def run(self, verb: str, *arguments: str, stdin: str = "", within_s: float = LONGEST_S) -> Result:
        """Run it to its end, whatever its exit code."""
        command = self.command(verb, *arguments)
        return subprocess.run(
            command, input=stdin, env=self.env, capture_output=True, text=True, timeout=within_s, check=False
        )

    def ok(self, verb: str, *arguments: str, stdin: str = "") -> str:
        """Run it; asserts that it ended well. Its stdout."""
        result = self.run(verb, *arguments, stdin=stdin)
        assert result.returncode == 0, f"{result.returncode}: {result.stdout}{result.stderr}"
        return result.stdout

    @contextmanager
    def started(self, verb: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
        """Start it, and go on; it is gone at the end in any case."""
        with subprocess.Popen(
            self.command(verb, *arguments),
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()
