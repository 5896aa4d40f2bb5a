"""kubectl with one kubeconfig: every call is bounded, and a failed one says what kubectl said."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

from deploy.demo.errors import DemoError

CALL_S: Final = 30.0


class Kubectl:
    """`program` on the cluster of `kubeconfig`; keeps its cache in `directory` rather than in the user's home."""

    def __init__(self, program: Path, kubeconfig: Path, directory: Path) -> None:
        self.program = program
        self.kubeconfig = kubeconfig
        self._env = os.environ | {"KUBECONFIG": str(kubeconfig), "KUBECACHEDIR": str(directory / "kubectl-cache")}

    def run(self, *arguments: str, stdin: str = "", timeout_s: float = CALL_S) -> str:
        """What it printed; DemoError if it failed or took too long."""
        shown = f"kubectl {' '.join(arguments)}"
        try:
            result = subprocess.run(
                [str(self.program), *arguments],
                input=stdin,
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout_s,
                env=self._env,
                start_new_session=True,  # Ctrl-C in a terminal is for the demo; cleaning up needs kubectl after it
            )
        except subprocess.TimeoutExpired:
            raise DemoError(f"{shown}: no answer within {timeout_s:.0f} s") from None
        if result.returncode:
            raise DemoError(f"{shown}: {result.stderr.strip() or f'exit code {result.returncode}'}")
        return result.stdout

    def json(self, *arguments: str) -> Any:
        """What it printed with -o json; None if it printed nothing (--ignore-not-found)."""
        printed = self.run(*arguments, "-o", "json")
        return json.loads(printed) if printed.strip() else None
