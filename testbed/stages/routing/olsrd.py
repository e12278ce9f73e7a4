"""OLSR by olsrd, where the user has built it (`manet doctor` says where from): RFC 3626 on the wire.

olsrd's own defaults are not the RFC's: the link-quality extension is switched off here, validity times are the RFC's, and
TC_REDUNDANCY is 2, which olsrd requires without the extension. Files that daemons would share by name (lock file) are per
station.

olsrd loses a change within a second of its last route calculation, until another change: a chain of three whose daemons start
together never gets all its routes. So neighbours start some seconds apart, which does not always help (3 of 4 chains of three
got all routes, with olsrd of November 2024; longer chains see more changes, and all got them).
"""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network

from testbed.stages.routing import Network, Protocol
from testbed.stages.routing.shared.third_party import Settling, daemons_running
from testbed.stages.site import SOCKETS
from testbed.stages.station import Station
from topologies.addresses import INTERFACE

PORT = 698
START_APART_S, START_GROUPS = 3, 3


@contextmanager
def running(network: Network) -> Iterator[Protocol]:
    """See `testbed.stages.routing`; neighbours start START_APART_S apart."""
    (SOCKETS / "routing").mkdir(exist_ok=True)
    with daemons_running(network, lambda station: _argv(network, station), port=PORT):
        yield Settling(network)


def _argv(network: Network, station: Station) -> list:
    path = network.site.folder("routing") / f"{station.name}.olsrd.conf"
    path.write_text("".join(f"{line}\n" for line in config(network, station)))
    wait_s = START_APART_S * ((station.number - 1) % START_GROUPS)
    return ["sh", "-c", f"sleep {wait_s}; exec olsrd -f {shlex.quote(str(path))} -nofork"]


def config(network: Network, station: Station) -> list[str]:
    """The lines of olsrd.conf."""
    options = network.site.scenario.routing
    announced = [IPv4Network(wire) for wire in network.wires_of(station)]
    return [
        "DebugLevel 0",
        "IpVersion 4",
        'FIBMetric "correct"',
        f'LockFile "{SOCKETS / "routing" / f"{station.name}.olsrd.lock"}"',
        "LinkQualityLevel 0",
        "LinkQualityFishEye 0",
        "UseHysteresis no",
        "UseNiit no",
        "SmartGateway no",
        "Willingness 3",
        f"TcRedundancy {options.tc_redundancy}",
        f"MprCoverage {options.mpr_coverage}",
        *(f"Hna4 {{ {net.network_address} {net.netmask} }}" for net in announced),
        f'Interface "{INTERFACE}"',
        "{",
        "  Ip4Broadcast 255.255.255.255",
        f"  HelloInterval {options.hello_interval:.2f}",
        f"  HelloValidityTime {options.neighbour_hold:.2f}",
        *(f"  {kind}Interval {options.tc_interval:.2f}" for kind in ("Tc", "Mid", "Hna")),
        *(f"  {kind}ValidityTime {options.topology_hold:.2f}" for kind in ("Tc", "Mid", "Hna")),
        "}",
    ]
