"""`net.socketServer(ip, port)`: programs of a script move its stations and ask for them, over TCP with Mininet-WiFi's words.

    set.sta1.setPosition("10,20,0")     a method of SETTERS, with an interface: set.sta1.setRange(30, intf=sta1-wlan0)
    get.sta1.position                   an attribute; get.sta1.wintfs[0].txpower one of its radio
    sta1.ping.-c1.10.0.0.2              a command, its words between dots

One request a connection, of at most MAX_BYTES; the answer is text. The server listens in the run's own network namespace, so only
programs that the script itself starts reach it, and it ends with the network.
"""

import re
import socket
import threading

from testbed.errors import ManetError, UsageError
from testbed.mn_wifi.node import ScriptNetwork

MAX_BYTES = 1024
ACCEPTED = "command accepted!"
SETTERS = ("setPosition", "setRange", "setTxPower", "setAntennaGain", "setAntennaHeight", "setIP", "setIP6")
READABLE = ("position", "name", "ip", "params")
OF_RADIO = (
    "name", "mac", "ip", "ssid", "mode", "channel", "freq", "txpower", "antennaGain", "antennaHeight", "range",
)  # fmt: skip
WAIT_S = 0.2  # between two looks at whether the network still stands
DEADLINE_S = 10.0  # for the request of a client


class SocketServer:
    """The server, in a thread of its own until `stop`. Raises UsageError if it cannot listen."""

    def __init__(self, net: ScriptNetwork, ip: str, port: int) -> None:
        self._net, self._stop = net, threading.Event()
        family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        self._listener = socket.socket(family, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind((ip, port))
        except OSError as problem:
            self._listener.close()
            text = f"{problem.strerror}; the run has a network namespace of its own, with 127.0.0.1"
            raise UsageError(f"socketServer: ip={ip!r}, port={port}: {text}") from None
        self._listener.listen()
        self._listener.settimeout(WAIT_S)
        self._thread = threading.Thread(target=self._serve, name="socketServer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; no request is answered after the return."""
        self._stop.set()
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                client, _address = self._listener.accept()
            except TimeoutError:
                continue
            with client:
                client.settimeout(DEADLINE_S)
                try:
                    request = client.recv(MAX_BYTES).decode(errors="replace")
                    client.sendall(answer(self._net, request.strip()).encode())
                except OSError:  # a client that has gone
                    continue


def answer(net: ScriptNetwork, request: str) -> str:
    """Carry out a request; returns its answer, or the error, as text."""
    try:
        verb, _, rest = request.partition(".")
        name, _, what = rest.partition(".")
        if verb == "set":
            return _set(net, name, what)
        if verb == "get":
            return _get(net, name, what)
        net.get(verb).popen([word for word in rest.split(".") if word])
    except (ManetError, OSError, ValueError) as problem:
        return str(problem)
    return ACCEPTED


def _set(net: ScriptNetwork, name: str, call: str) -> str:
    parts = re.fullmatch(r"(\w+)\((.*?)(?:,\s*intf=([^,)]*))?\)", call)
    if parts is None:
        return "usage: set.node.method()"
    method, value, intf = parts.groups()
    if method not in SETTERS:
        return "unrecognized method!"
    options = {"intf": intf.strip("\"' ")} if intf else {}
    getattr(net.get(name), method)(value.strip("\"' "), **options)
    return ACCEPTED


def _get(net: ScriptNetwork, name: str, what: str) -> str:
    node = net.get(name)
    radio = re.fullmatch(r"wintfs\[0\]\.(\w+)", what)
    if radio is not None and radio.group(1) in OF_RADIO:
        return str(getattr(node.wintfs[0], radio.group(1)))
    return str(getattr(node, what)) if what in READABLE else "usage: get.node.attr"
