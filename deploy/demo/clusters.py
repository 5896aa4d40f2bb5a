"""Where the demo runs: an embedded control plane, or one context of the user's own kubeconfig."""

import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import yaml
from deploy.demo.errors import DemoError
from deploy.demo.kubectl import Kubectl
from deploy.demo.processes import Fleet
from deploy.demo.screen import Screen

from controlplane import ControlPlane, binaries

CONFIG_S: Final = 30.0
# What the controller's watch can log in with (kopf reads a kubeconfig by itself, and runs no login programs).
_LOGINS: Final = ("token", "client-certificate", "client-certificate-data", "username")


def embedded(directory: Path, screen: Screen, fleet: Fleet, resources: ExitStack) -> Kubectl:
    """An API server and an etcd of our own, built if need be; stopped with `resources`."""
    programs = binaries(screen.progress)
    control_plane = ControlPlane(directory / "cluster", programs)
    resources.callback(control_plane.stop)
    with screen.step("starting Kubernetes (etcd and kube-apiserver)"):
        control_plane.start()
    fleet.mind(control_plane.etcd, control_plane.apiserver)
    return Kubectl(programs.kubectl, control_plane.kubeconfig, directory)


def of_context(name: str, directory: Path) -> Kubectl:
    """The cluster of that context, by a kubeconfig that has nothing else in it."""
    program = shutil.which("kubectl")
    if program is None:
        raise DemoError(f"CONTEXT={name} needs kubectl on PATH")
    command = [program, "config", "view", "--minify", "--flatten", f"--context={name}"]
    viewed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=CONFIG_S)
    if viewed.returncode:
        raise DemoError(f"CONTEXT={name}: {viewed.stderr.strip()}\n{_what_there_is(program)}")
    _check_login(name, yaml.safe_load(viewed.stdout))
    kubeconfig = directory / "kubeconfig"
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(viewed.stdout, encoding="utf-8")
    kubectl = Kubectl(Path(program), kubeconfig, directory)
    kubectl.run("version", "--request-timeout=15s")
    return kubectl


def _what_there_is(program: str) -> str:
    command = [program, "config", "get-contexts", "-o", "name"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=CONFIG_S)
    return f"contexts of your kubeconfig: {', '.join(listed.stdout.split()) or 'none'}"


def _check_login(name: str, config: Any) -> None:
    users = [each.get("user") or {} for each in config.get("users") or ()]
    if not any(user.get(login) for user in users for login in _LOGINS):
        raise DemoError(
            f"CONTEXT={name}: its user logs in by a program or a provider; outside a cluster the controller can only "
            "use a token, a client certificate or a password. Use a context with one of these."
        )
