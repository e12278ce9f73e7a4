"""The channel of positions (`WS /api/positions`, formats/view.md): where the stations are and what they receive from each other,
as lines of JSON at a rate, for programs; with --control the same channel takes positions in.

Each move is an action of the view: the run carries it out and records it, so that a repetition of the run has it. At most
MAX_MOVES_PER_S are carried out; of those of one station that wait, the newest counts. A client that sends more than
MAX_MESSAGES_PER_S is read more slowly, and waits in its own socket.
"""

import asyncio
import json
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket

from record import records
from record.errors import RecordError
from testbed.errors import ManetError, UsageError
from testbed.stages.control import MediumControl
from testbed.view.live import LiveRun
from testbed.web.outgoing import GONE, Outgoing
from testbed.web.query import Query
from testbed.web.throttle import Throttle
from topologies.layouts import MAX_STATIONS

RATE_HZ, MAX_RATE_HZ = 5.0, 20.0
LINKS_HZ, MAX_LINKS_HZ = 1.0, 5.0  # of n stations there are n x (n - 1) links, which the medium computes
MAX_MOVES_PER_S, BURST = 200.0, 50
MAX_MESSAGES_PER_S, MESSAGES_AT_ONCE = 2000.0, 20_000  # what a client has sent before it goes is read at once, and forgotten
READ_ONLY = "this view is read-only; start it with --control"
WRONG = 'a message is one line of JSON, {"station": "sta1", "position": [x, y]}'
ENDED = {"end": True}
Act = Callable[[object], dict[str, Any]]
Line = dict[str, Any]


class Channel:
    """The channel of one client to the run under way. `act`: carries an action out; None: without --control."""

    def __init__(self, run: LiveRun, socket: WebSocket, act: Act | None) -> None:
        self._run, self._socket, self._act = run, socket, act
        self._out = Outgoing(socket)
        self._waiting: dict[str, tuple[int, Line]] = {}  # by station its newest move, with the number of its message
        self._came = asyncio.Event()
        self._slow = Throttle(MAX_MOVES_PER_S, BURST)
        self._moved = 0

    async def serve(self) -> None:
        """Send lines and take moves until the run ends or the client goes. Raises ManetError for wrong words, and if the run has
        ended already."""
        query = Query(self._socket)
        every_s = 1 / query.number("rate", RATE_HZ, 0.1, MAX_RATE_HZ)
        links_hz = query.number("links", LINKS_HZ, 0.0, MAX_LINKS_HZ)
        medium = await run_in_threadpool(self._run.medium)
        feed = Feed(self._run, medium, 1 / links_hz if links_hz else math.inf)
        listening, moving = asyncio.ensure_future(self._listen()), asyncio.ensure_future(self._move())
        try:
            await self._send_all(feed, every_s, listening)
            await self._socket.close()
        except GONE:
            pass
        finally:
            listening.cancel()
            moving.cancel()
            await run_in_threadpool(medium.close)

    async def _send_all(self, feed: "Feed", every_s: float, listening: "asyncio.Future[None]") -> None:
        loop = asyncio.get_running_loop()
        while not listening.done():
            due_s = loop.time() + every_s
            line = await run_in_threadpool(feed.next)
            await self._send(line if line is ENDED else line | {"moved": self._moved})
            if line is ENDED:
                return
            await asyncio.wait({listening}, timeout=max(0.0, due_s - loop.time()))

    async def _send(self, line: Line) -> None:
        await self._out.text(json.dumps(line, separators=(",", ":")) + "\n")

    async def _listen(self) -> None:
        """Take the client's messages until it goes."""
        throttle, number = Throttle(MAX_MESSAGES_PER_S, MESSAGES_AT_ONCE), 0
        with suppress(*GONE):
            while (message := await self._socket.receive())["type"] != "websocket.disconnect":
                number += 1
                await throttle.turn()
                if (problem := self._take(number, message.get("text"))) is not None:
                    await self._slow.turn()
                    await self._send({"error": problem, "message": number})

    def _take(self, number: int, text: str | None) -> str | None:
        """Put the move of a message among those that wait; returns why it is none."""
        if self._act is None:
            return READ_ONLY
        try:
            wanted = json.loads(text or "")
        except (ValueError, RecursionError):
            return WRONG
        if not isinstance(wanted, dict) or "op" in wanted or not isinstance(station := wanted.get("station"), str):
            return WRONG
        if len(self._waiting) >= MAX_STATIONS and station not in self._waiting:
            return f"{MAX_STATIONS} moves wait already; send fewer"
        self._waiting[station] = (number, wanted)
        self._came.set()
        return None

    async def _move(self) -> None:
        """Carry out the moves that wait, the oldest station first."""
        with suppress(*GONE):
            while await self._came.wait():
                self._came.clear()
                while self._waiting:
                    await self._slow.turn()
                    number, wanted = self._waiting.pop(next(iter(self._waiting)))
                    assert self._act is not None
                    try:
                        await run_in_threadpool(self._act, {"op": "move", **wanted})
                        self._moved += 1
                    except (ManetError, RecordError) as problem:
                        await self._send({"error": str(problem), "message": number})


class Feed:
    """The lines of one client; `links_every_s`: of links."""

    def __init__(self, run: LiveRun, medium: MediumControl, links_every_s: float) -> None:
        self._run, self._medium, self._links_every_ns = run, medium, links_every_s * 1e9
        self._links_at_ns = -math.inf
        self._traffic_ns: int | None = None

    def next(self) -> Line:
        """The line of this moment; ENDED once the run has."""
        try:
            model_ns = self._medium.ask("status")["model_ns"]
            line = {"t_s": model_ns / 1e9, "traffic_s": self._traffic_s(model_ns), "positions": self._positions()}
            if self._links_every_ns < math.inf and model_ns - self._links_at_ns >= self._links_every_ns:
                self._links_at_ns = model_ns
                line["links"] = self._links()
            return line
        except ManetError:
            return ENDED

    def _positions(self) -> dict[str, list[float]]:
        found = self._medium.ask("positions")["positions"]
        return {name: [round(value, 3) for value in place] for name, place in found.items()}

    def _links(self) -> list[Line]:
        return [
            {"from": link["from"], "to": link["to"], "rssi_dbm": round(link["power_dbm"], 2), "range": link["range"],
             "error_rate": link["error_rate"]}
            for link in self._medium.ask("links")["links"]
            if link["sensed"] and link["power_dbm"] is not None
        ]  # fmt: skip

    def _traffic_s(self, model_ns: int) -> float | None:
        """Seconds since the start of the traffic, from which events count; None before it."""
        if self._traffic_ns is None:
            with suppress(RecordError):
                self._traffic_ns = records.read(self._run.directory / records.RUN).get("traffic_ns")
        return None if self._traffic_ns is None else (model_ns - self._traffic_ns) / 1e9


def require_live(viewed: object) -> LiveRun:
    """The run, if it is under way. Raises UsageError."""
    if not isinstance(viewed, LiveRun):
        raise UsageError("no run is under way here; start one, then connect again")
    return viewed
