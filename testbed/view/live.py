"""A run under way, as the page follows it: the medium's control socket and the files that it writes.

The view is never in the path of a frame: it reads the end of air.csv and asks the medium some times a second. A page that reads
too slowly loses frames, with their number in the next state; the run waits for nobody.
"""

import asyncio
import math
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket

from analysis.captures.pcap import GrowingCapture
from analysis.captures.rundir import RunDirectory
from record.errors import RecordError
from record.files import plain_file
from scenarios.flows import FIRST_PORT
from testbed.errors import ManetError, UsageError
from testbed.runs.live_map import live as live_map
from testbed.runs.tails import Lines, TcpTail
from testbed.runs.under_way import medium_of, under_way
from testbed.stages.control import MediumControl
from testbed.view.frames import DROP, DROPS, FATES, TX, Frames, parse_rows
from testbed.view.lives import Waiting
from testbed.view.recorded import RecordedRun, datagram_bytes, path_answer
from testbed.web.outgoing import GONE, SEND_WITHIN_S

EVERY_S = 0.2  # of a state
PATHS_EVERY_S = 2.0  # some processes of ip(8) each time
MAX_CHUNK_BYTES = 1 << 20
MAX_FRAMES = 4000  # in one message


class LiveRun:
    """A run under way in `directory`."""

    kind = "live"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.record = RecordedRun(directory)  # of its files, those that are there from its start

    @property
    def is_running(self) -> bool:
        """Whether the run is still under way."""
        return under_way(self.directory) is not None

    def about(self) -> dict[str, Any]:
        """`/api/run`, with the events and the flows until now."""
        files = RecordedRun(self.directory).about_files(self.kind)
        medium = self.medium()
        try:
            status = medium.ask("status")
        finally:
            medium.close()
        return files | {"running": True, "end_ns": str(status["model_ns"]), "verdict": {"verdict": status["verdict"]}}

    def movement(self) -> dict[str, Any]:
        """`/api/movement`: the planned movement; states have the real positions."""
        return self.record.movement()

    def routes(self, _at_ns: int) -> dict[str, Any]:
        """`/api/routes`: the paths of the flows now, as `manet map` and `manet routes` find them, and who is off."""
        network = live_map(self.directory)
        snapshot = network.snapshot() if network is not None else None
        return {
            "t_ns": None,
            "off": sorted(snapshot.off) if snapshot is not None else [],
            "paths": [path_answer(path) for path in snapshot.paths] if snapshot is not None else [],
        }

    async def follow(self, socket: WebSocket) -> None:
        """Send states and frames until the run ends or the page goes. Raises UsageError if the run has ended already."""
        feed = Feed(self)
        try:
            await socket.accept()
            await run_in_threadpool(feed.open)
            listening = asyncio.ensure_future(_until_gone(socket))
            while not listening.done():
                state, frames = await run_in_threadpool(feed.next)
                await asyncio.wait_for(socket.send_json(state), SEND_WITHIN_S)
                if frames:
                    await asyncio.wait_for(socket.send_bytes(frames), SEND_WITHIN_S)
                if state["type"] == "end":
                    break
                await asyncio.wait({listening}, timeout=EVERY_S)
            listening.cancel()
            await socket.close()
        except GONE:
            pass
        finally:
            await run_in_threadpool(feed.close)

    def medium(self) -> MediumControl:
        """A connection to the medium. Raises UsageError once the run has ended."""
        control = medium_of(self.directory)
        if control is None:
            raise UsageError(f"{self.directory}: the run has ended; reload the page")
        return control


