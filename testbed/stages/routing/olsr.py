"""OLSR (RFC 3626) by manet-olsr: every station keeps routes to all others; the traffic waits for those it needs."""

from contextlib import AbstractContextManager

from testbed.stages.routing import Network, Protocol
from testbed.stages.routing.shared.ours import daemons_running


def running(network: Network) -> AbstractContextManager[Protocol]:
    return daemons_running(network, settles=True)
