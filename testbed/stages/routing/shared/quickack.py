"""An ACK for each packet where the daemon of somebody else writes the routes.

The kernel delays ACKs unless the connection's route says `quickack` (testbed/stages/kernel_tcp.py), a metric that no
such daemon sets. Here its routes are given it as they appear: each namespace tells of changed routes on a netlink socket,
which is read whenever the run looks after its children (twice a second). Until then a new route has delayed ACKs.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.host import namespace
from testbed.stages import iproute, kernel_tcp
from testbed.stages.routing import Network
from testbed.stages.station import Station
from topologies.addresses import INTERFACE

RTMGRP_IPV4_ROUTE = 0x40  # <linux/rtnetlink.h>
READ_BYTES = 1 << 16


class Watch:
    """One station's routes; `changed` is true once for each lot of changes, and at the start."""

    def __init__(self, station: Station) -> None:
        self.station, self._socket = station, namespace.within(station.netns, _route_changes)
        self._first = True

    def changed(self) -> bool:
        """Whether routes changed since the last call; does not block."""
        heard, self._first = self._first, False
        while True:
            try:
                heard = bool(self._socket.recv(READ_BYTES)) or heard
            except BlockingIOError:
                return heard
            except OSError:  # ENOBUFS: more changes than the socket holds
                heard = True

    def close(self) -> None:
        """Close the netlink socket."""
        self._socket.close()


def _route_changes() -> socket.socket:
    """In the namespace of the caller."""
    changes = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE)
    changes.bind((0, RTMGRP_IPV4_ROUTE))
    return changes


@contextmanager
def acks_at_once(network: Network) -> Iterator[None]:
    """For the length of the block, if the scenario wants no delayed ACKs."""
    metric = kernel_tcp.ack_metric(network.site.scenario)
    if not metric:
        yield
        return
    watches = [Watch(station) for station in network.stations]

    def look() -> None:
        for watch in watches:
            if watch.changed():
                lines = lines_to_change(_routes(watch.station), metric)
                iproute.try_batch(watch.station, lines)

    network.children.checks.append(look)
    try:
        yield
    finally:
        network.children.checks.remove(look)
        for watch in watches:
            watch.close()


def _routes(station: Station) -> str:
    return iproute.ask(station, "-4", "route", "show", "table", "all", "type", "unicast")


def lines_to_change(routes: str, metric: str) -> list[str]:
    """For each route over the radio that lacks the metric, the line of `ip -batch` that adds it. What ip(8) shows of a route
    it also takes."""
    shown = [" ".join(line.split()) for line in routes.splitlines()]
    return [f"route change {line}{metric}" for line in shown if f" dev {INTERFACE} " in f"{line} " and "quickack" not in line]
