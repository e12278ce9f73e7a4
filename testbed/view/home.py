"""The first page of `manet view` where no run is named: the runs under way, the last ones of the folder of results, and the
ready-made scenarios, each with a small picture.

A run has its path below the results as its name, one outside of them its whole path; a scenario has `NAME:`, and its runs
`NAME:CELL/seed-N`. Pictures are of small files: places, flows, and rates that an analysis has measured already (metrics.json).
"""

import textwrap
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from record import records
from record.files import read_object
from record.found_runs import ASIDE, folders_of_runs, title_of
from testbed.campaigns import library
from testbed.campaigns.experiment import load
from testbed.errors import UsageError, shortened
from testbed.runs.under_way import runs_under_way
from testbed.view.actions import Actions
from testbed.view.live import LiveRun
from testbed.view.open_runs import OpenRuns
from testbed.view.plan import Plan, free_folder
from testbed.view.planned import PlannedRun
from testbed.view.recorded import RecordedRun
from testbed.view.site import KEPT, Site
from testbed.view.viewed import FirstPage, Runs, Viewed, entry_of

SCENARIOS = library.FOLDER / "scenarios"
RECENT = 12  # runs
SEED = 1  # of the picture of a scenario
KEPT_PICTURES = 200
MAX_TEXT = 200  # characters about a scenario


@dataclass
class Home:
    """`folder`: of the results; `further`: the runs of the editor beside it, which exists only with `control`."""

    folder: Path
    control: bool
    further: Runs | None = None
    title: str = "runs and scenarios"
    _open: OpenRuns[LiveRun | RecordedRun] = field(default_factory=lambda: OpenRuns(KEPT))
    _plans: dict[str, Plan] = field(default_factory=dict)
    _outside: set[Path] = field(default_factory=set)  # runs that were under way elsewhere
    _pictures: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)  # by name and time of the file
    _turn: threading.Lock = field(default_factory=threading.Lock)
    # its thread is made before the server's, which are at nice 10 (site.py), as are those that they make
    _starter: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "start"))

    def __post_init__(self) -> None:
        self._starter.submit(lambda: None).result()

    def viewed(self, name: str | None) -> Viewed:
        """The run of this name; without one the first page. Raises UsageError."""
        if name is None:
            return FirstPage(self.title, self.contents, self.picture)
        runs, inner, _ = self._part(name)
        return runs.viewed(inner)

    def about(self, name: str | None) -> dict[str, Any]:
        """As of the part that has the run; its name is that of this page."""
        if name is None:
            return {"control": self.control}
        runs, inner, before = self._part(name)
        about = runs.about(inner)
        return about | ({"name": before + about["name"]} if "name" in about else {})

    def act(self, name: str | None, action: object) -> dict[str, Any]:
        """As of the part that has the run. Of the scenarios one runs at a time. Raises UsageError, RunError."""
        if name is None:
            raise UsageError("name a run or a scenario (run=); /api/home lists them")
        runs, inner, before = self._part(name)
        if isinstance(action, dict) and action.get("op") == "start" and before:
            others = [title for title, plan in self._plans.items() if plan is not runs and plan.is_running]
            if others:
                raise UsageError(f"{others[0]} is under way; stop it, or wait for its end")
        return runs.act(inner, action)

    def contents(self) -> dict[str, Any]:
        """`/api/home`: `results`, `control`, `editor`; `under_way` and `runs` (the last ones; `more`: how many others there are),
        as `/api/campaign` with `title`; `scenarios`: `path`, `name`, `text`."""
        going = [Path(state.directory).resolve() for state in runs_under_way()]
        self._outside |= {run for run in going if not run.is_relative_to(self.folder)}
        found = sorted((run for run in folders_of_runs(self.folder) if run not in going), key=_written_ns, reverse=True)
        return {
            "results": str(self.folder), "control": self.control, "editor": self.further is not None,
            "under_way": [self._entry(run) | {"status": "under way"} for run in going],
            "runs": [self._entry(run) for run in found[:RECENT]], "more": len(found) - len(found[:RECENT]),
            "scenarios": [
                {"path": f"{name}:", "name": name, "text": text_of(path)} for name, path in self._scenarios().items()
            ],
        }  # fmt: skip

    def picture(self, name: str) -> dict[str, Any]:
        """`/api/picture`: what a small picture of a run or a scenario draws. Raises UsageError, RecordError."""
        scenario = self._scenarios().get(name.removesuffix(":")) if name.endswith(":") else None
        run = None if scenario else self._run(name)
        if scenario is None and run is None:
            raise UsageError(f"of={shortened(name)}: is no run or scenario of this page; /api/home lists them")
        key = name, _written_ns(run) if run is not None else 0
        with self._turn:
            if key not in self._pictures:
                self._pictures[key] = of_run(run) if run is not None else of_scenario(name, scenario or Path())
                while len(self._pictures) > KEPT_PICTURES:
                    del self._pictures[next(iter(self._pictures))]
            return self._pictures[key]

    def listing(self) -> list[dict[str, Any]] | None:
        """None: the first page has more than a list."""
        return None

    def read_ahead(self) -> None:
        """Do nothing: no run is chosen yet."""

    def close(self) -> None:
        """End the run under way that was started here, in order."""
        for plan in self._plans.values():
            plan.close()

    def _part(self, name: str) -> tuple[Runs, str | None, str]:
        """What has the run of a name, its name there, and what this page writes before it. Raises UsageError."""
        scenario, colon, inner = name.partition(":")
        if colon and scenario in self._scenarios():
            return self._plan(scenario), inner or None, f"{scenario}:"
        run = self._run(name)
        if run is not None:
            return Site(title_of(run), run, [run], Actions(run) if self.control else None, self._open), None, ""
        if self.further is not None:
            return self.further, name, ""
        raise UsageError(f"run={shortened(name)}: is no run or scenario of this page; /api/home lists them")

    def _run(self, name: str) -> Path | None:
        """The directory of a run below the results, or of one that was under way."""
        try:
            path = (self.folder / name).resolve()
            if path in self._outside:
                return path
            inside = path.relative_to(self.folder).parts if path.is_relative_to(self.folder) else ()
            hidden = any(part == ASIDE or part.startswith(".") for part in inside)
            return path if inside and not hidden and (path / records.RUN).is_file() else None
        except (OSError, ValueError):  # too long, or a NUL character
            return None

    def _scenarios(self) -> dict[str, Path]:
        return {path.stem: path for path in sorted(SCENARIOS.glob("*.toml"))}

    def _plan(self, name: str) -> Plan:
        with self._turn:
            if name not in self._plans:
                folder = free_folder(self.folder, name)
                self._plans[name] = Plan(load(self._scenarios()[name]), [name], folder, self.control, _starter=self._starter)
            return self._plans[name]

    def _entry(self, run: Path) -> dict[str, Any]:
        name = str(run.relative_to(self.folder)) if run.is_relative_to(self.folder) else str(run)
        return entry_of(run, name) | {"title": title_of(run)}


