"""Waiting until a proactive protocol has found the routes of the flows.

A flow can begin when both of its ends, and every station on the path, have a route to the other end. The kernel's tables are
queried hop by hop (`ip route get`), which works for every protocol.
"""

import re
import subprocess
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from testbed.errors import RunError
from testbed.host import namespace
from testbed.stages.routing import Network, Say
from testbed.stages.station import NamespaceHost
from topologies.addresses import GATEWAY_END, HOST_END, link_local_address, wire_ip, wire_ip6

POLL_S = 0.5
SPARE_S = 3.0  # for a last query of all tables on a loaded host
_VIA = re.compile(r"\bvia (?:inet6 )?([0-9a-f.:]+)")
_DEV = re.compile(r"\bdev (\S+)")
NextHop = Callable[[NamespaceHost, str], str | None]


class Pair(NamedTuple):
    """Two nodes, the second of which the first must reach over this version of IP."""

    source: str
    target: str
    ip: int


def wait_until_settled(
    network: Network,
    say: Say,
    *,
    devices: Iterable[str] | None = None,
    ignored_route: str | None = None,
) -> None:
    """Wait until every flow's ends reach each other over `devices` (default: the radios), for `patience_s` at most.
    `ignored_route`: a route of the radio's whole network, which says nothing about the stations in it.

    RunError after that time, unless stations move: a path may appear later, and `traffic_at` does not wait for one.
    """
    at_most_s = patience_s(network)
    if at_most_s <= 0:
        return
    start = time.monotonic()
    wires = network.net.wires
    over = (station.radio.name for station in network.stations) if devices is None else devices
    allowed = {*over, *(wire.interface for wire in wires), *(wire.host_interface for wire in wires)}
    pairs = pairs_of_flows(network)
    while missing := unreachable(network, pairs, lambda host, to: next_hop(host, to, allowed, ignored_route)):
        passed_s = time.monotonic() - start
        if passed_s > at_most_s and network.site.scenario.mobility.moving:
            return
        if passed_s > at_most_s:
            raise RunError(_timeout_message(network, missing, at_most_s))
        say("settle", min(1.0, passed_s / at_most_s))
        network.children.watch(until=time.monotonic() + POLL_S)


def settle_s(network: Network) -> float:
    """The scenario's `routing.settle`, which proactive protocols have; 0: no waiting."""
    return getattr(network.site.scenario.routing, "settle", None) or 0.0


def patience_s(network: Network) -> float:
    """How long routes are waited for: `settle_s`; if stations move, at most until the scenario's `traffic_at`."""
    scenario = network.site.scenario
    if not scenario.mobility.moving or scenario.traffic_at is None:
        return settle_s(network)
    left_s: float = scenario.traffic_at - network.medium.ask("status")["model_ns"] / 1e9 - SPARE_S
    return min(settle_s(network), left_s)


def pairs_of_flows(network: Network) -> list[Pair]:
    """Pairs that must reach each other: both directions of each flow, each once."""
    scenario = network.site.scenario
    pairs = [Pair(flow.source, flow.target, scenario.ip_of(flow)) for flow in scenario.flows]
    both = [way for pair in pairs for way in (pair, Pair(pair.target, pair.source, pair.ip))]
    return list(dict.fromkeys(both))


def unreachable(network: Network, pairs: list[Pair], hop: NextHop) -> list[tuple[Pair, str]]:
    """Pairs without a path, each with the node at which its path ends; followed hop by hop."""
    owner = {host.IP(): host.name for host in network.net.hosts} | {host.IP6(): host.name for host in network.net.hosts}
    owner |= {link_local_address(station.MAC()): station.name for station in network.stations}
    for wire in network.net.wires:
        for address in (wire_ip, wire_ip6):
            owner[address(wire.number, GATEWAY_END)] = wire.gateway.name
            owner[address(wire.number, HOST_END)] = wire.host.name
    missing = []
    for pair in pairs:
        here, seen = pair.source, {pair.source}
        to = network.net[pair.target].address(pair.ip)
        while here != pair.target:
            there = owner.get(hop(network.net[here], to) or "")
            if there is None or there in seen:  # no route, or a loop
                missing.append((pair, here))
                break
            here = there
            seen.add(here)
    return missing


def next_hop(host: NamespaceHost, to: str, devices: set[str], ignored_route: str | None = None) -> str | None:
    """The address of the kernel's next hop to `to`; None without a route over one of `devices`."""
    argv = ["ip", "route", "get", *(["fibmatch"] if ignored_route else []), to]
    process = namespace.within(host.netns, lambda: subprocess.run(argv, capture_output=True, text=True, check=False))
    device = _DEV.search(process.stdout)
    if process.returncode != 0 or device is None or device.group(1) not in devices:
        return None
    if ignored_route is not None and process.stdout.split()[0] == ignored_route:
        return None
    via = _VIA.search(process.stdout)
    return via.group(1) if via else to


def _timeout_message(network: Network, missing: list[tuple[Pair, str]], waited_s: float) -> str:
    (source, target, ip), at = missing[0]
    name = network.site.scenario.routing.protocol
    more = f" (and {len(missing) - 1} more pairs)" if len(missing) > 1 else ""
    over = " over IPv6" if ip == 6 else ""
    return (
        f"{name}: {source} has no route to {target}{over} after {waited_s:g} s{more}; {at} has no route onward. Place the "
        "stations within range of each other, or set routing.settle: a longer wait, or 0 to begin without routes"
    )
