"""One run: its verdict, and its records as tables and figures (formats/results.md).

Times `t_s` are seconds from the start of the traffic, as in the scenario's events, in `manet story` and `manet plot`.
"""

import math
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import polars as pl
from matplotlib.figure import Figure

from analysis.captures import tcp_samples
from analysis.captures.rundir import RunDirectory
from analysis.drawing import flow_plots, style
from analysis.maps import map_picture, past_snapshot
from analysis.metrics.route_history import route_history
from analysis.metrics.throughput import receiver_view, sender_view
from analysis.story import story_text
from analysis.story.story import Story, flow_named, of_segment, read_story, sent_between
from manet_testbed.errors import UnreadableResults, WrongRequest
from manet_testbed.lab.refusals import translated
from record.doubt import doubt
from record.files import read_object
from record.found_runs import find_run
from record.scenario import RunFlow
from testbed.runs.under_way import ended

STEPS = {"t_s": pl.Float64, "event": pl.String, "node": pl.String, "packet": pl.String, "details": pl.String}
TRANSMISSIONS = {
    "segment": pl.Int64, "label": pl.String, "kind": pl.String, "start": pl.Int64, "end": pl.Int64, "sent_s": pl.Float64,
    "fate": pl.String, "node": pl.String, "at_s": pl.Float64, "acked_s": pl.Float64, "outcome": pl.String,
}  # fmt: skip
ROUTES = {"t_s": pl.Float64, "hops": pl.Int64, "via": pl.String, "to": pl.String}
EVENTS = {"t_s": pl.Float64, "node": pl.String, "event": pl.String, "detail": pl.String}
RATES = {"t_s": pl.Float64, "acked_kbps": pl.Float64, "delivered_kbps": pl.Float64}
NS_PER_S = 1_000_000_000


