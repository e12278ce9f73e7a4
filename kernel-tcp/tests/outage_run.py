"""One outage for many TCPs at once: one connection each from `a` to `b` over one relay, whose path breaks and is repaired.

`run_outage` returns, for each sender, its data segments in the capture, its events in tcp.csv, and the output of `ss`
in the middle of the outage.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tcplab import DEADLINE_S, MSS, Lab, Packet, read_line, stations

RELAY = ["--rate-bps", "4e6", "--delay-ms", "20"]
PERIOD = {
    "algorithm": "newreno", "window_segments": 8, "initial_window_segments": 2, "rto_min_us": 200000, "delayed_ack": False,
}  # fmt: skip
FIRST_PORT = 5201
BEFORE_S = 1.5  # of sending without an outage


@dataclass
class Connection:
    """Times are in seconds from the break."""

    port: int
    segments: list[tuple[float, int]] = field(default_factory=list)  # (time, number of the segment from 0)
    events: list[dict] = field(default_factory=list)  # rows of tcp.csv with `event`, and `time`
    during: dict[str, str] = field(default_factory=dict)  # `ss` in the outage
    before: dict[str, str] = field(default_factory=dict)  # `ss` before it
    after: dict[str, str] = field(default_factory=dict)  # `ss` a moment after the repair
    received: int = 0

    def named(self, *events: str) -> list[dict]:
        return [row for row in self.events if row["event"] in events]

    def sent(self, since: float, until: float) -> list[tuple[float, int]]:
        return [(at, number) for at, number in self.segments if since <= at < until]


@dataclass
class Outage:
    repair: float  # s after the break
    connections: list[Connection]
    report: dict


def layered(*layers: dict, **settings) -> dict:
    return PERIOD | {"layers": list(layers)} | settings


def layer(name: str, **parameters) -> dict:
    return {"name": name, "parameters": parameters}


def run_outage(
    folder: Path, cgroup_root: Path, tcps: list[dict], seconds: float, command: str = "broken", segments: int = 250
) -> Outage:
    """Sends `segments` over each TCP; the path is broken for `seconds`."""
    with stations(folder, cgroup_root, RELAY, quickack=True) as lab:
        for station in (lab.a, lab.b):
            station.sysctl(tcp_max_reordering=3, tcp_frto=0, tcp_retries2=255)
        ports = range(FIRST_PORT, FIRST_PORT + len(tcps))
        lab.ports = {str(port): settings for port, settings in zip(ports, tcps, strict=True)}
        connections = [Connection(port) for port in ports]
        with lab.manet_tcp("tcp.csv", a=PERIOD, b=PERIOD) as process:
            with lab.capture(lab.a) as packets:
                start, repair = _transfers(lab, connections, seconds, command, segments)
            process.terminate()
            out, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0, err
        for connection in connections:
            connection.segments = list(data_segments(packets, connection.port, start))
            connection.events = list(events(folder / "tcp.csv", connection.port, start))
        return Outage(repair - start, connections, json.loads(out))


def order(lab: Lab, line: str) -> float:
    """Sends the relay a command; returns the time."""
    at = time.time()
    lab.relay.stdin.write(line + "\n")
    lab.relay.stdin.flush()
    return at


def _transfers(lab: Lab, connections: list[Connection], seconds: float, command: str, segments: int) -> tuple[float, float]:
    servers = [lab.serve(connection.port) for connection in connections]
    clients = [lab.send(segments * MSS, connection.port) for connection in connections]
    for client in clients:
        lab.ready_line(client, "connected")
    time.sleep(BEFORE_S)
    _read_ss(lab, connections, "before")
    start = order(lab, command)
    time.sleep(seconds * 0.6)
    _read_ss(lab, connections, "during")
    time.sleep(max(0.0, start + seconds - time.time()))
    repair = order(lab, "light")
    time.sleep(0.5)
    _read_ss(lab, connections, "after")
    for connection, server in zip(connections, servers, strict=True):
        read_line(server.stdout)  # accepted
        connection.received = int(read_line(server.stdout, 2 * DEADLINE_S) or 0)
    return start, repair


def _read_ss(lab: Lab, connections: list[Connection], when: str) -> None:
    sockets = lab.a.sockets() + lab.a.sockets("state fin-wait-1")  # some programs have closed already
    rows = {int(row["peer"].rsplit(":", 1)[1]): row for row in sockets}
    for connection in connections:
        setattr(connection, when, rows.get(connection.port, {}))


def data_segments(packets: list[Packet], port: int, start: float) -> Iterator[tuple[float, int]]:
    """The data segments from `a` to this port; their numbers count from the SYN in segments of MSS."""
    base = next(p.seq for p in packets if p.is_syn and p.dport == port) + 1
    for p in packets:
        if p.dport == port and p.source == "10.9.0.1" and p.payload:
            yield p.time - start, ((p.seq - base) & 0xFFFFFFFF) // MSS


def events(path: Path, port: int, start: float) -> Iterator[dict]:
    with path.open() as file:
        for row in csv.DictReader(file):
            if row["event"] and row["station"] == "a" and row["dport"] == str(port):
                yield row | {"time": int(row["t_ns"]) / 1e9 - start}
