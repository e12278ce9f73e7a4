"""The addresses of the HTTP interface (formats/serve.md), behind testbed/web/guard.py.

Every answer is computed in a thread, except the streams of events. Every error is `{"error": "one line"}`.
"""

import asyncio
import json
import mimetypes
import os
from collections import Counter
from collections.abc import AsyncIterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Match

from record.errors import RecordError
from record.files import plain_file
from testbed import __version__
from testbed.errors import ManetError, UsageError, shortened
from testbed.serve import interface as words
from testbed.serve.events import as_sse
from testbed.serve.gate import Gate
from testbed.serve.interface import content, errors
from testbed.serve.job import ID, Job, State
from testbed.serve.queue import NoJob, NoRoom, Queue, QueueFull, WrongState
from testbed.serve.request import names, plan_of
from testbed.serve.results import TABLES, NotThere, Results
from testbed.web.answers import as_json, failed
from testbed.web.exposition import CONTENT_TYPE, Family, Samples
from testbed.web.guard import BodyTooLong, Guard, Rules, refuse, too_long
from testbed.web.run_metrics import FAMILIES, RunMetrics
from testbed.web.server import Listener

OPEN_PATHS = frozenset({"/", "/api/openapi.json"})  # they hold no data
ALWAYS = (400, 401, 403, 421)
PICTURES = ("image/png", "image/svg+xml", "application/pdf")
TEXT = {"type": "string"}
MAX_STREAMS = 16  # of events, far below the server's connections
EVENTS = "text/event-stream"
RETRY_S = "10"
STATUS: dict[type[Exception], int] = {NoJob: 404, NotThere: 404, WrongState: 409, QueueFull: 429, NoRoom: 507}
JOBS = Family("manet_jobs", "gauge", "Jobs of the queue by their state.", ("state",))
MAX_JOBS = 10**9  # all of them
WORDS = """manet serve: runs of TCP over mobile ad hoc networks, over HTTP

GET  /api/openapi.json   the interface (OpenAPI 3.1); formats/serve.md describes it in words
POST /api/runs           start a run: {{"scenario": {{"topology": "chain", "hops": 2}}}} or {{"experiment": "chain5"}}
GET  /api/runs           the runs, the newest first
Every other request needs the header 'Authorization: Bearer TOKEN', with the token that `manet serve` printed.

experiments and ready-made scenarios: {names}
"""


def _job_of(request: Request, id: words.Number) -> Job:
    queue: Queue = request.app.state.queue
    return queue.job(id)


JobOf = Annotated[Job, Depends(_job_of)]


