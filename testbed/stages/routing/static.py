"""Shortest paths by number of hops, over the links that the medium reports in range, written once into the kernel's tables.

The reference case of the literature's chain experiments: routes need no air time and never change. If stations move, they remain
the routes of the positions at the start. Of several shortest paths the one over the lowest station numbers is taken, so that a
grid always has the same routes. The network of a wire is reached through its gateway.

Every route of IPv6 has the link-local address of its next hop, also to a neighbour, as those of routing protocols have. Linux
sends a redirect (RFC 4861, 8.2) for a packet that leaves by the interface it came in by, if it takes the packet's source for a
neighbour; by these routes no station is one, so redirects take no air time.
"""

from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from testbed.errors import RunError
from testbed.stages import iproute
from testbed.stages.kernel_tcp import ack_metric
from testbed.stages.routing import Network, RunningProtocol, Say
from testbed.stages.station import Station, WiredLink
from topologies.addresses import (
    EVERYTHING,
    HOST_END,
    link_local_address,
    wire_ip,
    wire_ip6,
    wire_network,
    wire_network6,
)
from topologies.connectivity import both_ways


class StaticRoutes(RunningProtocol):
    """The routes of all stations, fixed for the whole run."""

    def before_traffic(self, _say: Say) -> None:
        """RunError for a flow between whose ends there is no path."""
        network, scenario = self.network, self.network.site.scenario
        flows = {name: (flow.source, flow.target) for name, flow in zip(scenario.flow_names(), scenario.flows, strict=True)}
        require_paths(flows, {wire.host.name: wire.gateway.name for wire in reversed(network.net.wires)}, _hops(network))

    def hops(self) -> dict[str, dict[str, int]]:
        """Lengths of the shortest paths at the start."""
        return hops_of(self.network, _hops(self.network))


@contextmanager
def running(network: Network) -> Iterator[RunningProtocol]:
    """See `testbed.stages.routing`; writes all routes, which go with the namespaces."""
    hops = _hops(network)
    address = {station.name: station.IP() for station in network.stations}
    scenario = network.site.scenario
    metrics = {station.name: ack_metric(scenario, station.name) for station in network.stations}
    lines = {
        station: [_route(address, station, target, hop, metrics[station.name]) for target, hop in hops[station.name].items()]
        + [
            _wire_route(address, station, destination, wire, hops[station.name], metrics[station.name])
            for destination, wire in _wired_destinations(_reached(network, station, hops), network.wires_of(station))
        ]
        + (_routes6(network, station, hops, metrics[station.name]) if scenario.ipv6 else [])
        for station in network.stations
    }
    iproute.batches(lines, "routes", network.site.log)
    yield StaticRoutes(network)


def require_paths(flows: dict[str, tuple[str, str]], gateways: dict[str, str], hops: dict[str, dict[str, str]]) -> None:
    """RunError for a flow without a path. `flows`: name: (from, to); hosts are reached through their gateways."""
    name = without_path(flows, gateways, hops.__getitem__)
    if name is not None:
        remedy = "place the stations within range of each other (the prompt's `links` shows who is) or remove the flow"
        raise RunError(f"{name}: {no_path(*flows[name])}; {remedy}")


def without_path(
    flows: Mapping[str, tuple[str, str]], gateways: Mapping[str, str], reached_from: Callable[[str], Container[str]]
) -> str | None:
    """The first of the flows, name: (from, to), between whose ends there is no path; hosts are reached through their gateways."""
    for name, ends in flows.items():
        source, target = (gateways.get(end, end) for end in ends)
        if source != target and target not in reached_from(source):
            return name
    return None


def no_path(source: str, target: str) -> str:
    """The error for a flow without a path, without the flow's name."""
    return f"there is no path from {source} to {target} at the start positions"


def _hops(network: Network) -> dict[str, dict[str, str]]:
    return next_hops([station.name for station in network.stations], usable(network.medium.ask("links")["links"]))


