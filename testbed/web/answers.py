"""Answers that pages and HTTP interfaces share."""

import json

from starlette.requests import Request
from starlette.responses import Response

from testbed.errors import shortened
from testbed.web.guard import refuse


def as_json(content: object, status: int = 200) -> Response:
    """An answer of one line of JSON. Raises ValueError for infinite numbers, and for those that are none."""
    text = json.dumps(content, allow_nan=False, default=float)
    return Response(text + "\n", status, media_type="application/json")


async def failed(request: Request, problem: Exception) -> Response:
    """For an application's handlers of exceptions: an error of the program itself, in one line."""
    return refuse(500, f"{shortened(request.url.path)}: {type(problem).__name__}; please report it")
