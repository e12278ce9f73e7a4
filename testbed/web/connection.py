"""A connection of the server, which must ask for something.

uvicorn waits forever for the first request, for the rest of a head and for the rest of a body, and counts such a connection among
those that are open. A few that stay silent would so keep everybody else out.
"""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_WITHIN_S = 10.0


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
