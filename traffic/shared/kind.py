"""The interface of a traffic kind: its parts, and the plan of a flow, which they receive.

A kind starts and measures nothing. It provides values: models of keys, command lines, rows of metrics. The stage
(testbed/stages/traffic.py) and the analysis (analysis/metrics/analyse.py) use them.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel

Keys = TypeVar("Keys", bound=BaseModel)
Report = Mapping[str, Any]  # the content of traffic/<flow>.json


@dataclass(frozen=True)
class Metric:
    """A metric: its entry of metrics.json, from which its column of the tables and of the store, and its row of
    formats/results.md follow."""

    name: str
    unit: str
    about: str  # the definition, one sentence
    of: Callable[[Any], Any] | None = None  # from the measured flow; None: with others, by the function or report of its list
    empty: Any = None  # of a flow that carried nothing: the value, or a function of its run, the flow and its report
    column: str | None = ""  # empty: its name, or in kbit/s that with `_kbps`; None: no table has it
    always: bool = True  # null if it could not be measured; else left out


@dataclass(frozen=True)
class FlowPlan(Generic[Keys]):
    """The parameters of one flow of one run for the command lines of its programs."""

    name: str
    keys: Keys
    source: str  # address of the end that sends, of IPv4 or IPv6
    target: str
    port: int  # the receiver's; no other flow of the run has it
    seconds: float  # how long it sends
    seed: int  # of the run; with the name it seeds the flow's random stream
    report: Path  # traffic/<flow>.json of the run
    log: Path  # the run's folder for what the programs note
    dscp: int | None = None  # of the packets that its programs send; None: they set none
    # before the words of a user's command: they run it in the container of that end (testbed/stages/containers.py)
    source_place: tuple[str, ...] = ()
    target_place: tuple[str, ...] = ()

    def start_entry(self, local_port: int | None, protocol: str = "TCP", block_bytes: int = 0) -> dict[str, Any]:
        """The entry `start` of a report, as iperf3 has it. `local_port`: the source's, None without a connection."""
        ends = {"local_host": self.source, "local_port": local_port, "remote_host": self.target, "remote_port": self.port}
        return {
            "connected": [] if local_port is None else [ends],
            "test_start": {"protocol": protocol, "blksize": block_bytes, "duration": self.seconds},
        }

    def noted(self, end: Literal["sent", "received"]) -> Path:
        """The file into which the program of one end writes its counts."""
        return self.log / f"{self.name}-{end}.json"


@dataclass(frozen=True)
class Program:
    """A program that the stage starts in a station. `explain`: its message for a failure, if its log has none."""

    argv: list[str]
    explain: Callable[[], str | None] = field(default=lambda: None)


@dataclass(frozen=True)
class Shown:
    """A metric in the table that `manet run` prints: one of the kind's `run_metrics`, or a column of table.csv."""

    metric: str
    label: str
    unit: str  # as printed, of the value times `factor`
    factor: float = 1.0
    of: str = ""  # the metric that is the whole, for `3 of 4`

    def scaled(self, values: Mapping[str, float | None]) -> dict[str, float | None]:
        """The values in `unit`."""
        return {key: None if value is None else value * self.factor for key, value in values.items()}


@dataclass(frozen=True)
class Listening:
    """Ready when the receiver's namespace has a socket of this transport on the port (TCP: in state LISTEN)."""

    transport: Literal["tcp", "udp"] | None  # None: either
    port: int | None = None  # None: the flow's
    remedy: str = "the host is overloaded"

    @property
    def missing(self) -> str:
        """The description of a receiver that is not ready."""
        return "does not listen" + (f" on port {self.port}" if self.port else "")


@dataclass(frozen=True)
class Printed:
    """Ready when the regular expression is found in the receiver's output; `^` and `$` match at each line."""

    pattern: str
    remedy: str

    @property
    def missing(self) -> str:
        """The description of a receiver that is not ready."""
        return f'has printed no "{self.pattern}"'


@dataclass(frozen=True)
class After:
    """Ready a given number of seconds after the receiver's start."""

    seconds: float


# The condition for a ready receiver, for which the stage waits before any flow starts. Each class has a case in
# testbed/stages/traffic.py.
Readiness = Listening | Printed | After


