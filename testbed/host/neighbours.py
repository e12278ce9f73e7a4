"""The kernel's tables of neighbours, of IPv4 (ARP) and of IPv6: each one for all network namespaces of a machine, by default for
1024 entries.

Every station has an entry for each neighbour that it sends to, so a few runs of fifty stations side by side fill the table. The
kernel then drops every packet that needs a new entry (`__neigh_create` fails), in no capture and with no error to its sender, and
above 128 entries it forgets entries that a single run would keep. The limits are therefore raised before a run, for the whole
machine and until it reboots; they are never lowered. A container with a network namespace of its own cannot see them. What the
kernel counts as refused is in every run's verdict (docs/verdict.md).
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

LIMITS = (Path("/proc/sys/net/ipv4/neigh/default"), Path("/proc/sys/net/ipv6/neigh/default"))
NAMES = ("gc_thresh3", "gc_thresh2", "gc_thresh1")  # the hard limit first: none may be above the next
ENTRIES = 1 << 20  # some 400 bytes each, as they are used
COUNTS = (Path("/proc/net/stat/arp_cache"), Path("/proc/net/stat/ndisc_cache"))
REFUSED = "table_fulls"

_counts: list[int] = []


def raise_limits(folders: Sequence[Path] = LIMITS) -> bool:
    """Raise the limits of the tables to at least ENTRIES; False where those of one cannot be seen or set."""
    return all([_raise_limits(folder) for folder in folders])


def _raise_limits(folder: Path) -> bool:
    try:
        for name in NAMES:
            limit = folder / name
            if int(limit.read_text()) < ENTRIES:
                limit.write_text(f"{ENTRIES}\n")
    except OSError:
        return False
    return True


def open_counts() -> list[int]:
    """Descriptors of the kernel's counts, to be read from within a run's namespaces, where the files do not exist."""
    descriptors = []
    for path in COUNTS:
        with suppress(OSError):
            descriptors.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    return descriptors


def count_with(descriptors: Sequence[int]) -> None:
    """Let `refused` read these descriptors."""
    _counts[:] = descriptors


def refused() -> int | None:
    """Packets that the kernel has dropped because a table was full, since its start and on the whole machine; None without
    counts."""
    return sum(_refused_by(descriptor) for descriptor in _counts) if _counts else None


def _refused_by(descriptor: int) -> int:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return refused_in(os.read(descriptor, 1 << 20).decode())


def refused_in(counts: str) -> int:
    """The sum over the processors, of a file with a heading and a row of hexadecimal numbers for each."""
    heading, *rows = counts.splitlines()
    column = heading.split().index(REFUSED)
    return sum(int(row.split()[column], 16) for row in rows)