class Api:
    """The application. `check_machine`: whether a request is also checked against this machine before it is accepted."""

    def __init__(self, queue: Queue, check_machine: bool = True) -> None:
        self._queue, self._check_machine = queue, check_machine
        self._results = Results()
        self._streams = 0
        self._checks, self._reading = Gate("checks of requests"), Gate("answers about the air log or a story")

    @cached_property
    def _metrics(self) -> RunMetrics:
        return RunMetrics(self._queue.folder)

    def app(self, listener: Listener) -> Guard:
        """The application behind its guard."""
        rules = Rules(listener.address, listener.token, lambda path: path in OPEN_PATHS, methods=None)
        return Guard(self.fastapi(), rules)

    def fastapi(self) -> FastAPI:
        """The application without its guard; `state.description` is the interface as OpenAPI, of `state.routes`."""
        handlers: dict[Any, Any] = {
            404: _unknown, 405: _wrong_method, 500: failed, BodyTooLong: too_long, ManetError: _refused, RecordError: _refused,
        }  # fmt: skip
        app = FastAPI(
            title="manet serve", version=__version__, openapi_url=None, exception_handlers=handlers,
            generate_unique_id_function=lambda route: route.name,
        )  # fmt: skip
        app.state.queue = self._queue
        app.get("/", name="text", response_class=Response, responses=content({"text/plain": TEXT}) | errors(403, 421))(_text)
        app.get("/api/openapi.json", name="openapi", responses=content({"application/json": {}}) | errors(403, 421))(_openapi)
        routers = (self._runs(), self._of_run(), self._of_cell(), self._scraped())
        routes = [route for router in (app, *routers) for route in router.routes if isinstance(route, APIRoute)]
        for route in routes:
            methods = route.methods or set()
            route.methods = methods | {"HEAD"} if "GET" in methods else methods
        for router in routers:
            app.include_router(router)
        app.state.routes, app.state.description = routes, words.document(app)
        return app

    def _runs(self) -> APIRouter:
        router = APIRouter(prefix="/api/runs", responses=errors(*ALWAYS), dependencies=[Depends(words.require_known_words)])

        @router.get("", name="list", response_model=words.Runs)
        def listed(before: words.Before = None, limit: words.Limit = 100) -> Response:
            """The runs, the newest first."""
            return as_json({"runs": [job.summary() for job in self._queue.jobs(before, limit)]})

        answers, extra = errors(413, 415, 422, 429, 507), {"requestBody": words.REQUEST}

        @router.post("", status_code=201, response_model=words.Run, responses=answers, openapi_extra=extra)
        async def start(request: Request) -> Response:
            """Check a run and put it into the queue."""
            if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                return refuse(415, "the body is no JSON; send it with the header 'Content-Type: application/json'")
            try:
                body = json.loads(await request.body())
            except (ValueError, RecursionError):
                return refuse(400, 'the body is no JSON; send {"scenario": {...}} or {"experiment": "NAME"}')
            return await run_in_threadpool(self._start, body)

        return router

    def _scraped(self) -> APIRouter:
        router = APIRouter(responses=errors(*ALWAYS), dependencies=[Depends(words.require_known_words)])

        @router.get("/metrics", response_class=Response, responses=content({"text/plain": TEXT}))
        def metrics() -> Response:
            """The jobs, and the runs under way, as metrics in Prometheus' text format (formats/metrics.md)."""
            samples = Samples((JOBS, *FAMILIES))
            states = Counter(job.state for job in self._queue.jobs(None, MAX_JOBS))
            for state in get_args(State):
                samples.add(JOBS.name, states[state], state)
            self._metrics.add_to(samples)
            return Response(samples.text(), headers={"content-type": CONTENT_TYPE})

        return router

    def _of_run(self) -> APIRouter:
        router = _of_job("/api/runs/{id}", 404)

        @router.get("", response_model=words.Run)
        def status(job: JobOf) -> Response:
            """A run, its progress, and its answer at the end."""
            return as_json(self._about(job))

        @router.delete("", response_model=words.Run, responses=errors(409))
        def stop(job: JobOf) -> Response:
            """Take a run out of the queue, or stop it in order; its results are kept."""
            return as_json(self._about(self._queue.stop(job.id)))

        @router.get("/events", response_class=Response, responses=content({EVENTS: words.SENT}) | errors(429))
        async def watch(request: Request, job: JobOf, after: words.After = None, last_id: words.LastID = "") -> Response:
            """The events of a run as they happen, up to its end (server-sent events); `data` is a JSON object."""
            seen = int(last_id) if ID.fullmatch(last_id) else 0  # a client sends it after a lost connection (WHATWG HTML, 9.2.4)
            return self._watched(job, seen if after is None else after, request.method == "HEAD")

        @router.get(
            "/tables/{table}",
            response_class=Response,
            responses=content({"application/json": words.TABLE, "text/csv": TEXT}) | errors(409, 422),
        )
        def table(job: JobOf, table: words.TableName, form: words.Form = "json") -> Response:
            """A table of the results."""
            if table not in TABLES:
                raise NotThere(f"table {shortened(table)}: there are {', '.join(TABLES)}")
            if form == "csv":
                return _file_of(job, self._results.table(job, table), "text/csv")
            return as_json({"rows": self._results.rows(job, table)})

        @router.get("/figures", response_model=words.Figures, responses=errors(409))
        def figures(job: JobOf) -> Response:
            """The names of the figures."""
            return as_json({"figures": self._results.figures(job)})

        @router.get("/figures/{name}", response_class=Response, responses=content({kind: {} for kind in PICTURES}) | errors(409))
        def figure(job: JobOf, name: words.FigureName) -> Response:
            """A figure."""
            return _file_of(job, self._results.figure(job, name))

        @router.get("/files", response_model=words.Files, responses=errors(409))
        def files(job: JobOf) -> Response:
            """The files of the results."""
            return as_json({"files": self._results.files(job)})

        @router.get(
            "/files/{name:path}", response_class=Response, responses=content({"application/octet-stream": {}}) | errors(409)
        )
        def file(job: JobOf, name: words.FileName) -> Response:
            """A file of the results: captures, logs, records."""
            return _file_of(job, self._results.file(job, name))

        return router

    def _of_cell(self) -> APIRouter:
        router = _of_job("/api/runs/{id}/cells/{cell}/{seed}", 404, 409, 422, 429)

        @router.get("/air", response_model=words.Air)
        def air(
            job: JobOf, cell: words.Cell, seed: words.Seed,
            begin: words.Begin = 0, end: words.End = None, limit: words.Rows = 1000,
        ) -> Response:  # fmt: skip
            """Rows of the air log of one run."""
            with self._reading.passed():
                return as_json(self._results.air(job, cell, seed, begin, end, limit))

        @router.get("/story", response_model=words.Story)
        def story(
            job: JobOf, cell: words.Cell, seed: words.Seed,
            flow: words.Flow = "flow1", segment: words.Segment = None, t: words.Time = 0.0, span: words.Span = 0.5,
        ) -> Response:  # fmt: skip
            """The path of segments of a TCP flow."""
            with self._reading.passed():
                return as_json(self._results.story(job, cell, seed, flow, segment, t, span))

        return router

    # --- runs -----------------------------------------------------------------------------------------------------

    def _start(self, body: Any) -> Response:
        """Checks take seconds for a large experiment."""
        with self._checks.passed():
            plan = plan_of(body, self._check_machine)
        return as_json(self._about(self._queue.submit(plan)), 201)

    def _about(self, job: Job) -> dict[str, Any]:
        answer = job.answer()
        progress = list(self._queue.progress.values()) if job.state == "running" else []
        about = {"request": job.request, "progress": progress, "verdicts": (answer or {}).get("verdicts"), "answer": answer}
        return job.summary() | about

    def _watched(self, job: Job, after: int, is_head: bool) -> Response:
        events = self._queue.events(job.id)
        if is_head:
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


