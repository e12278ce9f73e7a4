"""Stations and their links as a NetworkGraph of NetJSON (netjson.org/rfc.html, section 4).

`protocol` is the routing protocol of the scenario by its name there (`aodv`, `static`, `none`); its version is not recorded.
`metric` is that of `cost`, whatever the protocol itself counts.

A node is a station: its name, addresses and, in `properties`, its position `x`, `y`, `z` (m). Each direction of a pair is a
link of its own. A pair within the radio's range has `rssi_dbm`, the received power by the propagation model. A pair of a run
that exchanged unicast data frames has what the air log says of the whole run: `frames`, `delivery` (the share that arrived)
and the median of the received power. `cost` is ETX = 1 / (delivery there x delivery back) (De Couto, MobiCom 2003), and 1
where one of both is unknown. Links without a frame that arrived are left out.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from analysis.captures.rundir import RunDirectory
from analysis.maps.past_snapshot import at_model_s, off_at
from analysis.metrics.radio_range import kernel_rates_of, radio_of, range_of, range_of_run, reach
from record.files import atomic_file
from scenarios.radios import dbm

SUFFIX = ".json"
Ends = tuple[str, str]
Place = tuple[float, float, float]


@dataclass(frozen=True)
class Measured:
    """The unicast data frames of one direction."""

    frames: int
    delivered: int
    rssi_dbm: float | None

    @property
    def delivery(self) -> float:
        """The share that arrived, 0 to 1."""
        return self.delivered / self.frames


def write(graph: Mapping[str, Any], out: Path) -> None:
    """The graph as a file."""
    with atomic_file(out) as file:
        file.write(json.dumps(graph, indent=1, allow_nan=False) + "\n")


def of_run(run: RunDirectory, at_s: float = 0.0) -> dict[str, Any]:
    """The network `at_s` seconds after the start of the traffic, with the links of the whole run. RunFileError for a time outside
    of the run."""
    model_s = at_model_s(run, at_s)
    places: dict[str, Place] = {entry["name"]: tuple(entry["position"]) for entry in run.medium["stations"]}
    if (moved := run.trace) is not None:
        places |= {name: moved.position(name, model_s) for name in moved.stations()}
    addresses = {name: sorted(run.addresses(name)) for name in places}
    within = range_of_run(run.path, run.medium)
    placed = run.scenario.topology != "unplaced"
    return graph(
        run.medium, places, addresses, within, run.scenario.protocol, placed=placed, off=off_at(run, model_s),
        measured=measured_links(run.air),
    )  # fmt: skip


def of_medium(medium: Mapping[str, Any], addresses: Mapping[str, list[str]], protocol: str, *, placed: bool) -> dict[str, Any]:
    """The network of a medium.json at its start. `protocol`: of the routing."""
    places: dict[str, Place] = {entry["name"]: tuple(entry["position"]) for entry in medium["stations"]}
    return graph(medium, places, addresses, range_of(dict(medium)), protocol, placed=placed)


def graph(
    medium: Mapping[str, Any], places: Mapping[str, Place], addresses: Mapping[str, list[str]], range_m: float | None,
    protocol: str, *, placed: bool = True, off: frozenset[str] = frozenset(), measured: Mapping[Ends, Measured] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The document. `range_m`: of the radio; None: links are the measured ones alone. `placed`: stations have positions."""
    frames = measured or {}
    strong = {} if range_m is None else _powers(medium, {name: at for name, at in places.items() if name not in off}, range_m)
    links = [*strong, *(ends for ends, of in frames.items() if of.delivered and ends not in strong)]
    order = {name: number for number, name in enumerate(places)}
    links = [ends for ends in links if ends not in frames or frames[ends].delivered]
    return {
        "type": "NetworkGraph", "protocol": protocol, "version": None, "metric": "ETX",
        "nodes": [
            {"id": name, "label": name, "local_addresses": addresses.get(name, []),
             "properties": {"x": at[0], "y": at[1], "z": at[2]} if placed else {}}
            for name, at in places.items()
        ],
        "links": [
            {"source": ends[0], "target": ends[1], "cost": _etx(frames.get(ends), frames.get(ends[::-1])),
             "properties": _properties(strong.get(ends), frames.get(ends))}
            for ends in sorted(links, key=lambda ends: (order[ends[0]], order[ends[1]]))
        ],
    }  # fmt: skip


def measured_links(air: pl.DataFrame) -> dict[Ends, Measured]:
    """What the air log says of each pair that exchanged unicast data frames, each MPDU of an aggregate and each attempt."""
    data = air.filter(pl.col("event").eq("tx") & pl.col("frame").eq("data") & pl.col("peer").ne("*"))
    power = pl.col("power_dbm").median() if "power_dbm" in data.columns else pl.lit(None, pl.Float64)
    rows = data.group_by("station", "peer").agg(pl.len(), pl.col("fate").eq("delivered").sum().alias("good"), power.alias("dbm"))
    return {(str(a), str(b)): Measured(frames, good, dbm) for a, b, frames, good, dbm in rows.iter_rows()}


def _powers(medium: Mapping[str, Any], places: Mapping[str, Place], range_m: float) -> dict[Ends, float | None]:
    """The directed links within the range, with the power by the propagation model (dBm)."""
    names = list(places)
    pairs = [(a, b) for at, a in enumerate(names) for b in names[at + 1 :]]
    apart = {pair: math.dist(places[pair[0]][:2], places[pair[1]][:2]) for pair in pairs}
    near = {pair: metres for pair, metres in apart.items() if metres <= range_m}
    radio = radio_of(dict(medium))
    if radio is None or not near:
        return {}
    lengths = sorted(set(near.values()))
    found = reach(radio, medium.get("propagation", {}), *lengths, kernel_rates=kernel_rates_of(dict(medium)))["power_w"]
    powers = {metres: round(dbm(watts), 2) if watts else None for metres, watts in zip(lengths, found, strict=True)}
    return {ends: powers[metres] for pair, metres in near.items() for ends in (pair, pair[::-1])}


def _properties(power_dbm: float | None, frames: Measured | None) -> dict[str, float]:
    seen = {} if frames is None else {"frames": frames.frames, "delivery": round(frames.delivery, 6)}
    rssi = power_dbm if frames is None or frames.rssi_dbm is None else frames.rssi_dbm
    return seen if rssi is None else {"rssi_dbm": rssi, **seen}


def _etx(there: Measured | None, back: Measured | None) -> float:
    if there is None or back is None or not there.delivered or not back.delivered:
        return 1.0
    return round(1 / (there.delivery * back.delivery), 6)
