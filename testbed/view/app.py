"""The addresses of the view (formats/view.md): files of the page, and answers about a run as JSON or packed columns.

Answers are computed in threads, so that a long one (the first story of a run) delays no other.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from analysis.errors import AnalysisError
from testbed.errors import ManetError
from testbed.web.answers import as_json, failed
from testbed.web.guard import BodyTooLong, Guard, Rules, refuse, too_long

PAGE = Path(__file__).resolve().parent / "page"
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain"}
DEFAULT_FRAMES = 20_000


class Runs(Protocol):
    """The runs of a view. Methods raise ManetError or AnalysisError, one line each."""

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

    def _answer(self, method: str, words: Callable[["Query"], tuple]) -> Callable:
        async def answer(request: Request) -> Response:
            query = Query(request)
            try:
                name = query.text("run")
                viewed = await run_in_threadpool(self._site.viewed, name)
                if not hasattr(viewed, method):
                    return refuse(404, f"{request.url.path[:100]}: is not known before the run's end")
                found = await run_in_threadpool(getattr(viewed, method), *words(query))
                if request.url.path == "/api/run":
                    found |= await run_in_threadpool(self._site.about, name)
            except (ManetError, AnalysisError) as problem:
                return refuse(400, str(problem))
            return as_json(found)

        return answer

    async def _frames(self, request: Request) -> Response:
        query = Query(request)
        try:
            viewed = await run_in_threadpool(self._site.viewed, query.text("run"))
            if not hasattr(viewed, "window"):
                return refuse(404, "/api/frames: is not known before the run's end")
            begin_ns, end_ns, limit = query.whole("from"), query.whole("to"), query.whole("limit", DEFAULT_FRAMES)
            packed, total = await run_in_threadpool(viewed.window, begin_ns, end_ns, limit)
        except (ManetError, AnalysisError) as problem:
            return refuse(400, str(problem))
        return Response(packed, media_type="application/octet-stream", headers={"x-total": str(total)})

    async def _campaign(self, _request: Request) -> Response:
        return as_json({"runs": await run_in_threadpool(self._site.listing) or []})

    async def _page(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        file = (PAGE / name).resolve()
        if not file.is_relative_to(PAGE) or not file.is_file() or file.suffix not in KINDS:
            return refuse(404, f"{request.url.path[:100]}: no such file of the page")
        return FileResponse(file, media_type=KINDS[file.suffix])

    async def _live(self, socket: WebSocket) -> None:
        ended = "this run has ended; its answers are those of a recorded run"
        try:
            viewed = await run_in_threadpool(self._site.viewed, socket.query_params.get("run"))
            if hasattr(viewed, "follow"):
                await viewed.follow(socket)
            else:
                await socket.close(1000, ended)
        except (ManetError, AnalysisError):  # it ended as the page came
            await socket.close(1000, ended)

    async def _control(self, request: Request) -> Response:
        if not self._site.control:
            return refuse(403, "this view is read-only; start it with --control")
        try:
            wanted = json.loads(await request.body())
            done = await run_in_threadpool(self._site.act, request.query_params.get("run"), wanted)
        except (ValueError, RecursionError):  # the latter: thousands of nested lists
            return refuse(400, "the body is no JSON object")
        except (ManetError, AnalysisError) as problem:
            return refuse(400, str(problem))
        return as_json(done)


class Query:
    """The words after `?`, checked. Raises UsageError with the name of the wrong one."""

    def __init__(self, request: Request) -> None:
        self._given, self.path = request.query_params, request.path_params

    def text(self, name: str) -> str | None:
        """A word, or None."""
        return self._given.get(name)

    def whole(self, name: str, otherwise: int | None = None) -> int:
        """A whole number."""
        given = self._given.get(name)
        if given is None and otherwise is not None:
            return otherwise
        if given is None or not given.removeprefix("-").isdecimal() or len(given) > 19:
            raise Wrong(f"{name}={given}: is no whole number")
        return int(given)

    def number(self, name: str) -> float | None:
        """A number, or None."""
        given = self._given.get(name)
        if given is None:
            return None
        try:
            found = float(given)
        except ValueError:
            raise Wrong(f"{name}={given[:40]}: is no number") from None
        if not abs(found) < 1e9:
            raise Wrong(f"{name}={given[:40]}: is no time")
        return found


class Wrong(ManetError):
    """A wrong word of a request."""


# the method of the viewed run, and its arguments
ANSWERS: dict[str, tuple[str, Callable[[Query], tuple]]] = {
    "run": ("about", lambda q: ()),
    "movement": ("movement", lambda q: ()),
    "overview": ("overview", lambda q: (q.whole("from"), q.whole("to"), q.whole("bins", 500))),
    "counts": ("counts", lambda q: ()),
    "nav": ("nav", lambda q: (q.whole("from"), q.whole("to"))),
    "frame/{row:int}": ("frame", lambda q: (q.path["row"],)),
    "packet/{number:int}": ("packet", lambda q: (q.path["number"],)),
    "station/{name}": ("station", lambda q: (q.path["name"], q.whole("t"))),
    "drops": ("drops", lambda q: (q.whole("from"), q.whole("to"), q.whole("limit", 1000))),
    "queues": ("queues", lambda q: (q.whole("t"),)),
    "lateness": ("lateness", lambda q: ()),
    "routes": ("routes", lambda q: (q.whole("t"),)),
    "series": ("series", lambda q: (q.text("flow") or "flow1", q.whole("from"), q.whole("to"), q.whole("points", 800))),
    "story": ("story", lambda q: (
        q.text("flow") or "flow1", q.whole("segment") if q.text("segment") else None, q.number("t"), q.number("span") or 0.5
    )),
}  # fmt: skip


async def _no_http(_request: Request) -> Response:
    return refuse(426, "/api/live is a WebSocket")


async def _unknown(request: Request, _problem: Exception) -> Response:
    return refuse(404, f"{request.url.path[:100]}: no such address; formats/view.md lists them")
