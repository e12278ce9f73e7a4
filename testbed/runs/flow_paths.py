"""The path of packets to a flow's target at this moment, hop by hop: the route of each node's kernel (`ip route get`) and, if
our own daemon forwards by itself (DSR) or holds packets without a route, the daemon's answer.

The path ends at a node without a next hop, at a next hop that is out of range, or at a node that comes twice. Below `bat0`,
batman-adv gives the next hop. Not visible: AODV's half tunnels to a gateway.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.maps.snapshot import FlowPath
from testbed.stages import batctl, iproute
from testbed.stages.daemon import TUN

VISIBLE_DEVICES = ("wlan", "eth")  # devices whose other end is the next hop


@dataclass(frozen=True)
class NextHop:
    """Next hop of a node for a packet: `address` and `device`, or the whole remaining `path`; or the `problem`."""

    address: str = ""
    device: str = ""
    path: tuple[str, ...] = ()
    problem: str = ""


@dataclass
class RouteTables:
    """The routes of a network. `netns`: namespace by node. `names`: node by address. `status`: of our own daemons, by station."""

    netns: Mapping[str, Path]
    names: Mapping[str, str]
    status: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def next_hop(self, node: str, target: str) -> NextHop:
        """The next hop of `node` towards the address `target`."""
        route_json = iproute.ask_within(self.netns[node], "ip", "-j", "route", "get", target) if node in self.netns else ""
        hop = parse_next_hop(route_json, self.status.get(node), target)
        return self._below(node, hop.address) if hop.device == batctl.DEVICE else hop

    def _below(self, node: str, address: str) -> NextHop:
        """The radio to which batman-adv sends frames for the station with this address."""
        owner = self.names.get(address)
        of_ipv4 = (each for each, name in self.names.items() if name == owner and ":" not in each)
        via = batctl.next_radio(self.netns[node], next(of_ipv4, address))  # which knows stations by their IPv4 addresses
        return NextHop(problem="no route") if via is None else NextHop(via, VISIBLE_DEVICES[0])


def parse_next_hop(route_json: str, status: Mapping[str, Any] | None, target: str) -> NextHop:
    """The next hop from the JSON of `ip route get` and the status of our daemon, if one runs."""
    try:
        route = json.loads(route_json)[0]
    except (ValueError, IndexError):
        return NextHop(problem="no route")
    device = route.get("dev", "")
    if device != TUN:  # which gets the packets without a route, where our own daemons run
        return NextHop(route.get("gateway") or target, device)
    own = [entry for entry in (status or {}).get("routes", []) if entry["destination"] == target]
    paths = [entry["path"] for entry in own if entry.get("path")]
    if paths:
        best = min(paths, key=len)
        return NextHop(path=tuple(best if best[-1] == target else [*best, target]), device=VISIBLE_DEVICES[0])
    return NextHop(problem="no route")


def follow_path(flow: str, source: str, target: str, address: str, next_hop: Callable[[str, str], NextHop],
           name_of: Mapping[str, str], hears: Callable[[str, str], bool], rate: str = "") -> FlowPath:  # fmt: skip
    """The path from `source` to `target`, whose address is `address`. `hears(a, b)`: b receives what a sends."""
    nodes, ahead = [source], list[str]()

    def stopped(why: str, towards: str = "") -> FlowPath:
        return FlowPath(flow, source, target, tuple(nodes), f"{nodes[-1]}: {why}", towards, rate)

    while nodes[-1] != target:
        here = nodes[-1]
        if not ahead:
            onward = next_hop(here, address)
            if onward.problem:
                return stopped(onward.problem)
            if not onward.device.startswith(VISIBLE_DEVICES):
                return stopped(f"enters {onward.device}; its path beyond is not visible")
            hops = [name_of.get(hop, hop) for hop in onward.path or (onward.address,)]
            ahead = hops[1:] if hops[0] == here else hops  # a daemon's path begins with itself
        hop = ahead.pop(0)
        if hop in nodes:
            return stopped(f"a loop, back to {hop}", hop)
        if not hears(here, hop):
            return stopped(f"{hop} does not hear it", hop)
        nodes.append(hop)
    return FlowPath(flow, source, target, tuple(nodes), rate=rate)
