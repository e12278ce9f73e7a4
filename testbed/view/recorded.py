"""A recorded run, as the page asks about it: each method is one answer of formats/view.md, as plain data.

Times are model time in ns. Files are read on first use and kept; several threads may ask at once. The story and its paths are
those of analysis/, so that the page shows what `manet story` and `manet map` print.
"""

import threading
from collections.abc import Callable
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import polars as pl

from analysis.captures.rundir import RunDirectory
from analysis.captures.tcp_samples import held_from
from analysis.maps.past_snapshot import off_at, path_of
from analysis.maps.snapshot import FlowPath, azimuths_of
from analysis.metrics.radio_range import RECEIVED, SENSED, radio_of, range_of_run
from analysis.metrics.throughput import Staircase, sender_view
from analysis.story import story_text
from analysis.story.story import FIRST, Story, of_segment, read_story, sent_between
from record.errors import RecordError
from record.files import plain_file, read_object
from record.found_runs import title_of
from record.scenario import RunFlow
from scenarios.flows import FIRST_PORT
from scenarios.profiles import name_of
from testbed.errors import UsageError
from testbed.view.frames import TX, Frames, read_frames
from testbed.view.lives import Lives
from testbed.view.motion import motion
from testbed.view.nav import read_nav
from testbed.view.packets import packet_of
from traffic.programs.datagrams import HEADERS_BYTES

MAX_ROWS_OF_A_PACKET = 2000
MAX_DROPS = 1000
MAX_BINS = 4000
STRIP_BINS = 300  # of the strip of the whole run (page/overview.js)
MAX_POINTS = 5000
MAX_RATES = 100  # of a throughput
MIN_RATE_NS = 200_000_000  # the time over which a rate is taken; one ACK in 0.1 ms would look like 100 Mbit/s
NEAR_ROWS = 40
T = TypeVar("T")
Series = dict[str, list[float | None]]  # "t" in s of model time, and "v"


