"""The run of a mesh, in its own namespaces: the network stands, and requests of the test process are served one at a time.

No request waits: a command is started, and its end is seen by the test process at its pidfd. `manet_testbed.messages` is the
format; the first message is this side's, when the network is ready. End-of-file without `stop` interrupts the run.
"""

import json
import os
import shutil
import socket
import subprocess
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from manet_testbed import messages
from record.events_file import MESH
from testbed.errors import RunError, UsageError
from testbed.host.processes import STOP_DEADLINE_S
from testbed.runs.init import ReportPipe
from testbed.runs.live_network import LiveNetwork, judged_session, session_running
from testbed.runs.run import Interrupted, report_outcome, site_of
from testbed.stages import iproute
from testbed.stages.site import Site
from testbed.stages.station import NamespaceHost

Answer = tuple[dict[str, Any], Sequence[int]]


def inside(arguments: dict[str, Any], report: ReportPipe) -> int:
    """Called by testbed.runs.init."""
    site, directory = site_of(arguments), Path(arguments["directory"])
    with socket.socket(fileno=arguments["requests"]) as connection:
        return report_outcome(directory, report, lambda: _stand(site, connection, report))


def _stand(site: Site, connection: socket.socket, report: ReportPipe) -> None:
    with session_running(site, lambda stage, fraction=None: report.send(stage=stage, fraction=fraction), MESH) as live:
        requests = Requests(live)
        with judged_session(live):
            try:
                messages.send(connection, requests.ready())
                requests.serve(connection)
            finally:
                requests.end()


