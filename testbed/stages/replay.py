"""A movement file replayed on a running network.

The medium receives all rows ahead of their time (`follow` of formats/sockets.md) and computes positions from them, as from the
trace of the run: lateness of this process or its host moves no station. The earlier movement ends at the file's time 0; stations
that the file does not name then stand still. At its end the medium writes the actual positions to moved.csv.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keys.toml_lines import Path as KeyPath
from mobility.trace import NS_PER_S, Trace, TraceError
from scenarios.movement import Replay
from scenarios.movement_files import replayed
from scenarios.refusal import validated
from scenarios.scenario import Scenario
from testbed.errors import RunError, UsageError
from testbed.stages.control import MediumControl
from testbed.stages.medium import Medium

LEGS_AT_ONCE = 200  # some 20 KiB of the 64 KiB that a line may have
LEADS_S = (0.3, 1.0, 4.0)  # lead of time 0; the next value if the host was too slow for the one before


@dataclass(frozen=True)
class Playing:
    """A replay in progress. `begin_ns` is the model time of the file's time 0, `last_s` the time of the last row."""

    file: str
    begin_ns: int
    last_s: float
    stations: int
    legs: int


def movement(path: Path, scenario: Scenario, **pace: float | str) -> Trace:
    """The file's movement of the scenario's stations, at `factor` times its pace or at a mean `speed` (m/s)."""
    settings = validated(Replay, {"model": "file", "file": str(path), "at": "traffic", **pace}, _refusal)
    try:
        return replayed(settings, path, scenario.station_names(), 0.0)
    except TraceError as problem:
        raise UsageError(str(problem)) from None


def _refusal(path: KeyPath, text: str) -> UsageError:
    return UsageError(f"replay: {path[-1]}: {text}" if path else f"replay: {text}")


def play(
    control: Medium | MediumControl, trace_at: Trace | Callable[[int], Trace], area: tuple[float, float] | None = None
) -> Playing:  # fmt: skip
    """Send the medium the whole movement, which may depend on the model time of its time 0; returns shortly before it begins.
    UsageError if it leaves `area`; RunError if the host is too slow for all LEADS_S."""
    for lead_s in LEADS_S:
        begin_ns = control.ask("status")["model_ns"] + round(lead_s * NS_PER_S)
        trace = trace_at(begin_ns) if callable(trace_at) else trace_at
        try:
            trace.check(area)
        except TraceError as problem:
            raise UsageError(str(problem)) from None
        rows = _rows(trace)
        control.ask("halt", at_ns=begin_ns)
        try:
            for first in range(0, len(rows), LEGS_AT_ONCE):
                some = rows[first : first + LEGS_AT_ONCE]
                control.ask("follow", legs=[{**row, "at_ns": begin_ns + row["at_ns"]} for row in some])
        except RunError as problem:
            control.ask("halt")
            if "ahead of their time" not in str(problem):
                raise
            continue
        return Playing(trace.name, begin_ns, rows[-1]["at_ns"] / NS_PER_S, len(trace.stations()), len(rows))
    text = f"the host took more than {LEADS_S[-1]:g} s to hand it over; stations stand still; try again when it is idle"
    raise RunError(f"{trace.name}: {text}")


def halt(control: Medium | MediumControl) -> None:
    """Stop all stations at their positions."""
    control.ask("halt")


def _rows(trace: Trace) -> list[dict[str, Any]]:
    """The legs in the medium's format, in order of time from the file's 0. A jump has no speed, nor has the first leg of a
    station, which places it."""
    rows: list[dict[str, Any]] = []
    placed = set()
    for leg in sorted(trace.legs, key=lambda leg: leg.start_s):
        row = {"at_ns": round(leg.start_s * NS_PER_S), "station": leg.station, "position": list(leg.to)}
        if leg.station in placed and math.isfinite(leg.speed_mps):
            row["speed_mps"] = leg.speed_mps
        placed.add(leg.station)
        rows.append(row)
    return rows
