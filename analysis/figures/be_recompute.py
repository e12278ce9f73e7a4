"""TCP throughput in each second while a relay leaves and another arrives, after the bit-errors paper, figures 7 and 10.

One panel per variant, one line per run (opaque for the first seed), and ns-2.35's three runs dashed. Dotted verticals: the times
at which the stations start to move. With the positions as printed, other routes exist from the start, and nothing stops.
Rearranged, the path over the leaving station is the only one until the other is in range. Between the shaded edges, computed from
the movement and a range of 250 m, no path exists; silence beyond them is caused by the protocol and by TCP.
"""

import csv
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from analysis.drawing import style
from analysis.references import load_reference
from record.errors import RunFileError
from record.files import plain_text, read_text
from record.found_runs import find_runs

RUN_FILES = True  # it draws from them
RANGE_M = 250.0
STEP_S = 0.1


def draw(out_dir: Path) -> list[Path]:
    """Draw from the metrics.json of the runs below `out_dir`; returns the files written."""
    runs = _runs(out_dir)
    if not runs:
        raise RunFileError(f"{out_dir}: no analysed runs; run the experiment first (`manet run be-recompute`)")
    variants = list(dict.fromkeys(run["variant"] for run in runs))
    height = 0.7 + 1.9 * len(variants)
    with style.page(out_dir, "be_recompute", height, nrows=len(variants), sharex=True, sharey=True) as (axes, written):
        for one, variant in zip(axes, variants, strict=True):
            _draw_variant(one, variant, [run for run in runs if run["variant"] == variant])
        axes[-1].set_xlabel("time since the start of the run (s)")
    return written


def _runs(out_dir: Path) -> list[dict[str, Any]]:
    """Complete runs with a series, in the order of variant and seed."""
    found = []
    for run_dir in find_runs(out_dir).runs:
        if not (run_dir / "metrics.json").exists():
            continue
        run, flow = (json.loads(read_text(run_dir / name)) for name in ("run.json", "metrics.json"))
        flow = flow["flows"].get("flow1", {})
        if run["status"] == "complete" and flow.get("acked_bps_by_second"):
            found.append({"variant": run["variant"], "seed": run["seed"], "dir": run_dir, "flow": flow, "run": run})
    return sorted(found, key=lambda run: (run["variant"], run["seed"]))


def _draw_variant(axes: Axes, variant: str, runs: list[dict[str, Any]]) -> None:
    mark = style.of_variant(variant)
    scenario = json.loads(read_text(runs[0]["dir"] / "scenario.json"))
    _draw_ns2(axes, variant)
    for number, run in enumerate(runs):
        begin_s = _begin_s(run, scenario)
        values = [value / 1e3 for value in run["flow"]["acked_bps_by_second"]]
        axes.step([begin_s + second for second in range(len(values) + 1)], [*values, values[-1]], where="post",
                  color=mark.colour, linewidth=1.1, alpha=1 if number == 0 else 0.35,
                  label="this testbed" if number == 0 else None)  # fmt: skip
    for begin_s, end_s in gaps(scenario):
        axes.axvspan(begin_s, end_s, color="#eeeeee", linewidth=0, zorder=0)
    for event_s in sorted({event["at"] for event in scenario["events"]}):
        axes.axvline(event_s, color=style.BLACK, linewidth=0.8, linestyle=":")
    axes.set_title(mark.name, loc="left")
    axes.set_ylabel("acknowledged (kbit/s)")
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, scenario["flows"][0]["start"] + scenario["warmup"] + scenario["duration"])
    axes.legend(loc="lower right", ncols=2)


def _draw_ns2(axes: Axes, variant: str) -> None:
    reference = load_reference("ns2", "recompute")
    layout = "rearranged" if variant.startswith("rearranged") else variant
    if all(row["variant"] != layout for row in reference.rows):
        return
    for seed in ("1", "2", "3"):
        seconds, rates = reference.series("second", "acked_kbps", variant=layout, seed=seed)
        axes.step(seconds, rates, where="pre", color=style.GREY, linewidth=0.7, linestyle="--",
                  label="ns-2.35" if seed == "1" else None)  # fmt: skip


def _begin_s(run: dict[str, Any], scenario: dict[str, Any]) -> float:
    """Time of the flow's first packet on the clock of the events: from events.csv, which has both clocks."""
    path = run["dir"] / "events.csv"
    if not path.exists():
        return float(scenario["flows"][0]["start"])
    with plain_text(path) as file:
        first = next(csv.DictReader(file))
    traffic_s = float(first["t_s"]) - float(first["at_s"])
    return (run["flow"]["start_ns"] - run["run"]["epoch_ns"]) / 1e9 - traffic_s


def gaps(scenario: dict[str, Any]) -> list[tuple[float, float]]:
    """Times without a path between the flow's ends, from the positions and the moves alone."""
    names = [place["name"] or f"sta{number}" for number, place in enumerate(scenario["positions"], start=1)]
    start = {name: tuple(place["at"][:2]) for name, place in zip(names, scenario["positions"], strict=True)}
    moves = {event["move"]: event for event in scenario["events"] if "move" in event}
    flow = scenario["flows"][0]
    length_s = flow["start"] + scenario["warmup"] + scenario["duration"]
    times = [step * STEP_S for step in range(round(length_s / STEP_S) + 1)]
    apart = [not _connected({n: _at(start[n], moves.get(n), t) for n in names}, flow["from"], flow["to"]) for t in times]
    changes = [times[0]] if apart[0] else []
    changes += [time for time, (before, now) in zip(times[1:], pairwise(apart), strict=True) if before != now]
    changes += [times[-1]] if apart[-1] else []
    return list(zip(changes[::2], changes[1::2], strict=True))


def _at(start: tuple[float, float], move: dict[str, Any] | None, time_s: float) -> tuple[float, float]:
    if move is None or time_s <= move["at"]:
        return start
    to, speed = move["to"], move.get("speed")
    way_m = ((to[0] - start[0]) ** 2 + (to[1] - start[1]) ** 2) ** 0.5
    share = 1.0 if speed is None or not way_m else min(1.0, (time_s - move["at"]) * speed / way_m)
    return start[0] + share * (to[0] - start[0]), start[1] + share * (to[1] - start[1])


def _connected(places: dict[str, tuple[float, float]], source: str, target: str) -> bool:
    reached, waiting = {source}, [source]
    while waiting:
        x, y = places[waiting.pop()]
        near = [n for n, (u, v) in places.items() if n not in reached and (u - x) ** 2 + (v - y) ** 2 <= RANGE_M**2]
        reached.update(near)
        waiting += near
    return target in reached
