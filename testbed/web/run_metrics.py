"""The runs under way below a folder as Prometheus' metrics (formats/metrics.md): what their media count, and their TCP's samples.

A scrape asks each medium twice and reads the new rows of tcp.csv; it starts no program, and no frame waits for it.
"""

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from record.added_flows import ADDED_FLOWS
from record.errors import RecordError
from record.events_file import EVENTS_FILE
from record.run import RunRecord
from scenarios.flows import FIRST_PORT
from testbed import __version__
from testbed.errors import ManetError, RunError
from testbed.runs.tails import Lines, TcpTail
from testbed.runs.under_way import medium_of, runs_under_way
from testbed.stages.control import MediumControl
from testbed.web.exposition import Family, Samples

OF_RUN, OF_STATION, OF_FLOW = ("run",), ("run", "station"), ("run", "flow", "source", "target")
VERDICTS = ("valid", "suspect", "void")
# counters of the medium (medium/src/counters.rs), and the names of frames, fates and reasons in air.csv
FRAMES = {f"tx_{name}": name for name in ("rts", "cts", "data", "ack", "bcast", "ba", "bar")}
LOST = {f"fate_{name}": name for name in ("collision", "hidden", "weak", "error", "busy", "nav")}
DROPPED = {
    "queue_full": "queue-full", "codel": "codel", "overlimit": "overlimit", "retry_short": "retry-short",
    "retry_long": "retry-long", "purged": "purged", "no_peer": "no-peer", "too_long": "too-long", "off": "off",
}  # fmt: skip
FAMILIES = (
    Family("manet_build_info", "gauge", "Version of the server, as a label; always 1.", ("version",)),
    Family("manet_run_up", "gauge", "1 if the medium of a run under way answers, 0 before and after.", OF_RUN),
    Family("manet_run_time_seconds", "gauge", "Model time of the run.", OF_RUN),
    Family("manet_run_verdict", "gauge", "1 for the verdict so far of the medium, 0 for the others.", ("run", "verdict")),
    Family("manet_run_events_total", "counter", "Rows of events.csv.", OF_RUN),
    Family("manet_stations", "gauge", "Stations of the run.", OF_RUN),
    Family("manet_medium_lateness_seconds", "summary", "Lateness of the medium since its start.", ("run", "quantile")),
    Family("manet_medium_lateness_max_seconds", "gauge", "Greatest lateness of the medium since its start.", OF_RUN),
    Family("manet_medium_stalls_total", "counter", "Stalls of the medium.", OF_RUN),
    Family("manet_medium_events_total", "counter", "Events that the medium has handled.", OF_RUN),
    Family("manet_station_queue_packets", "gauge", "Packets that wait at the station, the one in service included.", OF_STATION),
    Family("manet_station_packets_sent_total", "counter", "Packets that the station's host has queued.", OF_STATION),
    Family("manet_station_packets_received_total", "counter", "Packets handed to the station's host.", OF_STATION),
    Family("manet_station_packets_dropped_total", "counter", "Packets that the station has dropped.", (*OF_STATION, "reason")),
    Family("manet_station_frames_sent_total", "counter", "Frames on the air.", (*OF_STATION, "frame")),
    Family("manet_station_frames_lost_total", "counter", "Frames of the station lost at receivers.", (*OF_STATION, "reason")),
    Family("manet_station_airtime_seconds_total", "counter", "Time that the station has sent.", OF_STATION),
    Family("manet_flow_acked_bytes_total", "counter", "Bytes acknowledged since the server's first look at the flow.", OF_FLOW),
    Family("manet_flow_cwnd_segments", "gauge", "Congestion window of the newest sample.", OF_FLOW),
    Family("manet_flow_rtt_seconds", "gauge", "Smoothed round-trip time of the newest sample.", OF_FLOW),
    Family("manet_flow_rto_seconds", "gauge", "Retransmission timeout of the newest sample.", OF_FLOW),
)


