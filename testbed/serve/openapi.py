"""The interface as OpenAPI 3.1. The keys of a scenario and of a request come from the classes that check them."""

from typing import Any

from scenarios.json_schema import plain, scenario_keys
from testbed import __version__
from testbed.serve.job import STATES
from testbed.serve.request import ExperimentRequest, ScenarioRequest, names
from testbed.serve.results import MAX_ROWS, TABLES

Json = dict[str, Any]
LOCAL, HERE = "#/$defs/", "#/components/schemas/"
ERRORS = {
    400: "A word of the address, or the body, cannot be read.",
    401: "The token is missing or wrong.",
    403: "The Origin header names another site.",
    404: "There is no such run, or its results have no such part.",
    409: "The run is in a state in which this is impossible: it has not ended, or has ended already.",
    413: "The body is too large.",
    415: "The body is not declared as application/json.",
    421: "The Host header does not name this server.",
    422: "A key is unknown, wrong or not allowed; or a file of the results cannot be used.",
    429: "The queue, the checks, the streams or the costly answers are full.",
    507: "The run cannot be recorded in the server's folder.",
}
ALWAYS = (400, 401, 403, 421)
READ = (404, 409, 422)
COSTLY = (*READ, 429)
INFO = (
    "Start, watch and stop runs of this testbed, and read their results. Errors are one line: {\"error\": \"...\"}. "
    "formats/serve.md of the project describes the interface in words."
)  # fmt: skip
TEXT: Json = {"type": "string"}
WHOLE: Json = {"type": "integer", "minimum": 0}
MAYBE_TEXT: Json = {"type": ["string", "null"]}
MAYBE_WHOLE: Json = {"type": ["integer", "null"]}
SENT: Json = {"type": "object", "properties": {"id": TEXT, "event": TEXT, "data": TEXT}, "required": ["data"]}
TIME: Json = {"type": "string", "format": "date-time"}
ID: Json = {"type": "string", "pattern": "^[1-9][0-9]{0,8}$", "examples": ["1"]}


