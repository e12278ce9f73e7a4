"""Names of runs: unique on this machine, and recognisable by the directory that they write."""

import hashlib
import os
import secrets
from pathlib import Path

from testbed.host import cgroup


def new_run_id(directory: Path) -> str:
    """A name of letters, digits and `-`, for a file under /run/manet and a cgroup."""
    digest = hashlib.sha256(os.fsencode(directory)).hexdigest()[:8]
    return f"run-{digest}-{os.getpid()}-{secrets.token_hex(3)}"


def new_id() -> str:
    """The permanent id of a run's results, unique on all machines: two directories with the same id are copies."""
    return secrets.token_hex(8)


def own_cgroup(proc_file: Path = Path("/proc/self/cgroup")) -> Path:
    """The cgroup (version 2) of this process, as a path below the mount: the line `0::/path` of cgroups(7)."""
    for line in proc_file.read_text().splitlines():
        if line.startswith("0::"):
            return cgroup.require_mount() / line[3:].lstrip("/")
    raise RuntimeError("no cgroup2 line in /proc/self/cgroup")
