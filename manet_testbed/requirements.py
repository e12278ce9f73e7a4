"""The requirements that a test process can check without the testbed's packages; `service/outside.py` checks the others."""

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
PYTHON = CHECKOUT / ".venv" / "bin" / "python"
TUN = Path("/dev/net/tun")


def missing_requirement(*, user: int | None = None, tun: Path = TUN, python: Path = PYTHON) -> str | None:
    """The first requirement that this machine lacks, with the remedy; None if there is none."""
    if (os.geteuid() if user is None else user) != 0:
        return "not root: network namespaces, TAP devices and BPF need it; run pytest with sudo"
    if not tun.exists():
        return f"{tun}: missing, and every radio is a TAP device; modprobe tun, or pass the device into the container"
    if not (python.parents[2] / "testbed").is_dir():
        return f"{python.parents[2]}: is no checkout of the testbed; install the package with pip install -e CHECKOUT"
    if not python.exists():
        return f"{python}: missing; run {python.parents[2]}/setup.sh"
    return None
