"""Movement files of this project and of other programs, read into a trace and written from one.

| format | found by | written as |
|---|---|---|
| trace (formats/trace.md) | its first line | `.csv` |
| ns-2's scripts: of `setdest`, SUMO's `traceExporter.py`, CORE | a line `$node_(...)` or `$ns_` | `.tcl`, `.ns_movements` |
| BonnMotion's | lines of numbers | `.movements` |
| GPS tracks (GPX) | its element | - |
| SUMO's floating car data (FCD) | its element | - |

A file is known by its content, whatever its name; each may be packed with gzip. Nodes that have numbers in a file become `sta1`,
`sta2`, ... in their order. Whatever a file holds, the only error is `TraceError`, one line that names the file, the line and the
remedy.
"""

import gzip
import io
import re
import stat
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mobility import trace
from mobility.files import bonnmotion, fcd, gpx, ns2
from mobility.trace import Trace, TraceError

Parser = Callable[[bytes, str], Trace]
WRITERS: dict[str, Callable[[Trace], str]] = {
    ".csv": lambda made: trace.write(made.legs, made.end_s, made.mean_mps),
    ".tcl": ns2.write,
    ".ns_movements": ns2.write,
    ".movements": bonnmotion.write,
}
MAX_BYTES = 1 << 26  # of a movement file, packed or unpacked: a million legs
HEAD = 1 << 16  # bytes that hold the first element of an XML file
KINDS = "a trace (CSV), an ns-2 script, a BonnMotion file, GPX or SUMO's FCD"
_SCRIPT = re.compile(rb"^[ \t]*\$(?:ns_?|god_?|node_?|n)[ \t(]", re.MULTILINE)
_NUMBERS = re.compile(rb"(?:\s|#[^\n]*\n)*[-+.\d]")
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_ELEMENT = re.compile(rb"<(?:[\w.-]+:)?([A-Za-z][\w.-]*)")


def read(path: Path, stations: Sequence[str] | None = None) -> Trace:
    """Read the movement in `path`. TraceError names file and line. `stations`: of a scenario; a trace names some of them, and of
    any other file the ith node is the ith of them."""
    return parse(_content_of(path), path, stations)


def parse(data: bytes, path: Path, stations: Sequence[str] | None = None) -> Trace:
    """Like `read`, from `data`, the content of `path`."""
    name = str(path)
    data = _unpacked(data, name)
    parser = _parser_of(data, path)
    if parser is trace.parse:
        return trace.parse(data, name, stations)
    if parser is bonnmotion.parse:
        params = path.with_name(path.name.removesuffix(".gz")).with_suffix(".params")
        movement = bonnmotion.parse(data, name, bonnmotion.read_params(params) if params.is_file() else None)
    else:
        movement = parser(data, name)
    return movement if stations is None else _renamed(movement, stations)


def texts(movement: Trace, path: Path) -> dict[Path, str]:
    """The movement as files to write, by their paths; the suffix of `path` selects the format. TraceError for a movement that the
    format cannot hold."""
    ending = max((ending for ending in WRITERS if path.name.endswith(ending)), key=len, default=None)
    if ending is None:
        raise TraceError(f"{path}: unknown format; give a name that ends in one of {', '.join(WRITERS)}")
    more = {path.with_suffix(".params"): bonnmotion.params(movement)} if ending == ".movements" else {}
    return {path: WRITERS[ending](movement), **more}


def is_movement(name: str) -> bool:
    """Whether a name is that of a file: it has a suffix, or leads into a folder."""
    return "/" in name or "." in name


def _parser_of(data: bytes, path: Path) -> Parser:
    start = data[:HEAD].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"<"):
        kind = _ELEMENT.search(_COMMENT.sub(b"", start))  # SUMO writes its configuration into one
        known = {b"gpx": gpx.parse, b"fcd-export": fcd.parse}
        if kind is None or kind[1] not in known:
            raise TraceError(f"{path}: is XML, but neither GPX nor SUMO's FCD; give {KINDS}")
        return known[kind[1]]
    if start.startswith(b"# manet-trace") or path.suffix == ".csv":
        return trace.parse
    if _SCRIPT.search(data):
        return ns2.parse
    if _NUMBERS.match(data):
        return bonnmotion.parse
    by_suffix = {".tcl": ns2.parse, ".ns_movements": ns2.parse, ".movements": bonnmotion.parse, ".gpx": gpx.parse}
    if path.suffix not in by_suffix:
        raise TraceError(f"{path}: is no movement of a known format; give {KINDS}")
    return by_suffix[path.suffix]  # its error says what is wrong


def _content_of(path: Path) -> bytes:
    """The bytes of a movement file; TraceError for a pipe or a device, which might block or never end."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise TraceError(f"{path}: is no regular file; give the path of a movement file")
        if status.st_size > MAX_BYTES:
            raise TraceError(f"{path}: {_too_large(status.st_size)}")
        return path.read_bytes()
    except OSError as problem:
        raise TraceError(f"{path}: cannot be read ({problem.strerror}); give the path of a movement file") from None


def _too_large(size: int) -> str:
    """The error text for a file of `size` bytes, or for one that unpacks to at least as many."""
    return f"has {size} bytes, of at most {MAX_BYTES} ({MAX_BYTES >> 20} MiB), packed or not; give a shorter movement"


def _unpacked(data: bytes, name: str) -> bytes:
    """The content of a file that may be packed with gzip, up to MAX_BYTES of it."""
    if not data.startswith(b"\x1f\x8b"):
        if name.endswith(".gz"):
            raise TraceError(f"{name}: is not packed with gzip; unpack it, or take .gz off its name")
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            unpacked = packed.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise TraceError(f"{name}: is packed with gzip, and damaged or cut off; pack the file again") from None
    if len(unpacked) > MAX_BYTES:
        raise TraceError(f"{name}: {_too_large(len(unpacked))}")
    return unpacked


def _renamed(movement: Trace, stations: Sequence[str]) -> Trace:
    nodes = movement.stations()
    if len(nodes) > len(stations):
        text = f"has {len(nodes)} nodes and the scenario {len(stations)} stations; give the layout the same number"
        raise TraceError(f"{movement.name}: {text}")
    names = dict(zip(nodes, stations, strict=False))
    legs = [replace(leg, station=names[leg.station]) for leg in movement.legs]
    return Trace(movement.name, legs, movement.end_s, movement.end_line, movement.mean_mps, notes=movement.notes)
