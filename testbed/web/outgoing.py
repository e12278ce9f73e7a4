"""Sending over a WebSocket from several tasks, to a page or program that may read slowly, or have gone."""

import asyncio

from starlette.websockets import WebSocket, WebSocketDisconnect

SEND_WITHIN_S = 5.0
GONE = (WebSocketDisconnect, RuntimeError, TimeoutError, OSError)  # of a receiver that has gone, or reads nothing


class Outgoing:
    """One message at a time. Methods raise one of GONE if it does not leave within SEND_WITHIN_S."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket, self._turn = socket, asyncio.Lock()

    async def text(self, text: str) -> None:
        """Send a text message."""
        async with self._turn:
            await asyncio.wait_for(self._socket.send_text(text), SEND_WITHIN_S)

    async def data(self, data: bytes) -> None:
        """Send a binary message."""
        async with self._turn:
            await asyncio.wait_for(self._socket.send_bytes(data), SEND_WITHIN_S)