def text_of(path: Path) -> str:
    """The comment at the head of a scenario's file."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# ").rstrip())
    return textwrap.shorten(" ".join(lines), MAX_TEXT, placeholder=" ...")


def of_scenario(name: str, file: Path) -> dict[str, Any]:
    """The picture of a scenario. Raises UsageError, RecordError."""
    scenario = load(file).cells[0].scenario
    about = PlannedRun(name, scenario, SEED, Path("/")).about()
    places = [(placed.name, placed.x_m, placed.y_m) for placed in scenario.positions(SEED)]
    return _picture(places, about) | {"seconds": scenario.traffic_seconds(), "bps": None, "by_second": []}


def of_run(run: Path) -> dict[str, Any]:
    """The picture of a run: its stations at their first places, its flows, and the measured rates. Raises RecordError."""
    recorded = RecordedRun(run)
    about = recorded.about_files("recorded")
    places = [(entry["name"], *entry["position"][:2]) for entry in recorded.run.medium["stations"]]
    flows = list(read_object(run / "metrics.json").get("flows", {}).values())
    rates = [rate for flow in flows if (rate := flow.get("acked_bps", flow.get("delivered_bps"))) is not None]
    lists = [flow["acked_bps_by_second"] for flow in flows if flow.get("acked_bps_by_second")]
    length = max(map(len, lists), default=0)
    by_second = [sum(one[at] for one in lists if at < len(one)) for at in range(length)]
    return _picture(places, about) | {"seconds": None, "bps": sum(rates) if rates else None, "by_second": by_second}


def _picture(places: Iterable[tuple[str, float, float]], about: dict[str, Any]) -> dict[str, Any]:
    """`stations`: `[x, y, role]` (m); `flows`: pairs of their places in the list, a host's is that of its gateway; `hosts`: the
    places of their gateways; `walls`, `range_m`, `radio`, `routing`."""
    listed = list(places)
    number = {name: place for place, (name, _, _) in enumerate(listed)}
    points, gateways = set(about.get("access_points", ())), {station for station, _ in about["wires"]}
    hosts = {host: number[station] for station, host in reversed(about["wires"]) if station in number}
    place_of = hosts | number
    roles = {name: "access-point" if name in points else "gateway" if name in gateways else "station" for name in number}
    return {
        "stations": [[x, y, roles[name]] for name, x, y in listed], "hosts": sorted(set(hosts.values())),
        "flows": [
            [place_of[flow["source"]], place_of[flow["target"]]]
            for flow in about["flows"] if flow["source"] in place_of and flow["target"] in place_of
        ],
        "walls": about["walls"], "range_m": about["range_m"], "radio": about["radio"], "routing": about["routing"],
    }  # fmt: skip


def _written_ns(run: Path) -> int:
    """When the record of a run was written last."""
    times = [0]
    for name in (records.RUN, "metrics.json"):
        try:
            times.append((run / name).stat().st_mtime_ns)
        except OSError:
            continue
    return max(times)
