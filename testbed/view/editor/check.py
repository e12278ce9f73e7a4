"""What the checks of `manet run` say about a text, and what the scenario looks like: places, ranges, links, hops, movement.

`manet run` refuses a scenario by the same functions: `experiment.of_document`, then `preflight`. While a key is refused, the
picture is of the scenario without it, as far as that is one.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from record.errors import RecordError
from scenarios import toml_file
from scenarios.definition import scenario_of
from scenarios.document import Document, RefusedKey
from scenarios.keys import Keys
from scenarios.scenario import Scenario
from testbed.campaigns.experiment import of_document
from testbed.errors import KeyRefused, ManetError, UsageError
from testbed.programs import BUILT
from testbed.runs import preflight
from testbed.view.editor.drawing import prefix_of, scenario_values
from testbed.view.editor.stations import layout_of
from testbed.view.editor.toml_edits import at, values_of
from testbed.view.editor.workspace import Workspace
from testbed.view.planned import PlannedRun
from topologies import Placed
from topologies.connectivity import both_ways, hop_counts

SEED = 1
KEPT = 64  # answers about links, which undo and redo ask for again
MAX_DRAWN = 12  # keys that are left out in turn until the rest is a scenario
BEGIN = re.compile(r"^(?:[^\n]*?: )?line (?P<line>\d+): ")
KEY = re.compile(r'key "(?P<key>[^"]+)": ')
Path_ = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """Why `manet run` would refuse the scenario: one line, the path of the key in the scenario, the line in the text."""

    text: str
    path: Path_ = ()
    line: int | None = None

    def as_json(self) -> dict[str, Any]:
        """For the page."""
        return {"text": self.text, "path": list(self.path), "line": self.line}


class Checker:
    """Checks texts of one workspace; keeps the links of the last scenarios."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._links: OrderedDict[str, list[tuple[str, str]]] = OrderedDict()
        self._lock = threading.Lock()

    def check(self, text: str, name: str) -> dict[str, Any]:
        """`problem` (None: `manet run` takes it) and `picture` of a text that is, or will be, the file `name`."""
        path = self._workspace.folder / name
        try:
            values: dict[str, Any] | None = values_of(text)
        except UsageError:
            values = None
        try:
            document = toml_file.read(path, name, text, within=self._workspace.folder)
        except ManetError as problem:
            return {"problem": _worded(problem, ()).as_json(), "picture": self._rough(values)}
        prefix = prefix_of(document.tables)
        found: Problem | None = None
        scenario: Scenario | None = None
        try:
            scenario = of_document(document).cells[0].scenario
            preflight.check_paths({"scenario": scenario}, [SEED], BUILT)
            preflight.check_programs({"scenario": scenario}, SEED, BUILT)
        except ManetError as problem:
            found = _worded(problem, prefix, document)
        except RecordError as problem:
            found = Problem(str(problem))
        drawn = scenario or _drawable(document, prefix)
        return {"problem": found and found.as_json(), "picture": self._picture(drawn) if drawn else self._rough(values)}

    def _picture(self, scenario: Scenario) -> dict[str, Any]:
        planned, stations = PlannedRun("", scenario, SEED, Path("/")), _listed(scenario.positions(SEED))
        try:
            about, movement = planned.about(), planned.movement()
            links = self._links_of(scenario)
        except (ManetError, RecordError) as problem:
            return {"stations": stations, "note": str(problem)}
        neighbours, gateways = both_ways(scenario.station_names(), links), scenario.gateways()
        both = {(a, b) for a, others in neighbours.items() for b in others}
        flows = [{**flow, "hops": _hops(neighbours, gateways, flow["source"], flow["target"])} for flow in about["flows"]]
        known = scenario.propagation.model != "trace"
        return {
            "stations": stations, "area": about["area"], "walls": about["walls"], "range_m": about["range_m"],
            "sense_m": about["sense_m"], "wires": about["wires"], "flows": flows, "events": about["events"],
            "hosts": scenario.host_names(), "seconds": scenario.traffic_seconds(), "traffic_s": planned.traffic_s,
            "links": [[a, b] for a, b in sorted(both) if a < b] if known else None,
            "one_way": [[a, b] for a, b in sorted(set(links) - both)], "movement": movement["stations"],
            "note": None if known else "measured links are those of each moment; the map has none",
        }  # fmt: skip

    def _links_of(self, scenario: Scenario) -> list[tuple[str, str]]:
        key = preflight.links_key(scenario, SEED)
        with self._lock:
            if key in self._links:
                self._links.move_to_end(key)
                return self._links[key]
        links = preflight.links_at_start(scenario, SEED, BUILT)
        with self._lock:
            self._links[key] = links
            while len(self._links) > KEPT:
                self._links.popitem(last=False)
        return links

    def _rough(self, values: dict[str, Any] | None) -> dict[str, Any] | None:
        """The places alone, of a text that is no scenario yet; None if they are unknown."""
        try:
            placed = layout_of(scenario_values(values)) if values is not None else None
        except UsageError:
            placed = None
        return None if placed is None else {"stations": _listed(placed), "note": None}


def _listed(placed: Iterable[Placed]) -> list[dict[str, Any]]:
    return [{"name": one.name, "x": one.x_m, "y": one.y_m, "z": one.z_m} for one in placed]


def _hops(neighbours: dict[str, list[str]], gateways: dict[str, str], source: str, target: str) -> int | None:
    """Hops of the shortest path, a host's wire included; None without a path."""
    ends = [gateways.get(name, name) for name in (source, target)]
    between = hop_counts(neighbours, ends[1]).get(ends[0]) if ends[1] in neighbours else None
    return None if between is None else between + (source in gateways) + (target in gateways)


def _drawable(document: Document, prefix: Path_) -> Scenario | None:
    """The scenario without the keys that are refused, and without flows if these are the reason."""
    values = at(document.tables, prefix)
    left = dict(values) if isinstance(values, dict) else {}
    left = {key: value for key, value in left.items() if key != toml_file.BASE}
    for _ in range(MAX_DRAWN):
        try:
            return scenario_of(Keys(left, document, prefix))
        except RefusedKey as problem:
            key = next(iter(problem.path[len(prefix) :]), "flows")
            if key == "flows" and left.get("flows") != []:
                left["flows"] = []
            elif key in left:
                del left[str(key)]
            else:
                return None
        except ManetError:
            return None
    return None


def _worded(problem: Exception, prefix: Path_, document: Document | None = None) -> Problem:
    """The line of an error without the file's name, and its key. `document`: the text, in which the key has a line."""
    text, line = str(problem), None
    path: Path_ = ()
    if (begin := BEGIN.match(text)) is not None:
        line, text = int(begin["line"]), text[begin.end() :]
    if isinstance(problem, RefusedKey):
        path, line = problem.path[len(prefix) :], problem.line or line
    elif isinstance(problem, KeyRefused):
        path = problem.path
    key = KEY.search(text)
    if key is not None and key.start() < 40:
        path = path or tuple(int(part) if part.isdigit() else part for part in key["key"].split("."))
        text = text[key.end() :]
    if line is None and path and document is not None:
        line = _line_of(document, prefix, path)
    return Problem(text.removeprefix("scenario: "), path, line)


def _line_of(document: Document, prefix: Path_, path: Path_) -> int | None:
    """The line of a key or of the nearest one around it; None if that is the whole scenario, or in another file."""
    place = document.place((*prefix, *path))
    return place.line if place is not None and place.path == document.path and place != document.place(prefix) else None
