"""`python deploy/demo`: finds the demo's modules and the control plane beside them, and runs the demo."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The folder that Python put in front (this one) would make `processes` and the like importable under short names.
sys.path[0:1] = [str(ROOT), str(ROOT / "deploy" / "controlplane")]

from deploy.demo.main import main  # noqa: E402 (needs the path above)

if __name__ == "__main__":
    sys.exit(main(ROOT))
