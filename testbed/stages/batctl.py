"""batman-adv in a station's namespace, by batctl: its settings, and its tables in the form of `manet routes`.

It identifies radios by their MACs, which contain the station's number (topologies/addresses.py), and gives the quality of a path
but not its length: B.A.T.M.A.N. has no hop counts.
"""

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testbed.errors import RunError
from testbed.host import namespace
from testbed.stages import iproute
from topologies.addresses import ip_address, mac_address

DEVICE = "bat0"
_STATION_IP = re.compile(r"10\.0\.(\d+)\.(\d+)")
_COUNTED = ("tx", "rx", "forward", "frag_tx", "frag_fwd", "mgmt_tx", "mgmt_rx")  # of its statistics, in packets


def set_all(settings: dict[Path, Sequence[str]], names: dict[Path, str]) -> None:
    """Run each namespace's batctl lines (words of `batctl meshif bat0`) in their order, all namespaces side by side."""
    left = {netns: list(lines) for netns, lines in settings.items()}
    while left := {netns: lines for netns, lines in left.items() if lines}:
        started = [(netns, argv := _argv(lines.pop(0)), _start(netns, argv)) for netns, lines in left.items()]
        for netns, argv, process in started:
            _, errors = process.communicate()
            if process.returncode != 0:
                raise RunError(f"{names[netns]}: {' '.join(argv)}: {errors.strip()}; see `manet doctor`")


def status(netns: Path, number: int) -> dict[str, Any]:
    """The tables of station `number`'s batman-adv, in the form of our daemons' status (formats/routing.md)."""
    originators = _table(netns, "originators_json")
    return {
        "ok": True, "protocol": "batman-adv", "address": ip_address(number),
        "routes": routes_of(originators), "neighbours": neighbours_of(_table(netns, "neighbors_json")),
        "counters": counters_of(iproute.ask_within(netns, *_argv("statistics"))),
    }  # fmt: skip


def next_radio(netns: Path, address: str) -> str | None:
    """The address of the next hop to the station with this address; None if batman-adv has no path."""
    best = [route for route in routes_of(_table(netns, "originators_json")) if route["destination"] == address]
    return next((route["via"] for route in best if route["state"] == "best"), None)


def routes_of(originators: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The routes of `batctl originators_json`, sorted by destination, the best of each first. `quality` is BATMAN IV's TQ of
    255, or BATMAN V's throughput in kbit/s."""
    routes = []
    for entry in originators:
        destination, via = _address(entry["orig_address"]), _address(entry["neigh_address"])
        quality = {"quality": entry["tq"]} if "tq" in entry else {"throughput_kbps": entry.get("throughput", 0)}
        state = "best" if entry.get("best") else "other"
        ages = {"seen_s": round(entry.get("last_seen_msecs", 0) / 1000, 3)}
        routes.append({"destination": destination, "prefix": 32, "via": via, "hops": None, "state": state, **quality, **ages})
    return sorted(routes, key=lambda route: (_number_of_ip(route["destination"]), route["state"]))


def neighbours_of(neighbours: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The neighbours of `batctl neighbors_json`, as `manet routes` lists them, sorted by address; times in s."""
    entries = [
        {"address": _address(entry["neigh_address"]), "state": "heard", "seen_s": entry.get("last_seen_msecs", 0) / 1000}
        for entry in neighbours
    ]
    return sorted(entries, key=lambda neighbour: _number_of_ip(neighbour["address"]))


def counters_of(statistics: str) -> dict[str, int]:
    """The counters of packets among what `batctl statistics` prints, `name: value` a line."""
    pairs = (line.partition(":") for line in statistics.splitlines())
    return {name.strip().replace("_", "-"): int(value) for name, _, value in pairs if name.strip() in _COUNTED}


def _argv(line: str) -> list[str]:
    return ["batctl", "meshif", DEVICE, *line.split()]


def _start(netns: Path, argv: list[str]) -> subprocess.Popen[str]:
    none = subprocess.DEVNULL
    return namespace.within(netns, lambda: subprocess.Popen(argv, text=True, stdin=none, stdout=none, stderr=subprocess.PIPE))


def _table(netns: Path, table: str) -> list[dict[str, Any]]:
    """A table of batctl; empty if batctl fails: the mesh does not exist yet, or no more."""
    try:
        rows: list[dict[str, Any]] = json.loads(iproute.ask_within(netns, *_argv(table)) or "[]")
    except ValueError:
        return []
    return rows


def _address(mac: str) -> str:
    """The address of the station whose radio has this MAC; the MAC itself for any other."""
    number = int(mac.replace(":", "")[-4:], 16)
    return ip_address(number) if number and mac == mac_address(number) else mac


def _number_of_ip(address: str) -> int:
    match = _STATION_IP.fullmatch(address)
    return 256 * int(match[1]) + int(match[2]) if match else 1 << 16
