"""Firefox by WebDriver BiDi (https://w3c.github.io/webdriver-bidi/), as far as the tests of the page need it.

Playwright drives only its own build of Firefox, which no package registry has.
"""

import json
import shutil
import subprocess
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
PORT_FILE = "WebDriverBiDiServer.json"  # in the profile: the port that Firefox has chosen
START_S, ANSWER_S = 60.0, 60.0


class Firefox:
    """A headless Firefox with one tab and a profile of its own in `profile`; `complaints` is what its console has said."""

    def __init__(self, profile: Path, width: int = 1280, height: int = 800) -> None:
        self._profile, self._size = profile, (width, height)
        self._number = 0
        self._open = ExitStack()
        self.complaints: list[str] = []

    def __enter__(self) -> "Firefox":
        width, height = self._size
        argv = [
            str(FIREFOX), "--headless", "--no-remote", "--profile", str(self._profile), "--remote-debugging-port", "0",
            f"--width={width}", f"--height={height}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._socket = self._connected()
            self.version = self._ask("session.new", capabilities={})["capabilities"]["browserVersion"]
            self._ask("session.subscribe", events=["log.entryAdded"])
            self._tab = self._ask("browsingContext.getTree")["contexts"][0]["context"]
            self._ask("browsingContext.setViewport", context=self._tab, viewport={"width": width, "height": height})
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_failed: object) -> None:
        with suppress(AttributeError, WebSocketException, OSError), self._open:
            self._ask("browser.close")
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _connected(self) -> ClientConnection:
        until = time.monotonic() + START_S
        file = self._profile / PORT_FILE
        while time.monotonic() < until:
            with suppress(OSError, ValueError, KeyError, WebSocketException):
                port = json.loads(file.read_text())["ws_port"]
                return self._open.enter_context(connect(f"ws://127.0.0.1:{port}/session", max_size=None, proxy=None))
            assert self._process.poll() is None, f"{FIREFOX} has ended with {self._process.returncode}"
            time.sleep(0.1)
        raise AssertionError(f"{FIREFOX}: no WebDriver BiDi within {START_S:.0f} s")

    def _ask(self, method: str, **words: Any) -> Any:
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": words}))
        while True:
            message = json.loads(self._socket.recv(ANSWER_S))
            if message.get("method") == "log.entryAdded":
                self.complaints.append(f"{message['params']['level']}: {message['params']['text']}")
            if message.get("id") == self._number:
                assert message["type"] == "success", f"{method}: {message['error']}: {message['message']}"
                return message["result"]

    def goto(self, url: str) -> None:
        """Opens the address and waits for its load event."""
        self._ask("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of the page that JSON can hold."""
        answer = self._ask(
            "script.evaluate",
            expression=f"JSON.stringify({expression}) ?? 'null'",
            target={"context": self._tab},
            awaitPromise=True,
        )
        assert answer["type"] == "success", answer["exceptionDetails"]["text"]
        return json.loads(answer["result"]["value"])

    def click(self, x: float, y: float) -> None:
        """A click at a place of the window, in CSS pixels."""
        at = {"type": "pointerMove", "x": round(x), "y": round(y)}
        steps = [at, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self._ask("input.performActions", context=self._tab, actions=[{"type": "pointer", "id": "mouse", "actions": steps}])

    def press(self, key: str) -> None:
        """A key, by its character or its code of WebDriver."""
        steps = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self._ask("input.performActions", context=self._tab, actions=[{"type": "key", "id": "keys", "actions": steps}])

    def screenshot(self) -> str:
        """The window as PNG, in base64."""
        data: str = self._ask("browsingContext.captureScreenshot", context=self._tab)["data"]
        return data
