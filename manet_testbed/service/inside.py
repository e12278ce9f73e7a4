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
from scenarios.live_events import live_event
from testbed.errors import RunError, UsageError
from testbed.host.processes import STOP_DEADLINE_S
from testbed.runs.isolation import Report
from testbed.runs.run import Interrupted, check_logs, check_space, report_outcome, site_of
from testbed.runs.standing import standing
from testbed.runs.verdict import BETTER_FIRST, add_judgements
from testbed.runs.waits import Waits
from testbed.runs.watch import Watch
from testbed.stages import iproute
from testbed.stages.events import carry_out
from testbed.stages.routing import Network, Protocol
from testbed.stages.site import Site
from testbed.stages.station import NamespaceHost

LOST = 1.0  # the error rate of a broken link
Answer = tuple[dict[str, Any], Sequence[int]]


def inside(arguments: dict[str, Any], report: Report) -> int:
    """Called by testbed.runs.isolation."""
    site, directory = site_of(arguments), Path(arguments["directory"])
    with socket.socket(fileno=arguments["requests"]) as connection:
        return report_outcome(directory, report, lambda: _stand(site, connection, report))


def _stand(site: Site, connection: socket.socket, report: Report) -> None:
    with standing(site, lambda stage, fraction=None: report.send(stage=stage, fraction=fraction)) as (network, protocol):
        checks = network.children.checks
        checks += [lambda: check_space(site.directory), lambda: check_logs(site.directory)]
        watch = Watch(Waits(site.cgroup, without=site.limited_groups))
        requests = Requests(network, protocol, watch)
        try:
            messages.send(connection, requests.ready())
            requests.serve(connection)
        finally:
            requests.end()
            watch.end()
    add_judgements(site.directory, programs=watch.waits.summary)


class Requests:
    """The requests to one standing network: a method each, `do_<op>`."""

    def __init__(self, network: Network, protocol: Protocol, watch: Watch) -> None:
        self.network, self.protocol, self.watch = network, protocol, watch
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._started = 0
        self._broken: dict[tuple[str, str], float] = {}  # the error rates of links before they were broken
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

    # --- routing daemons ----------------------------------------------------------------------------------------------

    def do_daemon(self, station: str, action: str) -> Answer:
        """Start, stop, restart or kill (SIGKILL) the routing daemon of a station; answered when it works, or has ended."""
        node = next((node for node in self.network.net.stations if node.name == station), None)
        routing = self.network.site.scenario.routing.protocol
        if node is None or not self.protocol.has_daemons:
            raise UsageError(f'{station}: has no routing daemon (routing "{routing}"); choose a protocol with a daemon')
        if action != "start":
            self.protocol.end_daemon(node, kill=action == "kill")
        if action in ("start", "restart"):
            self.protocol.start_daemon(node)
        return {}, ()

    # --- the air ------------------------------------------------------------------------------------------------------

    def do_move(self, station: str, position: list[float], speed_mps: float | None) -> Answer:
        """Move a station, at once or at a speed."""
        keys = {"move": station, "to": position, "speed": speed_mps}
        try:
            event = live_event(self.network.site.scenario, keys, {"to": "position"})
        except UsageError as problem:
            raise UsageError(f"{station}: move: {problem}") from None
        carry_out(self.network.medium, event)
        return {}, ()

    def do_power(self, station: str, on: bool) -> Answer:
        """Switch a station off or on."""
        self.network.medium.ask("power", station=station, on=on)
        return {}, ()

    def do_break_link(self, one: str, other: str) -> Answer:
        """Lose every data frame between two stations."""
        radios = [station.name for station in self.network.net.stations]
        if one == other or not {one, other} <= set(radios):
            raise UsageError(f"break_link({one}, {other}): give two stations with a radio, of {', '.join(radios)}")
        before = {(link["from"], link["to"]): link["error_rate"] for link in self.network.medium.ask("links")["links"]}
        for ends in ((one, other), (other, one)):
            self._set_error_rate(ends, LOST)
            self._broken.setdefault(ends, before[ends])
        return {}, ()

    def do_restore_link(self, one: str, other: str) -> Answer:
        """Give a broken link its error rates back."""
        if (one, other) not in self._broken:
            raise UsageError(f"restore_link({one}, {other}): is not broken; call break_link before")
        for ends in ((one, other), (other, one)):
            self._set_error_rate(ends, self._broken.pop(ends))
        return {}, ()

    def _set_error_rate(self, ends: tuple[str, str], rate: float) -> None:
        self.network.medium.ask("link", **dict(zip(("from", "to"), ends, strict=True)), error_rate=rate)

    def do_links(self) -> Answer:
        """Directed pairs of stations in range, without the broken ones."""
        return {"links": [pair for pair in self.network.medium.links() if pair not in self._broken]}, ()

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
        status = self.network.medium.ask("status")
        verdict, reasons = self.watch.waits.summary.judgement()
        if status["verdict"] != "valid":
            late_ms = status["lateness"].get("max_us", 0) / 1000
            reasons = [f"the medium was up to {late_ms:.0f} ms late or lost frames of the host", *reasons]
        return {"verdict": max(verdict, status["verdict"], key=BETTER_FIRST.index), "reasons": reasons}, ()

    def do_stop(self) -> Answer:
        """End the network; `serve` returns."""
        return {}, ()

    def _host(self, name: str) -> NamespaceHost:
        return self.network.net[name]
