"""A station of a mesh, or a wired host: commands on it, its place, its routes."""

import math
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from subprocess import CompletedProcess
from typing import Literal

from manet_testbed.answers import Ping, Route
from manet_testbed.connection import Connection
from manet_testbed.errors import CommandFailed, MeshTimeout, WrongRequest, number, quoted, seconds
from manet_testbed.process import PIPE, STDOUT, Process, Stream, Streams

TIMEOUT_S = 60.0  # of a command
RETRY_S = 0.2  # between two tries of a command
PING_INTERVAL_S = 0.2
MAX_PINGS = 100_000
PING_WAIT_S = 1  # for the last answer
Argv = str | Sequence["str | Path | Station"]


class Station:
    """A node. `str` is its name; in a command line it stands for its address. `address6` is None in a mesh without `ipv6`."""

    def __init__(
        self, connection: Connection, name: str, address: str, has_radio: bool, address6: str | None = None
    ) -> None:  # fmt: skip
        self.name, self.address, self.address6, self.has_radio = name, address, address6, has_radio
        self._connection = connection

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<{self.name} {self.address}>"

    def address_of(self, ip: int) -> str:
        """The address of IP version 4 or 6."""
        if ip not in (4, 6):
            raise WrongRequest(f"{self.name}: ip={ip!r}: the versions are 4 and 6")
        if ip == 6 and self.address6 is None:
            raise WrongRequest(f"{self.name}: has no IPv6 address; give the mesh ipv6=True")
        return self.address if ip == 4 or self.address6 is None else self.address6

    # --- commands -----------------------------------------------------------------------------------------------------

    def run(
        self, argv: Argv, *, timeout: float = TIMEOUT_S, check: bool = True, input: str | None = None,
        cwd: Path | str | None = None, env: Mapping[str, str] | None = None,
    ) -> CompletedProcess[str]:  # fmt: skip
        """Run a command to its end, as subprocess.run; a text is split into words, a station becomes its address.

        Raises CommandFailed for a status other than 0 (not if `check` is false), MeshTimeout after `timeout` seconds, MeshError
        for more output than MAX_OUTPUT_BYTES; at both the command is killed. Its background programs run on until the mesh
        ends."""
        limit_s = seconds(timeout, f"{self.name}: run")
        if input is not None and not isinstance(input, str):
            raise WrongRequest(f"{self.name}: run: input={type(input).__name__}: give a text")
        with os.fdopen(os.memfd_create("input", os.MFD_CLOEXEC), "w+b") as stdin:
            if input is not None:
                stdin.write(input.encode())
                stdin.seek(0)
            process = self.popen(argv, stdin=stdin, stdout=PIPE, stderr=PIPE, cwd=cwd, env=env)
        outputs = bytearray(), bytearray()
        has_ended = False
        try:
            has_ended = process.read_until_end(outputs, limit_s)
        finally:
            if not has_ended:
                process.kill()
                process.close_pipes()
                process.wait()
        status = process.wait()
        out, err = (found.decode(errors="replace") for found in outputs)
        if not has_ended:
            raise MeshTimeout(f"{process.command}: not ended within {timeout:g} s{quoted(err or out)}")
        if check and status != 0:
            raise CommandFailed(self.name, process.args, status, out, err)
        return CompletedProcess(process.args, status, out, err)

    def popen(
        self, argv: Argv, *, stdin: Stream = None, stdout: Stream = None, stderr: Stream = None,
        cwd: Path | str | None = None, env: Mapping[str, str] | None = None,
    ) -> Process:  # fmt: skip
        """Start a command, as subprocess.Popen in text mode; a stream that is not given is /dev/null. It ends with the mesh."""
        words = self._words(argv)
        if not words:
            raise WrongRequest(f"{self.name}: run: the command is empty")
        if stderr == STDOUT and stdout is None:
            raise WrongRequest(f"{self.name}: {words[0]}: stderr=STDOUT needs a stdout")
        arguments = {
            "station": self.name,
            "argv": words,
            "folder": self._folder(cwd),
            "environment": self._environment(env),
        }
        streams = Streams(stdin, stdout, stderr)
        try:
            answer, descriptors = self._connection.request("start", arguments, streams.given)
        except BaseException:
            streams.close()
            raise
        streams.handed_over()
        number = answer["process"]
        return Process(
            self.name, words, descriptors[0],
            lambda: int(self._connection.request("ended", {"process": number})[0]["returncode"]), streams,
        )  # fmt: skip

    def wait_until_succeeds(self, argv: Argv, timeout: float = 30) -> CompletedProcess[str]:
        """Repeat a command until it ends with status 0. Raises MeshTimeout, with its last output, after `timeout` seconds."""
        limit_s = seconds(timeout, f"{self.name}: wait_until_succeeds")
        deadline, failure = math.inf if limit_s is None else time.monotonic() + limit_s, ""
        while True:
            try:
                done = self.run(argv, timeout=max(RETRY_S, deadline - time.monotonic()), check=False)
            except MeshTimeout as problem:  # of this try: the failure of an earlier one says more
                raise MeshTimeout(f"{failure or problem}; did not succeed within {timeout:g} s") from None
            if done.returncode == 0:
                return done
            failure = str(CommandFailed(self.name, done.args, done.returncode, done.stdout, done.stderr))
            if time.monotonic() + RETRY_S > deadline:
                raise MeshTimeout(f"{failure}; did not succeed within {timeout:g} s")
            time.sleep(RETRY_S)

    def ping(self, other: "Station | str", count: int = 3, interval: float = PING_INTERVAL_S, *, ip: int = 4) -> Ping:
        """Ping a station, over IPv4 or IPv6, or an address. Without a route all packets are lost, which is no error."""
        target = other.address_of(ip) if isinstance(other, Station) else str(other)
        if isinstance(count, bool) or not isinstance(count, Integral) or not 1 <= count <= MAX_PINGS:
            raise WrongRequest(f"{self.name}: ping: count={count!r}: give a whole number from 1 to {MAX_PINGS}")
        if number(interval, f"{self.name}: ping: interval") < 0:
            raise WrongRequest(f"{self.name}: ping: interval={interval!r}: give seconds of 0 or more")
        argv = ["ping", "-n", "-c", str(count), "-i", f"{interval:g}", "-W", str(PING_WAIT_S), "--", target]
        limit_s = count * max(interval, PING_WAIT_S) + TIMEOUT_S
        done = self.run(argv, timeout=limit_s, check=False, env={**os.environ, "LC_ALL": "C"})
        return Ping.parse(count, done.stdout, done.stderr, f"{self.name}: {' '.join(argv)}")

    # --- radio and routes ---------------------------------------------------------------------------------------------

    def move(self, x: float, y: float, z: float = 0.0, *, speed: float | None = None) -> None:
        """Go to a place (m), at once or in a straight line at `speed` (m/s)."""

        def checked(value: float, name: str) -> float:
            # the testbed refuses nan and inf, with the words of a scenario's event
            return value if isinstance(value, float) else number(value, f"{self.name}: move: {name}")

        position = [checked(value, axis) for axis, value in (("x", x), ("y", y), ("z", z))]
        speed_mps = None if speed is None else checked(speed, "speed")
        self._connection.request("move", {"station": self.name, "position": position, "speed_mps": speed_mps})

    def power(self, on: bool) -> None:
        """Switch radio and wires on or off, as if unplugged; programs keep running."""
        if on not in (True, False):
            raise WrongRequest(f"{self.name}: power({on!r}): give True or False")
        self._connection.request("power", {"station": self.name, "on": bool(on)})

    def daemon(self, action: Literal["start", "stop", "restart", "kill"]) -> None:
        """Start, stop, restart or kill (SIGKILL) the station's routing daemon; its routes stay in the kernel after a kill. A
        daemon that ends otherwise fails the mesh."""
        if action not in ("start", "stop", "restart", "kill"):
            raise WrongRequest(f'{self.name}: daemon: "{action}" is not known; give start, stop, restart or kill')
        self._connection.request("daemon", {"station": self.name, "action": action})

    @property
    def position(self) -> tuple[float, float, float]:
        """The place now, m."""
        x, y, z = self._connection.request("positions", {})[0]["positions"][self.name]
        return x, y, z

    def routes(self, *, ip: int = 4) -> list[Route]:
        """The kernel's main table, of IPv4 or IPv6."""
        if ip not in (4, 6):
            raise WrongRequest(f"{self.name}: routes(ip={ip!r}): the versions are 4 and 6")
        rows = self._connection.request("routes", {"station": self.name, "ip": ip})[0]["routes"]
        return [Route.parse(row) for row in rows]

    def route_to(self, other: "Station | str", *, ip: int = 4) -> Route | None:
        """The host route to a station or an address in the main table; None without one, or if it refuses packets."""
        target = other.address_of(ip) if isinstance(other, Station) else str(other)
        usable = (route for route in self.routes(ip=6 if ":" in target else 4) if route.kind == "unicast")
        return next((route for route in usable if route.destination == target), None)

    def _words(self, argv: Argv) -> list[str]:
        try:
            words = shlex.split(argv) if isinstance(argv, str) else list(argv)
        except (ValueError, TypeError) as problem:  # a quote without its end; no sequence
            raise WrongRequest(f"{self.name}: run({str(argv)[:80]!r}): {problem}; give a text or a list of words") from None
        return [word.address if isinstance(word, Station) else str(word) for word in words]

    def _folder(self, cwd: Path | str | None) -> str:
        try:
            return str(Path.cwd() if cwd is None else Path(cwd).absolute())
        except TypeError:
            raise WrongRequest(f"{self.name}: cwd={cwd!r}: give a folder") from None

    def _environment(self, env: Mapping[str, str] | None) -> dict[str, str]:
        found = os.environ if env is None else env
        if not isinstance(found, Mapping) or not all(isinstance(text, str) for pair in found.items() for text in pair):
            raise WrongRequest(f"{self.name}: env={str(found)[:80]}: give a dict of texts")
        return dict(found)
