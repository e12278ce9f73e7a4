"""The addresses of the HTTP interface (formats/serve.md), behind testbed/web/guard.py.

Every answer is computed in a thread, except the streams of events. Every error is `{"error": "one line"}`.
"""

import asyncio
import json
import mimetypes
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from record.errors import RecordError
from record.files import plain_file
from testbed.errors import ManetError, UsageError, shortened
from testbed.serve import openapi
from testbed.serve.events import as_sse
from testbed.serve.gate import Gate
from testbed.serve.job import ID, Job
from testbed.serve.queue import NoJob, NoRoom, Queue, QueueFull, WrongState
from testbed.serve.request import Plan, names, plan_of
from testbed.serve.results import MAX_ROWS, TABLES, NotThere, Results
from testbed.web.answers import as_json, failed
from testbed.web.guard import BodyTooLong, Guard, Rules, refuse, too_long
from testbed.web.query import Query
from testbed.web.server import Listener

OPEN_PATHS = frozenset({"/", "/api/openapi.json"})  # they hold no data
MAX_STREAMS = 16  # of events, far below the server's connections
MAX_LISTED = 1000
MAX_SEED = 10**6
EVENTS = "text/event-stream"
RETRY_S = "10"
STATUS: dict[type[Exception], int] = {NoJob: 404, NotThere: 404, WrongState: 409, QueueFull: 429, NoRoom: 507}
TEXT = """manet serve: runs of TCP over mobile ad hoc networks, over HTTP

GET  /api/openapi.json   the interface (OpenAPI 3.1); formats/serve.md describes it in words
POST /api/runs           start a run: {{"scenario": {{"topology": "chain", "hops": 2}}}} or {{"experiment": "chain5"}}
GET  /api/runs           the runs, the newest first
Every other request needs the header 'Authorization: Bearer TOKEN', with the token that `manet serve` printed.

experiments and ready-made scenarios: {names}
"""


Endpoint = Callable[[Request], Awaitable[Response]]


