"""tcpdump on every station's radio: `captures/<station>.pcap`, 128 bytes of each packet (headers, and the CBR stamp).

Ready when tcpdump has opened its socket ("listening on"), complete when it has ended by itself after SIGTERM. libpcap
hands over a block of packets when it is full or `to_ms` old, and drops the youngest block when it is stopped
(pcap-linux.c); so a second passes, after the last packet of the traffic, before the signal.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.processes import Child, Processes
from testbed.site import Site
from testbed.station import StationNet
from topologies.addresses import INTERFACE

SNAP_BYTES = 128
BLOCK_S = 1.0  # tcpdump's to_ms
READY_DEADLINE_S = 30.0
_DROPPED = re.compile(r"^(\d+) packets? dropped by (?:kernel|interface)", re.MULTILINE)


class Captures:
    """The tcpdumps of a run, and after their end how many packets they missed."""

    def __init__(self) -> None:
        self.children: dict[str, Child] = {}

    def dropped(self) -> int:
        """Packets that the kernel or the interface did not hand to tcpdump in time."""
        return sum(int(count) for child in self.children.values() for count in _DROPPED.findall(child.printed()))


@contextmanager
def captures_running(site: Site, net: StationNet, children: Processes) -> Iterator[Captures]:
    """From every capture's socket being open to every file being complete."""
    folder = site.folder("captures")
    captures = Captures()
    for station in net.stations:
        argv = ["tcpdump", "-i", INTERFACE, "-s", SNAP_BYTES, "-n", "--time-stamp-precision=nano"]
        # -Z root: tcpdump would otherwise give up the right to write into a results folder that is root's
        argv += ["-Z", "root", "-w", folder / f"{station.name}.pcap"]
        captures.children[station.name] = children.start(
            f"tcpdump-{station.name}", argv, netns=station.netns, remedy="what it had captured is kept; run it again"
        )
    children.wait_for_text(captures.children.values(), "listening on", within_s=READY_DEADLINE_S)
    try:
        yield captures
    finally:
        time.sleep(BLOCK_S * 1.1)  # also after a fault, of which the last second tells most
        children.stop(captures.children.values())