class Once(Generic[T]):
    """A value that the first request makes, by `make`, and that is kept; if `make` raises, the next request tries again."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._values: list[T] = []

    def __call__(self) -> T:
        """The value. While one thread makes it, threads that need it wait, and no others."""
        with self._lock:
            if not self._values:
                self._values.append(self._make())
            return self._values[0]


class RecordedRun:
    """A run directory. Methods raise RecordError or UsageError, one line each."""

    kind = "recorded"

    def __init__(self, directory: Path) -> None:
        self.run = RunDirectory(directory)
        # each has its own lock: a first NAV or story, which takes seconds, delays no answer that needs neither
        self._frames = Once(lambda: read_frames(self.run.path / "air.csv", self.stations))
        self._lives = Once(lambda: Lives(self.frames))
        self._counted = Once(lambda: self.frames.counts())
        self._rates: dict[str, list[dict[str, object]]] = {}  # by station, of those that were asked about
        self._strip = Once(lambda: self.frames.binned(0, self.end_ns, STRIP_BINS))
        self._nav = Once(lambda: read_nav(self.run.path, self.stations))
        self._stories: dict[str, Story | RecordError] = {}
        self._reading_story = threading.Lock()  # one at a time: each holds the packets of two captures
        self._acked: dict[str, Staircase] = {}
        self._arrived: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._reading_acked = threading.Lock()

    # --- the whole run --------------------------------------------------------------------------------------------

    @cached_property
    def stations(self) -> tuple[str, ...]:
        """The stations' names, in the order of their numbers."""
        return tuple(entry["name"] for entry in self.run.medium["stations"])

    @property
    def frames(self) -> Frames:
        """The air log, read once."""
        return self._frames()

    def read_ahead(self) -> None:
        """Make what a page asks for first, or needs for any time: the air log, the strip and the counts of the whole run, the
        packets at the stations."""
        self._strip()
        self._counted()
        self._lives()

    @cached_property
    def end_ns(self) -> int:
        """The end of the run: the medium's, or the last frame of a run that was killed."""
        try:
            return int(self.run.verdict["model_ns"])
        except (RecordError, KeyError):
            return int(self.frames.rows["t_ns"].max(initial=1))

    @property
    def traffic_ns(self) -> int | None:
        """The start of the traffic."""
        return None if self.run.begun_ns is None else self.run.begun_ns - self.run.epoch_ns

    def about(self) -> dict[str, Any]:
        """`/api/run`."""
        try:
            verdict: dict[str, Any] | None = self.run.verdict
        except RecordError:
            verdict = None
        traffic_ns = None if self.traffic_ns is None else str(self.traffic_ns)
        return self.about_files(self.kind) | {
            "end_ns": str(self.end_ns), "traffic_ns": traffic_ns, "verdict": verdict,
            "status": self.run.run.get("status"), "error": self.run.run.get("error"),
        }  # fmt: skip

    def about_files(self, kind: str) -> dict[str, Any]:
        """The part of about() that is known from the start of a run."""
        run, azimuths = self.run, azimuths_of(self.run.medium)
        return {
            "kind": kind, "title": title_of(run.path), "directory": str(run.path), "control": False,
            "running": False, "begin_ns": "0", "traffic_ns": None, "verdict": None, "area": run.scenario.area,
            "walls": [[*wall["from"], *wall["to"]] for wall in run.medium.get("walls", ())],
            "range_m": range_of_run(run.path, run.medium, RECEIVED), "sense_m": range_of_run(run.path, run.medium, SENSED),
            "queue_packets": run.medium.get("queue", {}).get("packets"),
            "slot_us": (radio_of(run.medium, run.path) or {}).get("slot_us"),
            "radio": name_of(run.scenario.radio), "routing": run.scenario.protocol, "events": run.events,
            "stations": [
                {"name": entry["name"], "address": run.address(entry["name"])}
                | ({"azimuth_deg": azimuths[entry["name"]]} if entry["name"] in azimuths else {})
                for entry in run.medium["stations"]
            ],
            "jammers": [
                {"name": entry["name"], "kind": entry.get("kind"), "follows": entry.get("follows"), "at": entry.get("position")}
                for entry in run.medium.get("jammers", ())
            ],
            "wires": [[wire.station, wire.host] for wire in run.wires], "access_points": access_points_of(run),
            "flows": [
                {"name": flow.name, "source": flow.source, "target": flow.target, "traffic": flow.traffic,
                 "transport": flow.protocol, "port": FIRST_PORT + place, "start_s": flow.start,
                 "tcp": (run.run.get("tcp") or {}).get(flow.name) or run.scenario.tcp_text(flow)}
                for place, flow in enumerate(run.flows)
            ],
        }  # fmt: skip

    def movement(self) -> dict[str, Any]:
        """`/api/movement`: for each station rows [t_ns, x, y, vx, vy], in m and m/s, each valid to the next; and switches."""
        trace = self.run.trace
        placed = set() if trace is None else set(trace.stations())
        stations = {}
        for entry in self.run.medium["stations"]:
            name, (x, y, *_) = entry["name"], entry["position"]
            stations[name] = motion(trace, name) if trace is not None and name in placed else [[0, x, y, 0.0, 0.0]]
        switches = [
            [round(float(row["t_s"]) * 1e9), row["station"], row["detail"] == "on"]
            for row in self.run.events
            if row["event"] in ("power", "cut")
        ]
        return {"stations": stations, "power": switches}

    def overview(self, begin_ns: int, end_ns: int, bins: int) -> dict[str, Any]:
        """`/api/overview`: counts of frames by fate and of drops by reason in equal parts of a window."""
        _check_window(begin_ns, end_ns)
        bins = max(1, min(bins, MAX_BINS))
        is_strip = (begin_ns, end_ns, bins) == (0, self.end_ns, STRIP_BINS)
        counts = self._strip() if is_strip else self.frames.binned(begin_ns, end_ns, bins)
        return {"from": str(begin_ns), "to": str(end_ns), "bins": bins, **counts}

    def counts(self) -> dict[str, Any]:
        """`/api/counts`: counts of frames and drops in the whole run, by station."""
        return self._counted()

    # --- frames and packets ---------------------------------------------------------------------------------------

    def window(self, begin_ns: int, end_ns: int, limit: int) -> tuple[bytes, int]:
        """`/api/frames`: the packed frames of a window, and how many there are."""
        _check_window(begin_ns, end_ns)
        chosen, total = self.frames.thinned(begin_ns, end_ns, max(1, min(limit, 100_000)))
        return self.frames.packed(chosen, thinned=len(chosen) < total), total

    def frame(self, row: int) -> dict[str, Any]:
        """`/api/frame/ROW`: a row of the air log, the frames on the air at the same time, and its bytes from air.pcapng."""
        frames = self.frames
        if not 0 <= row < frames.count:
            raise UsageError(f"frame {row}: the air log has the rows 0 to {frames.count - 1}")
        answer = frames.as_text(row)
        begin_ns = int(frames.rows["t_ns"][row])
        end_ns = begin_ns + int(frames.rows["airtime_ns"][row])
        near = [int(at) for at in frames.between(begin_ns, end_ns) if at != row][:NEAR_ROWS]
        answer |= {"end_ns": str(end_ns), "overlaps": frames.as_texts(near)}
        if frames.rows["event"][row] == TX:
            number = int(np.count_nonzero(frames.rows["event"][: row + 1] == TX))
            answer["pcap"] = packet_of(self.run.path / "air.pcapng", number)
        return answer

    def drops(self, begin_ns: int, end_ns: int, limit: int) -> dict[str, Any]:
        """`/api/drops`: the first dropped packets of a window, as rows of the air log."""
        _check_window(begin_ns, end_ns)
        return {"drops": self.frames.as_texts(self.frames.drops(begin_ns, end_ns, max(1, min(limit, MAX_DROPS))))}

    def packet(self, number: int) -> dict[str, Any]:
        """`/api/packet/N`: every row of a packet, in order of time; and its segment, if a flow's story has it."""
        rows = self.frames.of_packet(number)
        if number == 0 or not len(rows):
            raise UsageError(f"packet {number}: is not in the air log")
        return {
            "packet": number,
            "rows": self.frames.as_texts(rows[:MAX_ROWS_OF_A_PACKET]),
            "segment": self._segment_of(number),
        }

    def _segment_of(self, packet: int) -> dict[str, Any] | None:
        for flow in self.run.flows:
            story = self.story_of(flow.name) if flow.protocol == "tcp" else None
            for sent in story.transmissions if isinstance(story, Story) else ():
                if any(step.air is not None and step.air.number == packet for step in sent.journey.steps):
                    return {"flow": flow.name, "segment": sent.segment}
            for ack in story.acknowledgements if isinstance(story, Story) else ():
                if any(step.air is not None and step.air.number == packet for step in ack.journey.steps):
                    return {"flow": flow.name, "segment": ack.segment, "ack": True}
        return None

    def station(self, name: str, at_ns: int) -> dict[str, Any]:
        """`/api/station/NAME`: its queue at an instant (a packet is in it from `enqueue` to its last frame, delivery or drop),
        the frame that it sends, its last data frame, and of the whole run its data frames by receiver and rate."""
        if name not in self.stations:
            raise UsageError(f"station {name!r}: is not in this run; there are {', '.join(self.stations)}")
        frames, number = self.frames, self.stations.index(name)
        waiting = self._lives().at(number, at_ns)
        if name not in self._rates:
            self._rates[name] = frames.rates(number)
        begun = frames.between(at_ns, at_ns)
        sending = [int(row) for row in begun if frames.rows["station"][row] == number]
        return {
            "name": name,
            "on": name not in off_at(self.run, at_ns / 1e9),
            "queue": [
                {"packet": packet, "since_ns": str(since_ns), "bytes": size, "peer": frames.name_of(peer)}
                for packet, since_ns, size, peer in waiting
            ],
            "sending": frames.as_text(sending[0]) if sending else None,
            "counts": {kind: table[name] for kind, table in self._counted().items()},
            "data": None if (last := frames.last_data(number, at_ns)) is None else frames.as_text(last),
            "rates": self._rates[name],
        }

    def queues(self, at_ns: int) -> dict[str, Any]:
        """`/api/queues`: packets at each station at an instant, waiting or being sent, and whether it is stalled; the jammers
        that send then."""
        queues = self._lives().queues(at_ns, self.stations)
        waiting = {name: asdict(queue) for name, queue in queues.items()}
        return {"t_ns": str(at_ns), "queues": waiting, "jamming": self.frames.jamming(at_ns)}

    def lateness(self) -> dict[str, Any]:
        """`/api/lateness`: the rows of lateness.csv as columns; times in s of model time."""
        rows = self.run.lateness
        times = {"t": [int(row["t_ns"]) / 1e9 for row in rows], "verdict": [row["verdict"] for row in rows]}
        return times | {name: [float(row[name]) for row in rows] for name in ("p50_us", "p99_us", "max_us", "stalled_ms")}

    def nav(self, begin_ns: int, end_ns: int) -> dict[str, Any]:
        """`/api/nav`: the times in a window at which each station's NAV reserves the medium. The first one replays the run."""
        _check_window(begin_ns, end_ns)
        return {"stations": self._nav().between(begin_ns, end_ns)}

    # --- flows ----------------------------------------------------------------------------------------------------

    def flow(self, name: str) -> RunFlow:
        """The flow of this name. Raises UsageError."""
        for flow in self.run.flows:
            if flow.name == name:
                return flow
        raise UsageError(f"flow {name!r}: is not in this run; there are {', '.join(flow.name for flow in self.run.flows)}")

    def story_of(self, name: str) -> Story | RecordError:
        """The story of a TCP flow, or the reason why there is none."""
        with self._reading_story:
            if name not in self._stories:
                try:
                    self._stories[name] = read_story(self.run, self.flow(name))
                except RecordError as problem:
                    self._stories[name] = problem
            return self._stories[name]

    def story(self, name: str, segment: int | None, at_s: float | None, span_s: float = 0.5) -> dict[str, Any]:
        """`/api/story`: the steps of a segment, or of what was sent from `at_s` (s of the traffic) on, as text and as data."""
        story = self.story_of(name)
        if isinstance(story, RecordError):
            raise story
        if segment is not None:
            chosen = of_segment(story, segment)
        else:
            begin_s = 0.0 if at_s is None else at_s
            chosen = sent_between(story, begin_s, begin_s + min(span_s, 10.0))
        return {
            "title": story_text.title(story),
            "lines": story_text.table_lines(story, chosen),
            "transmissions": [
                {
                    "segment": sent.segment,
                    "sent_s": story.seconds(sent.journey.sent_ns),
                    "fate": sent.journey.fate,
                    "kind": sent.kind,
                }
                for sent in chosen
            ],
        }

    def series(self, name: str, begin_ns: int, end_ns: int, points: int) -> dict[str, Any]:
        """`/api/series`: what a flow did in a window; times in s of model time. TCP: throughput (acknowledged), cwnd, RTT, RTO,
        stand-by, retransmissions; datagrams: throughput (received)."""
        _check_window(begin_ns, end_ns)
        flow, points = self.flow(name), max(10, min(points, MAX_POINTS))
        if flow.protocol is None:
            return {}
        if flow.protocol != "tcp":
            try:
                return {"throughput": self._received(flow, begin_ns, end_ns, points)}
            except RecordError as problem:
                return {"error": str(problem)}
        story = self.story_of(name)
        if isinstance(story, RecordError):
            return {"error": str(story)}
        epoch_ns = self.run.epoch_ns

        def held(column: str, factor: float = 1.0) -> Series:
            """The values that the socket had; samples alone miss timeouts, at which no segment comes."""
            steps = held_from(story.rows, column)
            t = np.array([t_ns for t_ns, _ in steps], dtype=np.int64) - epoch_ns
            values = np.array([value for _, value in steps], dtype=float) * factor
            # one step before the window and one behind it: lines go to its edges
            here = slice(max(0, int(np.searchsorted(t, begin_ns)) - 1), int(np.searchsorted(t, end_ns, side="right")) + 1)
            return envelope(t[here] / 1e9, values[here], points)

        again = [sent for sent in story.data if sent.kind != FIRST]
        return {
            "throughput": self._acknowledged(flow, story, begin_ns, end_ns, points),
            "cwnd": held("snd_cwnd"), "rtt": held("srtt_us", 1e-3), "rto": held("rto_us", 1e-3),
            "standby": [[(a - epoch_ns) / 1e9, None if b is None else (b - epoch_ns) / 1e9] for a, b in story.stand_bys],
            "retransmissions": [
                at_s for sent in again if begin_ns <= (at_s := (sent.journey.sent_ns - epoch_ns) / 1e9) * 1e9 <= end_ns
            ][:points],
            "routes": self._route_changes(story),
        }  # fmt: skip

    def _acknowledged(self, flow: RunFlow, story: Story, begin_ns: int, end_ns: int, points: int) -> Series:
        stairs = self._stairs(flow, story)
        middles, span_ns = _spans(begin_ns, end_ns, points)
        begin, end = ([stairs.before(round(t) + self.run.epoch_ns) for t in middles + way * span_ns / 2] for way in (-1, 1))
        return _rates(middles, span_ns, np.subtract(end, begin))

    def _stairs(self, flow: RunFlow, story: Story) -> Staircase:
        with self._reading_acked:
            if flow.name not in self._acked:
                packets = self.run.capture_of(flow, flow.source)
                isn = story.connection.initial_sequence(packets) or 0
                self._acked[flow.name] = sender_view(packets, story.connection, isn).acked
            return self._acked[flow.name]

    def _received(self, flow: RunFlow, begin_ns: int, end_ns: int, points: int) -> Series:
        middles, span_ns = _spans(begin_ns, end_ns, points)
        t, until = self._arrivals(flow)
        begin, end = (until[np.searchsorted(t, middles + way * span_ns / 2)] for way in (-1, 1))
        return _rates(middles, span_ns, end - begin)

    def _arrivals(self, flow: RunFlow) -> tuple[np.ndarray, np.ndarray]:
        """When the flow's datagrams arrived (ns of model time), and the bytes of IP packets before each and at the end, by the
        capture at the receiver; of one that was deleted after the measurement, by its record of datagrams."""
        with self._reading_acked:
            if flow.name not in self._arrived:
                self._arrived[flow.name] = self._read_arrivals(flow)
            return self._arrived[flow.name]

    def _read_arrivals(self, flow: RunFlow) -> tuple[np.ndarray, np.ndarray]:
        path = self.run.path / "datagrams" / f"{flow.name}.csv"
        try:
            connection = self.run.connection(flow)
            packets = connection.forward(self.run.capture_of(flow, flow.target)) if connection is not None else None
        except RecordError:
            if not path.exists():
                raise
            with plain_file(path) as file:
                rows = pl.read_csv(file, infer_schema_length=None).drop_nulls(["received_ns", "bytes"]).sort("received_ns")
            t, sizes = rows["received_ns"].cast(pl.Int64).to_numpy(), rows["bytes"].to_numpy()
        else:
            if packets is None:
                return np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
            t, sizes = packets["t_ns"].to_numpy(), datagram_bytes(packets)
        return t - self.run.epoch_ns, np.concatenate([[0], np.cumsum(sizes)])

    def _route_changes(self, story: Story) -> list[float]:
        """The times (s) at which a data segment took another path than the last one that arrived."""
        changes, last = [], None
        for sent in story.data:
            if not sent.journey.received:
                continue
            nodes = tuple(dict.fromkeys(step.node for step in sent.journey.steps))
            if last is not None and nodes != last:
                changes.append((sent.journey.sent_ns - self.run.epoch_ns) / 1e9)
            last = nodes
        return changes

    def routes(self, at_ns: int) -> dict[str, Any]:
        """`/api/routes`: the paths of all flows at an instant, as `manet map` has them."""
        if self.traffic_ns is None:
            return {"t_ns": str(at_ns), "paths": []}
        at_s = (at_ns - self.traffic_ns) / 1e9
        paths = []
        for flow in self.run.flows:
            story = self.story_of(flow.name) if flow.protocol == "tcp" else None
            paths.append(path_of(self.run, flow, at_s, story if isinstance(story, Story) else None))
        return {"t_ns": str(at_ns), "paths": [path_answer(path) for path in paths]}