class RunMetrics:
    """The metrics of the runs that are under way in `folder` or below it; for several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._turn = folder.resolve(), threading.Lock()
        self._runs: dict[Path, _Run] = {}

    def add_to(self, samples: Samples) -> None:
        """The metrics of this moment. A run that is coming up or going down has `manet_run_up` 0 alone."""
        samples.add("manet_build_info", 1, __version__)
        with self._turn:
            paths = {Path(state.directory) for state in runs_under_way()}
            now = {path for path in paths if path.is_relative_to(self._folder)}
            for path in self._runs.keys() - now:
                self._runs.pop(path).close()
            for path in sorted(now):
                run = self._runs.setdefault(path, _Run(path, _name(path, self._folder)))
                run.add_to(samples)


def _name(path: Path, folder: Path) -> str:
    """A run by its path below the folder; the folder itself by its last words, `chain5/all/seed-1`."""
    return str(path.relative_to(folder)) if path != folder else "/".join(path.parts[-3:])


class _Run:
    def __init__(self, directory: Path, name: str) -> None:
        self._directory, self._name = directory, name
        self._medium: MediumControl | None = None
        self._tcp, self._events = TcpTail(directory / "tcp.csv"), Lines(directory / EVENTS_FILE)
        self._record, self._flows_ns = RunRecord(directory), 0  # the time of flows.json, which makes another record

    def close(self) -> None:
        if self._medium is not None:
            self._medium.close()
            self._medium = None

    def add_to(self, samples: Samples) -> None:
        try:
            self._medium = self._medium or medium_of(self._directory)
            if self._medium is None:
                raise RunError("its network is not up")
            status, counters = self._medium.ask("status"), self._medium.ask("counters")
        except ManetError:
            self.close()
            samples.add("manet_run_up", 0, self._name)
            return
        self._add_status(samples, status)
        for name, counts in counters["stations"].items():
            samples.add("manet_station_queue_packets", counters["queues"][name], self._name, name)
            self._add_station(samples, name, counts)
        with suppress(RecordError):  # a file is being written
            self._add_flows(samples)

    def _add_status(self, samples: Samples, status: dict[str, Any]) -> None:
        run, late = self._name, status["lateness"]
        samples.add("manet_run_up", 1, run)
        samples.add("manet_run_time_seconds", status["model_ns"] / 1e9, run)
        for verdict in VERDICTS:
            samples.add("manet_run_verdict", int(status["verdict"] == verdict), run, verdict)
        samples.add("manet_run_events_total", self._events.count(), run)
        samples.add("manet_stations", status["stations"], run)
        for quantile, key in (("0.5", "p50_us"), ("0.99", "p99_us")):
            samples.add("manet_medium_lateness_seconds", late[key] / 1e6, run, quantile)
        samples.add("manet_medium_lateness_seconds", late["count"], run, suffix="_count")
        samples.add("manet_medium_lateness_max_seconds", late["max_us"] / 1e6, run)
        samples.add("manet_medium_stalls_total", status["stalls"], run)
        samples.add("manet_medium_events_total", status["events"], run)

    def _add_station(self, samples: Samples, name: str, counts: dict[str, int]) -> None:
        run = self._name
        samples.add("manet_station_packets_sent_total", counts["enqueued"], run, name)
        samples.add("manet_station_packets_received_total", counts["delivered_up"], run, name)
        samples.add("manet_station_airtime_seconds_total", counts["airtime_tx_ns"] / 1e9, run, name)
        for key, count in counts.items():  # those that most profiles lack are there once they have happened
            if reason := DROPPED.get(key):
                samples.add("manet_station_packets_dropped_total", count, run, name, reason)
            elif frame := FRAMES.get(key):
                samples.add("manet_station_frames_sent_total", count, run, name, frame)
            elif fate := LOST.get(key):
                samples.add("manet_station_frames_lost_total", count, run, name, fate)

    def _add_flows(self, samples: Samples) -> None:
        with suppress(OSError):  # no flow was added
            if (now_ns := (self._directory / ADDED_FLOWS).stat().st_mtime_ns) != self._flows_ns:
                self._record, self._flows_ns = RunRecord(self._directory), now_ns
        newest = {(one["station"], one["dport"]): one for one in self._tcp.latest().values()}
        for port, flow in enumerate(self._record.flows, start=FIRST_PORT):
            if sample := newest.get((flow.source, port)):
                labels = self._name, flow.name, flow.source, flow.target
                samples.add("manet_flow_acked_bytes_total", self._tcp.acked_bytes[flow.source, port], *labels)
                samples.add("manet_flow_cwnd_segments", sample["cwnd"], *labels)
                samples.add("manet_flow_rtt_seconds", sample["rtt_ms"] / 1e3, *labels)
                samples.add("manet_flow_rto_seconds", sample["rto_ms"] / 1e3, *labels)