class Requests:
    """The requests to one running network: a method each, `do_<op>`."""

    def __init__(self, live: LiveNetwork) -> None:
        self.live, self.network = live, live.network
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._started = 0
        self._descriptors: Sequence[int] = ()

    def ready(self) -> dict[str, Any]:
        """The first message: the nodes."""
        hosts = self.network.net.hosts
        radios = {station.name for station in self.network.net.stations}
        ipv6 = self.network.site.scenario.ipv6
        nodes = [
            {
                "name": host.name, "address": host.IP(), "address6": host.IP6() if ipv6 else None,
                "radio": host.name in radios,
            }
            for host in hosts
        ]  # fmt: skip
        return {"directory": str(self.network.site.directory), "nodes": nodes}

    def serve(self, connection: socket.socket) -> None:
        """Answer requests until `stop`. Raises Interrupted if the test process has closed the connection."""
        while True:
            received = messages.receive(connection)
            if received is None:
                raise Interrupted
            request, self._descriptors = received
            answer, descriptors = self._answer(request)
            for descriptor in self._descriptors:
                os.close(descriptor)
            try:
                messages.send(connection, {**answer, "id": request["id"]}, descriptors)
            except OSError:
                raise Interrupted from None
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
            if request["op"] == "stop":
                return

    def end(self) -> None:
        """End the commands that still run."""
        running = [process for process in self._processes.values() if process.poll() is None]
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(STOP_DEADLINE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _answer(self, request: dict[str, Any]) -> Answer:
        try:
            self.network.children.check()
            do: Callable[..., Answer] = getattr(self, f"do_{request['op']}")
            return do(**request["arguments"])
        except (RunError, UsageError) as problem:
            return {"error": str(problem), "kind": "failed" if isinstance(problem, RunError) else "wrong"}, ()
        except Exception as problem:  # one request fails, and the network stands
            traceback.print_exc()
            log = self.network.site.directory / "log" / "run.log"
            return {"error": f"bug in the testbed: {request['op']}: {problem!r}; see {log}", "kind": "failed"}, ()

    # --- commands -----------------------------------------------------------------------------------------------------

    def do_start(self, station: str, argv: list[str], folder: str, environment: dict[str, str]) -> Answer:
        """Start a command with the message's descriptors as its standard streams; its number and pidfd."""
        host = self._host(station)
        place: dict[str, Any] = {"cwd": folder, "env": environment}
        if host.container is not None:
            place = {}  # it has files and an environment of its own
        elif not Path(folder).is_dir():
            raise UsageError(f"{station}: {argv[0]}: the folder {folder} does not exist; give another cwd")
        program = os.path.join(folder, argv[0]) if "/" in argv[0] else argv[0]  # noqa: PTH118 - a full path stays as it is
        stdin, stdout, stderr = self._descriptors
        try:
            if place and shutil.which(program, path=environment.get("PATH", os.defpath)) is None:
                raise UsageError(f"{station}: {argv[0]}: not found, or not executable; install it, or write its full path")
            process = host.popen(argv, stdin=stdin, stdout=stdout, stderr=stderr, **place)
        except (OSError, ValueError) as problem:  # arguments too long, a null byte, "=" in the name of a variable
            raise UsageError(f"{station}: {argv[0]}: {problem}") from None
        self._started += 1
        self._processes[self._started] = process
        return {"process": self._started}, [os.pidfd_open(process.pid)]

    def do_ended(self, process: int) -> Answer:
        """The status of a command that has ended; negative: a signal."""
        return {"returncode": self._processes.pop(process).wait()}, ()

    # --- daemons and the air ------------------------------------------------------------------------------------------

    def do_daemon(self, station: str, action: str) -> Answer:
        """Start, stop, restart or kill (SIGKILL) the routing daemon of a station; answered when it works, or has ended."""
        return self._event(station, {"daemon": action, "station": station})

    def do_move(self, station: str, position: list[float], speed_mps: float | None) -> Answer:
        """Move a station, at once or at a speed."""
        return self._event(f"{station}: move", {"move": station, "to": position, "speed": speed_mps}, {"to": "position"})

    def do_power(self, station: str, on: bool) -> Answer:
        """Switch a station off or on."""
        return self._event(station, {"power": station, "on": on})

    def _event(self, call: str, keys: dict[str, Any], named: dict[str, str] | None = None) -> Answer:
        try:
            self.live.do(keys, MESH, named)
        except UsageError as problem:
            raise UsageError(f"{call}: {problem}") from None
        return {}, ()

    def do_break_link(self, one: str, other: str) -> Answer:
        """Lose every data frame between two stations."""
        radios = [station.name for station in self.network.net.stations]
        if one == other or not {one, other} <= set(radios):
            raise UsageError(f"break_link({one}, {other}): give two stations with a radio, of {', '.join(radios)}")
        self.live.break_link(one, other, MESH)
        return {}, ()

    def do_restore_link(self, one: str, other: str) -> Answer:
        """Give a broken link its error rates back."""
        if (one, other) not in self.live.broken:
            raise UsageError(f"restore_link({one}, {other}): is not broken; call break_link before")
        self.live.restore_link(one, other, MESH)
        return {}, ()

    def do_links(self) -> Answer:
        """Directed pairs of stations in range, without the broken ones."""
        return {"links": [pair for pair in self.network.medium.links() if pair not in self.live.broken]}, ()

    def do_positions(self) -> Answer:
        """The positions of all stations now, m."""
        return {"positions": self.network.medium.ask("positions")["positions"]}, ()

    # --- the network --------------------------------------------------------------------------------------------------

    def do_check(self) -> Answer:
        """Check only whether a daemon has failed, as before each request."""
        return {}, ()

    def do_routes(self, station: str, ip: int) -> Answer:
        """The kernel's main table of a node and an IP version, as ip(8) writes it as JSON."""
        table = iproute.ask_within(self._host(station).netns, "ip", "-json", f"-{ip}", "route", "show")
        return {"routes": json.loads(table or "[]")}, ()

    def do_verdict(self) -> Answer:
        """The verdict so far, and its reasons."""
        verdict, reasons = self.live.verdict_so_far()
        return {"verdict": verdict, "reasons": reasons}, ()

    def do_stop(self) -> Answer:
        """End the network; `serve` returns."""
        return {}, ()

    def _host(self, name: str) -> NamespaceHost:
        return self.network.net[name]
