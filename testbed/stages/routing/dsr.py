"""DSR (RFC 4728) by manet-dsr: routes are looked for when a packet needs one, and each packet carries its own.

The station's address is on the daemon's TUN device, and the radio has none. On the air there are IP packets of protocol 48
with TCP or UDP inside (analysis/captures.py looks into them); the TUN's MTU leaves room for the longest route, so that
segments are smaller than the radio's MTU would allow."""

from contextlib import AbstractContextManager

from testbed.stages.routing import Network, Protocol
from testbed.stages.routing.shared.ours import daemons_running


def running(network: Network) -> AbstractContextManager[Protocol]:
    return daemons_running(network, settles=False)