def document() -> Json:
    """The document, a JSON value."""
    keys, definitions = scenario_keys()
    schemas = {**definitions, "Scenario": keys, **_requests(), **_answers()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "manet serve", "version": __version__, "description": INFO},
        "paths": _paths(),
        "components": {
            "schemas": _relocated(schemas),
            "responses": {f"Error{status}": _error(status, text) for status, text in ERRORS.items()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _paths() -> Json:
    run, cell = "/api/runs/{id}", "/api/runs/{id}/cells/{cell}/{seed}"
    body = {"required": True, "content": {"application/json": {"schema": _ref("RunRequest")}}}
    at = {"schema": ID, **_in("path", "id", "The number of a run.")}
    cells = [at, {"schema": TEXT, **_in("path", "cell", "A cell of the experiment; `all` of a scenario.")},
             {"schema": {"type": "integer", "minimum": 1, "maximum": 10**6}, **_in("path", "seed", "A seed.")}]  # fmt: skip
    file = _content({"application/octet-stream": {"schema": {}}}, "The file.")
    picture: Json = {f"image/{kind}": {"schema": {}} for kind in ("png", "svg+xml")} | {"application/pdf": {"schema": {}}}
    table = {"application/json": {"schema": _ref("Table")}, "text/csv": {"schema": TEXT}}
    return {
        "/": {"get": _open("text", "A description in words.", {"text/plain": {"schema": TEXT}})},
        "/api/openapi.json": {"get": _open("openapi", "This document.", {"application/json": {"schema": {"type": "object"}}})},
        "/api/runs": {
            "get": _operation("list", "The runs, the newest first.", _json("Runs"), parameters=[
                _query("before", WHOLE | {"minimum": 1, "maximum": 10**9}, "Only numbers below this one."),
                _query("limit", WHOLE | {"minimum": 1, "maximum": 1000, "default": 100}, "At most so many."),
            ]),
            "post": _operation("start", "Check a run and put it into the queue.", _json("Run"), 201, (413, 415, 422, 429, 507),
                               requestBody=body),
        },
        run: {
            "parameters": [at],
            "get": _operation("status", "A run, its progress, and its answer at the end.", _json("Run"), more=(404,)),
            "delete": _operation("stop", "Take a run out of the queue, or stop it in order; its results are kept.", _json("Run"),
                                 more=(404, 409)),
        },
        f"{run}/events": {
            "parameters": [at],
            "get": _operation(
                "watch", "The events of a run as they happen, up to its end (server-sent events).",
                _content({"text/event-stream": {"schema": SENT}}, "Events; `data` is a JSON object."), more=(404, 429),
                parameters=[
                    _query("after", WHOLE | {"maximum": 10**9, "default": 0}, "Only events with a higher number."),
                    {"schema": TEXT, "name": "Last-Event-ID", "in": "header", "required": False,
                     "description": "As `after`; browsers send it after a lost connection."},
                ],
            ),
        },
        f"{run}/tables/{{table}}": {
            "parameters": [at, {"schema": {"enum": list(TABLES)}, **_in("path", "table", "`runs`: table.csv; `summary`.")}],
            "get": _operation("table", "A table of the results.", _content(table, "The table."), more=READ, parameters=[
                _query("format", {"enum": ["json", "csv"], "default": "json"}, "The form of the answer."),
            ]),
        },
        f"{run}/figures": {
            "parameters": [at],
            "get": _operation("figures", "The names of the figures.", _json("Figures"), more=(404, 409)),
        },
        f"{run}/figures/{{name}}": {
            "parameters": [at, {"schema": TEXT, **_in("path", "name", "A name of the list.")}],
            "get": _operation("figure", "A figure.", _content(picture, "The figure."), more=(404, 409)),
        },
        f"{run}/files": {
            "parameters": [at],
            "get": _operation("files", "The files of the results.", _json("Files"), more=(404, 409)),
        },
        f"{run}/files/{{name}}": {
            "parameters": [at, {"schema": TEXT, **_in("path", "name", "A path of the list, with its slashes.")}],
            "get": _operation("file", "A file of the results: captures, logs, records.", file, more=(404, 409)),
        },
        f"{cell}/air": {
            "parameters": cells,
            "get": _operation("air", "Rows of the air log of one run.", _json("Air"), more=COSTLY, parameters=[
                _query("from", WHOLE, "Begin of the window, ns of model time."),
                _query("to", WHOLE, "End of the window, ns; without it, the end of the run."),
                _query("limit", WHOLE | {"minimum": 1, "maximum": MAX_ROWS, "default": 1000}, "At most so many rows."),
            ]),
        },
        f"{cell}/story": {
            "parameters": cells,
            "get": _operation("story", "The path of segments of a TCP flow.", _json("Story"), more=COSTLY, parameters=[
                _query("flow", TEXT | {"default": "flow1"}, "The name of a flow."),
                _query("segment", WHOLE, "The number of a segment; without it, what was sent from `t` on."),
                _query("t", {"type": "number", "minimum": 0, "default": 0}, "s from the start of the traffic."),
                _query("span", {"type": "number", "minimum": 0, "default": 0.5}, "s, at most 10."),
            ]),
        },
    }  # fmt: skip


def _requests() -> Json:
    made = {model.__name__: plain(model.model_json_schema()) for model in (ScenarioRequest, ExperimentRequest)}
    made["ScenarioRequest"]["properties"]["scenario"] = _ref("Scenario")
    made["ExperimentRequest"]["properties"]["experiment"]["enum"] = names()
    return {**made, "RunRequest": {"oneOf": [_ref("ScenarioRequest"), _ref("ExperimentRequest")]}}


def _answers() -> Json:
    verdicts = {"type": ["object", "null"], "additionalProperties": WHOLE}
    summary = {
        "id": ID, "name": TEXT, "state": {"enum": list(STATES)}, "runs": WHOLE, "queued": TIME,
        "started": {"type": ["string", "null"]}, "ended": {"type": ["string", "null"]}, "exit_status": MAYBE_WHOLE,
        "error": MAYBE_TEXT,
    }  # fmt: skip
    row: Json = {name: {} for name in AIR_FIELDS} | {"row": WHOLE, "t_ns": WHOLE, "station": TEXT, "event": TEXT}
    sent = _object({"segment": WHOLE, "sent_s": {"type": "number"}, "fate": TEXT, "kind": TEXT})
    about = {
        "request": {"type": "object"}, "progress": _list(_ref("Stage")), "verdicts": verdicts,
        "answer": {"type": ["object", "null"], "description": "As `manet run --json` prints it."},
    }  # fmt: skip
    stage = {
        "event": {"const": "stage"}, "run": TEXT, "stage": TEXT, "fraction": {"type": ["number", "null"]}, "done": WHOLE,
        "total": WHOLE, "left_s": {"type": "number"},
    }  # fmt: skip
    return {
        "Error": _object({"error": TEXT}),
        "RunSummary": _object(summary),
        "Runs": _object({"runs": _list(_ref("RunSummary"))}),
        "Run": _object(summary | about),
        "Stage": _object(stage),
        "Table": _object({"rows": _list({"type": "object"})}),
        "Figures": _object({"figures": _list(TEXT)}),
        "Files": _object({"files": _list(_object({"path": TEXT, "bytes": WHOLE}))}),
        "Air": _object({"total": WHOLE, "rows": _list(_object(row))}),
        "Story": _object({"title": TEXT, "lines": _list(TEXT), "transmissions": _list(sent)}),
    }


AIR_FIELDS = ("frame", "peer", "packet", "attempt", "bytes", "airtime_ns", "backoff_slots", "fate", "receivers", "power_dbm")


def _operation(name: str, summary: str, answer: Json, status: int = 200, more: tuple[int, ...] = (), **rest: Any) -> Json:
    errors = {str(number): {"$ref": f"#/components/responses/Error{number}"} for number in sorted({*ALWAYS, *more})}
    return {"operationId": name, "summary": summary, **rest, "responses": {str(status): answer, **errors}}


def _open(name: str, summary: str, content: Json) -> Json:
    """An operation without a token."""
    made = _operation(name, summary, _content(content, summary))
    del made["responses"]["401"], made["responses"]["400"]
    return {**made, "security": []}


def _error(status: int, text: str) -> Json:
    answer = _content({"application/json": {"schema": _ref("Error")}}, text)
    if status == 429:
        answer["headers"] = {"Retry-After": {"schema": WHOLE, "description": "s."}}
    return answer


def _json(name: str) -> Json:
    return _content({"application/json": {"schema": _ref(name)}}, name)


def _content(content: Json, text: str) -> Json:
    return {"description": text, "content": content}


def _in(place: str, name: str, text: str) -> Json:
    return {"name": name, "in": place, "required": place == "path", "description": text}


def _query(name: str, schema: Json, text: str) -> Json:
    return {"schema": schema, **_in("query", name, text)}


def _ref(name: str) -> Json:
    return {"$ref": HERE + name}


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


def _object(properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _relocated(node: Any) -> Any:
    """References to definitions of a scenario's schema, as references to the components."""
    if isinstance(node, list):
        return [_relocated(part) for part in node]
    if not isinstance(node, dict):
        return node
    made = {key: _relocated(value) for key, value in node.items()}
    if isinstance(reference := node.get("$ref"), str):
        made["$ref"] = reference.replace(LOCAL, HERE)
    return made
