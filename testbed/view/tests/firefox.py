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
START_S, ANSWER_S = 60.0, 180.0
# https://www.w3.org/TR/webdriver2/#keyboard-actions
KEYS = {
    "Tab": "\ue004", "Enter": "\ue006", "Shift": "\ue008", "Control": "\ue009", "Escape": "\ue00c", "End": "\ue010",
    "Home": "\ue011", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015",
    "Delete": "\ue017", "F10": "\ue03a",
}  # fmt: skip


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
            # the tab of the start leaves the focus in the bar of the address: `document.hasFocus()` is false there
            self._tab = self._ask("browsingContext.create", type="tab")["context"]
            self.resize(width, height)
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
        self._ask("browsingContext.activate", context=self._tab)  # keys go to it, and not to the bar of the address

    def resize(self, width: int, height: int) -> None:
        """The page's part of the window, in CSS pixels."""
        self._ask("browsingContext.setViewport", context=self._tab, viewport={"width": width, "height": height})

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of the page that JSON can hold, or that of its promise."""
        return json.loads(self._evaluated(f"Promise.resolve({expression}).then((value) => JSON.stringify(value) ?? 'null')"))

    def violations(self) -> list[str]:
        """The rules of axe that the page violates, with the elements."""
        from axe_playwright_python.base import AXE_SCRIPT  # of ./setup.sh --pages

        if not self.evaluate("Boolean(window.axe)"):
            self._evaluated(f"{AXE_SCRIPT}; ''")
        found = self.evaluate("axe.run()")["violations"]
        return [f"{one['id']}: {[node['target'] for node in one['nodes']]}" for one in found]

    def click(self, x: float, y: float, button: int = 0) -> None:
        """A click at a place of the window, in CSS pixels; button 2 is the right one."""
        self.drag((x, y), (x, y), button)

    def drag(self, begin: tuple[float, float], end: tuple[float, float], button: int = 0) -> None:
        """From one place of the window to another with the button held."""
        places = [
            (round(begin[0] + (end[0] - begin[0]) * part), round(begin[1] + (end[1] - begin[1]) * part)) for part in (0.5, 1)
        ]
        to = [{"type": "pointerMove", "x": x, "y": y} for x, y in (map(round, begin), *places)]
        moves = to[1:] if begin != end else []
        steps = [to[0], {"type": "pointerDown", "button": button}, *moves, {"type": "pointerUp", "button": button}]
        self._ask("input.performActions", context=self._tab, actions=[{"type": "pointer", "id": "mouse", "actions": steps}])

    def click_on(self, selector: str, button: int = 0) -> None:
        """A click in the middle of the first element that fits."""
        middle = "(({ x, y, width, height }) => [x + width / 2, y + height / 2])(one.getBoundingClientRect())"
        scrolled = f"((one) => (one.scrollIntoView({{ block: 'center' }}), {middle}))"
        self.click(*self.evaluate(f"{scrolled}(document.querySelector({json.dumps(selector)}))"), button)

    def focus(self, selector: str) -> None:
        """The keyboard's place."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")

    def press(self, keys: str) -> None:
        """A key by its character or name, with the ones that are held: `Control+Shift+z`."""
        *held, last = keys.split("+") if len(keys) > 1 else [keys]
        codes = [KEYS.get(name, name) for name in (*held, last)]
        self._type([*(("keyDown", code) for code in codes), *(("keyUp", code) for code in reversed(codes))])

    def type(self, text: str) -> None:
        """The keys of a text, one after the other."""
        codes = [KEYS["Enter"] if character == "\n" else character for character in text]
        self._type([(way, code) for code in codes for way in ("keyDown", "keyUp")])

    def _type(self, strokes: list[tuple[str, str]]) -> None:
        steps = [{"type": way, "value": code} for way, code in strokes]
        self._ask("input.performActions", context=self._tab, actions=[{"type": "key", "id": "keys", "actions": steps}])

    def _evaluated(self, expression: str) -> str:
        answer = self._ask("script.evaluate", expression=expression, target={"context": self._tab}, awaitPromise=True)
        assert answer["type"] == "success", answer["exceptionDetails"]["text"]
        text: str = answer["result"]["value"]
        return text

    def screenshot(self) -> str:
        """The window as PNG, in base64."""
        data: str = self._ask("browsingContext.captureScreenshot", context=self._tab)["data"]
        return data