class Kind(ABC, Generic[Keys]):
    """The meaning of `traffic = "<name>"`. `keys`: the model of a flow's keys other than `from`, `to`, `traffic` and `start`; an
    error names the first of a required key's `examples`."""

    keys: type[Keys]
    transport: Literal["tcp", "udp"] | None  # of its connection from source to target; None: no connection is known
    # How captures are read (analysis/metrics/measures.py). Datagrams begin with the stamp of programs/datagrams.py. Exchanges:
    # requests on any number of connections, with the record of programs/web_client.py. Opened: whatever TCP and UDP is between
    # its ends.
    measured: Literal["tcp", "datagrams", "opened", "exchanges"] | None
    readiness: Readiness  # of every flow; `readiness_of` if it depends on a flow's keys
    preamble_bytes: int = 0  # with which the sender opens a TCP connection, and which are no payload of the flow
    sets_dscp: bool = False  # whether `sender` sets the plan's `dscp`
    min_packet_bytes: int = 0  # of a datagram with an IPv4 header
    drain_s: float = 0.0  # for packets in the stations' queues after the end of the last sender
    records_at_once: bool = False  # its programs record each event at once: `report` has a failed run's, too
    path_keys: tuple[str, ...] = ()  # keys that hold the path of a file, relative to the scenario's file
    programs: Mapping[str, str] = {}  # that a flow starts and setup.sh installs: name -> Debian package
    own_metrics: tuple[Metric, ...] = ()  # in addition to those of captures: entries of the report
    outcome: str = ""  # the entry of the report with `own_metrics`; empty: the report itself
    run_metrics: tuple[Metric, ...] = ()  # over all flows of the kind in a run (`of_run`)
    shown: tuple[Shown, ...] = ()  # what `manet run` prints, the most important first; without any the first that there is

    @property
    def has_tcp(self) -> bool:
        """Whether the flow is a TCP connection on its port, which a scenario's `tcp` sets."""
        return self.transport == "tcp"

    def readiness_of(self, keys: Keys) -> Readiness:
        """The condition for a ready receiver of a flow with these keys."""
        return self.readiness

    def own_programs(self, keys: Keys) -> Mapping[str, str]:
        """Programs that the user names for a flow with these keys, by key: checked before anything starts."""
        return {}

    @abstractmethod
    def receiver(self, plan: FlowPlan[Keys]) -> Program | None:
        """The program at the target, started before any flow; it runs until SIGTERM. None for a flow without one."""

    @abstractmethod
    def sender(self, plan: FlowPlan[Keys], receiver_pid: int) -> Program:
        """The program at the source, started with the flow; it ends by itself, with status 0, `plan.seconds` later.
        `receiver_pid`: 0 without a receiver."""

    def error(self, plan: FlowPlan[Keys]) -> str | None:
        """The error in the report of an ended flow, as a message; it fails the run. None without one."""
        return None

    def report(self, plan: FlowPlan[Keys]) -> str | None:
        """The text of traffic/<flow>.json after both programs have ended; None leaves the file as the sender wrote it."""
        return None

    def from_report(self, report: Report) -> dict[str, Any]:
        """The `own_metrics`; None for those that the report lacks."""
        outcome = report.get(self.outcome, {}) if self.outcome else report
        return {metric.name: outcome.get(metric.name) for metric in self.own_metrics}

    def remark(self, report: Report) -> str | None:
        """An outcome that is no failure and that the figures alone do not show, as words after the flow's name; None without
        one."""
        return None

    def largest_packet(self, keys: Keys) -> tuple[str, int] | None:
        """The key that sets the size of the largest IP packet, and this size in bytes; None if no key does."""
        size: int | None = getattr(keys, "bytes", None)
        return None if size is None else ("bytes", size)

    def smallest_packet(self, keys: Keys) -> tuple[str, int] | None:
        """Like `largest_packet`, for the smallest one."""
        return self.largest_packet(keys)

    def chosen_port(self, keys: Keys) -> tuple[str, int] | None:
        """The key by which the user sets the port of the flow's server, and this port; None if it is the flow's own."""
        return None

    def of_run(self, entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The `run_metrics`, from the entries of the kind's flows in metrics.json."""
        return {}

    def names_file(self, key: str, value: str) -> bool:
        """Whether this value of one of `path_keys` is a path."""
        return True

    def check_file(self, key: str, path: Path, mtu: int, ip: int) -> None:
        """Check the existing file of one of `path_keys` before anything starts; UsageError for a wrong one. `ip`: the version of
        the flow's packets."""
        return

    def offered_bps(self, keys: Mapping[str, Any]) -> float | None:
        """The rate that a flow with these keys offers, whatever arrives; None for one that sends as fast as it may."""
        return None


def unfinished(report: Report, done: str, seconds: float) -> str:
    """A remark about work that had begun and did not end: `done` of it in `seconds`."""
    lost = f" ({report['manet']['remark']})" if report["manet"].get("remark") else ""
    return f"did not finish: {done} in {seconds:g} s{lost}"


def python_program(path: Path, *words: object) -> list[str]:
    """The command line of a program of `programs/`: isolated and without site-packages, which halves its start-up time."""
    return [sys.executable, "-I", "-S", *(str(word) for word in (path, *words))]
