"""Root file systems of containers: a folder, or an OCI image that skopeo(1) and umoci(1) unpack.

An image is unpacked once, into `.build/images/<digest>` (by a package into ~/.cache/manet/images/<digest>), and used by all runs;
no run changes it (testbed/host/mounts.py).
"""

import fcntl
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from testbed.errors import UsageError
from testbed.programs import INSTALLATION

STORE = INSTALLATION.cache("images")
TOOLS = ("skopeo", "umoci")


@dataclass(frozen=True)
class Image:
    """A root file system; `environment` and `folder` are those that an image gives its programs, `digest` is its manifest's."""

    rootfs: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: str = "/"
    digest: str | None = None


def unpacked(name: str, store: Path = STORE) -> Image:
    """The image in an OCI or Docker archive, or of this name in podman's storage. Raises UsageError."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise UsageError(f"{' and '.join(missing)}: not found; apt-get install {' '.join(missing)}")
    source = _source(name)
    digest = _output(name, "skopeo", "inspect", "--format", "{{.Digest}}", source).strip()
    store.mkdir(parents=True, exist_ok=True)
    bundle = store / digest.removeprefix("sha256:")
    with (store / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not bundle.exists():
            _unpack(name, source, bundle)
    process = json.loads((bundle / "config.json").read_text())["process"]
    environment = dict(entry.split("=", 1) for entry in process.get("env", []) if "=" in entry)
    return Image(bundle / "rootfs", environment, process.get("cwd", "/"), digest)


def _source(name: str) -> str:
    """The image as containers-transports(5) names it."""
    if not Path(name).is_file():
        return f"containers-storage:{name}"
    with subprocess.Popen(["tar", "-tf", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as listing:
        assert listing.stdout is not None
        names = {line.strip().removeprefix("./") for line in listing.stdout}
    return f"{'oci' if 'oci-layout' in names else 'docker'}-archive:{name}"


def _unpack(name: str, source: str, bundle: Path) -> None:
    """Unpack into a folder beside it, which becomes `bundle` when it is complete."""
    with tempfile.TemporaryDirectory(dir=bundle.parent, prefix="unpacking-") as folder:
        layout = Path(folder, "layout")
        _output(name, "skopeo", "copy", "--quiet", source, f"oci:{layout}:image")
        _output(name, "umoci", "unpack", "--image", f"{layout}:image", str(Path(folder, "bundle")))
        Path(folder, "bundle").rename(bundle)


def _output(name: str, *words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        message = re.sub(r'^.*msg="|"$', "", last).replace('\\"', "'")  # of a line of their log
        raise UsageError(f'"{name}": {words[0]} {words[1]}: {message[:300]}; give an OCI archive or a local image')
    return done.stdout
