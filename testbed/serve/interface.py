"""Parts of the interface's description: words of an address, whose errors are one line, statuses, answers, the request's schema.

Answers are models for the description alone: their values come from the queue and the results, which have no others.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge, GroupedMetadata, Le
from fastapi import FastAPI, Header, Path, Query, Request
from fastapi.openapi.utils import get_openapi
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model

from scenarios.json_schema import plain, scenario_keys
from testbed.errors import shortened
from testbed.serve.job import State
from testbed.serve.request import ExperimentRequest, ScenarioRequest, names
from testbed.serve.results import MAX_ROWS, TABLES
from testbed.web.query import MAX_WHOLE, Wrong, seconds_of, whole_of

Json = dict[str, Any]
LOCAL, HERE = "#/$defs/", "#/components/schemas/"
ID_PATTERN = "^[1-9][0-9]{0,8}$"
MAX_SEED = 10**6
MAX_LISTED = 1000
INFO = (
    "Start, watch and stop runs of this testbed, and read their results. Errors are one line: {\"error\": \"...\"}. "
    "formats/serve.md of the project describes the interface in words."
)  # fmt: skip
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


# --- answers ----------------------------------------------------------------------------------------------------------


class Answer(BaseModel):
    """An object with exactly these keys."""

    model_config = ConfigDict(extra="forbid")


ID = Annotated[str, Field(pattern=ID_PATTERN, examples=["1"])]
Count = Annotated[int, Field(ge=0)]


class Error(Answer):
    """What is wrong, and the remedy, in one line."""

    error: str


class RunSummary(Answer):
    """A run as lists have it."""

    id: ID
    name: str
    state: State
    runs: Count
    queued: AwareDatetime
    started: str | None
    ended: str | None
    exit_status: int | None
    error: str | None


class Runs(Answer):
    """Runs, the newest first."""

    runs: list[RunSummary]


class Stage(Answer):
    """The progress of one run of a request; `left_s` in seconds."""

    event: Literal["stage"]
    run: str
    stage: str
    fraction: float | None
    done: Count
    total: Count
    left_s: float


class Run(RunSummary):
    """A run with its request, its progress and its answer."""

    request: Json
    progress: list[Stage]
    verdicts: dict[str, Count] | None
    answer: Annotated[Json | None, Field(description="As `manet run --json` prints it.")]


class Table(Answer):
    """A table, by rows."""

    rows: list[Json]


class Figures(Answer):
    """Names of figures."""

    figures: list[str]


class File(Answer):
    """A file of the results."""

    path: str
    bytes: Count


class Files(Answer):
    """Files of the results."""

    files: list[File]


AIR_FIELDS = (
    "frame", "peer", "packet", "attempt", "bytes", "airtime_ns", "backoff_slots", "fate", "receivers", "power_dbm", "rate_bps",
)  # fmt: skip
FURTHER_AIR_FIELDS = ("mode", "aggregate", "sinr_db", "category")  # of the logs that have them (formats/air.md)
AirRow = create_model(
    "AirRow", __base__=Answer, row=(Count, ...), t_ns=(Count, ...), station=(str, ...), event=(str, ...),
    **{name: (Any, ...) for name in AIR_FIELDS}, **{name: (Any, None) for name in FURTHER_AIR_FIELDS},
)  # type: ignore[call-overload]  # fmt: skip


class Air(Answer):
    """Rows of the air log; `total` counts those in the window."""

    total: Count
    rows: list[AirRow]  # type: ignore[valid-type]


class Transmission(Answer):
    """One transmission of a segment, in seconds of the traffic."""

    segment: Count
    sent_s: float
    fate: str
    kind: str


class Story(Answer):
    """The path of segments, in words."""

    title: str
    lines: list[str]
    transmissions: list[Transmission]


# --- words of an address ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Whole(GroupedMetadata):
    """A whole number; wrong words raise Wrong."""

    name: str
    least: int
    most: int

    def __iter__(self) -> Iterator[Any]:
        """The checks, for pydantic."""
        yield from (Ge(self.least), Le(self.most))  # for the description: the next one is called first
        yield BeforeValidator(lambda given: whole_of(self.name, given, self.least, self.most))


@dataclass(frozen=True)
class Seconds(GroupedMetadata):
    """A time; wrong words raise Wrong."""

    name: str

    def __iter__(self) -> Iterator[Any]:
        """The checks, for pydantic."""
        yield Ge(0)
        yield BeforeValidator(lambda given: seconds_of(self.name, given, 0.0))


def _form(word: Any) -> Any:
    if word not in ("json", "csv"):
        raise Wrong(f"format={shortened(word)}: is not known; use json or csv")
    return word


Number = Annotated[
    str, WithJsonSchema({"type": "string", "pattern": ID_PATTERN, "examples": ["1"]}), Path(description="The number of a run.")
]
TableName = Annotated[str, WithJsonSchema({"enum": list(TABLES)}), Path(description="`runs`: table.csv; `summary`.")]
FigureName = Annotated[str, Path(description="A name of the list.")]
FileName = Annotated[str, Path(description="A path of the list, with its slashes.")]
Cell = Annotated[str, Path(description="A cell of the experiment; `all` of a scenario.")]
Seed = Annotated[int, Whole("seed", 1, MAX_SEED), Path(description="A seed.")]
Before = Annotated[int | None, Whole("before", 1, 10**9), Query(description="Only numbers below this one.")]
Limit = Annotated[int, Whole("limit", 1, MAX_LISTED), Query(description="At most so many.")]
After = Annotated[int | None, Whole("after", 0, 10**9), Query(description="Only events with a higher number.")]
LastID = Annotated[str, Header(alias="Last-Event-ID", description="As `after`; browsers send it after a lost connection.")]
Form = Annotated[Literal["json", "csv"], BeforeValidator(_form), Query(alias="format", description="The form of the answer.")]
Begin = Annotated[int, Whole("from", 0, MAX_WHOLE), Query(alias="from", description="Begin of the window, ns of model time.")]
End = Annotated[
    int | None,
    Whole("to", 0, MAX_WHOLE),
    Query(alias="to", description="End of the window, ns; without it, the end of the run."),
]
Rows = Annotated[int, Whole("limit", 1, MAX_ROWS), Query(description="At most so many rows.")]
Flow = Annotated[str, Query(description="The name of a flow.")]
Segment = Annotated[
    int | None,
    Whole("segment", 0, MAX_WHOLE),
    Query(description="The number of a segment; without it, what was sent from `t` on."),
]
Time = Annotated[float, Seconds("t"), Query(description="s from the start of the traffic.")]
Span = Annotated[float, Seconds("span"), Query(description="s, at most 10.")]


def require_known_words(request: Request) -> None:
    """Raises Wrong for a word after `?` that the address does not take, and for one that is given twice."""
    allowed = {field.alias for field in request.scope["route"].dependant.query_params}
    for name, _ in request.query_params.multi_items():
        if name not in {*allowed, "token"}:
            raise Wrong(f"{shortened(name)}=: unknown word; {'use ' + ', '.join(sorted(allowed)) if allowed else 'leave it out'}")
        if len(request.query_params.getlist(name)) > 1:
            raise Wrong(f"{name}=: is given twice; give it once")


# --- the description --------------------------------------------------------------------------------------------------


def errors(*statuses: int) -> dict[int | str, Json]:
    """The descriptions of an operation's errors."""
    descriptions: dict[int | str, Json] = {status: {"model": Error, "description": ERRORS[status]} for status in statuses}
    if 429 in descriptions:
        descriptions[429]["headers"] = {"Retry-After": {"schema": {"type": "integer", "minimum": 0}, "description": "s."}}
    return descriptions


