"""Whether the files of a run hold what their writers wrote (formats/results.md, "Written files").

A writer ends by saying how much it wrote: the medium and manet-capture with a line `wrote NAME BYTES CRC32` for each file,
manet-tcp in its report, tcpdump with its number of packets. Of a file whose writer keeps no sum, what it held EVERY_S ago is
summed up while it grows, so that a change in its middle shows. A file that disagrees makes the run void.
"""

import io
import json
import mmap
import os
import re
import shutil
import stat
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import BinaryIO

from record.closed_log import closing_reason
from record.files import READ, plain_file, read_bytes
from testbed.errors import RunError
from testbed.runs.background import in_background
from testbed.runs.verdict import add_outputs
from testbed.stages.medium import INPUT_LOG
from testbed.stages.site import Site

WROTE = re.compile(r"^wrote (\S+) (\d+) ([0-9a-f]{8})$", re.MULTILINE)
REPORT = re.compile(r'^\{"format":"manet-tcp-report/1".*\}$', re.MULTILINE)
# Written by the testbed itself, again and again: it must be there.
PRESENT = ("run.json",)
CAPTURED = re.compile(r"^(\d+) packets? captured$", re.MULTILINE)
# By folder, the files that are written once, or only at their end, and whose writers keep no sum; below the first, suffixes.
GROWING = {
    "": ("scenario.json", "medium.json", "trace.csv", "links.csv", "radio.toml", "events.csv"),
    "captures": (".pcap", ".pcapng"),
    "routing": (".jsonl",),
    "traffic": (".jsonl",),
}
EVERY_S = 2.0
FIRST_S = [0.5] * 8  # most files are written while the run starts
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
BLOCK_BYTES = 1 << 18
# Below this much free space a run ends itself, while its files can still be completed.
RESERVE_BYTES = 1 << 20
ROOM = "free space elsewhere on this disk, or give a folder on another disk with --out"
PCAP_HEADER, RECORD_HEADER = 24, 16  # bytes (pcap-savefile(5))
LITTLE_ENDIAN = (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1")  # magic numbers of microseconds and nanoseconds


@dataclass
class _Begun:
    """The bytes of a file that were summed up so far."""

    inode: int
    bytes: int = 0
    sum: int = 0


@dataclass(frozen=True)
class _Said:
    """Size and checksum that a writer reports."""

    bytes: int
    sum: int


def check_space(directory: Path) -> None:
    """RunError on a full disk, while the run's files can still be completed."""
    free = shutil.disk_usage(directory).free
    if free < RESERVE_BYTES:
        raise RunError(f"{directory}: disk full; {ROOM} (what was captured is kept)")


def check_logs(directory: Path) -> None:
    """RunError when the medium has closed its logs: the rest of the run could not be analysed."""
    reason = closing_reason(directory / "air.csv", directory) or closing_reason(directory / INPUT_LOG, directory)
    if reason is not None:
        raise RunError(f"{reason} (what was written until then is kept)")


@contextmanager
def outputs_kept(site: Site) -> Iterator[None]:
    """Watch the files of a run from here to the end of the block, when all writers have ended, and judge them."""
    growing = Growing(site.directory)

    def follow(over: threading.Event) -> None:
        for wait_s in chain(FIRST_S, repeat(EVERY_S)):
            if over.wait(wait_s):
                return
            growing.look()

    with in_background("outputs", follow):
        yield
    missing = [f"{name} was removed" for name in PRESENT if not (site.directory / name).is_file()]
    counted = _captures(site) if site.scenario.capture_program == "tcpdump" else []
    wrong = growing.differences(_expected(site), _said(site)) + counted + missing
    if wrong:
        add_outputs(site.directory, wrong)


class Growing:
    """The growing files of a run's directory, and the sum of what each has held."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.begun: dict[str, _Begun] = {}

    def look(self) -> None:
        """Sum up what has been added to each file since the last time."""
        for folder, names in GROWING.items():
            with suppress(OSError), _folder(f"{self.directory}/{folder}") as at, os.scandir(at) as entries:
                for entry in entries:
                    if entry.name.endswith(names) if folder else entry.name in names:
                        with suppress(OSError):  # it is gone, or was exchanged: `differences` names it
                            self._add(f"{folder}/{entry.name}" if folder else entry.name, entry, at)

    def _add(self, name: str, entry: os.DirEntry[str], folder: int) -> None:
        now = entry.stat(follow_symlinks=False)
        begun = self.begun.setdefault(name, _Begun(now.st_ino))
        if now.st_ino != begun.inode or now.st_size <= begun.bytes or not stat.S_ISREG(now.st_mode):
            return  # what is wrong here, `differences` names
        with os.fdopen(os.open(entry.name, READ | os.O_NOFOLLOW, dir_fd=folder), "rb", buffering=0) as file:
            file.seek(begun.bytes)
            begun.sum = _sum(file, now.st_size - begun.bytes, begun.sum)
            begun.bytes = file.tell()

    def differences(self, expected: set[str], said: dict[str, _Said]) -> list[str]:
        """A line for each file that is not what was seen, or what its writer said."""
        silent = [f"the writer of {name} did not say how much it wrote" for name in sorted(expected - said.keys())]
        names = sorted(self.begun.keys() | said.keys())
        return silent + [words for name in names if (words := self._difference(name, said.get(name)))]

    def _difference(self, name: str, said: _Said | None) -> str | None:
        try:
            with plain_file(self.directory / name, beneath=self.directory) as file:
                now = os.fstat(file.fileno())
                begun = self.begun.get(name, _Begun(now.st_ino))
                head = _sum(file, begun.bytes)
                whole = _sum(file, now.st_size - begun.bytes, head)
        except OSError as problem:
            return f"{name} was removed" if isinstance(problem, FileNotFoundError) else f"{name}: {problem.strerror}"
        had = said.bytes if said else max(begun.bytes, now.st_size)
        if now.st_size != had:
            return f"{name} has {now.st_size} bytes, and {had} were written"
        same = (now.st_ino, head) == (begun.inode, begun.sum) and (said is None or whole == said.sum)
        return None if same else f"{name} was changed by another program than its writer"


@contextmanager
def _folder(path: str) -> Iterator[int]:
    """A descriptor of a folder that is no link."""
    descriptor = os.open(path, FOLDER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def packets_in(path: Path) -> int | None:
    """The number of packets in a capture of tcpdump; None if it ends in the middle of one. Raises OSError."""
    with plain_file(path) as file:
        size, count, at = os.fstat(file.fileno()).st_size, 0, PCAP_HEADER
        if size < PCAP_HEADER:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            length = struct.Struct("<I" if data[:4] in LITTLE_ENDIAN else ">I").unpack_from
            while at + RECORD_HEADER <= size:
                at += RECORD_HEADER + length(data, at + 8)[0]
                count += 1
    return count if at == size else None


def _captures(site: Site) -> list[str]:
    """A line for each capture that does not have the packets that its tcpdump counted."""
    files = {path.stem for path in (site.directory / "captures").glob("*.pcap")}
    logs = {path.stem.removeprefix("tcpdump-") for path in site.log.glob("tcpdump-*.log")}
    lines = []
    for name in sorted({*files, *logs, *site.scenario.station_names()}):
        said = CAPTURED.findall(_text(site.log / f"tcpdump-{name}.log"))
        try:
            held = packets_in(site.directory / "captures" / f"{name}.pcap")
        except OSError:
            held = None
        if not said or int(said[-1]) != held:
            has = "is cut or missing" if held is None else f"has {held} packets"
            wrote = f"captured {said[-1]}" if said else "did not say how many it captured"
            lines.append(f"captures/{name}.pcap {has}, and tcpdump {wrote}")
    return lines


def _expected(site: Site) -> set[str]:
    """The files whose writers say what they wrote."""
    scenario = site.scenario
    optional = {INPUT_LOG: scenario.input_log, "monitor.pcapng": scenario.monitor, "radio-time.csv": bool(scenario.energy)}
    always = {"air.csv", "air.pcapng", "counters.json", "lateness.csv", "tcp.csv", "verdict.json"}
    by_sum = [] if scenario.capture_program == "tcpdump" else scenario.station_names()
    captures = {f"captures/{name}.pcap" for name in by_sum}
    return always | captures | {name for name, wanted in optional.items() if wanted}


def _said(site: Site) -> dict[str, _Said]:
    """Reports of all writers, this process included; of verdict.json the medium's, before the testbed adds to it."""
    said = {name: _Said(size, total) for name, (size, total) in site.wrote.items()}
    lines = [line for log in ("medium.log", "captures.log") for line in WROTE.findall(_text(site.log / log))]
    said |= {name: _Said(int(size), int(total, 16)) for name, size, total in lines}
    for report in REPORT.findall(_text(site.log / "kernel-tcp.log")):
        wrote = json.loads(report).get("wrote", {})
        said |= {name: _Said(entry["bytes"], int(entry["crc32"], 16)) for name, entry in wrote.items()}
    return said


def _text(path: Path) -> str:
    try:
        return read_bytes(path).decode(errors="replace")
    except OSError:
        return ""


def _sum(file: BinaryIO | io.RawIOBase, size: int, before: int = 0) -> int:
    """The sum of the next `size` bytes, added to that of the bytes `before` them."""
    while size > 0 and (block := file.read(min(size, BLOCK_BYTES))):
        size, before = size - len(block), zlib.crc32(block, before)
    return before
