"""Writes what is made from other files: the chart's copy of the CRD, the values table in its README, install.yaml.

python deploy/chart/render.py            # write them
python deploy/chart/render.py --check    # name those that are out of date; exit code 1 if there are any
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

CHART: Final = Path(__file__).resolve().parent
ROOT: Final = CHART.parents[1]
sys.path.insert(0, str(ROOT / "deploy" / "controlplane"))

from controlplane import program  # noqa: E402  (found by the line above, so that this runs from a bare checkout)
from controlplane.programs import kubernetes_version  # noqa: E402

NAMESPACE: Final = "sume-system"
RELEASE: Final = "sume-operator"
BEGIN, END = "<!-- values -->\n", "<!-- end of values -->\n"
_HEAD: Final = f"""\
# The operator without Helm: kubectl apply -f install.yaml. Made from deploy/chart by render.py; do not edit.
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels:
    pod-security.kubernetes.io/enforce: restricted
"""


def main() -> int:
    """Write, or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, name what is out of date")
    check = parser.parse_args().check
    stale = [path for path, text in rendered() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)} {'is out of date: python deploy/chart/render.py' if check else 'written'}")
    if not check:
        for path, text in rendered():
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


def rendered() -> Iterator[tuple[Path, str]]:
    """Every file made here, and what it should hold."""
    crd = CHART / "files" / "crds" / "sumerenders.yaml"
    yield crd, (ROOT / "crds" / "sumerenders.yaml").read_text(encoding="utf-8")
    readme = CHART / "README.md"
    before, _, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    yield readme, before + BEGIN + values_table() + END + rest.partition(END)[2]
    yield ROOT / "deploy" / "install.yaml", install_manifest()


def values_table() -> str:
    """Every commented key of values.yaml, with its default."""
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    lines = ["| value | default | |", "| --- | --- | --- |"]
    for key, default, comment in _documented(yaml.compose(text), text.splitlines(), ()):
        lines.append(
            f"| `{'.'.join(key)}` | `{json.dumps(default, ensure_ascii=False)}` | {comment} |".replace("||", "")
        )
    return "\n".join(lines) + "\n"


def _documented(node: Any, lines: list[str], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, str]]:
    """(key, default, comment) of each key with a `# --` line over it; keys without one are looked into."""
    for name, value in node.value:
        key = (*above, name.value)
        comment = lines[name.start_mark.line - 1].strip() if name.start_mark.line else ""
        if comment.startswith("# -- "):
            yield key, yaml.safe_load(yaml.serialize(value)), comment.removeprefix("# -- ").replace("|", "\\|")
        elif isinstance(value, yaml.MappingNode):
            yield from _documented(value, lines, key)
        else:
            raise SystemExit(f"values.yaml: {'.'.join(key)} has no comment that begins with `# -- `")


def install_manifest() -> str:
    """The chart with its defaults, as one file."""
    version = kubernetes_version()
    command = [program("helm"), "template", RELEASE, CHART, "--namespace", NAMESPACE, "--no-hooks"]
    result = subprocess.run([*command, "--kube-version", version], capture_output=True, text=True, check=False)
    if result.returncode:
        raise SystemExit(result.stderr)
    return _HEAD + result.stdout


if __name__ == "__main__":
    sys.exit(main())
