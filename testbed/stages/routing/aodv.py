"""AODV (RFC 3561) by manet-aodv: routes are looked for when a packet needs one, so that the traffic can begin at once."""

from contextlib import AbstractContextManager

from testbed.stages.routing import Network, Protocol
from testbed.stages.routing.shared.ours import daemons_running


def running(network: Network) -> AbstractContextManager[Protocol]:
    return daemons_running(network, settles=False)
