"""The kernel's table of IPv4 neighbours (ARP): one for all network namespaces of a machine, by default for 1024 entries.

Every station has an entry for each neighbour that it sends to, so a few runs of fifty stations side by side fill the table. The
kernel then drops every packet that needs a new entry (`__neigh_create` fails), in no capture and with no error to its sender, and
above 128 entries it forgets entries that a single run would keep. The limits are therefore raised before a run, for the whole
machine and until it reboots; they are never lowered. A container with a network namespace of its own cannot see them. What the
kernel counts as refused is in every run's verdict (docs/verdict.md).
"""

import os
from pathlib import Path

LIMITS = Path("/proc/sys/net/ipv4/neigh/default")
NAMES = ("gc_thresh3", "gc_thresh2", "gc_thresh1")  # the hard limit first: none may be above the next
ENTRIES = 1 << 20  # some 400 bytes each, as they are used
COUNTS = Path("/proc/net/stat/arp_cache")
REFUSED = "table_fulls"

_counts: int | None = None


def raise_limits(folder: Path = LIMITS) -> bool:
    """Raise the limits of the table to at least ENTRIES; False where they cannot be seen or set."""
    try:
        for name in NAMES:
            limit = folder / name
            if int(limit.read_text()) < ENTRIES:
                limit.write_text(f"{ENTRIES}\n")
    except OSError:
        return False
    return True


def open_counts() -> int | None:
    """A descriptor of the kernel's counts, to be read from within a run's namespaces, where the file does not exist."""
    try:
        return os.open(COUNTS, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def count_with(descriptor: int | None) -> None:
    """Let `refused` read this descriptor."""
    global _counts
    _counts = descriptor


def refused() -> int | None:
    """Packets that the kernel has dropped because the table was full, since its start and on the whole machine; None without
    counts."""
    if _counts is None:
        return None
    os.lseek(_counts, 0, os.SEEK_SET)
    return refused_in(os.read(_counts, 1 << 20).decode())


def refused_in(counts: str) -> int:
    """The sum over the processors, of a file with a heading and a row of hexadecimal numbers for each."""
    heading, *rows = counts.splitlines()
    column = heading.split().index(REFUSED)
    return sum(int(row.split()[column], 16) for row in rows)
