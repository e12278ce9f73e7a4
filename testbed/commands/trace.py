"""`manet trace`: a movement as numbers, as a profile figure, or converted to another file format (mobility/)."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.commands.options import add_verb, metres, new_file, picture, positive, written

if TYPE_CHECKING:
    from mobility.connectivity import Links, Profile
    from mobility.trace import Trace
    from scenarios.scenario import Scenario

EXAMPLES = """
  ./manet trace mobility/patterns/p06.tcl --hops sta1 sta2 --profile p06.png
  ./manet trace examples/walk.gpx --convert walk.csv
  ./manet trace results/NAME/CELL/seed-1    the movement of a run
  ./manet trace random-waypoint --set speed=20 --set nodes=50 --seed 3
  ./manet trace group --set mobility.groups=2 --convert groups.tcl
  ./manet trace experiments/scenarios/walk.toml --json

The name of a model stands for 30 stations in 1500 x 300 m for 900 s at 10 m/s;
--set takes every key of a scenario.
"""
MODEL_DEFAULTS = {"topology": "random", "nodes": 30, "area": [1500, 300], "warmup": 0, "duration": 900}
RANGE_M = 250.0


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "trace", "summarise a movement: speeds, links, hops, partitions; convert it", EXAMPLES)
    parser.add_argument(
        "what", metavar="FILE|RUN|MODEL", help="a movement file, a run's folder, a scenario (.toml), or a mobility model"
    )
    parser.add_argument(
        "--hops", metavar=("FROM", "TO"), nargs=2, help="two stations: when their path breaks (default: the first flow's)"
    )
    parser.add_argument(
        "--range", metavar="METRES", type=metres, default=RANGE_M, dest="range_m", help="range of the radio (default: 250)"
    )
    parser.add_argument("--seed", metavar="N", type=positive, default=1, help="of a model or a scenario (default: 1)")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], dest="overrides", help="a key of the scenario")
    parser.add_argument("--convert", metavar="FILE", type=new_file, help="write it as .csv, .tcl, .ns_movements or .movements")
    parser.add_argument(
        "--profile", metavar="FILE.png", type=picture, nargs="?", const=Path("profile.png"),
        help="plot hops over time between the two stations; a PDF goes into the same folder (default: profile.png)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the answer as one JSON object")


def run(options: argparse.Namespace) -> int:
    """Print the summary of the movement, and write what the options ask for."""
    import json

    from mobility import connectivity, files
    from mobility.trace import TraceError
    from record.files import write_atomic
    from testbed.errors import UsageError

    try:
        trace, window_s, ends, remark = _movement(options)
        links = connectivity.links(trace, options.range_m, *window_s)
        ends = tuple(options.hops or ends or (links.stations[0], links.stations[-1]))
        profile = links.hops(*ends) if ends[0] != ends[1] or options.hops else None
        answer = _answer(trace, links, profile, options.range_m)
        answer["remark"], answer["notes"] = remark or None, list(trace.notes)
        if options.convert:
            for path, text in files.texts(trace, options.convert).items():
                write_atomic(path, text)
            answer["written"] = [str(options.convert)]
    except TraceError as problem:
        raise UsageError(str(problem)) from None
    except OSError as problem:
        where = f"{options.convert}: cannot be written ({problem.strerror})"
        raise UsageError(f"{where}; give a name in an existing folder") from None
    if options.profile:
        answer["written"] = answer.get("written", []) + _draw(profile, options)
    print(json.dumps(answer, indent=1) if options.json else "\n".join(_lines(answer, bool(options.hops))))
    return 0


def _movement(options: argparse.Namespace) -> tuple["Trace", tuple[float, float | None], tuple[str, str] | None, str]:
    """The movement, the window to summarise (s), the ends of the first flow (or None), and a note for the user."""
    from mobility import files
    from record.movement import recorded
    from scenarios.definition import load_scenario
    from scenarios.movement import MODEL_NAMES
    from testbed.errors import UsageError
    from testbed.stages.movement import trace_of

    path = Path(options.what)
    if options.what in MODEL_NAMES:
        scenario = _scenario_of(options.what, options.overrides)
    elif path.exists() and not path.is_file() and not path.is_dir():
        raise UsageError(f"{path}: is not a regular file; give the path of a movement file")
    elif path.suffix == ".toml":
        scenario = load_scenario(path, options.overrides)
    elif options.overrides:
        raise UsageError(f"--set {options.overrides[0]}: {path} is a movement and no scenario; leave --set out")
    elif not files.is_movement(path.name) and not path.exists():
        raise UsageError(
            f'"{options.what}" is neither a model nor a file; give one of {", ".join(MODEL_NAMES)} or a file\'s path'
        )
    elif of_run := recorded(path):
        return of_run[0], (0.0, None), None, of_run[1]
    elif path.is_dir():
        raise UsageError(f"{path}: is not the folder of a run that has ended; give the path of a movement file")
    else:
        return files.read(path), (0.0, None), None, ""
    begin_s = scenario.traffic_at or 0.0
    trace = trace_of(scenario, options.seed)
    return trace, (begin_s, begin_s + scenario.traffic_seconds()), _first_flow(scenario), ""


def _scenario_of(model: str, settings: list[str]) -> "Scenario":
    """The scenario that a model's bare name stands for, with `--set` applied."""
    from scenarios.definition import scenario_of
    from scenarios.keys import Keys

    raw: dict[str, Any] = {**MODEL_DEFAULTS, "mobility": model, **({} if model in ("static", "schedule") else {"speed": 10})}
    if any(setting.startswith("mobility.speed=") for setting in settings):
        raw.pop("speed", None)
    return scenario_of(Keys.of_script(raw, "manet trace").set(settings))


