"""A station's routes and neighbours from the kernel's tables, in the form of our daemons' status (formats/routing.md).

For protocols without a status socket: third-party daemons, static routes, none. Read from what ip(8) prints, which runs keep in
routes/<station>.txt.
"""

import re
from typing import Any

_TYPES = ("local", "broadcast", "multicast", "anycast", "throw")  # of routes that lead to no other station
_NUD = ("REACHABLE", "STALE", "DELAY", "PROBE", "PERMANENT", "NOARP", "INCOMPLETE", "FAILED", "NONE")
_NEIGHBOURS = "# neighbours\n"


def status_of(protocol: str, address: str, table: str, neighbours: str, text: str = "") -> dict[str, Any]:
    """The status of a station from the lines of `ip route show table all` and `ip neighbour show`; `text`: what its daemon's own
    commands printed."""
    routes = [route for line in table.splitlines() if (route := route_of(line))]
    heard = [neighbour for line in neighbours.splitlines() if (neighbour := _neighbour_of(line))]
    of_daemon = {"text": text} if text else {}
    return {"ok": True, "protocol": protocol, "address": address, "routes": routes, "neighbours": heard, **of_daemon}


def route_of(line: str) -> dict[str, Any] | None:
    """A route of a line of `ip route show table all`; None for one that leads to no other station. The state is the protocol that
    set it (`proto` of ip(8); without one `boot`). Daemons such as batmand keep routes in tables of their own: `table`."""
    words = line.split()
    table = _after(words, "table")
    if not words or words[0] in _TYPES or words[0].startswith("fe80:") or table == "local":
        return None
    kind, words = (words[0], words[1:]) if words[0] in ("unreachable", "prohibit", "blackhole") else (None, words)
    six = ":" in line.partition(" dev ")[0]
    destination, _, bits = ("::/0" if six else "0.0.0.0/0").partition("/") if words[0] == "default" else words[0].partition("/")
    metric = _after(words, "metric")
    of_table = {"table": table} if table else {}
    return {
        "destination": destination,
        "prefix": int(bits) if bits else (128 if ":" in destination else 32),
        "via": _after(words, "inet6") or _after(words, "via"),
        "hops": None,
        "state": kind or _after(words, "proto") or "boot",
        "metric": int(metric) if metric else 0,
        **of_table,
    }


def recorded(content: str, when: str) -> tuple[str, str] | None:
    """The routes and the neighbours of a run's routes/<station>.txt at the `start` or `end` of the traffic; None if it has none
    of that time."""
    part = section(content, when)
    return None if part is None else (part.partition(_NEIGHBOURS)[0], part.partition(_NEIGHBOURS)[2])


def section(content: str, when: str) -> str | None:
    """The part of a file that a run wrote at the `start` or `end` of the traffic; None without it."""
    parts = re.split(r"^# at the (start|end) of the traffic\n", content, flags=re.MULTILINE)
    return next((text for name, text in zip(parts[1::2], parts[2::2], strict=True) if name == when), None)


def _neighbour_of(line: str) -> dict[str, Any] | None:
    words = line.split()
    state = next((word.lower() for word in words if word in _NUD), None)
    return {"address": words[0], "state": state} if state else None


def _after(words: list[str], key: str) -> str | None:
    """The word that follows `key`."""
    return words[words.index(key) + 1] if key in words[:-1] else None
