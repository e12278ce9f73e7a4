"""Movement files of this project and of other programs, read into a trace and written from one.

| ending | format | read | written |
|---|---|---|---|
| `.csv` | trace (formats/trace.md) | yes | yes |
| `.tcl`, `.ns_movements` | ns-2's setdest scripts | yes | yes |
| `.movements`, `.movements.gz` | BonnMotion's | yes | yes (not packed) |
| `.gpx` | GPS tracks | yes | no |

Nodes that have numbers in a file become `sta1`, `sta2`, ... in their order. Whatever a file holds, the only error is
`TraceError`, one line that names the file, the line and the remedy.
"""

from collections.abc import Callable
from pathlib import Path

from mobility import trace
from mobility.files import bonnmotion, gpx, ns2
from mobility.trace import Trace, TraceError


def _csv(data: bytes, name: str) -> Trace:
    return trace.parse(trace.as_text(data, name), name)


PARSERS: dict[str, Callable[[bytes, str], Trace]] = {
    ".csv": _csv,
    ".tcl": ns2.parse,
    ".ns_movements": ns2.parse,
    ".movements": bonnmotion.parse,
    ".movements.gz": bonnmotion.parse_packed,
    ".gpx": gpx.parse,
}
WRITERS: dict[str, Callable[[Trace], str]] = {
    ".csv": lambda made: trace.write(made.legs, made.end_s, made.mean_mps),
    ".tcl": ns2.write,
    ".ns_movements": ns2.write,
    ".movements": bonnmotion.write,
}


def read(path: Path) -> Trace:
    """Read the movement in `path`; the suffix selects the format. TraceError names file and line."""
    parser = PARSERS.get(_ending(path, PARSERS))
    data = trace.content_of(path)
    if parser is bonnmotion.parse or parser is bonnmotion.parse_packed:
        params = path.with_name(path.name.partition(".movements")[0] + ".params")
        return parser(data, str(path), bonnmotion.read_params(params) if params.is_file() else None)
    return parser(data, str(path))


def texts(made: Trace, path: Path) -> dict[Path, str]:
    """The movement as files to write, by their paths; the suffix of `path` selects the format. TraceError for a movement that the
    format cannot hold."""
    ending = _ending(path, WRITERS)
    more = {path.with_suffix(".params"): bonnmotion.params(made)} if ending == ".movements" else {}
    return {path: WRITERS[ending](made), **more}


def is_movement(name: str) -> bool:
    """Whether the suffix of a name is one of a readable format."""
    return any(name.endswith(ending) for ending in PARSERS)


def _ending(path: Path, known: dict) -> str:
    found = [ending for ending in known if path.name.endswith(ending)]
    if not found:
        raise TraceError(f"{path}: unknown format; give a name that ends in one of {', '.join(known)}")
    return max(found, key=len)
