"""No routing at all: stations reach whom they hear, and nobody relays."""

from collections.abc import Iterator
from contextlib import contextmanager

from testbed import iproute, kernel_tcp
from testbed.routing import Network
from topologies.addresses import INTERFACE


@contextmanager
def running(network: Network) -> Iterator[None]:
    """One route over the radio to everybody; ARP finds out who is there."""
    lines = {station: [f"route add 10.0.0.0/8 dev {INTERFACE} scope link{ack_metric(network)}"] for station in network.stations}
    iproute.batches(lines, "routes", network.site.log)
    yield


def ack_metric(network: Network) -> str:
    """The route metric that makes a receiver acknowledge each packet at once, where the scenario asks for no delayed ACK."""
    return " quickack 1" if kernel_tcp.effective_settings(network.site.scenario).get("delayed_ack") is False else ""