def _first_flow(scenario: "Scenario") -> tuple[str, str] | None:
    stations = set(scenario.station_names())
    if not scenario.flows:
        return None
    flow = scenario.flows[0]
    return (flow.source, flow.target) if {flow.source, flow.target} <= stations else None


def _answer(trace: "Trace", links: "Links", profile: "Profile | None", range_m: float) -> dict[str, Any]:
    from statistics import median

    from mobility.connectivity import disagreeing
    from mobility.files.ns2 import god_lines
    from mobility.summary import summary

    speeds = summary(trace, links.begin_s, links.end_s)
    gods = god_lines(trace)
    lasting = [contact.end_s - contact.begin_s for contact in links.contacts]
    answer: dict[str, Any] = {
        "name": trace.name, "stations": speeds.stations, "begin_s": speeds.begin_s, "end_s": speeds.end_s,
        "stated_end_s": trace.end_s, "stated_mean_mps": trace.mean_mps,
        "speeds_mps": {"least": speeds.slowest_mps, "most": speeds.fastest_mps, "mean_over_time": speeds.mean_mps},
        "moving_share": speeds.moving_share, "jumps": speeds.jumps, "area_m": speeds.area,
        "range_m": range_m, "link_changes": links.changes, "median_contact_s": median(lasting) if lasting else None,
        "network": {"partitioned_share": links.partitioned_share(), "mean_hops": _number(links.mean_hops())},
        "god_lines": {"lines": len(gods), "disagreeing": len(disagreeing(links, gods))},
    }  # fmt: skip
    if profile is not None:
        answer["path"] = {
            "ends": [profile.source, profile.target],
            "shares": {str(hops): share for hops, share in profile.shares().items()},
            "mean_hops": _number(profile.mean_hops),
            "partitions": len(profile.partitions()),
            "longest_partition_s": max((b - a for a, b in profile.partitions()), default=0.0),
            "path_changes": len(profile.path_changes_s()),
            "outages": _outages(profile),
        }
    return answer


def _outages(profile: "Profile") -> list[dict[str, float | None]]:
    """Times at which the path breaks (None: there is none from the start) and at which it is restored (None: never)."""
    first_s, last_s = float(profile.times_s[0]), float(profile.times_s[-1])
    return [
        {"breaks_s": a if a > first_s else None, "back_s": b if b < last_s else None, "lasts_s": b - a}
        for a, b in profile.partitions()
    ]


def _number(value: float) -> float | None:
    return None if value != value else value


