"""The gateway that a flow of a wired host used, over time, if the host has several.

Read from the captures at the gateways' ends of the wires, which have every packet of the flow whatever the routing protocol did
with it on the air. Of a routing daemon only AODV's half tunnel chooses at the source; otherwise stations on the way do.
"""

from typing import NamedTuple

import polars as pl

from analysis.captures.rundir import RunDirectory
from record.scenario import RunFlow

NAMED = 5  # at most so many gateways in the remark


class Passage(NamedTuple):
    """The flow's packets pass `gateway` from `t_ns` (CLOCK_REALTIME) on."""

    t_ns: int
    gateway: str


def gateways_used(run: RunDirectory, flow: RunFlow) -> list[Passage]:
    """The gateways in the order of time, each different from the one before; empty if neither end has a choice of several, and
    without packets. They are those of the target, if both ends have."""
    host = next((node for node in (flow.target, flow.source) if len(run.gateways_of(node)) > 1), None)
    connection = run.connection(flow) if host is not None else None
    if connection is None:
        return []
    passed = []
    for wire in run.wires:
        if wire.host == host:
            packets = run.capture(f"{wire.station}.{wire.interface}")
            # any source port: a flow may have several connections
            own = (pl.col("protocol") == connection.protocol) & (pl.col("source") == connection.source)
            own &= pl.col("destination") == connection.destination
            own &= pl.col("destination_port") == connection.destination_port
            passed += [Passage(t_ns, wire.station) for t_ns in packets.filter(own)["t_ns"]]
    found: list[Passage] = []
    for passage in sorted(passed):
        if not found or found[-1].gateway != passage.gateway:
            found.append(passage)
    return found


def gateways_remark(run: RunDirectory, flow: RunFlow) -> str | None:
    """One line: the gateways and the time of each handover, in seconds of the traffic; None if there was no choice."""
    used = gateways_used(run, flow)
    if not used:
        return None
    first, *handovers = used
    parts = [f"went over {first.gateway}"]
    parts += [f"from {(t_ns - run.traffic_ns) / 1e9:.2f} s on over {gateway}" for t_ns, gateway in handovers[:NAMED]]
    if len(handovers) > NAMED:
        parts.append(f"and {len(handovers) - NAMED} more handovers")
    return f"{flow.name} from {flow.source} to {flow.target} {', '.join(parts)}"
