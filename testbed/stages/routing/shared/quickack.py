"""The metrics of TCP on the routes of third-party daemons.

The kernel delays ACKs unless the connection's route has the metric `quickack` (testbed/stages/kernel_tcp.py), and without root
all settings of TCP are metrics of routes (testbed/stages/route_tcp.py), which third-party daemons do not set. Here they are added
to new routes: each namespace reports changed routes on a netlink socket, which is read at every check of the run's children
(twice a second). Until then a new route has delayed ACKs, and a connection that begins has the kernel's own settings.
"""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.host import namespace
from testbed.stages import iproute, kernel_tcp, route_tcp
from testbed.stages.routing import Network
from testbed.stages.station import Station

RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_ROUTE = 0x40, 0x400  # <linux/rtnetlink.h>
READ_BYTES = 1 << 16
LINK_LOCAL_NETWORK = "fe80::/64"
_EXPIRY = re.compile(r" expires \S+")


class Watch:
    """Changes of one station's routes; `changed` is true once after changes, and at the start."""

    def __init__(self, station: Station) -> None:
        self.station, self._socket = station, namespace.within(station.netns, _route_changes)
        self._first = True

    def changed(self) -> bool:
        """Whether routes changed since the last call; does not block."""
        has_changed, self._first = self._first, False
        while True:
            try:
                has_changed = bool(self._socket.recv(READ_BYTES)) or has_changed
            except BlockingIOError:
                return has_changed
            except OSError:  # ENOBUFS: more changes than the socket holds
                has_changed = True

    def close(self) -> None:
        """Close the netlink socket."""
        self._socket.close()


def _route_changes() -> socket.socket:
    """A netlink socket for route changes in the caller's namespace."""
    changes = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE)
    changes.bind((0, RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE))
    return changes


@contextmanager
def metrics_kept(network: Network) -> Iterator[None]:
    """Add the metrics to all routes until the block ends, if the scenario has any."""
    metrics = {station: kernel_tcp.ack_metric(network.site.scenario, station.name) for station in network.stations}
    watches = [Watch(station) for station in network.stations if metrics[station]]
    if not watches:
        yield
        return
    versions = ("-4", "-6") if network.site.scenario.ipv6 else ("-4",)

    def update_routes() -> None:
        for watch in watches:
            if watch.changed():
                for version in versions:
                    routes = iproute.ask(watch.station, version, "route", "show", "table", "all", "type", "unicast")
                    iproute.try_batch(watch.station, lines_to_change(routes, watch.station.radio.name, metrics[watch.station]))

    network.children.checks.append(update_routes)
    try:
        yield
    finally:
        network.children.checks.remove(update_routes)
        for watch in watches:
            watch.close()


def lines_to_change(routes: str, radio: str, metrics: str) -> list[str]:
    """For each route over the radio that lacks the metrics, the line of `ip -batch` that adds them. ip(8) accepts its own output
    without the age of a route and without locked metrics. Link-local routes stay as they are: the kernel keeps them itself."""
    shown = [" ".join(line.split()) for line in routes.splitlines()]
    over_radio = [line for line in shown if f" dev {radio} " in f"{line} " and not line.startswith(LINK_LOCAL_NETWORK)]
    names = {word for word in metrics.split() if word in route_tcp.NAMES}
    lacking = [line for line in over_radio if not names <= set(line.split())]
    return [f"route change {route_tcp.METRIC.sub('', _EXPIRY.sub('', line))}{metrics}" for line in lacking]