def content(kinds: dict[str, Json]) -> dict[int | str, Json]:
    """The description of an answer that is no object of JSON: the schema of each kind."""
    return {200: {"description": "The answer.", "content": {kind: {"schema": schema} for kind, schema in kinds.items()}}}


SENT: Json = {"type": "object", "properties": {key: {"type": "string"} for key in ("id", "event", "data")}, "required": ["data"]}
TABLE: Json = Table.model_json_schema()
REQUEST: Json = {"required": True, "content": {"application/json": {"schema": {"$ref": f"{HERE}RunRequest"}}}}


def document(app: FastAPI) -> Json:
    """The interface as OpenAPI 3.1. The keys of a scenario and of a request come from the classes that check them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # HEAD is an operation of the same name as GET; it is left out below
        openapi = get_openapi(title=app.title, version=app.version, description=INFO, routes=app.routes)
    for path, item in openapi["paths"].items():
        item.pop("head", None)
        for operation in item.values():
            operation["security"] = [] if path in ("/", "/api/openapi.json") else [{"token": []}]
            for parameter in operation.get("parameters", ()):
                parameter["schema"] = plain(parameter["schema"])
            answers = operation["responses"].items()  # FastAPI's own refusal of a wrong word is none here: `Whole` and others
            operation["responses"] = {status: answer for status, answer in answers if "HTTPValidationError" not in str(answer)}
    keys, definitions = scenario_keys()
    schemas = openapi["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    openapi["components"]["schemas"] = _relocated(schemas | definitions | {"Scenario": keys} | _requests())
    openapi["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return openapi


def _requests() -> Json:
    schemas = {model.__name__: plain(model.model_json_schema()) for model in (ScenarioRequest, ExperimentRequest)}
    schemas["ScenarioRequest"]["properties"]["scenario"] = {"$ref": f"{HERE}Scenario"}
    schemas["ExperimentRequest"]["properties"]["experiment"]["enum"] = names()
    return {**schemas, "RunRequest": {"oneOf": [{"$ref": HERE + name} for name in schemas]}}


def _relocated(node: Any) -> Any:
    """References to definitions of a scenario's schema, as references to the components."""
    if isinstance(node, list):
        return [_relocated(part) for part in node]
    if not isinstance(node, dict):
        return node
    relocated = {key: _relocated(value) for key, value in node.items()}
    if isinstance(reference := node.get("$ref"), str):
        relocated["$ref"] = reference.replace(LOCAL, HERE)
    return relocated
