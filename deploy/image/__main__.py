"""`python deploy/image`: builds the image with what builds images here, and says how large it is. Needs no package."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT)

from deploy.image.archive import ArchiveError, layers_of  # noqa: E402 (needs the path above)
from deploy.image.builders import BUILDERS, BuilderError, find_builder  # noqa: E402
from deploy.image.labels import labels_of  # noqa: E402
from deploy.image.pip_secrets import pip_secrets  # noqa: E402

MIB = 1024 * 1024


def main() -> int:
    """0 if there is an image now."""
    options = _options()
    try:
        builder = find_builder(options.builder)
        print(f"building {options.image} with {builder.name}", flush=True)
        with tempfile.TemporaryDirectory(prefix="sume-operator-image-") as temporary:
            arguments = labels_of(options.context) | {"SOURCE": options.source}
            if options.python_image:
                arguments["PYTHON_IMAGE"] = options.python_image
            builder.build(options.context, options.image, arguments, pip_secrets(Path(temporary)))
            archive = options.archive or Path(temporary) / "image.tar"
            builder.save(options.image, archive)
            _report(options.image, archive)
    except (ArchiveError, BuilderError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python deploy/image", description=__doc__)
    parser.add_argument("--image", required=True, help="name and tag of the image")
    parser.add_argument("--python-image", default="", help="the base image; by default the Dockerfile's")
    parser.add_argument("--source", default="", help="where the source is, for the label of that name")
    parser.add_argument("--archive", type=Path, help="save the image to this file, for clusters that take it from one")
    parser.add_argument("--builder", choices=BUILDERS, help="by default the first of these that works")
    parser.add_argument("--context", type=Path, default=ROOT, help="the tree to build, by default this one")
    return parser.parse_args()


def _report(image: str, archive: Path) -> None:
    layers = layers_of(archive)
    for layer in layers:
        print(f"{layer.size_bytes / MIB:8.1f} MiB  {layer.made_by}")
    print(f"{sum(layer.size_bytes for layer in layers) / MIB:8.1f} MiB  {image}, unpacked")


if __name__ == "__main__":
    sys.exit(main())
