"""Processor time and memory of the routing daemons of a run, by proc(5): `routing/usage.json` (formats/routing.md).

Of each station the sum over its processes: the daemon and the helpers of its description. The processor time is the scheduler's
own count, because idle daemons do not fill the ticks of `stat`; that of children that have ended is in ticks.
"""

import os
from collections.abc import Iterable
from pathlib import Path

FORMAT = "manet-routing-usage/1"
CUTIME, CSTIME = 16, 17  # fields of /proc/<pid>/stat, counted from 1, of the children that were waited for


def usage_of(pids: Iterable[int]) -> dict[str, float | int]:
    """`cpu_s`, `rss_kb`, `peak_rss_kb` and `processes` of those processes that still exist."""
    usages = [usage for pid in pids if (usage := _usage(Path(f"/proc/{pid}"))) is not None]
    cpu_s, rss_kb, peak_kb = (sum(values) for values in zip(*usages, strict=True)) if usages else (0.0, 0, 0)
    return {"cpu_s": round(cpu_s, 6), "rss_kb": rss_kb, "peak_rss_kb": peak_kb, "processes": len(usages)}


def _usage(process: Path) -> tuple[float, int, int] | None:
    """Processor time (s), resident memory and its peak (kB); None for a process that has ended."""
    try:
        tasks_ns = sum(int((task / "schedstat").read_text().split()[0]) for task in (process / "task").iterdir())
        fields = (process / "stat").read_text().rpartition(")")[2].split()  # the third field on; the second may have blanks
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        children_ticks = int(fields[CUTIME - 3]) + int(fields[CSTIME - 3])
        cpu_s = tasks_ns / 1e9 + children_ticks / os.sysconf("SC_CLK_TCK")
        return cpu_s, int(status["VmRSS"].split()[0]), int(status["VmHWM"].split()[0])
    except (OSError, KeyError, IndexError):
        return None
