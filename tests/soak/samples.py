"""Memory, descriptors and more of the processes of one run, from /proc (proc(5)) and its folder: lines of samples.csv.

`t_s,of,measure,value`: t_s in seconds since the first sample; `of` a class of processes, summed over them: `manet` (the command
and its process inside the run), `manet-medium`, `manet-tcp`, a routing daemon's name, `manet-capture`, `bash` (the
stations' shells), `iperf3`, `iperf_client.py` (the flow's keeper), `datagrams.py`.

measure      unit  of
processes    -     each class
rss_kib      KiB   VmRSS, shared pages in each process that has them
anon_kib     KiB   anonymous pages: heap, stack and rings, which are nobody else's (a share of the common ones, PSS, would
                   move with what else runs on the machine)
descriptors  -     open ones
threads      -
bpf_entries  -     `kernel`: entries of the hash maps of manet-tcp (bpftool; left out where there is none)
bpf_bytes    B     `kernel`: memory of its maps, as the kernel counts it
sockets      -     `kernel`: of all stations, TIME_WAIT included
disk_bytes   B     `disk`: the run's folder
"""

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from testbed.host.cgroup import members
from testbed.host.state import RunState

Reading = tuple[str, str, int]  # of, measure, value
PROGRAMS_OF_OURS = {"iperf_client.py", "datagrams.py"}  # traffic/programs
HASHES = {"1"}  # map_type of fdinfo: BPF_MAP_TYPE_HASH


def read(state: RunState) -> list[Reading]:
    """All readings of now; a process that ends meanwhile is left out."""
    held: dict[str, Counter] = {}
    spaces: dict[str, int] = {}
    kernel: Counter = Counter()
    for pid in [state.owner.pid, *members(Path(state.cgroup))]:
        with suppress(OSError, KeyError):  # it has ended, or is about to and has no memory left
            name, readings = process(pid)
            held.setdefault(name, Counter()).update(readings)
            spaces.setdefault(str(Path(f"/proc/{pid}/ns/net").readlink()), pid)
            if name == "manet-tcp":
                kernel.update(bpf_maps(pid))
    own = str(Path(f"/proc/{state.owner.pid}/ns/net").readlink())
    kernel["sockets"] = sum(sockets(pid) for space, pid in spaces.items() if space != own)
    rows = [(of, measure, value) for of, readings in sorted(held.items()) for measure, value in readings.items()]
    rows += [("kernel", measure, value) for measure, value in kernel.items()]
    return [*rows, ("disk", "disk_bytes", folder_bytes(Path(state.directory)))]


def process(pid: int) -> tuple[str, dict[str, int]]:
    """Class and readings of one process."""
    rollup = dict(_fields(Path(f"/proc/{pid}/smaps_rollup")))
    status = dict(_fields(Path(f"/proc/{pid}/status")))
    return class_of(pid, status["Name"]), {
        "processes": 1,
        "rss_kib": _number(status["VmRSS"]),
        "anon_kib": _number(rollup["Anonymous"]),
        "descriptors": len(list(Path(f"/proc/{pid}/fd").iterdir())),
        "threads": int(status["Threads"]),
    }


def class_of(pid: int, name: str) -> str:
    """The program's name; of Python its own programs' names, else `manet`."""
    if not name.startswith("python"):
        return name
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    files = {Path(word.decode(errors="replace")).name for word in words}
    return next(iter(files & PROGRAMS_OF_OURS), "manet")


def bpf_maps(pid: int) -> dict[str, int]:
    """Of the maps that a process holds open: /proc/<pid>/fdinfo names each one's id and memory (bpf_map_show_fdinfo())."""
    maps: dict[str, dict[str, str]] = {}
    for path in Path(f"/proc/{pid}/fdinfo").iterdir():
        fields = dict(_fields(path))
        if "map_type" in fields:  # a link of a struct_ops map names the map, too
            maps[fields["map_id"]] = fields
    readings = {"bpf_bytes": sum(int(fields["memlock"]) for fields in maps.values())}
    if shutil.which("bpftool"):
        hashes = [number for number, fields in maps.items() if fields["map_type"] in HASHES]
        readings["bpf_entries"] = sum(_entries(number) for number in hashes)
    return readings


def _entries(map_id: str) -> int:
    shown = subprocess.run(["bpftool", "-j", "map", "dump", "id", map_id], capture_output=True, check=False)
    try:
        return len(json.loads(shown.stdout))
    except ValueError:
        return 0


def sockets(pid: int) -> int:
    """Of a process's network namespace, with those that wait after their end."""
    words = Path(f"/proc/{pid}/net/sockstat").read_text().split()
    return int(words[words.index("used") + 1]) + int(words[words.index("tw") + 1])


def folder_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def _fields(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text().splitlines():
        key, colon, value = line.partition(":")
        if colon:
            yield key, value.strip()


def _number(text: str) -> int:
    """Of `1234 kB`."""
    return int(text.split()[0])
