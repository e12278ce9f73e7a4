"""A trial: connections from `a` to `b` through the relay, which loses the segments of their scripts, and their timelines.

All connections of a trial run at once, each to a port of its own, under the period profile with ACKs for every
segment. The round trip is 60 ms and the minimum RTO 600 ms, so Linux waits 660 ms or more: the ACKs of two more rounds
have come half a second before a timer fires. Nothing else depends on time (timeline.py).
"""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tcplab import DEADLINE_S, MSS, stations
from timeline import Disturbed, Row, of_capture, read_samples

PERIOD = tomllib.loads((Path(__file__).resolve().parents[1] / "profiles" / "period.toml").read_text())
ONE_WAY_MS = 30
RTO_MIN_MS = 600
# The window never limits; the first one is one segment, as in 1996.
SETTINGS = {"window_segments": 64, "initial_window_segments": 1, "delayed_ack": False}

SERVE = """
import socket, sys, threading
def read(server):
    connection, _ = server.accept()
    while connection.recv(65536):
        pass
servers = [socket.create_server(('10.9.0.2', int(port))) for port in sys.argv[1:]]
threads = [threading.Thread(target=read, args=(server,)) for server in servers]
for thread in threads:
    thread.start()
print('listening')
"""
# Sends each burst, and closes, when all earlier data is acknowledged: the kernel samples established connections only.
SEND = """
import fcntl, socket, struct, sys, termios, time
sockets = [socket.create_connection(('10.9.0.2', int(port))) for port in sys.argv[1].split(',')]
for burst in sys.argv[2:]:
    for s in sockets:
        s.sendall(bytes(int(burst)))
    for s in sockets:
        while struct.unpack('i', fcntl.ioctl(s, termios.TIOCOUTQ, bytes(4)))[0]:
            time.sleep(0.01)
    time.sleep(0.1)
"""


@dataclass(frozen=True)
class Script:
    port: int
    losses: tuple[str, ...]  # `segment:transmission`, the first sending is 1


def set_sysctls(lab, **more: int) -> None:
    """Sets the sysctls of the profile period that this kernel has, and `more` of net.ipv4."""
    values = PERIOD["sysctl"] | {f"net.ipv4.{key}": value for key, value in more.items()}
    for station in (lab.a, lab.b):
        for key, value in values.items():
            station.start("sysctl", "-qw", f"{key}={value}", in_cgroup=False).wait(DEADLINE_S)


def trial(
    folder: Path, cgroup_root: Path, algorithm: str, scripts: dict[str, Script], bursts: list[int], **sysctls: int
) -> dict[str, list[Row] | Disturbed]:
    """The timeline of each script; `bursts` in segments, the next one when all before is acknowledged."""
    ports = [str(script.port) for script in scripts.values()]
    losses = ",".join(f"{script.port}/{loss}" for script in scripts.values() for loss in script.losses)
    relay = ["--delay-ms", str(ONE_WAY_MS), "--lose", losses]
    seen: dict[str, list[Row] | Disturbed] = {}
    with stations(folder, cgroup_root, relay, quickack=True) as lab:
        set_sysctls(lab, **sysctls)
        # On a route, since setsockopt() stops at 200 ms; ip(8) locks it, so that it overrides everything else.
        route = ["10.9.0.0/24", "dev", "eth0", "quickack", "1", "rto_min", f"{RTO_MIN_MS}ms"]
        lab.a.run("ip", "route", "change", *route, in_cgroup=False)
        with lab.manet_tcp("tcp.csv", both={**SETTINGS, "algorithm": algorithm}), lab.capture(lab.a) as packets:
            server = lab.b.python(SERVE, *ports)
            lab.ready_line(server, "listening")
            lab.a.run(sys.executable, "-c", SEND, ",".join(ports), *(str(burst * MSS) for burst in bursts))
            server.wait(DEADLINE_S)
        for name, script in scripts.items():
            try:
                seen[name] = of_capture(packets, read_samples(folder / "tcp.csv", script.port), script.port, sum(bursts))
            except Disturbed as disturbance:
                seen[name] = disturbance
    return seen
