"""The guard before a web application: which requests reach it.

A browser sends requests to loopback for any page that it shows. So each request must name this server in its Host header (against
DNS rebinding), must come from one of its own pages if it has an Origin, and must carry the token. Answers carry a policy by which
a page loads nothing from elsewhere and runs no script of its text (Content Security Policy Level 3, W3C).
"""

import hmac
import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 1 << 20
MAX_QUERY_FIELDS = 50
MAX_PORT_DIGITS = 5
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
CLOSED = 1008  # RFC 6455, 7.4.1: the message violates a policy


@dataclass(frozen=True)
class Address:
    """The server's address: `host` as it listens, and the names by which it may be addressed."""

    host: str
    port: int
    names: frozenset[str] = field(default_factory=frozenset)

    def is_ours(self, host_header: str) -> bool:
        """Whether a Host header names this server. One that listens on all addresses is named by any address."""
        name, port = _split(host_header)
        if port != self.port:
            return False
        return name in self.names or (self.is_any and _is_address(name))

    @property
    def is_any(self) -> bool:
        """Whether the server listens on all addresses."""
        return _is_address(self.host) and ipaddress.ip_address(self.host).is_unspecified


@dataclass(frozen=True)
class Rules:
    """`is_open`: paths without a token (files of the page, which hold no data). `methods`: those that it takes;
    None: the application refuses the others itself."""

    address: Address
    token: str
    is_open: Callable[[str], bool] = lambda _path: False
    methods: frozenset[str] | None = frozenset({"GET", "HEAD"})
    max_body_bytes: int = MAX_BODY_BYTES

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and one line for a request that must not pass; None: it may."""
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        if not self.address.is_ours(headers.get("host", "")):
            return 421, f"Host {headers.get('host', '')[:100]!r} is not this server; use the address that it printed"
        origin = headers.get("origin")
        if origin is not None and not self._is_own(origin):
            return 403, f"Origin {origin[:100]!r} is another site; open the page at the address that the server printed"
        if self.methods is not None and scope["type"] == "http" and scope["method"] not in self.methods:
            return 405, f"method {scope['method'][:20]} is not available here; use {', '.join(sorted(self.methods))}"
        if not self.is_open(scope["path"]) and not hmac.compare_digest(_token_of(scope, headers), self.token.encode()):
            return 401, "no valid token; use the address that the server printed, or the header 'Authorization: Bearer TOKEN'"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 15 or int(length) > self.max_body_bytes:
            return 413, f"the body is larger than {self.max_body_bytes} bytes"
        return None

    def _is_own(self, origin: str) -> bool:
        scheme, _, rest = origin.partition("://")
        return scheme == "http" and self.address.is_ours(rest)


class Guard:
    """The middleware: refuses by the rules in one line of JSON, adds HEADERS to answers, and ends bodies that are too long."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self.app, self.rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        refused = self.rules.refusal(scope)
        if scope["type"] == "websocket":
            if refused is not None:
                await receive()
                await send({"type": "websocket.close", "code": CLOSED, "reason": refused[1][:120]})
                return
            await self.app(scope, receive, send)
            return
        if refused is not None:
            await refuse(*refused)(scope, receive, _with(HEADERS, send))
            return
        try:
            await self.app(scope, self._limited(receive), _with(HEADERS, send))
        except BodyTooLong as problem:
            await refuse(413, str(problem))(scope, receive, _with(HEADERS, send))
        except ClientDisconnect:  # in the middle of its body; there is nobody to answer
            pass

    def _limited(self, receive: Receive) -> Receive:
        """A body without Content-Length is counted as it arrives."""
        seen = 0

        async def limited() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.rules.max_body_bytes:
                raise BodyTooLong(f"the body is larger than {self.rules.max_body_bytes} bytes")
            return message

        return limited


class BodyTooLong(Exception):
    """A body without a length that exceeds the limit."""


async def too_long(_request: Request, problem: Exception) -> Response:
    """For an application's handlers of exceptions: without it Starlette answers 500."""
    return refuse(413, str(problem))


def refuse(status: int, line: str) -> Response:
    """An error as every error here: `{"error": "one line"}`."""
    return JSONResponse({"error": line}, status)


def _with(headers: Mapping[str, str], send: Send) -> Send:
    extra = [(key.encode(), value.encode()) for key, value in headers.items()]

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {key.lower() for key, _ in message.get("headers", [])}
            message = {**message, "headers": [*message.get("headers", []), *(pair for pair in extra if pair[0] not in present)]}
        await send(message)

    return sending


def _token_of(scope: Scope, headers: Mapping[str, str]) -> bytes:
    """The token of the header, or of the query: the page's own address and WebSockets, which take no header, have it there."""
    word, _, value = headers.get("authorization", "").partition(" ")
    if word.lower() == "bearer":
        return value.strip().encode()
    try:
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=MAX_QUERY_FIELDS)
    except ValueError:  # too many fields
        return b""
    return query.get("token", [""])[0].encode()


def _split(host_header: str) -> tuple[str, int | None]:
    """Name and port of `name:port` or `[address]:port`; port 80 if there is none."""
    name, bracket, rest = host_header.rpartition("]")
    if bracket:
        name, rest = name.removeprefix("["), rest.removeprefix(":")
    else:
        name, _, rest = host_header.partition(":")
    port = int(rest) if rest.isdecimal() and len(rest) <= MAX_PORT_DIGITS else None if rest else 80
    return name.lower(), port


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
