"""A capture of every radio (`captures/<station>.pcap`) and of both ends of every wire (`<host>.pcap`, of its second wire
`<host>.eth1.pcap`; `<station>.eth0.pcap`): the scenario's `snaplen` bytes of each packet (128: headers, and the CBR stamp), and
as many more as the routing protocol may put before them. The packets of a routing protocol that has a UDP port of its own are
captured once more, whole (`<station>.routing.pcap`).

`manet-capture` (medium/daemon/src/capture.rs) is one process for all files. At SIGTERM it writes the waiting packets, too.

With `capture_program = "tcpdump"`, its referee, each file has a process, since tcpdump has one snap length for all packets and is
in one network namespace. The files are the same in content (testbed/tests/test_capture_programs.py).

tcpdump: ready when tcpdump has opened its socket ("listening on"), complete when it has ended by itself after SIGTERM. libpcap
hands over a block of packets when it is full or `to_ms` old, and drops the youngest block when it is stopped
(pcap-linux.c); so a second passes, after the last packet of the traffic, before the signal.
"""

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from record.run import host_capture
from testbed.errors import RunError
from testbed.host.processes import Child, Processes
from testbed.stages.site import SOCKETS, Site
from testbed.stages.station import NamespaceHost, StationNet

# The processes' name: a script that ends its own tcpdump by name (`os.system("killall tcpdump")`) does not end these.
# The program of that name (`capture_program`) needs no other; run_queue.py ignores both.
NAME = "manet-capture"
NO_LIMIT = 0  # tcpdump's snap length for whole packets
BLOCK_S = 1.0  # tcpdump's to_ms
READY_DEADLINE_S = 30.0
_DROPPED = re.compile(r"^(?:(\S+): )?(\d+) packets? dropped by kernel$", re.MULTILINE)
REMEDY = "what it had captured is kept; run it again"


class Captures:
    """The capturing processes of a run, and after their end the number of packets that they missed."""

    def __init__(self) -> None:
        self.children: dict[str, Child] = {}

    def dropped(self) -> dict[str, int]:
        """By the name of the capture, packets for which its socket had no room (PACKET_STATISTICS of packet(7)): both programs
        report this counter."""
        lines = [(child, *line) for child, started in self.children.items() for line in _DROPPED.findall(started.printed())]
        return {name or child: int(count) for child, name, count in lines if int(count) > 0}


def interfaces(net: StationNet) -> dict[str, tuple[NamespaceHost, str]]:
    """The captured interfaces, by the name of the file. No station's name contains a dot."""
    radios = {station.name: (station, station.radio.name) for station in net.stations}
    further = {radio.name: (station, radio.name) for station in net.stations for radio in station.further_radios}
    gateways = {f"{wire.gateway.name}.{wire.interface}": (wire.gateway, wire.interface) for wire in net.wires}
    hosts = {host_capture(wire.host.name, wire.host_interface): (wire.host, wire.host_interface) for wire in net.wires}
    return {**radios, **further, **gateways, **hosts}


@contextmanager
def captures_running(site: Site, net: StationNet, children: Processes) -> Iterator[Captures]:
    """Capture all interfaces: every socket is open on entry, every file complete on exit. RunError if a process failed."""
    captures = Captures()
    one_for_all = site.scenario.capture_program == "manet-capture"
    stations = len(net.stations) if one_for_all else 0
    if one_for_all:
        captures.children["all"] = _start_one(site, net, children)
    else:
        _start_tcpdumps(site, net, children, captures)
    children.wait_for_text(captures.children.values(), "listening on", within_s=READY_DEADLINE_S, stations=stations)
    try:
        yield captures
    finally:
        if not one_for_all:
            time.sleep(BLOCK_S * 1.1)  # also after a failure: its last second matters most
        children.stop(captures.children.values(), stations=stations)
    children.require_whole(captures.children.values())


def _snap_bytes(site: Site) -> int:
    return site.scenario.snaplen + site.scenario.routing.headers_bytes


def _start_one(site: Site, net: StationNet, children: Processes) -> Child:
    """Start one process for all files."""
    port, with_routing = site.scenario.routing.udp_port, {station.name for station in net.stations}
    words = [
        f"{name}:{host.netns}:{interface}" + (f":{port}" if port is not None and name in with_routing else "")
        for name, (host, interface) in interfaces(net).items()
    ]
    argv: list[str | Path | int] = [site.programs.capture, "--folder", site.folder("captures"), "--snap-bytes", _snap_bytes(site)]
    return children.start("captures", [*argv, *words], remedy=REMEDY, many_files=True)


def _start_tcpdumps(site: Site, net: StationNet, children: Processes, captures: Captures) -> None:
    """Start a process for each file."""
    folder, port, program = site.folder("captures"), site.scenario.routing.udp_port, _renamed("tcpdump")

    def start(name: str, host: NamespaceHost, interface: str, snap_bytes: int, *expression: str) -> None:
        argv: list[str | Path | int] = [program, "-i", interface, "-s", snap_bytes, "-n", "--time-stamp-precision=nano"]
        # -Z root: tcpdump would otherwise give up the right to write into a results folder that is root's
        argv += ["-Z", "root", "-w", folder / f"{name}.pcap", *expression]
        captures.children[name] = children.start(f"tcpdump-{name}", argv, netns=host.netns, program="tcpdump", remedy=REMEDY)

    for name, (host, interface) in interfaces(net).items():
        start(name, host, interface, _snap_bytes(site))
    if port is not None:
        for station in net.stations:
            start(f"{station.name}.routing", station, station.radio.name, NO_LIMIT, f"udp port {port}")


def _renamed(name: str) -> Path:
    """The program under NAME. Raises RunError."""
    program, path = shutil.which(name), SOCKETS / NAME
    if program is None:
        raise RunError(f"{name}: not found; `manet doctor` says how to get it")
    path.unlink(missing_ok=True)
    path.symlink_to(program)
    return path
