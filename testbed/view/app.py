"""The addresses of the view (formats/view.md): files of the page, and answers about a run as JSON or packed columns.

Answers are computed in threads, so that a long one (the first story of a run) delays no other.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from record.errors import RecordError
from testbed.errors import ManetError, shortened
from testbed.web.answers import as_json, failed
from testbed.web.guard import BodyTooLong, Guard, Rules, refuse, too_long
from testbed.web.query import Query

PAGE = Path(__file__).resolve().parent / "page"
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain"}
FILES = {str(path.relative_to(PAGE)): path for path in PAGE.rglob("*") if path.suffix in KINDS and path.is_file()}
DEFAULT_FRAMES = 20_000
MAX_TIME_NS = 10**18  # of model time, 31 years: sums with it stay below 2^63
MAX_NUMBER = (1 << 32) - 1  # of a packet, as in the columns


class Runs(Protocol):
    """The runs of a view. Methods raise ManetError or RecordError, one line each."""

    @property
    def title(self) -> str:
        """The name of what is shown."""

    @property
    def control(self) -> bool:
        """Whether the page may act."""

    def viewed(self, name: str | None) -> Any:
        """The run of this name; None: the only one, or the folder."""

    def about(self, name: str | None) -> dict[str, Any]:
        """What `/api/run` says beside what the run knows of itself: `control` and more."""

    def listing(self) -> list[dict[str, Any]] | None:
        """The runs to choose from; None for a single one."""

    def act(self, name: str | None, wanted: object) -> dict[str, Any]:
        """Carry out an action of the page."""


class View:
    """`site`: the runs by their names in the address (`run=`)."""

    def __init__(self, site: "Runs") -> None:
        self._site = site

    def app(self, rules: Rules) -> Guard:
        """The application behind its guard."""
        routes = [
            Route("/", self._page), Route("/static/{name:path}", self._page), Route("/api/live", _no_http),
            WebSocketRoute("/api/live", self._live), Route("/api/control", self._control, methods=["POST"]),
            *(Route(f"/api/{path}", self._answer(method, words)) for path, (method, words) in ANSWERS.items()),
            Route("/api/campaign", self._campaign), Route("/api/frames", self._frames),
        ]  # fmt: skip
        application = Starlette(
            routes=routes, exception_handlers={404: _unknown, 405: _unknown, 500: failed, BodyTooLong: too_long}
        )
        application.add_middleware(GZipMiddleware, minimum_size=4096, compresslevel=1)
        return Guard(application, rules)

    def _answer(self, method: str, words: Callable[[Query], tuple]) -> Callable:
        async def answer(request: Request) -> Response:
            query = Query(request)
            try:
                name = query.text_if_given("run")
                viewed = await run_in_threadpool(self._site.viewed, name)
                if not hasattr(viewed, method):
                    return refuse(404, f"{shortened(request.url.path)}: is not known before the run's end")
                found = await run_in_threadpool(getattr(viewed, method), *words(query))
                if request.url.path == "/api/run":
                    found |= await run_in_threadpool(self._site.about, name)
            except (ManetError, RecordError) as problem:
                return refuse(400, str(problem))
            return as_json(found)

        return answer

    async def _frames(self, request: Request) -> Response:
        query = Query(request)
        try:
            viewed = await run_in_threadpool(self._site.viewed, query.text_if_given("run"))
            if not hasattr(viewed, "window"):
                return refuse(404, "/api/frames: is not known before the run's end")
            words = *_window(query), _count(query, "limit", DEFAULT_FRAMES)
            packed, total = await run_in_threadpool(viewed.window, *words)
        except (ManetError, RecordError) as problem:
            return refuse(400, str(problem))
        return Response(packed, media_type="application/octet-stream", headers={"x-total": str(total)})

    async def _campaign(self, _request: Request) -> Response:
        return as_json({"runs": await run_in_threadpool(self._site.listing) or []})

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
            if hasattr(viewed, "follow"):
                await viewed.follow(socket)
                return
        except (ManetError, RecordError):  # it ended as the page came
            pass
        with suppress(WebSocketDisconnect, RuntimeError):  # the page has gone
            await socket.close(1000, ended)

    async def _control(self, request: Request) -> Response:
        if not self._site.control:
            return refuse(403, "this view is read-only; start it with --control")
        try:
            wanted = json.loads(await request.body())
            done = await run_in_threadpool(self._site.act, request.query_params.get("run"), wanted)
        except (ValueError, RecursionError):  # the latter: thousands of nested lists
            return refuse(400, "the body is no JSON object")
        except (ManetError, RecordError) as problem:
            return refuse(400, str(problem))
        return as_json(done)


# the method of the viewed run, and its arguments
ANSWERS: dict[str, tuple[str, Callable[[Query], tuple]]] = {
    "run": ("about", lambda q: ()),
    "movement": ("movement", lambda q: ()),
    "overview": ("overview", lambda q: (*_window(q), _count(q, "bins", 500))),
    "counts": ("counts", lambda q: ()),
    "nav": ("nav", lambda q: _window(q)),
    "frame/{row}": ("frame", lambda q: (q.in_path("row", 0, MAX_NUMBER),)),
    "packet/{number}": ("packet", lambda q: (q.in_path("number", 0, MAX_NUMBER),)),
    "station/{name}": ("station", lambda q: (q.path["name"], _time(q, "t"))),
    "drops": ("drops", lambda q: (*_window(q), _count(q, "limit", 1000))),
    "queues": ("queues", lambda q: (_time(q, "t"),)),
    "lateness": ("lateness", lambda q: ()),
    "routes": ("routes", lambda q: (_time(q, "t"),)),
    "series": ("series", lambda q: (q.text("flow", "flow1"), *_window(q), _count(q, "points", 800))),
    "story": ("story", lambda q: (
        q.text("flow", "flow1"), q.whole_if_given("segment", 0, MAX_NUMBER), q.seconds("t", 0.0, -1e9), q.seconds("span", 0.5)
    )),
}  # fmt: skip


def _time(query: Query, name: str) -> int:
    return query.needed(name, -MAX_TIME_NS, MAX_TIME_NS)


def _window(query: Query) -> tuple[int, int]:
    return _time(query, "from"), _time(query, "to")


def _count(query: Query, name: str, otherwise: int) -> int:
    return query.whole(name, otherwise, 1, MAX_NUMBER)


async def _no_http(_request: Request) -> Response:
    return refuse(426, "/api/live is a WebSocket")


async def _unknown(request: Request, _problem: Exception) -> Response:
    return refuse(404, f"{shortened(request.url.path)}: no such address; formats/view.md lists them")
