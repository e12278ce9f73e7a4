"""batman-adv: the kernel's own mesh of layer 2, set up with batctl. To IP every station is one hop away.

The station's address moves to `bat0`, above the radio. Frames on the air are of Ethertype 0x4305, with the station's
Ethernet frame inside (analysis/captures.py). What does not fit the radio's MTU with those headers is fragmented.

Not tried on the machines this was written on, whose kernels lack it.
"""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.errors import RunError
from testbed.host import namespace
from testbed.stages import iproute, kernel_tcp
from testbed.stages.routing import Network, Protocol, Say
from testbed.stages.routing.shared.ours import set_devices
from testbed.stages.routing.shared.settle import pairs_of_flows
from testbed.stages.station import Station
from topologies.addresses import INTERFACE, NETWORK, PREFIX_BITS, wire_network

DEVICE = "bat0"


class Mesh(Protocol):
    def before_traffic(self, say: Say) -> None:
        """Until each flow's ends answer a ping: the tables of layer 2 say nothing of IP addresses."""
        net, at_most_s, start = self.network.net, self.network.site.scenario.routing.settle, time.monotonic()
        waiting = pairs_of_flows(self.network) if at_most_s else []
        while waiting := [pair for pair in waiting if not _answers(net[pair[0]], net[pair[1]].IP())]:
            passed_s = time.monotonic() - start
            if passed_s > at_most_s:
                raise RunError(
                    f"batman-adv: {waiting[0][1]} does not answer {waiting[0][0]} after {at_most_s:g} s; set routing.settle"
                )
            say("settle", min(1.0, passed_s / at_most_s))
            self.network.children.check()


@contextmanager
def running(network: Network) -> Iterator[Protocol]:
    for station in network.stations:
        _batctl(station, "routing_algo", network.site.scenario.routing.algorithm)
    iproute.batches({station: _lines(network, station) for station in network.stations}, "routes", network.site.log)
    interval_ms = round(network.site.scenario.routing.originator_interval * 1000)
    for station in network.stations:
        _batctl(station, "meshif", DEVICE, "orig_interval", str(interval_ms))
    set_devices(network, DEVICE)
    yield Mesh(network)  # the devices go with the namespaces


def _lines(network: Network, station: Station) -> list[str]:
    metric, high, low = kernel_tcp.ack_metric(network.site.scenario), station.number >> 8, station.number & 0xFF
    lines = [
        f"link add {DEVICE} address 02:00:00:02:{high:02x}:{low:02x} type batadv",
        f"link set {INTERFACE} master {DEVICE}",
        f"link set {DEVICE} up",
        f"address delete {station.IP()}/{PREFIX_BITS} dev {INTERFACE}",
        f"address add {station.IP()}/{PREFIX_BITS} dev {DEVICE} noprefixroute",
        f"route add {NETWORK}/{PREFIX_BITS} dev {DEVICE} scope link{metric}",
    ]
    others = [wire for wire in network.net.wires if wire.gateway is not station]
    return lines + [f"route add {wire_network(w.number)} via {w.gateway.IP()} dev {DEVICE} onlink{metric}" for w in others]


def _batctl(station: Station, *words: str) -> None:
    argv = ["batctl", *words]
    done = namespace.within(station.netns, lambda: subprocess.run(argv, capture_output=True, text=True, check=False))
    if done.returncode != 0:
        raise RunError(f"{station.name}: {' '.join(argv)}: {done.stderr.strip()}; see `manet doctor`")


def _answers(station: Station, address: str) -> bool:
    argv = ["ping", "-n", "-c", "1", "-W", "1", address]
    return namespace.within(station.netns, lambda: subprocess.run(argv, capture_output=True, check=False)).returncode == 0
