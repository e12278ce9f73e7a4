"""A connection of the server, which must ask for something, and a WebSocket, which may say anything.

uvicorn waits forever for the first request, for the rest of a head and for the rest of a body, and counts such a connection among
those that are open. A few that stay silent would so keep everybody else out. It loses frames that come with the handshake, and
prints a traceback for a text that is not UTF-8 (RFC 6455, 8.1) and for frames before its answer to the handshake.
"""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

REQUEST_WITHIN_S = 10.0
INVALID_DATA = 1007  # RFC 6455, 7.4.1


class PromptConnection(H11Protocol):
    """An HTTP connection that is closed if a whole request has not arrived within REQUEST_WITHIN_S of its first moment."""

    within_s = REQUEST_WITHIN_S

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """A part of a request, or some requests, or the start of a WebSocket."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and self in self.connections:
            self._expect()
        else:
            self._relax()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection over, with the bytes that came behind the handshake."""
        super().handle_websocket_upgrade(event)
        protocol, behind = self.transport.get_protocol(), self.conn.trailing_data[0]
        if behind and isinstance(protocol, asyncio.Protocol):
            protocol.data_received(behind)

    def on_response_complete(self) -> None:
        """The answer has left; uvicorn's own timer ends a connection without another request."""
        self._relax()
        super().on_response_complete()

    def shutdown(self) -> None:
        """The server ends: it does not wait for the rest of a request."""
        if self._deadline is not None:
            self.transport.abort()
        else:
            super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._relax()
        super().connection_lost(exc)

    def _expect(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.within_s, self.transport.abort)

    def _relax(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class PatientWebSocket(WebSocketsSansIOProtocol):
    """A WebSocket whose frames wait for the answer to the handshake, and that closes at a text that is not UTF-8."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._early = b""

    def data_received(self, data: bytes) -> None:
        """The handshake, then frames."""
        if self.handshake_initiated and not self.handshake_complete:
            self._early += data
            self.transport.pause_reading()
        else:
            super().data_received(data)

    async def send(self, message: Any) -> None:
        """A message of the application; the first one is the answer to the handshake."""
        await super().send(message)
        if self.handshake_complete and self._early:
            early, self._early = self._early, b""
            if not self.transport.is_closing():
                self.transport.resume_reading()
                super().data_received(early)

    def send_receive_event_to_app(self) -> None:
        """A whole message has come."""
        try:
            if self.curr_msg_data_type == "text":
                b"".join(self.frames).decode()
        except UnicodeDecodeError:
            self.frames = []
            self.conn.send_close(INVALID_DATA)
            self.handle_parser_exception()
        else:
            super().send_receive_event_to_app()