class Api:
    """The application. `check_machine`: whether a request is also checked against this machine before it is accepted."""

    def __init__(self, queue: Queue, check_machine: bool = True) -> None:
        self._queue, self._check_machine = queue, check_machine
        self._results = Results()
        self._streams = 0
        self._checks, self._reading = Gate("checks of requests"), Gate("answers about the air log or a story")

    def app(self, listener: Listener) -> Guard:
        """The application behind its guard."""
        run = "/api/runs/{id}"
        routes = [
            Route("/", self._text), Route("/api/openapi.json", self._openapi),
            _route("/api/runs", GET=self._list, POST=self._submit),
            _route(run, GET=self._answer(self._about), DELETE=self._answer(self._stop)),
            Route(run + "/events", self._events),
            Route(run + "/tables/{table}", self._table),
            Route(run + "/figures", self._answer(lambda job, _: {"figures": self._results.figures(job)})),
            Route(run + "/figures/{name}", self._file(lambda job, path: self._results.figure(job, path["name"]))),
            Route(run + "/files", self._answer(lambda job, _: {"files": self._results.files(job)})),
            Route(run + "/files/{name:path}", self._file(lambda job, path: self._results.file(job, path["name"]))),
            Route(run + "/cells/{cell}/{seed}/air", self._answer(self._air)),
            Route(run + "/cells/{cell}/{seed}/story", self._answer(self._story)),
        ]  # fmt: skip
        handlers: dict[Any, Any] = {404: _unknown, 405: _wrong_method, 500: failed, BodyTooLong: too_long}
        application = Starlette(routes=routes, exception_handlers=handlers)
        rules = Rules(listener.place, listener.token, lambda path: path in OPEN_PATHS, methods=None)
        return Guard(application, rules)

    # --- runs -----------------------------------------------------------------------------------------------------

    async def _submit(self, request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return refuse(415, "the body is no JSON; send it with the header 'Content-Type: application/json'")
        try:
            body = json.loads(await request.body())
        except (ValueError, RecursionError):
            return refuse(400, 'the body is no JSON; send {"scenario": {...}} or {"experiment": "NAME"}')
        return await self._answered(lambda: as_json(self._about_job(self._queue.submit(self._plan(body))), 201))

    def _plan(self, body: Any) -> Plan:
        """Checks take seconds for a large experiment."""
        with self._checks.passed():
            return plan_of(body, self._check_machine)

    async def _list(self, request: Request) -> Response:
        def found() -> Response:
            query = Query(request, {"before", "limit"})
            before = query.whole_if_given("before", 1, 10**9)
            jobs = self._queue.jobs(before, query.whole("limit", 100, 1, MAX_LISTED))
            return as_json({"runs": [job.summary() for job in jobs]})

        return await self._answered(found)

    def _about(self, job: Job, query: Query) -> dict[str, Any]:
        query.done()
        return self._about_job(job)

    def _about_job(self, job: Job) -> dict[str, Any]:
        answer = job.answer()
        progress = list(self._queue.progress.values()) if job.state == "running" else []
        about = {"request": job.request, "progress": progress, "verdicts": (answer or {}).get("verdicts"), "answer": answer}
        return job.summary() | about

    def _stop(self, job: Job, query: Query) -> dict[str, Any]:
        query.done()
        return self._about_job(self._queue.stop(job.id))

    async def _events(self, request: Request) -> Response:
        try:
            after = Query(request, {"after"}).whole("after", _last_id(request), 0, 10**9)
            events = self._queue.events(request.path_params["id"])
        except ManetError as problem:
            return _refused(problem)
        if request.method == "HEAD":
            return Response(media_type=EVENTS)
        if self._streams >= MAX_STREAMS:
            return _busy(f"{MAX_STREAMS} clients watch already; close one, or GET /api/runs/ID now and then")
        self._streams += 1

        async def stream() -> AsyncIterator[str]:
            try:
                yield "retry: 2000\n\n"
                async for event in events.follow(after, self._queue.over):
                    yield ": \n\n" if event is None else as_sse(*event)
                    await asyncio.sleep(0)  # a lost connection is noticed before the next write
            finally:
                self._streams -= 1

        return StreamingResponse(stream(), media_type=EVENTS)

    # --- results --------------------------------------------------------------------------------------------------

    async def _table(self, request: Request) -> Response:
        def found() -> Response:
            job, table = self._queue.job(request.path_params["id"]), request.path_params["table"]
            as_csv = Query(request, {"format"}).one_of("format", ("json", "csv")) == "csv"
            if table not in TABLES:
                raise NotThere(f"table {shortened(table)}: there are {', '.join(TABLES)}")
            if as_csv:
                return _file_of(job, self._results.table(job, table), "text/csv")
            return as_json({"rows": self._results.rows(job, table)})

        return await self._answered(found)

    def _air(self, job: Job, query: Query) -> dict[str, Any]:
        query.only({"from", "to", "limit"})
        window = query.whole("from", 0), query.whole_if_given("to"), query.whole("limit", 1000, 1, MAX_ROWS)
        with self._reading.passed():
            return self._results.air(job, query.path["cell"], query.in_path("seed", 1, MAX_SEED), *window)

    def _story(self, job: Job, query: Query) -> dict[str, Any]:
        query.only({"flow", "segment", "t", "span"})
        flow, segment = query.text("flow", "flow1"), query.whole_if_given("segment")
        chosen = flow, segment, query.seconds("t", 0.0), query.seconds("span", 0.5)
        with self._reading.passed():
            return self._results.story(job, query.path["cell"], query.in_path("seed", 1, MAX_SEED), *chosen)

    # --- answers --------------------------------------------------------------------------------------------------

    def _answer(self, method: Callable[[Job, Query], dict[str, Any]]) -> Endpoint:
        """A route about a job that answers in JSON."""

        async def answer(request: Request) -> Response:
            return await self._answered(lambda: as_json(method(self._queue.job(request.path_params["id"]), Query(request, None))))

        return answer

    def _file(self, method: Callable[[Job, dict[str, str]], Any]) -> Endpoint:
        """A route that answers with a file."""

        async def answer(request: Request) -> Response:
            return await self._answered(
                lambda: _file_of(job := self._queue.job(request.path_params["id"]), method(job, request.path_params))
            )

        return answer

    async def _answered(self, make: Callable[[], Response]) -> Response:
        try:
            return await run_in_threadpool(make)
        except (ManetError, RecordError) as problem:
            return _refused(problem)

    async def _text(self, _request: Request) -> Response:
        return PlainTextResponse(TEXT.format(names=", ".join(names())))

    async def _openapi(self, _request: Request) -> Response:
        return as_json(await run_in_threadpool(openapi.document))


def _file_of(job: Job, path: Path, media_type: str | None = None) -> Response:
    """A file of a job: the one that was opened and checked, whatever is at its place when it is sent."""
    file = plain_file(path, beneath=job.folder)
    opened, kind = f"/proc/self/fd/{file.fileno()}", media_type or mimetypes.guess_type(path.name)[0]
    response = FileResponse(opened, media_type=kind or "application/octet-stream", stat_result=os.fstat(file.fileno()))
    response.held = file  # type: ignore[attr-defined]  # closed with the response
    return response


def _route(path: str, **by_method: Endpoint) -> Route:
    """One route for all methods of an address: the header Allow of a refusal lists them all."""

    async def chosen(request: Request) -> Response:
        return await by_method["GET" if request.method == "HEAD" else request.method](request)

    return Route(path, chosen, methods=list(by_method))


def _refused(problem: Exception) -> Response:
    status = STATUS.get(type(problem), 422 if isinstance(problem, UsageError | RecordError) else 400)
    return _busy(str(problem)) if status == 429 else refuse(status, str(problem))


def _busy(line: str) -> Response:
    response = refuse(429, line)
    response.headers["retry-after"] = RETRY_S
    return response


def _last_id(request: Request) -> int:
    """The header that a client sends after a lost connection (WHATWG HTML, 9.2.4); 0 for the first one, or for no number."""
    given = request.headers.get("last-event-id", "")
    return int(given) if ID.fullmatch(given) else 0


async def _unknown(request: Request, _problem: Exception) -> Response:
    return refuse(404, f"{shortened(request.url.path)}: no such address; GET /api/openapi.json lists them")


async def _wrong_method(request: Request, problem: Exception) -> Response:
    response = refuse(405, f"{shortened(request.url.path)}: takes no {request.method}; GET /api/openapi.json lists the methods")
    response.headers.update(getattr(problem, "headers", None) or {})  # Allow
    return response
