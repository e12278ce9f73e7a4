"""The behaviour and the cost of a run's routing daemons: time to a path, delivery while there is one, control bytes, processor
time and memory.

For a run with one flow of datagrams whose path changes by `move` events or by the movement. Everything is counted from the start
of the traffic to its end, in model time. Control frames are those that the medium sent without one of the flow's datagrams (every
attempt, with its MAC header; without RTS, CTS and ACK): the frames that are shorter than a datagram. ARP would count, so a
scenario sets arp = "static"; so do the few ICMP messages of a relay. A frame that is longer than a datagram by itself has headers
of the daemon (source routes of DSR, batman-adv's own).
"""

import csv
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import polars as pl

from analysis.captures.rundir import RunDirectory
from analysis.metrics.datagrams import FOLDER
from analysis.metrics.radio_range import range_of
from mobility import connectivity
from mobility.connectivity import Profile
from record.errors import RunFileError
from record.files import plain_text, read_json
from record.movement import read_trace, trace_path
from record.scenario import RunFlow

USAGE = "routing/usage.json"


@dataclass(frozen=True)
class RoutingCost:
    """Routing cost of one run. Times in s, None if no datagram arrived; processor time and memory are None without daemons
    (batman-adv)."""

    traffic_s: float | None  # from the start of the daemons to that of the traffic
    first_s: float | None  # from the start of the daemons to the first datagram that arrives
    recovery_s: float | None  # from a change of the path to the first arrival of a datagram written since, mean
    missed: int  # changes after which none arrived until the next, whose whole time counts in the mean
    delivery: float  # share of the datagrams that were written while there was a path
    control_bps: float  # of all stations together, bit/s
    control_frames_per_s: float
    header_bytes: float  # that the daemon adds to a datagram on the air, mean
    cpu_ms_per_s: float | None  # of a station's daemon, mean over the stations
    peak_rss_mb: float | None  # the same, the station with most, 10^6 bytes


def routing_cost(run: RunDirectory) -> RoutingCost:
    """Read a complete run with one flow of datagrams. Raises an RecordError for a file that is missing."""
    flow = run.flows[0]
    begin_ns = run.traffic_ns - run.epoch_ns
    end_ns = begin_ns + round(run.scenario.traffic_seconds() * 1e9)
    air = run.air.filter(pl.col("t_ns").is_between(begin_ns, end_ns, closed="left"))
    profile = _profile(run, flow, begin_ns / 1e9, end_ns / 1e9)
    datagrams = _datagrams(run, flow)
    arrived_s = [one.received_s for one in datagrams if one.received_s is not None]
    waits = _waits(profile, datagrams)
    sent = air.filter((pl.col("event") == "tx") & pl.col("frame").is_in(["data", "bcast"]))
    longest = dict(flow)["bytes"] + _overhead_bytes(run)
    control, data = sent.filter(pl.col("bytes") < longest), sent.filter(pl.col("bytes") >= longest)
    usage = read_json(run.path / USAGE) if (run.path / USAGE).exists() else {}
    began_ns = run.run.get("routing_ns")
    seconds = (end_ns - begin_ns) / 1e9
    return RoutingCost(
        traffic_s=None if began_ns is None else (begin_ns - began_ns) / 1e9,
        first_s=None if began_ns is None or not arrived_s else min(arrived_s) - began_ns / 1e9,
        recovery_s=fmean(wait_s for wait_s, _ in waits) if waits else None,
        missed=sum(not arrived for _, arrived in waits),
        delivery=_delivery(profile, datagrams),
        control_bps=8 * int(control["bytes"].sum()) / seconds,
        control_frames_per_s=len(control) / seconds,
        header_bytes=data.select(pl.mean("bytes")).item() - longest if len(data) else 0.0,
        cpu_ms_per_s=_cpu_ms_per_s(usage),
        peak_rss_mb=_peak_rss_mb(usage),
    )


def _profile(run: RunDirectory, flow: RunFlow, begin_s: float, end_s: float) -> Profile:
    """The flow's path by the stations' positions."""
    range_m = range_of(run.medium, directory=run.path)
    if range_m is None:
        raise RunFileError(f"{run.path / 'medium.json'}: this radio has no single range; the times without a path are unknown")
    return connectivity.links(read_trace(trace_path(run.path)), range_m, begin_s, end_s).hops(flow.source, flow.target)


@dataclass(frozen=True)
class _Datagram:
    """Model times in s; `received_s` None: lost."""

    written_s: float
    received_s: float | None


def _datagrams(run: RunDirectory, flow: RunFlow) -> list[_Datagram]:
    """The record of each datagram of the flow; empty if none left its station."""
    path = run.path / FOLDER / f"{flow.name}.csv"
    if not path.exists():
        return []

    def model_s(text: str) -> float:
        return (int(text) - run.epoch_ns) / 1e9

    with plain_text(path) as file:
        rows = list(csv.DictReader(file))
    return [_Datagram(model_s(row["written_ns"]), None if row["lost"] == "1" else model_s(row["received_ns"])) for row in rows]


def _waits(profile: Profile, datagrams: list[_Datagram]) -> list[tuple[float, bool]]:
    """For each change to another path: time until a datagram arrives that was written after it, and True; or until the next
    change or the end, and False. (One that was on its way may arrive without another path.)"""
    changes = [(float(profile.times_s[span]), bool(path)) for span, path in profile.paths]
    ends_s = [at_s for at_s, _ in changes[1:]] + [float(profile.times_s[-1])]
    waits = []
    for (at_s, exists), end_s in list(zip(changes, ends_s, strict=True))[1:]:
        if exists:
            later = [one.received_s for one in datagrams if one.written_s >= at_s and one.received_s is not None]
            first_s = min(later, default=end_s)
            waits.append((min(first_s, end_s) - at_s, first_s < end_s))
    return waits


def _delivery(profile: Profile, datagrams: list[_Datagram]) -> float:
    """The share of the datagrams that were written while there was a path."""
    spans = [(begin_s, end_s) for begin_s, end_s, hops in profile.steps() if hops > 0]
    offered = [one for one in datagrams if any(begin_s <= one.written_s < end_s for begin_s, end_s in spans)]
    return sum(one.received_s is not None for one in offered) / len(offered) if offered else 0.0


def _overhead_bytes(run: RunDirectory) -> int:
    """MAC header and FCS of a data frame in the air log: the least by which an attempt exceeds the packet that was queued."""
    rows = run.air.filter(pl.col("frame").is_in(["data", "bcast"]) & pl.col("packet").is_not_null())
    queued = rows.filter(pl.col("event") == "enqueue").select("station", "packet", queued="bytes")
    both = rows.filter(pl.col("event") == "tx").join(queued, on=["station", "packet"])
    return both.select((pl.col("bytes") - pl.col("queued")).min()).item() or 0


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
