"""Whatever the WebSocket of a page says, at any time, the server answers, and its terminal stays empty."""

import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator

import pytest

from testbed.programs import ROOT

# the server of a view, and of its live connection the part that listens
SERVER = """
import asyncio, contextlib
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocketDisconnect
from testbed.view.live import _until_gone
from testbed.web.guard import Guard, Rules
from testbed.web.server import listen, serve

async def live(page):
    await asyncio.sleep(0.05)  # as to find the run: frames come before the answer
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # as follow()
        await page.accept()
        await page.send_text("hello")
        await _until_gone(page)

listener = listen()
application = Starlette(routes=[WebSocketRoute("/api/live", live)])
guarded = Guard(application, Rules(listener.address, listener.token))
serve(listener, guarded, lambda: print(listener.address.port, listener.token, flush=True))
"""
DEADLINE_S = 30
HELLO = b"\x81\x05hello"


def frame(opcode: int, data: bytes, first: int = 0x80) -> bytes:
    """A masked frame of a client (RFC 6455, 5.2); `first`: 0x80 in the last of its message."""
    mask = b"abcd"
    return bytes([first | opcode, 0x80 | len(data)]) + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))


CLOSE = frame(8, struct.pack("!H", 1000))
SAID = {
    "text": frame(1, b"hi") + CLOSE, "bytes": frame(2, b"\xff") + CLOSE, "many": frame(1, b"x") * 200 + CLOSE,
    "a ping": frame(9, b"x") + CLOSE, "the end": CLOSE, "no UTF-8": frame(1, b"\xff\xfe"),
    "no UTF-8 in two parts": frame(1, b"\xc3", first=0) + frame(0, b"\x28"),
    "a short end": frame(8, b"\x03"), "an end in no UTF-8": frame(8, struct.pack("!H", 1000) + b"\xff"),
    "an unknown opcode": frame(3, b""), "no mask": b"\x81\x02hi", "reserved bits": b"\xf1\x80abcd",
    "a terabyte": b"\x81\xff" + struct.pack("!Q", 1 << 40) + b"abcd", "a part of nothing": frame(0, b"x"),
    "noise": bytes(range(255, 0, -1)),
}  # fmt: skip


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[int, str]]:
    """Port and token of a server, which prints nothing until its end."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-P", "-c", SERVER]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        port, token = process.stdout.readline().split()
        yield int(port), token
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, complaints) == (0, "")


@pytest.mark.parametrize("when", ["with the handshake", "before the answer", "after it"])
@pytest.mark.parametrize("name", SAID)
def test_whatever_a_page_says_is_answered_without_a_traceback(address: tuple[int, str], name: str, when: str) -> None:
    """Frames that came with the handshake were lost; bytes, and text that is not UTF-8, printed tracebacks."""
    port, token = address
    head = (
        f"GET /api/live?token={token} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ).encode()
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as page:
        page.sendall(head + SAID[name] if when == "with the handshake" else head)
        if when == "before the answer":
            page.sendall(SAID[name])
        received = b""
        while when == "after it" and HELLO not in received:
            received += page.recv(4096)
        if when == "after it":
            page.sendall(SAID[name])
        while part := page.recv(4096):
            received += part
    answer, _, frames = received.partition(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 101 ") and b"\x88" in frames
    assert name != "a ping" or b"\x8a\x01x" in frames, "the pong"
    assert "UTF-8" not in name or struct.pack("!H", 1007) in frames.rpartition(b"\x88")[2]