class Run:
    """A run that has ended. Methods raise UnreadableResults for a record that this run lacks. A flow is its
    name, or its number from 1."""

    def __init__(self, directory: Path | str) -> None:
        """The run in `directory`, or the only one below it."""
        with translated():
            self._run = RunDirectory(ended(find_run(Path(directory))))
            self._record: dict[str, Any] = self._run.run

    @property
    def directory(self) -> Path:
        """The folder of the run."""
        return self._run.path

    @property
    def cell(self) -> str:
        """The name of its cell; empty for a run outside of an experiment."""
        return self._record.get("cell") or ""

    @property
    def variant(self) -> str:
        """Its variant; empty without one."""
        return self._record.get("variant") or ""

    @property
    def axes(self) -> dict[str, Any]:
        """Its values of the experiment's axes."""
        return dict(self._record.get("axes") or {})

    @property
    def seed(self) -> int:
        """Its seed."""
        return int(self._record["seed"])

    @property
    def profile(self) -> str:
        """Its TCP profile: period or modern."""
        return self._run.scenario.profile

    @property
    def status(self) -> str:
        """complete, failed or interrupted."""
        return str(self._record.get("status") or "")

    @property
    def verdict(self) -> str:
        """valid, suspect or void: whether the machine kept up; empty without a medium."""
        return str(read_object(self.directory / "verdict.json").get("verdict", ""))

    @property
    def counts(self) -> bool:
        """Whether it may be in a mean: complete, and valid or suspect."""
        return self.status == "complete" and self.verdict in ("valid", "suspect")

    @property
    def doubt(self) -> str | None:
        """The reasons for doubt in a line; None for a valid run."""
        return doubt(self.directory)

    @property
    def scenario(self) -> dict[str, Any]:
        """All keys of its scenario, as scenario.json has them."""
        return dict(self._run.scenario_keys)

    @property
    def metrics(self) -> dict[str, Any]:
        """metrics.json: flows, air, checks, remarks."""
        return read_object(self.directory / "metrics.json")

    def air(self) -> pl.DataFrame:
        """The air log (formats/air.md): every attempt with its fate, queues, drops, deliveries; `t_s` and the log's columns."""
        with translated():
            return self._with_seconds(self._run.air, self._run.epoch_ns)

    def tcp(self, flow: int | str = 1) -> pl.DataFrame:
        """The kernel's samples at each ACK and the events of its TCP (formats/tcp.md): `t_s` and the columns of tcp.csv."""
        with translated():
            rows = self._story(flow).rows
            if rows.is_empty():
                raise UnreadableResults(
                    f"{self.directory / 'tcp.csv'}: no samples of flow {flow}; does `manet doctor` find tcp_probe?"
                )
            return self._with_seconds(rows, 0)

    def window(self, flow: int | str = 1) -> pl.DataFrame:
        """The congestion window over time, segments: `t_s`, `snd_cwnd`; each value holds until the next."""
        held = tcp_samples.held_from(self.tcp(flow).drop("t_s"), "snd_cwnd")
        times = [self._seconds(t_ns) for t_ns, _ in held]
        return pl.DataFrame({"t_s": times, "snd_cwnd": [value for _, value in held]}, {"t_s": pl.Float64, "snd_cwnd": pl.Int64})

    def throughput(self, flow: int | str = 1, bin_s: float = 1.0) -> pl.DataFrame:
        """Throughput of a TCP flow in bins of `bin_s` seconds from the start of the traffic: `t_s` (begin of the bin),
        `acked_kbps` (cumulative ACKs at the source), `delivered_kbps` (in-order bytes at the target)."""
        if not 0.001 <= bin_s < math.inf:
            raise WrongRequest(f"bin_s={bin_s!r}: give seconds from 0.001 on")
        with translated():
            one = self._tcp_flow(flow)
            connection = self._run.connection(one)
            at_source, at_target = (self._run.capture_of(one, node) for node in (one.source, one.target))
            isn = connection.initial_sequence(at_source, at_target) if connection else None
            if connection is None or isn is None:
                raise UnreadableResults(f"{self.directory}: no packet of flow {flow}; did it start?")
            stairs = (sender_view(at_source, connection, isn).acked, receiver_view(at_target, connection, isn).delivered)
            begin_ns, width_ns = self._run.traffic_ns, round(bin_s * NS_PER_S)
            edges = range(begin_ns, begin_ns + math.ceil(self._run.scenario.traffic_seconds() / bin_s) * width_ns, width_ns)
            rows = [
                (self._seconds(edge), *(stair.rise(edge, edge + width_ns) * 8 / bin_s / 1e3 for stair in stairs))
                for edge in edges
            ]
            return pl.DataFrame(rows, RATES, orient="row")

    def routes(self, flow: int | str = 1) -> pl.DataFrame:
        """The routes of a flow over time, as the daemon of its end reported them: `t_s`, `hops`, `via` (next station), `to`;
        without hops there is no route. Third-party daemons and the kernel's routes leave none (UnreadableResults)."""
        with translated():
            one = self._flow(flow)
            taken = route_history(self._run, one)
            if taken is None:
                text = f"no notes of routes; {self._run.scenario.protocol} leaves none, our own daemons do"
                raise UnreadableResults(f"{self.directory / 'routing'}: {text}")
            names = {self._run.address(node): node for node in self._nodes()}
            rows = [
                (self._seconds(route.t_ns + self._run.epoch_ns), route.hops, names.get(route.via or "", route.via),
                 names.get(route.to or "", route.to))
                for route in taken
            ]  # fmt: skip
            return pl.DataFrame(rows, ROUTES, orient="row")

    def events(self, flow: int | str = 1) -> pl.DataFrame:
        """The scenario's events and those of the flow's TCP (time-outs, notices, probes, stand-by), in the order of time."""
        with translated():
            story = self._story(flow)
            found = sorted([*story.tcp_events, *story.scenario_events], key=lambda event: event.t_ns)
            rows = [(story.seconds(event.t_ns), event.node, event.event, event.detail) for event in found]
            return pl.DataFrame(rows, EVENTS, orient="row")

    def story(
        self, flow: int | str = 1, segment: int | None = None, *, begin_s: float | None = None, end_s: float | None = None
    ) -> pl.DataFrame:
        """A row for each transmission of a TCP flow, with its fate, as `manet story`; `begin_s` and `end_s` (s) bound the time of
        sending. With `segment` (0: the SYN) a row for each step of its transmissions and of their ACKs."""
        if segment is not None and (begin_s is not None or end_s is not None):
            raise WrongRequest("segment and begin_s or end_s exclude each other; give one")
        with translated():
            story = self._story(flow)
            if segment is not None:
                steps = story_text.table_rows(story, of_segment(story, segment))
                rows = [(story.seconds(step.t_ns), step.event, step.node, step.packet, step.details) for step in steps]
                return pl.DataFrame(rows, STEPS, orient="row")
            chosen = sent_between(story, begin_s, end_s)
            table = [
                (sent.segment, sent.label, sent.kind, sent.start, sent.end, story.seconds(sent.journey.sent_ns),
                 sent.journey.fate, sent.journey.node, story.seconds(sent.journey.at_ns),
                 None if sent.acked_ns is None else story.seconds(sent.acked_ns), story_text.outcome(story, sent))
                for sent in chosen
            ]  # fmt: skip
            return pl.DataFrame(table, TRANSMISSIONS, orient="row")

    def capture(self, node: str) -> pl.DataFrame:
        """The packets that were captured at a station's radio, or at a wired host (analysis/captures/pcap.py)."""
        with translated():
            return self._run.capture(node)

    def figure(
        self, what: Literal["story", "window", "packets"] = "story", flow: int | str = 1, *, begin_s: float | None = None,
        end_s: float | None = None,
    ) -> Figure:  # fmt: skip
        """A TCP flow over time, as `manet plot` draws it: window and packets (story), or one of them."""
        if what not in flow_plots.CONTENTS:
            raise WrongRequest(f"what={what!r}: give one of {', '.join(flow_plots.CONTENTS)}")
        with translated(), style.kept() as pages:
            flow_plots.draw(self._story(flow), what, self.directory / "plot.png", begin_s, end_s)
        return pages[0]

    def map(self, at_s: float | None = None) -> Figure:
        """Stations, links, ranges and the paths of the flows at an instant (None: the middle of the traffic), as `manet map`."""
        with translated(), style.settings():
            return map_picture.figure_of(past_snapshot.of_run(self._run, at_s))

    def _nodes(self) -> list[str]:
        return [*(entry["name"] for entry in self._run.medium["stations"]), *(wire.host for wire in self._run.wires)]

    def _seconds(self, t_ns: int) -> float:
        return (t_ns - self._start_ns) / NS_PER_S

    def _with_seconds(self, rows: pl.DataFrame, offset_ns: int) -> pl.DataFrame:
        return rows.select(((pl.col("t_ns") + (offset_ns - self._start_ns)) / NS_PER_S).alias("t_s"), pl.all())

    @cached_property
    def _start_ns(self) -> int:
        """The start of the traffic; that of the medium for a run without traffic."""
        return self._run.epoch_ns if self._run.begun_ns is None else self._run.begun_ns

    @cached_property
    def _stories(self) -> dict[str, Story]:
        return {}

    def _story(self, flow: int | str) -> Story:
        one = self._flow(flow)
        if one.name not in self._stories:
            self._stories[one.name] = read_story(self._run, one)
        return self._stories[one.name]

    def _flow(self, flow: int | str) -> RunFlow:
        """The flow of this number, from 1, or of this name."""
        if not isinstance(flow, str):
            return flow_named(self._run, flow)
        names = [one.name for one in self._run.flows]
        if flow not in names:
            raise WrongRequest(f"flow={flow!r}: is not in this run; there are {', '.join(names) or 'none'}")
        return self._run.flows[names.index(flow)]

    def _tcp_flow(self, flow: int | str) -> RunFlow:
        one = self._flow(flow)
        if one.protocol != "tcp":
            raise UnreadableResults(f"{self.directory}: {one.name} is {one.traffic}, no TCP; its figures are in `metrics`")
        return one

    def __repr__(self) -> str:
        verdict = self.verdict if self.status == "complete" else self.status
        return f"<Run {self.cell} seed {self.seed}, profile {self.profile}: {verdict or 'no verdict'}; {self.directory}>"
