"""The status sockets of our routing daemons (formats/routing.md), and their status as text."""

import json
import socket
from pathlib import Path
from typing import Any

from testbed.errors import RunError
from testbed.stages.site import SOCKETS

ANSWER_DEADLINE_S = 5.0


def status_socket(station: str, sockets: Path = SOCKETS) -> Path:
    """The path of a daemon's status socket."""
    return sockets / "routing" / f"{station}.sock"


def ask(path: Path, op: str) -> dict[str, Any]:
    """Send one request to a daemon and return its answer; RunError if it does not answer or refuses."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(ANSWER_DEADLINE_S)
            connection.connect(str(path))
            connection.sendall(json.dumps({"op": op}).encode() + b"\n")
            with connection.makefile("rb") as stream:
                answer: dict[str, Any] = json.loads(stream.readline() or b"{}")
    except (OSError, ValueError) as problem:
        raise RunError(f"{path}: {problem}; the station's routing daemon does not answer, see log/") from None
    if not answer.get("ok"):
        raise RunError(f"{path}: {op}: {answer.get('error', 'closed without an answer')}; see log/")
    return answer


def lines(station: str, status: dict[str, Any]) -> list[str]:
    """A station's routes, neighbours and counters, a line each."""
    number = "" if status.get("sequence") is None else f", sequence number {status['sequence']}"
    held = f", {status['held']} packets held" if "held" in status else ""
    head = f"{station}: {status['protocol']}, {status['address']}{number}{held}"
    routes = [["", _destination(route), *_route(route)] for route in status["routes"]]
    neighbours = [["", n["address"], "neighbour", n["state"], _expires(n)] for n in status["neighbours"]]
    counters = [
        f"  {title}: {_counted(status.get(title, {}))}" for title in ("counters", "host") if _counted(status.get(title, {}))
    ]
    text = [f"  {line}" for line in status.get("text", "").splitlines()]
    return [head, *_columns(routes), *_columns(neighbours), *counters, *text]


def _destination(route: dict[str, Any]) -> str:
    return route["destination"] if route["prefix"] == 32 else f"{route['destination']}/{route['prefix']}"


def _route(route: dict[str, Any]) -> list[str]:
    sequence = "" if route.get("sequence") is None else f"seq {route['sequence']}"
    hops = _quality(route) if route["hops"] is None else f"{route['hops']} hop{'' if route['hops'] == 1 else 's'}"
    via = "direct" if route["via"] is None else f"via {route['via']}"
    cells = [via, hops, route["state"], sequence, _expires(route)]
    if "table" in route:
        cells.append(f"table {route['table']}")
    for key in ("precursors", "path"):
        if route.get(key):
            cells.append(f"{key} {' '.join(route[key])}")
    return cells


def _quality(route: dict[str, Any]) -> str:
    """The quality of a route without a hop count: batman-adv's, or the kernel's metric."""
    if "metric" in route:
        return f"metric {route['metric']}"
    return f"quality {route['quality']}/255" if "quality" in route else f"{route['throughput_kbps']} kbit/s"


def _expires(entry: dict[str, Any]) -> str:
    if "seen_s" in entry:
        return f"heard {entry['seen_s']:.1f} s ago"
    left_s = entry.get("expires_s")
    return "" if left_s is None else f"{left_s:.1f} s"


def _counted(counters: dict[str, int]) -> str:
    """The counters that are not zero, as text."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counters.items()) if count)


def _columns(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows if place < len(row)) for place in range(max(map(len, rows), default=0))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows]
