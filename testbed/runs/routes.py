"""Status of a run's routing daemons: of a run under way from their sockets, of one that has ended from its files. For protocols
without such sockets it is the kernel's tables, and what the `status` commands of a daemon's description print.

under_way.py finds a run under way.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from record.files import read_text
from record.found_runs import find_run
from scenarios.routing import OWN_DAEMONS
from testbed.errors import RunError, UsageError
from testbed.host.state import RunState
from testbed.runs.under_way import namespaces_of, sockets_of, under_way
from testbed.stages import batctl, iproute, kernel_status
from testbed.stages.routing.shared.described import STATUS_COMMANDS, output_of
from testbed.stages.status import ask, status_socket
from topologies.addresses import ip_address

STATUS = ".status.json"
ROUTES, NEIGHBOURS = ("route", "show", "table", "all"), ("neighbour", "show")
NO_TRAFFIC = (
    "the run ended before its traffic, see {}/run.json (prompts and scripts keep none: `routes` at the prompt shows them)"
)
KERNEL_PROTOCOL = "batman-adv"  # without a daemon: batctl reads the kernel's tables


@dataclass(frozen=True)
class RouteSnapshot:
    """The status of stations by name. `when`: "now", or of a run that has ended "start" or "end" of its traffic."""

    directory: Path
    when: str
    stations: dict[str, dict[str, Any]]
    silent: dict[str, str] = field(default_factory=dict)  # why a station's daemon did not answer

    def as_json(self) -> dict[str, Any]:
        """The object of `manet routes --json`."""
        return {"format": "manet-routes/1", "directory": str(self.directory), "when": self.when, "stations": self.stations}


def known_routes(directory: Path | None = None, station: str | None = None) -> RouteSnapshot:
    """The status of one station or of all, of the run in `directory` or the only one under way. Raises UsageError."""
    if directory is not None and under_way(directory) is None:
        directory = find_run(directory)  # itself, or the only run in it
    state = under_way(directory)
    if state is not None:
        directory = Path(state.directory)
    assert directory is not None
    names, protocol = _stations(directory, station), _protocol(directory)
    if state is not None and protocol == KERNEL_PROTOCOL:
        return RouteSnapshot(directory, "now", _batman_status(state, directory, names))
    if protocol not in (*OWN_DAEMONS, KERNEL_PROTOCOL):
        return _kernel_tables(directory, state, protocol, names)
    if state is not None:
        sockets = _require_sockets(state)
        answers, silent = {}, {}
        for name in names:
            try:
                answers[name] = ask(status_socket(name, sockets), "status")
            except RunError as problem:  # one daemon that has died does not hide the others
                silent[name] = str(problem)
        return RouteSnapshot(directory, "now", answers, silent)
    recorded = {name: _recorded_status(directory, name) for name in names}
    when = "end" if any("end" in status for status in recorded.values()) else "start"
    absent = {name: f"{name}'s daemon did not run at the {when} of the traffic; see events.csv in {directory}"
              for name, status in recorded.items() if when not in status}  # fmt: skip
    return RouteSnapshot(directory, when, {name: status[when] for name, status in recorded.items() if when in status}, absent)


def _stations(directory: Path, station: str | None) -> list[str]:
    """The requested stations. Raises UsageError for an unknown one."""
    stations = _all_stations(directory)
    if station is not None and station not in stations:
        raise UsageError(f'there is no station "{station}" in {directory}; there are {", ".join(stations)}')
    return stations if station is None else [station]


def _protocol(directory: Path) -> str:
    routing = _json(directory, "scenario.json")["routing"]
    return routing if isinstance(routing, str) else routing["protocol"]


def _all_stations(directory: Path) -> list[str]:
    return [entry["name"] for entry in _json(directory, "medium.json")["stations"]]


def _json(directory: Path, name: str) -> dict[str, Any]:
    try:
        return json.loads(read_text(directory / name))
    except FileNotFoundError as problem:
        raise UsageError(f"{problem.filename}: not there; name the directory of a run, results/NAME/CELL/seed-N") from None
    except ValueError as problem:
        raise UsageError(f"{directory}: its JSON cannot be read ({problem}); the run never started") from None


def _batman_status(state: RunState, directory: Path, names: list[str]) -> dict[str, dict[str, Any]]:
    """The status of batman-adv in each station's namespace. Stations are numbered in the order of medium.json."""
    numbers, netns = {name: number for number, name in enumerate(_all_stations(directory), start=1)}, _require_namespaces(state)
    return {name: batctl.status(netns[name], numbers[name]) for name in names if name in netns}


def _kernel_tables(directory: Path, state: RunState | None, protocol: str, names: list[str]) -> RouteSnapshot:
    """The status of a protocol without sockets of its own."""
    addresses = {name: ip_address(number) for number, name in enumerate(_all_stations(directory), start=1)}
    if state is not None:
        netns = _require_namespaces(state)
        commands = _status_commands(directory)
        stations = {}
        for name in (name for name in names if name in netns):
            queries = (("-4", *ROUTES), ("-6", *ROUTES), NEIGHBOURS)
            four, six, neighbours = (iproute.ask_within(netns[name], "ip", "-color=never", *words) for words in queries)
            text = "".join(_output_in_run(words, netns[name]) for words in commands.get(name, []))
            stations[name] = kernel_status.status_of(protocol, addresses[name], four + six, neighbours, text)
        return RouteSnapshot(directory, "now", stations)
    contents = {name: _text(directory / "routes" / f"{name}.txt") for name in names}
    when = "end" if all(kernel_status.recorded(text, "end") for text in contents.values()) else "start"
    stations = {}
    for name, content in contents.items():
        tables = kernel_status.recorded(content, when)
        if tables is None:
            raise UsageError(f"{directory}/routes/{name}.txt: not there; {NO_TRAFFIC.format(directory)}")
        printed = kernel_status.section(_text(directory / "routing" / f"{name}.status.txt"), when) or ""
        stations[name] = kernel_status.status_of(protocol, addresses[name], *tables, printed)
    return RouteSnapshot(directory, when, stations)


def _output_in_run(words: list[str], netns: Path) -> str:
    """The output of a command in the mount namespace of a run, which has its sockets."""
    pid = netns.parts[2]  # /proc/<pid>/ns/net
    return output_of(["nsenter", "--target", pid, "--mount", "--", *words], netns).replace(
        f"nsenter --target {pid} --mount -- ", ""
    )


def _status_commands(directory: Path) -> dict[str, list[list[str]]]:
    path = directory / "routing" / STATUS_COMMANDS
    return json.loads(read_text(path)) if path.exists() else {}


def _text(path: Path) -> str:
    return read_text(path) if path.exists() else ""


def _require_namespaces(state: RunState) -> dict[str, Path]:
    netns = namespaces_of(state)
    if not netns:
        raise UsageError(f"{state.directory}: its network is not up (not yet, or no longer); try again, or see its log/")
    return netns


def _require_sockets(state: RunState) -> Path:
    sockets = sockets_of(state, "routing")
    if sockets is None:
        raise UsageError(f"{state.directory}: its routing daemons are not running (yet, or any more); try again, or see its log/")
    return sockets


def _recorded_status(directory: Path, station: str) -> dict[str, Any]:
    path = directory / "routing" / f"{station}{STATUS}"
    try:
        return json.loads(read_text(path))
    except FileNotFoundError:
        raise UsageError(f"{path}: not there; {NO_TRAFFIC.format(directory)}") from None
