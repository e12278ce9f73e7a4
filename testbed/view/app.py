"""The addresses of the view (formats/view.md): files of the page, and answers about a run as JSON or packed columns.

Answers are computed in threads, so that a long one (the first story of a run) delays no other.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from record.errors import RecordError
from testbed.errors import ManetError, UsageError, shortened
from testbed.view.live import LiveRun
from testbed.view.positions import READ_ONLY, Channel, require_live
from testbed.view.recorded import RecordedRun
from testbed.view.terminal import Terminal, require_room
from testbed.view.viewed import FirstPage, Run, Runs, TimedRun, Viewed
from testbed.web.answers import as_json, failed
from testbed.web.exposition import CONTENT_TYPE, Samples
from testbed.web.guard import CLOSED, BodyTooLong, Guard, Rules, refuse, too_long
from testbed.web.query import Query
from testbed.web.run_metrics import FAMILIES, RunMetrics

PAGE = Path(__file__).resolve().parent / "page"
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain"}
FILES = {str(path.relative_to(PAGE)): path for path in PAGE.rglob("*") if path.suffix in KINDS and path.is_file()}
DEFAULT_FRAMES = 20_000
MAX_REASON = 100  # characters of the reason of a WebSocket's end, of at most 123 bytes (RFC 6455, 5.5)
MAX_TIME_NS = 10**18  # of model time, 31 years: sums with it stay below 2^63
MAX_NUMBER = (1 << 32) - 1  # of a packet, as in the columns
Answer = dict[str, Any]
Ask = Callable[[Viewed, Query], Answer | None]  # None: unknown in the run's state


class View:
    """`site`: the runs by their names in the address (`run=`); `more`: addresses beside those of the view."""

    def __init__(self, site: Runs, more: Sequence[Route] = ()) -> None:
        self._site, self._more, self._terminals = site, more, 0

    @cached_property
    def _metrics(self) -> RunMetrics:
        return RunMetrics(self._site.folder)

    def app(self, rules: Rules) -> Guard:
        """The application behind its guard."""
        routes = [
            Route("/", self._page), Route("/static/{name:path}", self._page), Route("/api/live", _no_http),
            WebSocketRoute("/api/live", self._live), Route("/api/positions", _no_http),
            WebSocketRoute("/api/positions", self._positions), Route("/api/terminal", _no_http),
            WebSocketRoute("/api/terminal", self._terminal), Route("/api/control", self._control, methods=["POST"]),
            *(Route(f"/api/{path}", self._answer(ask)) for path, ask in ANSWERS.items()),
            Route("/api/campaign", self._campaign), Route("/api/frames", self._frames), Route("/metrics", self._scraped),
            *self._more,
        ]  # fmt: skip
        application = Starlette(
            routes=routes, exception_handlers={404: _unknown, 405: _unknown, 500: failed, BodyTooLong: too_long}
        )
        application.add_middleware(GZipMiddleware, minimum_size=4096, compresslevel=1)
        return Guard(application, rules)

    def _answer(self, ask: Ask) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            query = Query(request)
            try:
                name = query.text_if_given("run")
                viewed = await run_in_threadpool(self._site.viewed, name)
                content = await run_in_threadpool(ask, viewed, query)
                if content is None:
                    return _too_early(request)
                if request.url.path == "/api/run":
                    content |= await run_in_threadpool(self._site.about, name)
            except (ManetError, RecordError) as problem:
                return refuse(400, str(problem))
            return as_json(content)

        return answer

    async def _frames(self, request: Request) -> Response:
        query = Query(request)
        try:
            viewed = await run_in_threadpool(self._site.viewed, query.text_if_given("run"))
            if not isinstance(viewed, TimedRun):
                return _too_early(request)
            window = *_window(query), _count(query, "limit", DEFAULT_FRAMES)
            packed, total = await run_in_threadpool(lambda: viewed.window(*window))
        except (ManetError, RecordError) as problem:
            return refuse(400, str(problem))
        return Response(packed, media_type="application/octet-stream", headers={"x-total": str(total)})

    async def _campaign(self, _request: Request) -> Response:
        try:
            runs = await run_in_threadpool(self._site.listing)
        except (ManetError, RecordError) as problem:
            return refuse(400, str(problem))
        return as_json({"runs": runs or []})

    async def _scraped(self, _request: Request) -> Response:
        samples = Samples(FAMILIES)
        await run_in_threadpool(self._metrics.add_to, samples)
        return Response(samples.text(), headers={"content-type": CONTENT_TYPE})

    async def _page(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        file = FILES.get(name)
        if file is None:
            return refuse(404, f"{shortened(request.url.path)}: no such file of the page")
        return FileResponse(file, media_type=KINDS[file.suffix])

    async def _live(self, socket: WebSocket) -> None:
        ended = "this run has ended; its answers are those of a recorded run"
        try:
            viewed = await run_in_threadpool(self._site.viewed, socket.query_params.get("run"))
            if isinstance(viewed, LiveRun):
                await viewed.follow(socket)
                return
        except (ManetError, RecordError):  # it ended as the page came
            pass
        with suppress(WebSocketDisconnect, RuntimeError):  # the page has gone
            await socket.close(1000, ended)

    async def _positions(self, socket: WebSocket) -> None:
        name = socket.query_params.get("run")
        act = partial(self._site.act, name) if self._site.control else None
        with suppress(WebSocketDisconnect, RuntimeError):  # the client has gone
            await socket.accept()
            try:
                run = require_live(await run_in_threadpool(self._site.viewed, name))
                await Channel(run, socket, act).serve()
            except (ManetError, RecordError) as problem:
                await socket.close(CLOSED, str(problem)[:MAX_REASON])

    async def _terminal(self, socket: WebSocket) -> None:
        words = socket.query_params
        with suppress(WebSocketDisconnect, RuntimeError):  # the page has gone
            await socket.accept()
            try:
                if not self._site.control:
                    raise UsageError(READ_ONLY)
                run = require_live(await run_in_threadpool(self._site.viewed, words.get("run")))
                require_room(self._terminals)
            except (ManetError, RecordError) as problem:
                await socket.close(CLOSED, str(problem)[:MAX_REASON])
                return
            self._terminals += 1
            try:
                await Terminal(run.directory, words.get("station", ""), socket).serve()
            finally:
                self._terminals -= 1

    async def _control(self, request: Request) -> Response:
        if not self._site.control:
            return refuse(403, READ_ONLY)
        try:
            action = json.loads(await request.body())
            done = await run_in_threadpool(self._site.act, request.query_params.get("run"), action)
        except (ValueError, RecursionError):  # the latter: thousands of nested lists
            return refuse(400, "the body is no JSON object")
        except (ManetError, RecordError) as problem:
            return refuse(400, str(problem))
        return as_json(done)


def _of_first_page(ask: Callable[[FirstPage, Query], Answer]) -> Ask:
    return lambda viewed, query: ask(viewed, query) if isinstance(viewed, FirstPage) else None


def _of_run(ask: Callable[[Run, Query], Answer]) -> Ask:
    return lambda viewed, query: ask(viewed, query) if isinstance(viewed, Run) else None


def _of_timed(ask: Callable[[TimedRun, Query], Answer]) -> Ask:
    return lambda viewed, query: ask(viewed, query) if isinstance(viewed, TimedRun) else None


def _of_recorded(ask: Callable[[RecordedRun, Query], Answer]) -> Ask:
    return lambda viewed, query: ask(viewed, query) if isinstance(viewed, RecordedRun) else None


ANSWERS: dict[str, Ask] = {
    "run": lambda viewed, q: viewed.about(),
    "home": _of_first_page(lambda page, q: page.contents()),
    "picture": _of_first_page(lambda page, q: page.picture(q.text("of", ""))),
    "movement": _of_run(lambda run, q: run.movement()),
    "overview": _of_timed(lambda run, q: run.overview(*_window(q), _count(q, "bins", 500))),
    "counts": _of_timed(lambda run, q: run.counts()),
    "nav": _of_timed(lambda run, q: run.nav(*_window(q))),
    "frame/{row}": _of_recorded(lambda run, q: run.frame(q.in_path("row", 0, MAX_NUMBER))),
    "packet/{number}": _of_recorded(lambda run, q: run.packet(q.in_path("number", 0, MAX_NUMBER))),
    "station/{name}": _of_timed(lambda run, q: run.station(q.path["name"], _time(q, "t"))),
    "drops": _of_timed(lambda run, q: run.drops(*_window(q), _count(q, "limit", 1000))),
    "queues": _of_timed(lambda run, q: run.queues(_time(q, "t"))),
    "lateness": _of_timed(lambda run, q: run.lateness()),
    "routes": _of_run(lambda run, q: run.routes(_time(q, "t"))),
    "series": _of_timed(lambda run, q: run.series(q.text("flow", "flow1"), *_window(q), _count(q, "points", 800))),
    "story": _of_recorded(lambda run, q: run.story(
        q.text("flow", "flow1"), q.whole_if_given("segment", 0, MAX_NUMBER), q.seconds("t", 0.0, -1e9), q.seconds("span", 0.5)
    )),
}  # fmt: skip


def _time(query: Query, name: str) -> int:
    return query.needed(name, -MAX_TIME_NS, MAX_TIME_NS)


def _window(query: Query) -> tuple[int, int]:
    return _time(query, "from"), _time(query, "to")


def _count(query: Query, name: str, otherwise: int) -> int:
    return query.whole(name, otherwise, 1, MAX_NUMBER)


def _too_early(request: Request) -> Response:
    return refuse(404, f"{shortened(request.url.path)}: is not known before the run's end")


async def _no_http(request: Request) -> Response:
    return refuse(426, f"{request.url.path} is a WebSocket")


async def _unknown(request: Request, _problem: Exception) -> Response:
    return refuse(404, f"{shortened(request.url.path)}: no such address; formats/view.md lists them")