def usable(links: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The pairs of the medium's links (formats/sockets.md) that are in range and may carry a frame: `links` of a scenario with an
    error rate of 1 keep routes off a link that its radios would reach."""
    return [(link["from"], link["to"]) for link in links if link["range"] and link["error_rate"] < 1]


def next_hops(stations: list[str], links: list[tuple[str, str]]) -> dict[str, dict[str, str]]:
    """For each station, the next hop to each station that it can reach. Only bidirectional links count."""
    neighbours = both_ways(stations, links)
    return {source: _first_hops(source, neighbours) for source in stations}


def hops_of(network: Network, hops: dict[str, dict[str, str]]) -> dict[str, dict[str, int]]:
    """`RunningProtocol.hops` of these next hops; wired hosts are a hop from their (first) gateway."""
    addresses = {station.IP(): (station.name, 0) for station in network.stations}
    addresses |= {wire_ip(wire.number, HOST_END): (wire.gateway.name, 1) for wire in network.net.wires}
    if network.site.scenario.ipv6:
        addresses |= {station.IP6(): (station.name, 0) for station in network.stations}
        addresses |= {wire_ip6(wire.number, HOST_END): (wire.gateway.name, 1) for wire in network.net.wires}
    ends = {station.name: (station.name, 0) for station in network.stations}
    ends |= {wire.host.name: (wire.gateway.name, 1) for wire in reversed(network.net.wires)}
    return lengths(ends, addresses, hops)


def lengths(
    ends: dict[str, tuple[str, int]], addresses: dict[str, tuple[str, int]], hops: dict[str, dict[str, str]]
) -> dict[str, dict[str, int]]:
    """The number of hops from each of `ends` to each of `addresses`. Both are (station, wires between it and them): a host has a
    wire to its gateway. Pairs without a path have no entry."""
    between = {source: _lengths_from(source, hops) for source in hops}
    return {
        end: {
            address: between[station][target] + wires + beyond
            for address, (target, beyond) in addresses.items()
            if target in between[station] and between[station][target] + wires + beyond
        }
        for end, (station, wires) in ends.items()
    }


def _lengths_from(source: str, hops: dict[str, dict[str, str]]) -> dict[str, int]:
    """Path lengths from `source`, along the next hops."""
    hops_to = {source: 0}
    for target in hops[source]:
        here, length = source, 0
        while here != target:
            here, length = hops[here][target], length + 1
        hops_to[target] = length
    return hops_to


def _first_hops(source: str, neighbours: dict[str, list[str]]) -> dict[str, str]:
    """Breadth first: the first hop of the first shortest path found."""
    first: dict[str, str] = {}
    waiting = deque([source])
    while waiting:
        here = waiting.popleft()
        for there in neighbours[here]:
            if there != source and there not in first:
                first[there] = first.get(here, there)
                waiting.append(there)
    return first


def _route(address: dict[str, str], station: Station, target: str, hop: str, metric: str) -> str:
    if hop == target:
        return f"route add {address[target]}/32 dev {station.radio.name} scope link{metric}"
    # onlink: the next hop need not be covered by a route that the kernel has seen already
    return f"route add {address[target]}/32 via {address[hop]} dev {station.radio.name} onlink{metric}"


def _routes6(network: Network, station: Station, hops: dict[str, dict[str, str]], metric: str) -> list[str]:
    """The station's routes of IPv6, to stations and to the networks of wires."""
    own, nodes = hops[station.name], {each.name: each for each in network.stations}

    def via(hop: str) -> str:
        return f"via {link_local_address(nodes[hop].MAC())} dev {station.radio.name}{metric}"

    to_stations = [f"route add {nodes[target].IP6()}/128 {via(hop)}" for target, hop in own.items()]
    reached = _reached(network, station, hops)
    return to_stations + [f"route add {wire_network6(wire.number)} {via(own[wire.gateway.name])}" for wire in reached]


def _reached(network: Network, station: Station, hops: dict[str, dict[str, str]]) -> list[WiredLink]:
    """The wires that `station` reaches over the air, except for those of hosts at its own wires."""
    own = {wire.host for wire in network.net.wires if wire.gateway is station}
    return [wire for wire in network.net.wires if wire.gateway.name in hops[station.name] and wire.host not in own]


def _wired_destinations(reached: list[WiredLink], own: list[str]) -> list[tuple[str, WiredLink]]:
    """The networks behind wires, each with its wire: one for each wire, and every address over the first that leads to the real
    network, unless the station has such a wire itself."""
    internet = [(EVERYTHING, wire) for wire in reached if wire.settings.nat and EVERYTHING not in own]
    return [(wire_network(wire.number), wire) for wire in reached] + internet[:1]


def _wire_route(
    address: dict[str, str], station: Station, destination: str, wire: WiredLink, hops: dict[str, str], metric: str
) -> str:
    hop = address[hops[wire.gateway.name]]
    return f"route add {destination} via {hop} dev {station.radio.name} onlink{metric}"
