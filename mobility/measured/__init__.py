"""Measured links, of this project's tables and of other programs' files, read for the propagation model "trace".

| format | found by | module |
|---|---|---|
| table of links (formats/links.md), CSV or Parquet | its header | `table.py` |
| log of RSSI samples, CSV | its header | `rssi.py` |
| NetJSON NetworkGraph | `{` at its begin | `netjson.py` |
| EMANE's pathloss events (EEL) | a sentence of a NEM | `eel.py` |

A file is known by its content, whatever its name. Whatever it holds, the only error is `LinksError`, one line that names the
file, the line and the remedy.
"""

import stat
from collections.abc import Sequence
from pathlib import Path

from mobility.measured import eel, netjson, rssi, table
from mobility.measured.table import COLUMNS, Links, LinksError, Row, write

__all__ = ["COLUMNS", "Links", "LinksError", "Row", "parse", "read", "read_nodes", "write"]

MAX_BYTES = 1 << 26  # of a file: a million rows
KINDS = "a table of links (CSV, Parquet), a log of RSSI samples (CSV), a NetJSON NetworkGraph or EMANE's EEL"


def read(path: Path, stations: Sequence[str] | None = None, window_s: float = rssi.WINDOW_S, gap_s: float = rssi.GAP_S) -> Links:
    """The links in `path`. `stations`: of a scenario; a table names some of them, and of a graph or EEL the ith node is the ith
    of them. `window_s`, `gap_s`: of a log of RSSI samples."""
    return parse(content(path, KINDS), str(path), stations, window_s, gap_s)


def read_nodes(path: Path) -> list[netjson.Node]:
    """The nodes of a NetJSON NetworkGraph."""
    try:
        return netjson.nodes(content(path, "a NetJSON NetworkGraph").decode("utf-8-sig"), str(path))
    except UnicodeDecodeError:
        raise LinksError(f"{path}: is no text; give a NetJSON NetworkGraph") from None


def content(path: Path, kinds: str) -> bytes:
    """The bytes of a file, at most MAX_BYTES. `kinds`: what it may be, for errors."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise LinksError(f"{path}: is no regular file; give the path of {kinds}")
        if status.st_size > MAX_BYTES:
            text = f"has {status.st_size} bytes, of at most {MAX_BYTES} ({MAX_BYTES >> 20} MiB); give a shorter one"
            raise LinksError(f"{path}: {text}")
        return path.read_bytes()
    except OSError as problem:
        raise LinksError(f"{path}: cannot be read ({problem.strerror}); give the path of {kinds}") from None


def parse(
    data: bytes,
    name: str,
    stations: Sequence[str] | None = None,
    window_s: float = rssi.WINDOW_S,
    gap_s: float = rssi.GAP_S,
) -> Links:
    """Like `read`, from `data`, the content of the file `name`."""
    if data.startswith(b"PAR1"):
        return table.parse_parquet(data, name, stations)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise LinksError(f"{name}: is no text; give {KINDS}") from None
    if text.lstrip().startswith("{"):
        return netjson.parse(text, name, stations)
    header = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
    if rssi.is_log(header):
        return rssi.parse(text, name, stations, window_s, gap_s)
    if text.startswith(table.FORMAT) or table.is_table(header):
        return table.parse_csv(text, name, stations)
    if eel.is_log(text):
        return eel.parse(text, name, stations)
    raise LinksError(f"{name}: is of no known format; give {KINDS}")
