"""batman-adv: the kernel's own mesh of layer 2, set up with ip(8) and batctl. To IP every station is one hop away.

The station's address moves to `bat0`, above the radio. Frames on the air are of Ethertype 0x4305, with the station's
Ethernet frame inside (analysis/captures/pcap.py). The radio's MTU is raised by the room those headers take, as batman-adv's
documentation advises, so that segments are as large as with other protocols; with `fragmentation` it stays, and what does not
fit goes in two halves, each with a DCF exchange of its own (such packets are not seen by the analysis).

Off: the bridge loop avoidance, since nothing is bridged, and the gateway mode, which is so by itself. batman-adv knows of no
link feedback: it forgets a neighbour whose messages it misses.

So far only its setting up was seen, in a guest of Debian's 6.12; tests/test_batman_adv.py has not passed anywhere yet.
"""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scenarios.routing import BatmanAdv
from testbed.errors import RunError
from testbed.host import namespace
from testbed.stages import batctl, iproute, kernel_tcp
from testbed.stages.addresses import routes_of_groups
from testbed.stages.batctl import DEVICE
from testbed.stages.routing import Network, RunningProtocol, Say
from testbed.stages.routing.shared.own import set_devices
from testbed.stages.routing.shared.settle import pairs_of_flows, patience_s
from testbed.stages.station import Station
from topologies.addresses import (
    NETWORK,
    NETWORK6,
    PREFIX6_BITS,
    PREFIX_BITS,
    wire_network,
    wire_network6,
)

HEADERS_BYTES = 32  # the maximum that batman-adv reserves: its largest unicast header and an Ethernet header


class Mesh(RunningProtocol):
    """batman-adv on all stations, each reached over its `bat0`."""

    def before_traffic(self, say: Say) -> None:
        """Wait until each flow's ends answer a ping: the tables of layer 2 have no IP addresses."""
        net, moving = self.network.net, self.network.site.scenario.mobility.moving
        at_most_s, start = patience_s(self.network), time.monotonic()
        waiting = pairs_of_flows(self.network) if at_most_s > 0 else []
        while waiting := [pair for pair in waiting if not _answers(net[pair.source], net[pair.target].address(pair.ip))]:
            passed_s = time.monotonic() - start
            if passed_s > at_most_s and moving:
                return
            if passed_s > at_most_s:
                over = " over IPv6" if waiting[0].ip == 6 else ""
                raise RunError(
                    f"batman-adv: {waiting[0].target} does not answer {waiting[0].source}{over} after {at_most_s:g} s. Place the "
                    "stations within range of each other, or set routing.settle: a longer wait, or 0 to begin without routes"
                )
            say("settle", min(1.0, passed_s / at_most_s))
            self.network.children.check()

    def status(self) -> dict[str, dict[str, Any]]:
        """Routes, neighbours and counters of each station, by batctl."""
        return {station.name: batctl.status(station.netns, station.number) for station in self.network.stations}


@contextmanager
def running(network: Network) -> Iterator[RunningProtocol]:
    """See `testbed.stages.routing`; makes `bat0` on every station."""
    iproute.batches({station: _lines(network, station) for station in network.stations}, "routes", network.site.log)
    options = _options(network)
    settings = [f"orig_interval {round(options.originator_interval * 1000)}", "bridge_loop_avoidance 0"]
    settings += [] if options.fragmentation else ["fragmentation 0"]
    batctl.set_all({station.netns: settings for station in network.stations}, {s.netns: s.name for s in network.stations})
    set_devices(network, DEVICE)
    yield Mesh(network)  # the devices go with the namespaces


def _options(network: Network) -> BatmanAdv:
    options = network.site.scenario.routing
    assert isinstance(options, BatmanAdv)
    return options


def mac_address(number: int) -> str:
    """The MAC address of a station's bat0; no radio and no wire has a 2 in the fourth byte."""
    return f"02:00:00:02:{number >> 8:02x}:{number & 0xFF:02x}"


def _lines(network: Network, station: Station) -> list[str]:
    scenario = network.site.scenario
    metric, options = kernel_tcp.ack_metric(scenario, station.name), _options(network)
    mtu = scenario.mtu if options.fragmentation else scenario.mtu + HEADERS_BYTES
    lines = [
        f"link set {station.radio.name} mtu {mtu}",
        f"link add {DEVICE} address {mac_address(station.number)} type batadv ra {options.algorithm}",
        f"link set {station.radio.name} master {DEVICE}",
        f"link set {DEVICE} mtu {scenario.mtu} up",
        f"address delete {station.IP()}/{PREFIX_BITS} dev {station.radio.name}",
        f"address add {station.IP()}/{PREFIX_BITS} dev {DEVICE} noprefixroute",
        f"route add {NETWORK}/{PREFIX_BITS} dev {DEVICE} scope link{metric}",
        *routes_of_groups(DEVICE),
    ]
    if scenario.ipv6:
        lines += [
            f"address delete {station.IP6()}/128 dev {station.radio.name}",
            f"address add {station.IP6()}/128 dev {DEVICE} noprefixroute nodad",
            f"route add {NETWORK6}/{PREFIX6_BITS} dev {DEVICE}{metric}",
        ]
    if scenario.arp == "static":
        others = [other for other in network.stations if other is not station]
        known = [(o.number, ip) for o in others for ip in (o.IP(), *([o.IP6()] if scenario.ipv6 else []))]
        lines += [f"neighbour replace {ip} lladdr {mac_address(number)} dev {DEVICE} nud permanent" for number, ip in known]
    wires = [wire for wire in network.net.wires if wire.gateway is not station]
    lines += [f"route add {wire_network(w.number)} via {w.gateway.IP()} dev {DEVICE} onlink{metric}" for w in wires]
    if scenario.ipv6:
        lines += [f"route add {wire_network6(w.number)} via {w.gateway.IP6()} dev {DEVICE}{metric}" for w in wires]
    return lines


def _answers(station: Station, address: str) -> bool:
    argv = ["ping", "-n", "-c", "1", "-W", "1", address]
    return namespace.within(station.netns, lambda: subprocess.run(argv, capture_output=True, check=False)).returncode == 0
