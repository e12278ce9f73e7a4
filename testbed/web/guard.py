"""The guard before a web application: which requests reach it.

A browser sends requests to loopback for any page that it shows. So each request must name this server in its Host header (against
DNS rebinding), must come from one of its own pages if it has an Origin, and must carry the token. Answers carry a policy by which
a page loads nothing from elsewhere and runs no script of its text (Content Security Policy Level 3, W3C).

By DNS rebinding, a name that another site chose leads here. DNS leads neither addresses nor `localhost` (RFC 6761, 6.3) anywhere
else, so they are safe with any port: a port that is forwarded from another machine has another number. The own Origin of a page
is that of its Host, so a page of another server on the same machine is another site.
"""

import hmac
import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 1 << 20
MAX_QUERY_FIELDS = 50
MAX_PORT_DIGITS = 5
PORTS = {"http": 80, "https": 443}
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
class PublicUrl:
    """The address by which browsers reach the server through a proxy (`--public-url`): an origin, RFC 6454."""

    scheme: str
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "PublicUrl":
        """`http://HOST[:PORT]` or `https://HOST[:PORT]`. Raises ValueError."""
        parts = urlsplit(text)
        if parts.scheme not in PORTS or not parts.hostname or parts.path not in ("", "/"):
            raise ValueError(text)
        if parts.query or parts.fragment or parts.username is not None:
            raise ValueError(text)
        return cls(parts.scheme, parts.hostname, parts.port or PORTS[parts.scheme])

    @property
    def origin(self) -> str:
        """As a browser sends it: the scheme's own port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == PORTS[self.scheme] else f":{self.port}")


@dataclass(frozen=True)
class Address:
    """The server's address: `host` as it listens, the names by which it may be addressed besides loopback's, and the address
    of the user's proxy, if there is one."""

    host: str
    port: int
    names: frozenset[str] = field(default_factory=frozenset)
    public: PublicUrl | None = None

    def is_ours(self, host_header: str) -> bool:
        """Whether a Host header names this server, with any port. One that listens on all addresses is named by any address."""
        name, port = _split(host_header)
        if port is None:
            return False
        known = name in self.names or (self.public is not None and name == self.public.host)
        return known or _is_loopback(name) or (self.is_any and _is_address(name))

    def is_own_page(self, origin: str, host_header: str) -> bool:
        """Whether an Origin is the page's that this Host has, or the public address."""
        if self.public is not None and origin == self.public.origin:
            return True
        scheme, _, rest = origin.partition("://")
        return scheme == "http" and self.is_ours(rest) and _split(rest) == _split(host_header)

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
        host = headers.get("host", "")
        if not self.address.is_ours(host):
            remedy = "open it as localhost, or start it with --public-url and the address in the browser's line"
            return 421, f"Host {host[:100]!r} is not this server, or another name of it; {remedy}"
        origin = headers.get("origin")
        if origin is not None and not self.address.is_own_page(origin, host):
            remedy = "open the page at the address that the server printed; behind a proxy, start the server with --public-url"
            return 403, f"Origin {origin[:100]!r} is another site; {remedy}"
        if self.methods is not None and scope["type"] == "http" and scope["method"] not in self.methods:
            return 405, f"method {scope['method'][:20]} is not available here; use {', '.join(sorted(self.methods))}"
        if not self.is_open(scope["path"]) and not hmac.compare_digest(_token_of(scope, headers), self.token.encode()):
            return 401, "no valid token; use the address that the server printed, or the header 'Authorization: Bearer TOKEN'"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 15 or int(length) > self.max_body_bytes:
            return 413, f"the body is larger than {self.max_body_bytes} bytes"
        return None


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


def _is_loopback(name: str) -> bool:
    return name == "localhost" or (_is_address(name) and ipaddress.ip_address(name).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
