"""The order of steps, and the promise that nothing is left behind however they end."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from deploy.demo import clusters, namespaces, report
from deploy.demo.errors import DemoError
from deploy.demo.kubectl import Kubectl
from deploy.demo.options import Options, options_from
from deploy.demo.processes import Fleet, Parts
from deploy.demo.samples import Samples, load_samples
from deploy.demo.screen import Screen
from deploy.demo.signals import Signals, Stopped
from deploy.demo.watching import Watching

from controlplane import MissingError, StartError

CRD_S: Final = 30
SPARE_S: Final = 90.0  # for the renders, beyond the time that the slowest job takes
LOOK_EVERY_S: Final = 0.5


def main(root: Path) -> int:
    """The exit code: 0 if every sample ended as it says, 1 if not, 128 + the signal that ended the demo before."""
    screen, signals, resources = Screen(), Signals(), ExitStack()
    signals.install()
    code = 1
    try:
        try:
            code = _run(root, screen, resources)
        except Stopped as stopped:
            code = stopped.exit_code
            screen.end_table()
            screen.say("stopping")
        except (DemoError, MissingError, StartError, subprocess.SubprocessError) as error:
            screen.end_table()
            screen.say(str(error))
        finally:
            signals.mute()
    except BrokenPipeError:  # `make demo | head`: nobody reads on; and Python's own last flush must not fail either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    finally:
        resources.close()
    return code


def _run(root: Path, screen: Screen, resources: ExitStack) -> int:
    started_s = time.monotonic()
    options = options_from(os.environ, root)
    samples = load_samples(options.samples)
    screen.say(_announcement(options, samples))
    screen.say()
    directory = Path(tempfile.mkdtemp(prefix="sume-demo-"))
    resources.callback(shutil.rmtree, directory, ignore_errors=True)
    fleet = Fleet(directory)
    kubectl = _cluster(options, directory, samples, screen, fleet, resources)
    parts = Parts(directory, fleet, options)
    resources.callback(parts.redis.stop)
    resources.callback(fleet.stop)  # the operator goes first, while all that it talks to is still there
    env = parts.environment(kubectl, samples.namespace_names if options.context else ())
    with screen.step("starting Redis and the simulated Sume"):
        parts.start_outside()
    with screen.step("installing the CRD"):
        _install_crd(kubectl, root)
    with screen.step("starting 1 controller and 2 pollers"):
        parts.start_operator(env)
    if options.context and not options.keep:
        resources.callback(namespaces.remove, kubectl, samples, screen)
    watching = Watching(kubectl=kubectl, samples=samples, fleet=fleet, screen=screen)
    _follow(watching, options)
    report.show_queue(screen, env)
    wrong = report.show_ends(screen, samples, watching.standings, watching.gone)
    report.show_summary(screen, len(samples.renders), wrong, time.monotonic() - started_s)
    _keep_or_say_how(options, samples, screen, parts, kubectl)
    return 1 if wrong else 0


def _announcement(options: Options, samples: Samples) -> str:
    where = (
        f"on the cluster of your context {options.context} (a Redis and the operator run here)"
        if options.context
        else "on a Kubernetes and a Redis of their own"
    )
    first = "" if options.context else " (the first time ten more, to build Kubernetes)"
    return (
        f"This demo follows {len(samples.renders)} renders at a simulated Sume to their ends, {where}.\n"
        f"It takes about a minute{first}, costs nothing, and leaves {_left_behind(options, samples)}."
    )


def _left_behind(options: Options, samples: Samples) -> str:
    if options.context is None:
        return "nothing running"
    names = " and ".join(samples.namespace_names)
    fate = "are kept" if options.keep else "come and go"
    return f"the CRD sumerenders.render.sume.com there; the namespaces {names} {fate}"


def _cluster(
    options: Options, directory: Path, samples: Samples, screen: Screen, fleet: Fleet, resources: ExitStack
) -> Kubectl:
    if options.context is None:
        return clusters.embedded(directory, screen, fleet, resources)
    with screen.step(f"looking at the cluster of context {options.context}"):
        kubectl = clusters.of_context(options.context, directory)
        namespaces.check_ours(kubectl, samples)
    return kubectl


def _install_crd(kubectl: Kubectl, root: Path) -> None:
    path = str(root / "crds")
    kubectl.run("apply", "-f", path)
    kubectl.run("wait", "-f", path, "--for=condition=Established", f"--timeout={CRD_S}s", timeout_s=CRD_S + 10)


def _follow(watching: Watching, options: Options) -> None:
    """Apply the samples, and watch them until all have ended."""
    samples, screen = watching.samples, watching.screen
    namespaces.make(watching.kubectl, samples)
    screen.say()
    here = Path.cwd()
    shown = samples.folder.relative_to(here) if samples.folder.is_relative_to(here) else samples.folder
    screen.say(f"$ kubectl apply -f {shown}  # the renders of it")
    watching.kubectl.run("apply", *(part for file in samples.files for part in ("-f", str(file))))
    started_s = time.monotonic()
    screen.say()
    watching.until_ended(options.slowest_s + SPARE_S)
    screen.say(f"The last render ended {time.monotonic() - started_s:.0f} s after it was applied.")
    screen.say()


def _keep_or_say_how(options: Options, samples: Samples, screen: Screen, parts: Parts, kubectl: Kubectl) -> None:
    """With KEEP: stay until a signal comes, or a process ends."""
    if not options.keep:
        screen.say("To look around in it while it runs: make demo KEEP=1")
        return
    screen.say()
    report.show_kept(screen, kubectl, parts)
    try:
        while True:
            parts.fleet.check()
            time.sleep(LOOK_EVERY_S)
    except Stopped:
        screen.say("\nstopping")
    if options.context:
        names = " ".join(samples.namespace_names)
        screen.say(f"To remove what it made: kubectl --context={options.context} delete namespace {names}")
