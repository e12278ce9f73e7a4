"""The addresses of the editor, beside the view's (formats/view.md). The guard before both asks for token, Host and Origin."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from keys.errors import printable
from record.errors import RecordError
from testbed.errors import ManetError, UsageError, shortened
from testbed.view.app import PAGE
from testbed.view.editor.forms import form
from testbed.view.editor.session import Question, Session, Stale
from testbed.view.editor.starts import Starts
from testbed.view.editor.workspace import PICTURES
from testbed.web.answers import as_json
from testbed.web.guard import refuse
from testbed.web.query import Query

PATH = "/edit"
Body = dict[str, Any]
Answer = Callable[[Body], Any]
KEYS = {
    "change": ("operation", "version"), "draft": ("take",), "save": ("name", "version", "overwrite"), "start": ("seeds",),
    "stop": (),
}  # fmt: skip


class Editor:
    """`starts`: the runs, which the view of the same server shows."""

    def __init__(self, session: Session, starts: Starts) -> None:
        self._session, self._starts = session, starts

    def routes(self) -> list[Route]:
        """The page and the addresses below /api/edit."""
        session, starts = self._session, self._starts
        asked: dict[str, Callable[[Query], Any]] = {
            "state": lambda query: session.since(query.whole("after", 0)),
            "check": lambda _query: session.check(),
            "form": lambda _query: {"groups": form()},
            "files": lambda _query: {
                "scenarios": session.workspace.listed(), "pictures": session.workspace.listed(tuple(PICTURES)),
            },
            "runs": lambda _query: starts.progress(),
        }  # fmt: skip
        posted: dict[str, Answer] = {
            "change": lambda body: session.apply(body["operation"], body["version"]),
            "draft": lambda body: session.answer_draft(_flag(body, "take")),
            "save": lambda body: session.save(body["name"], body["version"], _flag(body, "overwrite")),
            "start": self._start,
            "stop": lambda _body: starts.stop(),
        }
        return [
            Route(PATH, _page),
            *(Route(f"/api/edit/{name}", _answering(ask)) for name, ask in asked.items()),
            *(Route(f"/api/edit/{name}", _posting(name, do, session), methods=["POST"]) for name, do in posted.items()),
            Route("/api/edit/background", _file(lambda _request: session.picture())),
            Route("/api/edit/plot", _file(lambda request: _plot(starts, Query(request)))),
            Route("/api/edit/figure/{name}", _file(lambda request: starts.figure(request.path_params["name"]))),
        ]

    def _start(self, body: Body) -> dict[str, Any]:
        if not self._session.is_saved or not self._session.state()["exists"]:
            raise UsageError(f"{self._session.name} is not saved; save it, and start it then")
        return self._starts.start(body["seeds"])


def _plot(starts: Starts, query: Query) -> tuple[bytes, str]:
    return starts.plot(query.text("run", ""), query.whole("flow", 1, 1, 10_000))


def _flag(body: Body, key: str) -> bool:
    if not isinstance(body[key], bool):
        raise UsageError(f"{key}: give true or false")
    return body[key]


async def _page(_request: Request) -> Response:
    return FileResponse(PAGE / "editor" / "editor.html", media_type="text/html")


def _answering(ask: Callable[[Query], Any]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            return as_json(await run_in_threadpool(ask, Query(request)))
        except (ManetError, RecordError) as problem:
            return _refused(400, problem)

    return answer


def _posting(name: str, do: Answer, session: Session) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            return as_json(await run_in_threadpool(do, _body(name, await request.body())))
        except Stale as problem:
            return as_json({"error": str(problem), "state": await run_in_threadpool(session.state)}, 409)
        except Question as problem:
            return as_json({"error": str(problem), "question": True}, 409)
        except (ManetError, RecordError) as problem:
            return _refused(400, problem)

    return answer


def _refused(status: int, problem: Exception) -> Response:
    return refuse(status, printable(str(problem)))  # it may quote keys and names of the request


def _body(name: str, content: bytes) -> Body:
    """The checked object of a request. Raises UsageError."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise UsageError("the body is no JSON object") from None
    if not isinstance(body, dict):
        raise UsageError("the body is no JSON object")
    wanted = KEYS[name]
    stray = next((key for key in body if key not in wanted), None)
    missing = next((key for key in wanted if key not in body), None)
    if stray is not None or missing is not None:
        which = f"{shortened(str(stray))}: is no key" if stray is not None else f"{missing}: is missing"
        raise UsageError(f"{which}; the body of {name} has {', '.join(wanted) or 'no keys'}")
    return body


def _file(find: Callable[[Request], tuple[bytes, str]]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            content, kind = await run_in_threadpool(find, request)
        except (ManetError, RecordError) as problem:
            return _refused(404, problem)
        return Response(content, media_type=kind)

    return answer