def _of_job(prefix: str, *statuses: int) -> APIRouter:
    """Routes about a job, all of which may have these errors. An unknown job is refused first."""
    checks = [Depends(_job_of), Depends(words.require_known_words)]
    return APIRouter(prefix=prefix, responses=errors(*ALWAYS, *statuses), dependencies=checks)


def _text() -> Response:
    """A description in words."""
    return PlainTextResponse(WORDS.format(names=", ".join(names())))


def _openapi(request: Request) -> Response:
    """This document."""
    return as_json(request.app.state.description)


def _file_of(job: Job, path: Path, media_type: str | None = None) -> Response:
    """A file of a job: the one that was opened and checked, whatever is at its place when it is sent."""
    file = plain_file(path, beneath=job.folder)
    opened, kind = f"/proc/self/fd/{file.fileno()}", media_type or mimetypes.guess_type(path.name)[0]
    response = FileResponse(opened, media_type=kind or "application/octet-stream", stat_result=os.fstat(file.fileno()))
    response.held = file  # type: ignore[attr-defined]  # closed with the response
    return response


async def _refused(_request: Request, problem: Exception) -> Response:
    status = STATUS.get(type(problem), 422 if isinstance(problem, UsageError | RecordError) else 400)
    return _busy(str(problem)) if status == 429 else refuse(status, str(problem))


def _busy(line: str) -> Response:
    response = refuse(429, line)
    response.headers["retry-after"] = RETRY_S
    return response


async def _unknown(request: Request, _problem: Exception) -> Response:
    return refuse(404, f"{shortened(request.url.path)}: no such address; GET /api/openapi.json lists them")


async def _wrong_method(request: Request, _problem: Exception) -> Response:
    response = refuse(405, f"{shortened(request.url.path)}: takes no {request.method}; GET /api/openapi.json lists the methods")
    here = [route for route in request.app.state.routes if route.matches(request.scope)[0] != Match.NONE]
    response.headers["allow"] = ", ".join(sorted({method for route in here for method in route.methods}))
    return response
