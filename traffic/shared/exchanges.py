"""The exchanges of a web session: its distributions, by name or from a file, and the series drawn from them before the start.

A session is a series of request-reply cycles with think times between them. In a cycle the client requests one object and, when
it has it, the others of the page. The series depends on the run's seed and the flow's name alone. Each variable has a random
stream of its own: a session of more cycles begins with those of a shorter one, and another scale changes sizes only.
"""

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from keys.errors import UsageError, shortened
from keys.models import KeyProblem, Strict
from keys.quantities import Whole
from keys.toml_lines import TooMuch, parse
from traffic.shared.distributions import Distribution

FORMAT = "manet-exchanges/1"
MAX_CYCLES = 100_000
MAX_REPLIES = 10_000  # of a cycle
MAX_REPLY_BYTES = 1_000_000_000
MIN_REQUEST_BYTES = 64  # room for the line that names an object, and HTTP/1.1's Host (programs/web_client.py)
MAX_REQUEST_BYTES = 8000  # nginx takes a header line of 8 KiB
# Header of nginx's reply under programs/web_server.py's configuration, in bytes without the digits of Content-Length, by version
# of HTTP ("Connection: close" or "keep-alive"): a reply of fewer bytes has an empty body. test_web.py measures it.
REPLY_HEADER_BYTES = {"1.0": 194, "1.1": 199}


class Distributions(Strict):
    """The distributions of sessions, and how a browser of their time connects."""

    source: str = ""
    http: Literal["1.0", "1.1"] = "1.1"
    connections: Whole = Field(6, ge=1, le=100)
    cycles: Whole = Field(14, ge=1, le=MAX_CYCLES)
    request_bytes: Distribution
    replies: Distribution
    reply_bytes: Distribution
    think_s: Distribution

    @model_validator(mode="after")
    def _not_negative(self) -> Self:
        for key in ("request_bytes", "replies", "reply_bytes", "think_s"):
            lowest = getattr(self, key).lower_bound
            if lowest < 0:
                raise KeyProblem((key,), f"reaches down to {lowest:g}, and cannot be negative; give min = 0 or correct it")
        return self


@cache
def presets() -> dict[str, Any]:
    """The tables of data/web.toml, by name."""
    return tomllib.loads((Path(__file__).parents[1] / "data" / "web.toml").read_text())


def is_path(name: str) -> bool:
    """Whether a value of `distributions` is the path of a file, and no name of data/web.toml."""
    return "/" in name or name.endswith(".toml")


def distributions_of(name: str) -> Distributions:
    """The distributions of data/web.toml with this name, or of the file at this path; UsageError, which names the key, for wrong
    ones."""
    if not is_path(name):
        return _checked(presets()[name], "traffic/data/web.toml")
    path = Path(name)
    try:
        content, _lines = parse(path.read_text())
    except TooMuch as problem:
        raise UsageError(f"{path}: line {problem.line}: {problem}") from None
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"{path}: not a readable text file; give a TOML file of distributions") from None
    except tomllib.TOMLDecodeError as problem:
        raise UsageError(f"{path}: not TOML ({problem}); correct it") from None
    return _checked(content, str(path))


def _checked(content: Mapping[str, Any], place: str) -> Distributions:
    try:
        return Distributions.model_validate(content)
    except ValidationError as problem:
        first = problem.errors()[0]
        cause = first.get("ctx", {}).get("error")
        inner = cause.path if isinstance(cause, KeyProblem) else ()
        key = ".".join(str(part) for part in (*first["loc"], *inner))
        if first["type"] == "missing":
            text = "is missing; see traffic/data/web.toml for an example"
        elif first["type"] == "extra_forbidden":
            text = "is not known; remove it, or see traffic/data/web.toml"
        else:
            text = str(cause) if cause is not None else f"{shortened(str(first['input']))}: {first['msg']}; correct it"
        raise UsageError(f'{place}: key "{key}" {text}') from None


def drawn(distributions: Distributions, cycles: int, scale: float, stream: str) -> dict[str, Any]:
    """The exchanges of a session, as its file has them (formats/results.md); `stream` seeds the random streams."""
    counts, requests, replies, thoughts = (Random(f"{name} {stream}") for name in ("counts", "requests", "replies", "think"))
    series = []
    for cycle in range(cycles):
        number = min(max(1, round(distributions.replies.draw(counts))), MAX_REPLIES)
        objects = []
        for index in range(number):
            request_bytes = min(max(MIN_REQUEST_BYTES, round(distributions.request_bytes.draw(requests))), MAX_REQUEST_BYTES)
            size = min(max(0, round(distributions.reply_bytes.draw(replies) * scale)), MAX_REPLY_BYTES)
            body = body_bytes(size, distributions.http)
            objects.append({"id": f"{cycle + 1}.{index + 1}", "request_bytes": request_bytes, "body_bytes": body})
        series.append({"objects": objects, "think_s": round(distributions.think_s.draw(thoughts), 6)})
    return {"format": FORMAT, "http": distributions.http, "connections": distributions.connections, "cycles": series}


def body_bytes(reply_bytes: int, http: str) -> int:
    """Bytes of the body of a reply, so that header and body together have this size."""
    for digits in range(1, 11):
        body = reply_bytes - REPLY_HEADER_BYTES[http] - digits
        if body < 10**digits:
            return max(0, body)
    raise AssertionError("sizes are limited before")


def written(exchanges: Mapping[str, Any], path: Path) -> None:
    """Write the exchanges, a cycle in each line."""
    head = ",".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in exchanges.items() if key != "cycles")
    cycles = ",\n".join(json.dumps(cycle, separators=(",", ":")) for cycle in exchanges["cycles"])
    path.write_text(f'{{{head},"cycles":[\n{cycles}\n]}}\n')
