"""The requirements that a test process can check without the testbed's packages; `service/outside.py` checks the others."""

from pathlib import Path

from manet_testbed.location import missing_testbed
from manet_testbed.version import __version__

TUN = Path("/dev/net/tun")


def missing_requirement(*, tun: Path = TUN) -> str | None:
    """The first requirement that this machine lacks, with the remedy; None if there is none."""
    if not tun.exists():
        return f"{tun}: missing, and every radio is a TAP device; modprobe tun, or pass the device into the container"
    return missing_testbed(__version__)
