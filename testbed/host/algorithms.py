"""Which congestion controls this kernel can give a connection: those it has, and those it would load as a module."""

import platform
from pathlib import Path

from testbed.errors import UsageError

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
MODULES = Path("/lib/modules")


def available(listed: Path = AVAILABLE, modules: Path = MODULES, release: str | None = None) -> list[str]:
    """Kernel names, in order of the alphabet."""
    names = set(listed.read_text().split())
    folder = modules / (release or platform.release()) / "kernel" / "net" / "ipv4"
    for module in folder.glob("tcp_*.ko*"):
        name = module.name.partition(".")[0].removeprefix("tcp_")
        if name not in ("diag",):  # the socket monitor, no congestion control
            names.add(name)
    return sorted(names)


def require_algorithm(algorithm: str, experiment: str, names: list[str] | None = None) -> None:
    """Refuses, before anything starts, what no connection could use; `experiment` is its name or file."""
    names = available() if names is None else names
    if algorithm not in names:
        known = ", ".join(["newreno", "sack", *names])
        raise UsageError(f'{experiment}: key "tcp": this kernel has no "{algorithm}"; use one of {known}')
