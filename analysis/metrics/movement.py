"""Metrics of a flow that follow from the run's movement alone: hops of the shortest path over time, and the expected throughput.

mobility/connectivity.py computes the paths. The yardstick is Holland and Vaidya's expected throughput
(analysis/metrics/expected.py) with the chain curve that the campaign stored for the cell (`curve.json` in its folder,
formats/results.md).
"""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from analysis.captures.rundir import RunDirectory
from analysis.metrics.checks import Check, Unmeasured
from analysis.metrics.expected import Curve, expected
from analysis.metrics.radio_range import range_of_run
from mobility import connectivity
from mobility.connectivity import Links, Profile
from mobility.trace import TraceError
from record.errors import RecordError
from record.files import read_text
from record.movement import MOVED, read_trace, trace_path
from record.records import model_s
from record.scenario import RunFlow
from scenarios.movement import Still
from traffic.shared.kind import Metric

MOVEMENT = (
    Metric("expected_bps", "bit/s", "expected throughput: the chain curve of the cell (`curve.json`) over the hops of the "
           "shortest path in the window", always=False),
    Metric("percent_of_expected", "%", "100 `acked_bps` / `expected_bps`", column="percent", always=False),
    Metric("partitioned", "1", "share of the window without any path between the ends, by the positions", always=False),
    Metric("mean_hops", "hops", "mean hops of the shortest path while there is one; `null` without any", always=False),
    Metric("path_changes", "changes", "how often the shortest path changed", always=False),
)  # fmt: skip
CURVE = "curve.json"
NOT_IN_MOVEMENT = ("power", "cut", "link")  # events after which positions no longer determine the links


def movement_metrics(run: RunDirectory, flow: RunFlow, begin_ns: int, end_ns: int, acked_bps: float | None) -> dict[str, Any]:
    """MOVEMENT of the flow between two instants (CLOCK_REALTIME, ns).

    Empty if nothing moves, if positions do not determine the links (`undecided`), or if the radio has no single range; without a
    curve the first two are left out.
    """
    profile = profile_of(run, flow, begin_ns, end_ns)
    if profile is None:
        return {}
    seconds = profile.seconds()
    whole_s = sum(seconds.values())
    found: dict[str, Any] = {"partitioned": seconds.get(0, 0.0) / whole_s, "path_changes": len(profile.path_changes_s())}
    found["mean_hops"] = None if set(seconds) == {0} else profile.mean_hops
    curve = read_curve(run.path.parent / CURVE)
    if curve is not None:
        expected_bps = expected(seconds, curve, beyond=True) * 1e3
        found["expected_bps"] = expected_bps
        if expected_bps > 0 and acked_bps is not None:
            found["percent_of_expected"] = 100 * acked_bps / expected_bps
    return found


def profile_of(run: RunDirectory, flow: RunFlow, begin_ns: int, end_ns: int) -> Profile | None:
    """Hops of the flow's shortest path between two instants; None if the movement does not determine them."""
    path = trace_path(run.path)
    if _still(run) or not path.exists() or undecided(run):
        return None
    range_m = range_of_run(run.path, run.medium)
    if range_m is None:
        return None
    try:
        begin_s, end_s = ((instant - run.epoch_ns) / 1e9 for instant in (begin_ns, end_ns))
        begin_s = max(0.0, begin_s)
        links = _links(path, path.stat().st_mtime_ns, range_m, max(end_s, model_s(run.path)))
        if not {flow.source, flow.target} <= set(links.stations):
            return None
        if not begin_s < end_s:
            raise TraceError(f"{path}: nothing lies between {begin_s:g} s and {end_s:g} s; did the flow begin?")
        return links.between(begin_s, end_s).hops(flow.source, flow.target)
    except TraceError as problem:
        raise RecordError(str(problem)) from None


@lru_cache(maxsize=1)
def _links(path: Path, _written_ns: int, range_m: float, end_s: float) -> Links:
    """The links of a run's movement, which all of its flows have in common."""
    return connectivity.links(read_trace(path), range_m, 0.0, end_s)


def _still(run: RunDirectory) -> bool:
    return isinstance(run.scenario.mobility, Still)


def undecided(run: RunDirectory) -> str:
    """Reason why the run's movement does not determine the throughput that its flows could get; empty if it does."""
    for row in run.events:
        if row["event"] in NOT_IN_MOVEMENT:
            return f"{row['event']} of {row['station']} at {row['t_s']} s (events.csv) is not in the movement"
        if row["event"] == "move" and not (run.path / MOVED).exists():
            return f"{row['station']} was moved at {row['t_s']} s (events.csv), and there is no {MOVED}"
    return ""


def expectation(run: RunDirectory, flow: RunFlow) -> Check | None:
    """A check that fails if there is a curve but the movement does not determine the expected throughput."""
    if _still(run) or not (run.path.parent / CURVE).exists() or not undecided(run):
        return None
    return Unmeasured(f"{flow.name} expected", False, f"no expected throughput: {undecided(run)}")


def read_curve(path: Path) -> Curve | None:
    """A chain curve (kbit/s by hops); None without the file."""
    if not path.exists():
        return None
    try:
        document = json.loads(read_text(path))
        return Curve({int(hops): float(value) for hops, value in document["values"].items()}, str(path))
    except (ValueError, KeyError, TypeError):
        raise RecordError(f"{path}: not a chain curve; run the experiment again with --resume to regenerate it") from None
