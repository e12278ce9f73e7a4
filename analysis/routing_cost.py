"""The behaviour and the cost of a run's routing daemons: time to a path, delivery while there is one, control bytes, processor
time and memory.

For a run with one flow of datagrams whose path changes by `move` events or by the movement. Everything is counted from the start
of the traffic to its end, in model time. Control frames are those that the medium sent without one of the flow's datagrams (every
attempt, with its MAC header; without RTS, CTS and ACK): the frames that are shorter than a datagram. ARP would count, so a
scenario sets arp = "static"; so do the few ICMP messages of a relay. A frame that is longer than a datagram by itself has headers
of the daemon (source routes of DSR, batman-adv's own).
"""

import csv
import json
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import polars as pl

from analysis.datagrams import FOLDER
from analysis.errors import RunFileError
from analysis.movement import trace_path
from analysis.reception import range_of
from analysis.rundir import Flow, RunDirectory
from mobility import connectivity
from mobility.connectivity import Profile
from mobility.trace import read

USAGE = "routing/usage.json"


@dataclass(frozen=True)
class RoutingCost:
    """Of one run. Times in s, None if no datagram arrived; processor time and memory are None without daemons (batman-adv)."""

    traffic_s: float | None  # from the start of the daemons to that of the traffic
    first_s: float | None  # from the start of the daemons to the first datagram that arrives
    recovery_s: float | None  # from a change of the path to the first datagram that arrives then, mean; None without a change
    missed: int  # changes after which none arrived until the next, whose whole time counts in the mean
    delivery: float  # share of the datagrams that were written while there was a path
    control_bps: float  # of all stations together, bit/s
    control_frames_per_s: float
    header_bytes: float  # that the daemon adds to a datagram on the air, mean
    cpu_ms_per_s: float | None  # of a station's daemon, mean over the stations
    peak_rss_mb: float | None  # the same, the station with most, 10^6 bytes


def routing_cost(run: RunDirectory) -> RoutingCost:
    """Read a complete run with one flow of datagrams. Raises an AnalysisError for a file that is missing."""
    flow = run.flows[0]
    begin_ns = run.traffic_ns - run.epoch_ns
    end_ns = begin_ns + round(run.traffic_s * 1e9)
    air = run.air.filter(pl.col("t_ns").is_between(begin_ns, end_ns, closed="left"))
    profile = _profile(run, flow, begin_ns / 1e9, end_ns / 1e9)
    arrived_s = _arrivals_s(run, flow, air)
    waits = _waits(profile, arrived_s)
    sent = air.filter((pl.col("event") == "tx") & pl.col("frame").is_in(["data", "bcast"]))
    longest = run.flow_keys(flow)["bytes"] + _overhead_bytes(run)
    control, data = sent.filter(pl.col("bytes") < longest), sent.filter(pl.col("bytes") >= longest)
    usage, began_ns = _usage(run), run.run.get("routing_ns")
    seconds = (end_ns - begin_ns) / 1e9
    return RoutingCost(
        traffic_s=None if began_ns is None else (begin_ns - began_ns) / 1e9,
        first_s=None if began_ns is None or not arrived_s else arrived_s[0] - began_ns / 1e9,
        recovery_s=fmean(wait_s for wait_s, _ in waits) if waits else None,
        missed=sum(not arrived for _, arrived in waits),
        delivery=_delivery(run, flow, profile.steps()),
        control_bps=8 * int(control["bytes"].sum()) / seconds,
        control_frames_per_s=len(control) / seconds,
        header_bytes=float(data["bytes"].mean()) - longest if len(data) else 0.0,
        cpu_ms_per_s=_cpu_ms_per_s(usage),
        peak_rss_mb=_peak_rss_mb(usage),
    )


def _profile(run: RunDirectory, flow: Flow, begin_s: float, end_s: float) -> Profile:
    """The flow's path by the stations' positions."""
    range_m = range_of(run.medium)
    if range_m is None:
        raise RunFileError(f"{run.path / 'medium.json'}: this radio has no single range; the times without a path are unknown")
    return connectivity.links(read(trace_path(run)), range_m, begin_s, end_s).hops(flow.source, flow.target)


def _arrivals_s(run: RunDirectory, flow: Flow, air: pl.DataFrame) -> list[float]:
    """When frames with the flow's datagrams were delivered to its target."""
    long = pl.col("bytes") >= run.flow_keys(flow)["bytes"]
    rows = air.filter((pl.col("event") == "deliver") & (pl.col("frame") == "data") & (pl.col("station") == flow.target) & long)
    return sorted(float(t_ns) / 1e9 for t_ns in rows["t_ns"])


def _waits(profile: Profile, arrived_s: list[float]) -> list[tuple[float, bool]]:
    """Of each change to another path: time until a datagram arrives, and True; or until the next change or the end, and False. A
    path is kept as long as it works, so after a change no datagram can arrive over the one before."""
    changes = [(float(profile.times_s[span]), bool(path)) for span, path in profile.paths]
    ends_s = [at_s for at_s, _ in changes[1:]] + [float(profile.times_s[-1])]
    waits = []
    for (at_s, exists), end_s in list(zip(changes, ends_s, strict=True))[1:]:
        if exists:
            first_s = next((arrival_s for arrival_s in arrived_s if at_s <= arrival_s < end_s), None)
            waits.append((end_s - at_s, False) if first_s is None else (first_s - at_s, True))
    return waits


def _delivery(run: RunDirectory, flow: Flow, steps: list[tuple[float, float, int]]) -> float:
    """By the record of each datagram."""
    path = run.path / FOLDER / f"{flow.name}.csv"
    if not path.exists():  # nothing left its station
        return 0.0
    spans = [(begin_s, end_s) for begin_s, end_s, hops in steps if hops > 0]
    with path.open(newline="") as file:
        written = [(float(row["written_ns"]) - run.epoch_ns, row["lost"] == "1") for row in csv.DictReader(file)]
    lost = [gone for at_ns, gone in written if any(begin_s <= at_ns / 1e9 < end_s for begin_s, end_s in spans)]
    return 1 - sum(lost) / len(lost) if lost else 0.0


def _overhead_bytes(run: RunDirectory) -> int:
    """MAC header and FCS of a data frame in the air log: the least by which an attempt exceeds the packet that was queued."""
    rows = run.air.filter(pl.col("frame").is_in(["data", "bcast"]) & pl.col("packet").is_not_null())
    queued = rows.filter(pl.col("event") == "enqueue").select("station", "packet", queued="bytes")
    both = rows.filter(pl.col("event") == "tx").join(queued, on=["station", "packet"])
    least = (both["bytes"] - both["queued"]).min()
    return 0 if least is None else int(least)  # type: ignore[arg-type]  # a column of integers


def _usage(run: RunDirectory) -> dict[str, Any]:
    path = run.path / USAGE
    return json.loads(path.read_text()) if path.exists() else {}


def _cpu_ms_per_s(usage: dict[str, Any]) -> float | None:
    if "start" not in usage or "end" not in usage:
        return None
    start, end = usage["start"], usage["end"]
    seconds = (end["model_ns"] - start["model_ns"]) / 1e9
    used_s = [
        end["stations"][name]["cpu_s"] - used["cpu_s"] for name, used in start["stations"].items() if name in end["stations"]
    ]
    return 1e3 * fmean(used_s) / seconds if used_s else None


def _peak_rss_mb(usage: dict[str, Any]) -> float | None:
    peaks = [used["peak_rss_kb"] for used in usage.get("end", {}).get("stations", {}).values()]
    return max(peaks) * 1024 / 1e6 if peaks else None