def _lines(answer: dict[str, Any], with_outages: bool) -> list[str]:
    speeds, network, gods = answer["speeds_mps"], answer["network"], answer["god_lines"]
    x0, x1, y0, y1 = answer["area_m"]
    window = f"{answer['end_s'] - answer['begin_s']:g} s" + (f" from {answer['begin_s']:g} s on" if answer["begin_s"] else "")
    moving = "no station moves"
    if speeds["least"] is not None:
        moving = f"{speeds['least']:.3g} to {speeds['most']:.3g} m/s under way, {speeds['mean_over_time']:.3g} m/s over the "
        moving += f"whole time; under way {_percent(answer['moving_share'])} of it"
    lines = [f"{answer['name']}: {answer['stations']} stations, {window}"]
    lines.append(_line("speeds", moving + (f"; {answer['jumps']} jumps" if answer["jumps"] else "")))
    lines.append(_line("area", f"x {x0:g} to {x1:g} m, y {y0:g} to {y1:g} m"))
    contact = answer["median_contact_s"]
    lasting = f"; half of the contacts last longer than {contact:.3g} s" if contact is not None else ""
    lines.append(_line(f"links, {answer['range_m']:g} m", f"{answer['link_changes']} changes{lasting}"))
    hops = f"; shortest paths {network['mean_hops']:.2f} hops, all pairs" if network["mean_hops"] is not None else ""
    lines.append(_line("network", f"partitioned {_percent(network['partitioned_share'])} of the time{hops}"))
    if gods["lines"]:
        lines.append(_line("god lines", f"{gods['lines']}, of which {gods['disagreeing']} disagree with the movement"))
    if "path" in answer:
        lines += _path_lines(answer["path"])
        lines += _outage_lines(answer["path"]) if with_outages else []
    lines += [_line("note", note) for note in [answer["remark"], *answer["notes"]] if note]
    return lines + ([written(answer["written"])] if answer.get("written") else [])


def _path_lines(path: dict[str, Any]) -> list[str]:
    from testbed.columns import NO_BREAK

    none = path["shares"].get("0", 0.0)
    parted = f"no path {_percent(none)} of the time"
    if path["partitions"]:
        outages = "in one outage of" if path["partitions"] == 1 else f"in {path['partitions']} outages of at most"
        parted += f", {outages} {path['longest_partition_s']:.3g} s"
    mean = f"; {path['mean_hops']:.2f} hops while there is one" if path["mean_hops"] is not None else ""
    shares = ", ".join(f"{hops}:{NO_BREAK}{_percent(share)}" for hops, share in path["shares"].items() if hops != "0")
    lines = [_line(" to ".join(path["ends"]), parted + mean)]
    return [*lines, _line("hops", shares or "never any"), _line("path changes", str(path["path_changes"]))]


def _outage_lines(path: dict[str, Any]) -> list[str]:
    """One line each."""
    if not path["outages"]:
        return [_line("outages", "none: the path never breaks")]
    lines = [_line("outages", f"{len(path['outages'])}, the longest {path['longest_partition_s']:.4g} s")]
    for outage in path["outages"]:
        breaks = "there is no path at the start" if outage["breaks_s"] is None else f"breaks at {outage['breaks_s']:.3f} s"
        back = "not back by the end" if outage["back_s"] is None else f"back at {outage['back_s']:.3f} s"
        lines.append(_line("", f"{breaks}, {back} ({outage['lasts_s']:.4g} s)"))
    return lines


def _line(name: str, text: str) -> str:
    from testbed.columns import hanging

    return hanging(f"  {name:<16} ", text)


def _percent(share: float) -> str:
    from testbed.columns import NO_BREAK

    return f"{100 * share:.3g}{NO_BREAK}%"


def _draw(profile: "Profile | None", options: argparse.Namespace) -> list[str]:
    from analysis.drawing.profiles import draw_profile
    from testbed.errors import UsageError

    if profile is None:
        raise UsageError(f"--profile {options.profile}: one station alone has no path to draw; give a movement of two or more")
    note = f"shortest path at a range of {options.range_m:g} m; ticks: the path changes; shaded: no path"
    return [str(path) for path in draw_profile(profile, options.profile, Path(options.what).name, note)]
