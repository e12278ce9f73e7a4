"""No routing: stations reach their neighbours only."""

from collections.abc import Iterator
from contextlib import contextmanager

from testbed.stages import iproute
from testbed.stages.kernel_tcp import ack_metric
from testbed.stages.routing import Network, RunningProtocol
from testbed.stages.routing.static import hops_of
from topologies.addresses import NETWORK, NETWORK6, PREFIX6_BITS, PREFIX_BITS


class Neighbours(RunningProtocol):
    """No protocol: every other station is one hop away."""

    def hops(self) -> dict[str, dict[str, int]]:
        """One hop from each station to each other."""
        names = [station.name for station in self.network.stations]
        return hops_of(self.network, {name: {other: other for other in names if other != name} for name in names})


@contextmanager
def running(network: Network) -> Iterator[RunningProtocol]:
    """See `testbed.stages.routing`; one route over the radio to all stations, resolved by ARP, with `ipv6` a second one by
    neighbour discovery. A wired host is reached from its gateway only."""
    scenario = network.site.scenario
    lines = {}
    for station in network.stations:
        metric = ack_metric(scenario, station.name)
        radio = station.radio.name
        lines[station] = [f"route add {NETWORK}/{PREFIX_BITS} dev {radio} scope link{metric}"]
        if scenario.ipv6:
            lines[station].append(f"route add {NETWORK6}/{PREFIX6_BITS} dev {radio}{metric}")
    iproute.batches(lines, "routes", network.site.log)
    yield Neighbours(network)