def datagram_bytes(packets: pl.DataFrame) -> np.ndarray:
    """The bytes of the IP packet of each row, which has UDP, without what a routing protocol has put around it."""
    headers = pl.when(pl.col("destination").str.contains(":", literal=True)).then(HEADERS_BYTES[6]).otherwise(HEADERS_BYTES[4])
    return packets.select(pl.col("payload_bytes").cast(pl.Int64) + headers).to_series().to_numpy()


def access_points_of(run: RunDirectory) -> list[str]:
    """The stations that hostapd made access points (testbed/stages/access_points.py)."""
    points = {point["name"] for point in read_object(run.path / "access-points" / "plan.json").get("access_points", ())}
    return [entry["name"] for entry in run.medium["stations"] if entry["name"] in points]


def path_answer(path: FlowPath) -> dict[str, Any]:
    """A path as `/api/routes` and the states of `/api/live` have it."""
    return asdict(path) | {"summary": path.summary}


def _spans(begin_ns: int, end_ns: int, points: int) -> tuple[np.ndarray, float]:
    """The middles of equal parts of a window, and the length (ns) over which a rate is taken around each."""
    edges = np.linspace(begin_ns, end_ns, min(points, MAX_RATES) + 1)
    return (edges[:-1] + edges[1:]) / 2, max(edges[1] - edges[0], MIN_RATE_NS)


def _rates(middles: np.ndarray, span_ns: float, counts: np.ndarray) -> Series:
    """Bytes over a time around each middle as bit/s."""
    return {"t": (middles / 1e9).tolist(), "v": (8e9 * counts / span_ns).tolist()}


def _check_window(begin_ns: int, end_ns: int) -> None:
    if not begin_ns < end_ns:
        raise UsageError(f"from={begin_ns}, to={end_ns}: is an empty time; give a later `to`")


def envelope(t: np.ndarray, values: np.ndarray, points: int) -> Series:
    """A line in at most about `points` values that looks the same: the smallest and the largest value of each part of the time
    axis. NaN (a gap) becomes None."""
    if len(t) > points:
        parts = np.array_split(np.arange(len(t)), max(1, points // 2))
        filled = np.where(np.isnan(values), np.inf, values), np.where(np.isnan(values), -np.inf, values)
        chosen = {int(part[filled[0][part].argmin()]) for part in parts} | {int(part[filled[1][part].argmax()]) for part in parts}
        places = np.array(sorted(chosen))
        t, values = t[places], values[places]
    return {"t": t.tolist(), "v": [None if np.isnan(value) else float(value) for value in values]}
