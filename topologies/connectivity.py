"""Reachability of stations and numbers of hops, from which static routing and expected throughput are computed.

Ranges are sharp (a disc). Shortest paths count hops. Of several equally short paths, the one whose next station comes first in
the list is taken, so routes are the same in every run.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

Neighbours = dict[str, list[str]]


def both_ways(names: Sequence[str], links: Iterable[tuple[str, str]]) -> Neighbours:
    """The neighbours of each station over links that lead in both directions, in the order of `names`."""
    place = {name: index for index, name in enumerate(names)}
    directed = set(links)
    neighbours: Neighbours = {name: [] for name in names}
    for source, target in sorted(directed & {(b, a) for a, b in directed}, key=lambda link: place[link[1]]):
        neighbours[source].append(target)
    return neighbours


def hop_counts(neighbours: Mapping[str, Sequence[str]], target: str) -> dict[str, int]:
    """Hops from every station that can reach `target`; links are followed from the station to its neighbour."""
    heard_by: dict[str, list[str]] = {name: [] for name in neighbours}
    for name, others in neighbours.items():
        for other in others:
            heard_by[other].append(name)
    hops = {target: 0}
    waiting = deque([target])
    while waiting:
        station = waiting.popleft()
        for previous in heard_by[station]:
            if previous not in hops:
                hops[previous] = hops[station] + 1
                waiting.append(previous)
    return hops


def next_hops(neighbours: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """`routes[station][destination]` is the neighbour that comes next; unreachable destinations are left out."""
    routes: dict[str, dict[str, str]] = {name: {} for name in neighbours}
    for target in neighbours:
        hops = hop_counts(neighbours, target)
        for name, others in neighbours.items():
            if name != target and name in hops:
                routes[name][target] = next(o for o in others if hops.get(o) == hops[name] - 1)
    return routes


def path(routes: Mapping[str, Mapping[str, str]], source: str, target: str) -> list[str]:
    """The stations passed from `source` to `target`, both included; empty if there is no route."""
    stations = [source]
    while stations[-1] != target:
        following = routes[stations[-1]].get(target)
        if following is None:
            return []
        stations.append(following)
    return stations
