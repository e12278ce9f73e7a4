"""No routing: stations reach their neighbours only."""

from collections.abc import Iterator
from contextlib import contextmanager

from testbed.stages import iproute
from testbed.stages.kernel_tcp import ack_metric
from testbed.stages.routing import Network, Protocol
from testbed.stages.routing.static import hops_of
from topologies.addresses import NETWORK, PREFIX_BITS


class Neighbours(Protocol):
    """No protocol: every other station is one hop away."""

    def hops(self) -> dict[str, dict[str, int]]:
        """One hop from each station to each other."""
        names = [station.name for station in self.network.stations]
        return hops_of(self.network, {name: {other: other for other in names if other != name} for name in names})


@contextmanager
def running(network: Network) -> Iterator[Protocol]:
    """See `testbed.stages.routing`; one route over the radio to all stations, resolved by ARP. A wired host is reached from its
    gateway only."""
    prefix, metric = f"{NETWORK}/{PREFIX_BITS}", ack_metric(network.site.scenario)
    lines = {station: [f"route add {prefix} dev {station.radio.name} scope link{metric}"] for station in network.stations}
    iproute.batches(lines, "routes", network.site.log)
    yield Neighbours(network)
