"""B.A.T.M.A.N. III by batmand, Debian's package of that name: the old daemon of layer 3, UDP 4305.

Its routes are in its own tables (65 to 68), for which it adds rules. It needs a broadcast address on the radio, and a socket of a
fixed name in /run, so each station's daemon gets its own /run.
"""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.stages import iproute
from testbed.stages.routing import Network, Protocol
from testbed.stages.routing.shared.third_party import Settling, daemons_running
from testbed.stages.station import Station
from topologies.addresses import INTERFACE, PREFIX_BITS

PORT = 4305
OBSERVE = 3  # the debug level that keeps it in the foreground and logs changes


@contextmanager
def running(network: Network) -> Iterator[Protocol]:
    """See `testbed.stages.routing`; gives each radio a broadcast address."""
    lines = {}
    for station in network.stations:  # `address change` leaves the broadcast address as it is
        address = f"{station.IP()}/{PREFIX_BITS}"
        lines[station] = [
            f"address delete {address} dev {INTERFACE}",
            f"address add {address} broadcast + dev {INTERFACE} noprefixroute",
        ]
    iproute.batches(lines, "broadcast", network.site.log)
    with daemons_running(network, lambda station: _argv(network, station), port=PORT):
        yield Settling(network)


def _argv(network: Network, station: Station) -> list[str]:
    interval_ms = round(network.site.scenario.routing.originator_interval * 1000)
    announced = [word for wire in network.wires_of(station) for word in ("-a", wire)]
    batmand = ["batmand", "-d", str(OBSERVE), "-o", str(interval_ms), *announced, INTERFACE]
    script = f"mount -t tmpfs run /run && exec {shlex.join(batmand)}"
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
