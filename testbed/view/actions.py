"""The actions of a page on a run under way, with --control. The run carries them out (testbed/stages/actions.py)."""

from pathlib import Path
from typing import Any

from analysis.captures.rundir import RunDirectory
from scenarios.tcp import parse
from scenarios.tcp_names import table
from testbed.errors import UsageError
from testbed.host.algorithms import available
from testbed.runs.under_way import act_on, under_way


class Actions:
    """Actions on the run in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def are_possible(self) -> bool:
        """Whether the run is under way."""
        return under_way(self._directory) is not None

    def choices(self) -> dict[str, Any]:
        """The `nodes` and the `tcps` of a flow: TCPs that need nothing from the start of the run on."""
        run = RunDirectory(self._directory)
        nodes = [entry["name"] for entry in run.medium["stations"]] + [wire.host for wire in run.wires]
        ours = [name for name, entry in table().items() if not entry.is_layer and not parse(name).asks_for_hops]
        return {"nodes": list(dict.fromkeys(nodes)), "tcps": [*ours, *(name for name in available() if name not in table())]}

    def do(self, action: object) -> dict[str, Any]:
        """Have the run carry out `{"op": ...}`. Raises UsageError, RunError with the run's message if it refuses."""
        if not isinstance(action, dict) or not isinstance(action.get("op"), str):
            raise UsageError("op: give an object with the name of an action; formats/view.md lists them")
        return act_on(self._directory, action)
