"""How packets to a flow's target go now, hop by hop: what each node's kernel says (`ip route get`) and, where our own daemon
forwards by itself (DSR) or holds packets without a route, its answer.

The way ends where no node has a next hop, where the next hop does not hear, or where a node comes twice. Below `bat0`
batman-adv is asked. Not seen: AODV's half tunnels to a gateway.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from analysis.moment import Way
from testbed.stages import batctl, iproute

SEEN = ("wlan", "eth")  # devices whose other end is the next hop
TUN = "manet0"  # into which our daemons' stations send what has no route (formats/routing.md)


@dataclass(frozen=True)
class Next:
    """What a node does with a packet: `address` of the next hop over `device`, or all of the `path` to come; or why it cannot."""

    address: str = ""
    device: str = ""
    path: tuple[str, ...] = ()
    problem: str = ""


@dataclass
class Tables:
    """`netns`: of each node. `names`: whose an address is. `status`: of the daemons that are ours, by station."""

    netns: Mapping[str, Path]
    names: Mapping[str, str]
    status: Mapping[str, dict] = field(default_factory=dict)

    def next_hop(self, node: str, target: str) -> Next:
        """`target` is an address."""
        said = iproute.ask_within(self.netns[node], "ip", "-j", "route", "get", target) if node in self.netns else ""
        found = next_of(said, self.status.get(node), target)
        return self._below(node, found.address) if found.device == batctl.DEVICE else found

    def _below(self, node: str, address: str) -> Next:
        """The radio that batman-adv hands frames for the station with this address to."""
        via = batctl.next_radio(self.netns[node], address)
        return Next(problem="no route") if via is None else Next(via, SEEN[0])


def next_of(said: str, status: Mapping | None, target: str) -> Next:
    """From the JSON of `ip route get` and a daemon's status."""
    try:
        route = json.loads(said)[0]
    except (ValueError, IndexError):
        return Next(problem="no route")
    device = route.get("dev", "")
    if device != TUN:
        return Next(route.get("gateway") or target, device)
    own = [entry for entry in (status or {}).get("routes", []) if entry["destination"] == target]
    paths = [entry["path"] for entry in own if entry.get("path")]
    if paths:
        best = min(paths, key=len)
        return Next(path=tuple(best if best[-1] == target else [*best, target]), device=SEEN[0])
    return Next(problem="no route")


def follow(flow: str, source: str, target: str, address: str, next_hop: Callable[[str, str], Next],
           name_of: Mapping[str, str], hears: Callable[[str, str], bool], rate: str = "") -> Way:  # fmt: skip
    """The way from `source` to `target`, whose address is `address`. `hears(a, b)`: b receives what a sends."""
    nodes, ahead = [source], []

    def stopped(why: str, towards: str = "") -> Way:
        return Way(flow, source, target, tuple(nodes), f"{nodes[-1]}: {why}", towards, rate)

    while nodes[-1] != target:
        here = nodes[-1]
        if not ahead:
            found = next_hop(here, address)
            if found.problem:
                return stopped(found.problem)
            if not found.device.startswith(SEEN):
                return stopped(f"goes into {found.device}, its way is not seen")
            hops = [name_of.get(hop, hop) for hop in found.path or (found.address,)]
            ahead = hops[1:] if hops[0] == here else hops  # a daemon's path begins with itself
        hop = ahead.pop(0)
        if hop in nodes:
            return stopped(f"a loop, back to {hop}", hop)
        if not hears(here, hop):
            return stopped(f"{hop} does not hear it", hop)
        nodes.append(hop)
    return Way(flow, source, target, tuple(nodes), rate=rate)
