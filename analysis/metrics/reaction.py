"""Time for which a cut of the path stopped a flow (`cut` events, formats/scenario.md).

It lasts from the last datagram that left the air over the relay in use, before the relay was switched off, to the first that does
so over another. It is read from the air log, in which a delivery names the last relay for all routing protocols. Datagrams leave
the air at the target, or at the gateways of a wired one, of which the relay itself may be one. A frame counts if it is at least
as long as the flow's datagrams: unicast messages of protocols are shorter.
"""

from dataclasses import dataclass

import polars as pl

from analysis.captures.rundir import RunDirectory
from analysis.metrics.checks import Check, Unmeasured
from record.scenario import RunFlow


@dataclass(frozen=True)
class Reaction:
    """`seconds` is None if no other relay ever delivered."""

    seconds: float | None
    check: Check


def reaction_s(run: RunDirectory, flow: RunFlow) -> Reaction | None:
    """The reaction to the first cut of the run; None if there is none."""
    cut = next((row for row in run.events if row["event"] == "cut"), None)
    if cut is None:
        return None
    relay, cut_ns = cut["station"], round(float(cut["t_s"]) * 1e9)
    size = dict(flow)["bytes"]
    name = f"{flow.name} reaction"
    arrived = run.air.filter(
        (pl.col("event") == "deliver")
        & (pl.col("frame") == "data")
        & pl.col("station").is_in(run.last_stations(flow))
        & (pl.col("bytes") >= size)
    )
    over_relay = (pl.col("peer") == relay) | (pl.col("station") == relay)
    before = arrived.filter(over_relay & (pl.col("t_ns") <= cut_ns)).select(pl.max("t_ns")).item()
    after = arrived.filter(~over_relay & (pl.col("t_ns") > cut_ns)).select(pl.min("t_ns")).item()
    if before is None:
        return Reaction(None, Unmeasured(name, False, f"{relay} delivered nothing before it was cut off"))
    if after is None:
        return Reaction(None, Unmeasured(name, False, f"no delivery after {relay} was cut off"))
    seconds = (after - before) / 1e9
    return Reaction(seconds, Check(name, True, f"{relay} cut off at {cut['t_s']} s; {seconds:.3f} s between deliveries"))