class Feed:
    """The data sent to one page: the new rows of the air log since it came, and the state of the medium."""

    def __init__(self, run: LiveRun) -> None:
        self._run = run
        self._medium: MediumControl | None = None
        self._offset = 0
        self._head: list[str] = []
        self._rest = b""
        self._skipped = 0
        self._paths: list[dict[str, Any]] = []
        self._paths_at_ns = -math.inf
        self._air = run.directory / "air.csv"
        self._tcp = TcpTail(run.directory / "tcp.csv")
        self._events = Lines(run.directory / "events.csv")
        self._waiting = Waiting(run.record.stations)
        self._received = Received(run.record.run)

    def open(self) -> None:
        """Begin at the end of the air log."""
        self._medium = self._run.medium()
        size = self._air.stat().st_size if self._air.exists() else 0
        self._offset = max(0, size - (MAX_CHUNK_BYTES >> 3))
        if self._offset:
            self._rest = b"\0"  # the first line is not whole

    def close(self) -> None:
        """Leave the medium."""
        if self._medium is not None:
            self._medium.close()

    def next(self) -> tuple[dict[str, Any], bytes]:
        """The state now, and the frames since the last one."""
        assert self._medium is not None
        try:
            status, places = self._medium.ask("status"), self._medium.ask("positions")["positions"]
            nav = self._medium.ask("nav")
        except ManetError:
            return {"type": "end", "directory": str(self._run.directory)}, b""
        frames, off = self._new_frames(), None
        if frames is not None:
            self._waiting.take(frames)
        if status["model_ns"] - self._paths_at_ns > PATHS_EVERY_S * 1e9:
            self._paths_at_ns = status["model_ns"]
            try:
                now = self._run.routes(0)
                self._paths, off = now["paths"], now["off"]
            except (ManetError, RecordError):  # it has just ended
                self._paths = []
        state = {
            "type": "state", "t_ns": str(status["model_ns"]), "positions": {name: place[:2] for name, place in places.items()},
            "verdict": status["verdict"], "lateness": status["lateness"], "stalls": status["stalls"], "paths": self._paths,
            "queues": {name: asdict(queue) for name, queue in self._waiting.queues(status["model_ns"]).items()},
            "jamming": sorted(frames.jams) if frames is not None else [], "data": _last_data(frames),
            "events": self._events.count(), "off": off,
            "nav": {name: str(until) for name, until in nav["nav_until_ns"].items() if until > nav["model_ns"]},
            "skipped": self._skipped, "counts": _counts(frames), "tcp": self._tcp.latest(), "received": self._received.totals(),
        }  # fmt: skip
        if frames is None or not len(frames.sent):
            return state, b""
        chosen = frames.sent[-MAX_FRAMES:]
        self._skipped += len(frames.sent) - len(chosen)
        return state, frames.packed(chosen, thinned=len(chosen) < len(frames.sent))

    def _new_frames(self) -> Frames | None:
        """The whole lines that the log has gained; where there are too many, only the last."""
        try:
            size = self._air.stat().st_size
            begin = self._offset
            if size - begin > MAX_CHUNK_BYTES:
                begin, self._rest = size - MAX_CHUNK_BYTES, b"\0"
                self._waiting.forget()
            with plain_file(self._air) as file:
                file.seek(begin)
                text = file.read(size - begin)
        except OSError:
            return None
        self._offset = begin + len(text)
        whole, newline, self._rest = (self._rest + text).rpartition(b"\n")
        if not newline:
            self._rest = whole + self._rest
            return None
        if whole.startswith(b"\0"):
            whole = whole.partition(b"\n")[2]
        if whole.startswith(b"t_ns"):
            whole = whole.partition(b"\n")[2]
        return parse_rows(whole + b"\n", self._run.record.stations, self._columns()) if whole else None

    def _columns(self) -> list[str]:
        """The columns of the log, by its first line, which is whole when there is a second one."""
        if not self._head:
            with plain_file(self._air) as file:
                self._head = file.readline().decode().split()[0].split(",")
        return self._head


class Received:
    """The bytes that each UDP flow of the scenario has brought to its receiver since the first look, by the captures, which
    `manet-capture` writes fifty times a second."""

    def __init__(self, run: RunDirectory) -> None:
        self._bytes: dict[str, int] = {}
        self._captures: dict[str, tuple[GrowingCapture, dict[int, str]]] = {}  # by name: with its flows by port
        for port, flow in enumerate(run.flows, start=FIRST_PORT):
            if flow.protocol == "udp":
                self._bytes[flow.name] = 0
                for name in run.captures_of(flow, flow.target):
                    capture = GrowingCapture(run.path / "captures" / f"{name}.pcap")
                    self._captures.setdefault(name, (capture, {}))[1][port] = flow.name

    def totals(self) -> dict[str, int]:
        """By the name of the flow, bytes of IP packets."""
        for capture, flows in self._captures.values():
            with suppress(RecordError, OSError):  # it has just ended
                packets = capture.gained().filter((pl.col("protocol") == "udp") & pl.col("destination_port").is_in(list(flows)))
                for port, size in zip(packets["destination_port"], datagram_bytes(packets), strict=True):
                    self._bytes[flows[port]] += int(size)
        return self._bytes


def _last_data(frames: Frames | None) -> dict[str, dict[str, object]]:
    """Of each station that sent data the last such frame among the new rows, as a row of the air log."""
    if frames is None or not len(frames.sent):
        return {}
    end_ns = int(frames.rows["t_ns"].max())
    last = {name: frames.last_data(place, end_ns) for place, name in enumerate(frames.stations)}
    return {name: frames.as_text(row) for name, row in last.items() if row is not None}


def _counts(frames: Frames | None) -> dict[str, dict[str, int]]:
    """Frames by fate and drops by reason among the new rows."""
    if frames is None:
        return {"sent": {}, "drops": {}}
    event, fate = frames.rows["event"], frames.rows["fate"]

    def counted(kind: int, names: tuple[str, ...]) -> dict[str, int]:
        numbers = np.bincount(fate[event == kind], minlength=len(names))
        return {name: int(number) for name, number in zip(names, numbers, strict=True) if number}

    return {"sent": counted(TX, FATES), "drops": counted(DROP, DROPS)}


async def _until_gone(socket: WebSocket) -> None:
    """Returns when the page closes; its messages are ignored."""
    with suppress(RuntimeError):  # of a socket that is closed already
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass
