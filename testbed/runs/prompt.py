"""`manet cli`: Mininet's prompt on a running scenario, with additional verbs for the radio.

    links                       the stations in range of each station
    routes [STATION]            the routes of the kernel, and what the routing daemons say
    move STATION X Y [Z] [SPEED]   at once, or at SPEED m/s in a straight line
    replay FILE [speed=M/S]     a movement file from now on, instead of earlier movement; `replay off` stops all stations
    distance, position, setPosition, stop, start, radio   places, movement and powers (testbed/runs/place_verbs.py)
    map [FILE.png [SECONDS]]    stations, ranges, links and paths as picture and text; redrawn every SECONDS
    power STATION off|on        switch radio and wires of a station off or on
    daemon STATION start|stop|restart|kill   the station's routing daemon; `kill` is SIGKILL
    link STATION STATION up|down   a radio link or a wire; a number is the error rate of the link's frames
    event KEYS                  any event of a scenario, now
    drops                       dropped packets, by reason
    air [N]                     the last N transmissions
    iperf [STATION STATION]     iperf3 from the first to the second, for five seconds
    sta1 ping sta2              a command on a station, as in Mininet

Reads a terminal, or lines from a pipe (so tests and scripts can drive it).
"""

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from mininet.cli import CLI
from mininet.log import lg, output, setLogLevel
from mininet.util import quietRun

from record.events_file import PROMPT
from scenarios.scenario import Scenario
from testbed.columns import folded, rows
from testbed.errors import ManetError, RunError, UsageError
from testbed.programs import INSTALLATION
from testbed.runs.completion import Completion
from testbed.runs.event_verbs import EventVerbs
from testbed.runs.init import ReportPipe
from testbed.runs.live_map import MappedNetwork
from testbed.runs.live_network import LiveNetwork, judged_session, session_running
from testbed.runs.map_verb import MapVerb
from testbed.runs.place_verbs import PlaceVerbs, say
from testbed.runs.replay_verb import ReplayVerb
from testbed.runs.run import Interrupted, RunResult, claimed, conclude, isolated_run, prepare, report_outcome, require, site_of
from testbed.runs.throughput import measure_with_route, patience_s
from testbed.stages import iproute, status
from testbed.stages.routing import Network
from testbed.stages.site import Site
from testbed.stages.station import NamespaceHost, Station

DAEMON_ACTIONS = ("start", "stop", "restart", "kill")
READY = 1.0  # the fraction that the run reports when its prompt is about to open
UDP_RATE = "1M"
NOT_HERE = ("dpctl", "switch")  # Mininet's, for networks of switches
HELP = """
A line that begins with a station is a command on it: sta1 ping -c 3 sta2
Names of stations behind it become addresses. A program that draws the screen
needs noecho: noecho sta1 vi FILE
Packets start with a TTL of 255, not 64, for chains of more than 64 hops: ping
shows ttl=254 over two hops.
"""
MAX_NAMED = 8  # stations in a line


def open_prompt(
    scenario: Scenario,
    *,
    seed: int = 1,
    directory: Path | None = None,
    allow_internet: bool = False,
) -> RunResult:
    """Start the scenario, without its traffic, and give the terminal to the prompt until `exit`.

    Captures and the air log are kept in `directory` (default: results/cli/<time>). `allow_internet`: as of run_scenario.
    """
    require(scenario, seed, allow_internet=allow_internet)
    directory = (directory or default_directory()).resolve()
    with claimed(directory), _interrupts_restored():
        prepare(scenario, seed, directory, {"experiment": "cli"})
        reach = scenario.reaches_internet
        outcome = isolated_run("testbed.runs.prompt", seed, directory, _say, terminal=True, reach_outside=reach)
        return conclude(directory, outcome)


def default_directory() -> Path:
    """A folder of results for a prompt that begins now."""
    return INSTALLATION.results().absolute() / "cli" / datetime.now().strftime("%Y%m%d-%H%M%S")


@contextmanager
def _interrupts_restored() -> Iterator[None]:
    """Restore the handler of Ctrl-C, which `_say` changes, after the prompt."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _say(stage: str, fraction: float | None) -> None:
    """Ctrl-C reaches every process of the terminal. Until the stations are ready it ends all, as in `manet run`; at the
    prompt it means "end that command", not "end the scenario"."""
    if fraction == READY and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(f"manet: {stage}", file=sys.stderr, flush=True)


def inside(arguments: dict[str, Any], report: ReportPipe) -> int:
    """The part of `open_prompt` in the run's namespaces; called by testbed.runs.init."""
    return report_outcome(Path(arguments["directory"]), report, lambda: _prompt(site_of(arguments), report))


def _prompt(site: Site, report: ReportPipe) -> None:
    # `manet` has a Ctrl-C of the start too and lets go: one cause to end is enough. No SIG_IGN, which commands would inherit.
    pressed = threading.Event()
    signal.signal(signal.SIGINT, lambda _number, _frame: pressed.set())
    setLogLevel("output")
    lg.handlers[0].setStream(sys.stdout)  # Mininet answers on standard error; an answer belongs on standard output
    try:
        _serve(site, report)
    except ManetError:
        if pressed.is_set():  # it ended a command of the start
            raise Interrupted from None
        raise


def _serve(site: Site, report: ReportPipe) -> None:
    with session_running(site, lambda stage: report.send(stage=stage), PROMPT) as live:
        network = live.network
        here = Path.cwd()
        shown = site.directory.relative_to(here) if site.directory.is_relative_to(here) else site.directory
        report.send(stage=f"results in {shown}")
        if line := unheard(network, site.scenario):
            report.send(stage=line)
        ready = f"{len(network.stations)} stations ready; try `sta1 ping -c 3 sta2`, `links`, `help`, `exit`"
        with judged_session(live):
            report.send(stage=ready, fraction=READY)
            _give_terminal(live)


def unheard(network: Network, scenario: Scenario) -> str | None:
    """The stations that no other receives, in one line; None without any, and of a scenario whose stations move by themselves."""
    heard = {source for source, _target in network.medium.links()}
    names = [station.name for station in network.stations if station.name not in heard]
    if not names or scenario.mobility.moving or len(network.stations) == 1:
        return None
    if len(names) == len(network.stations):
        return f"no station reaches another; `map` shows places and ranges, `move {names[0]} X Y` moves a station"
    more = [f"{len(names) - MAX_NAMED} more"] if len(names) > MAX_NAMED else []
    *others, last = names[:MAX_NAMED] + more
    who = f"{', '.join(others)} and {last} reach" if others else f"{last} reaches"
    return f"{who} no other station; `map` shows places and ranges, `move {names[0]} X Y` moves a station"


def _give_terminal(live: LiveNetwork) -> None:
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # from here on Ctrl-C is the prompt's
        Prompt(live)
    except KeyboardInterrupt:  # before the prompt had taken over
        raise Interrupted from None
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what follows is taken down in order


def _lines_of(path: Path) -> list[str]:
    """The lines of a file. Raises UsageError if it is not a readable text file."""
    if path.exists() and not path.is_file():
        raise UsageError(f"source {path}: is not a regular file; give a file with one command a line")
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError as problem:
        raise UsageError(f"source {path}: cannot be read ({problem.strerror}); give a file with one command a line") from None
    except UnicodeDecodeError:
        raise UsageError(f"source {path}: is not UTF-8 text; give a file with one command a line") from None


class Prompt(PlaceVerbs, EventVerbs, Completion, CLI):
    """Mininet's CLI with the verbs of this testbed. A wrong argument prints a line of help and never ends the prompt."""

    prompt = "manet> "
    reported = ""  # the last failure of a child that was printed

    def __init__(self, live: LiveNetwork, *, nodes: object = None, **cli: object) -> None:
        """`nodes`: the network as a script knows it, `self.mn` of verbs; `cli`: arguments of Mininet's CLI (`script`, a file of
        lines)."""
        self.live, self.network, self.protocol = live, live.network, live.protocol
        self.sourced: list[Path] = []  # the files that are being read
        if not sys.stdin.isatty():
            self.prompt = ""
        site, hosts = live.site, live.network.net.hosts
        here = MappedNetwork(site.directory, {host.name: host.netns for host in hosts}, title=site.directory.name)
        self.map = MapVerb(here, {host.name for host in hosts}, site.directory / "map.png", say)
        self.replay = ReplayVerb(live.movement, site.scenario, say)
        self.prepare_completion()
        try:
            super().__init__(live.network.net if nodes is None else nodes, **cli)
        finally:
            self.map.end()

    def onecmd(self, line: str) -> bool | None:
        """Print the failure of a child once; execute the line in any case, so that `exit` and the end of input always work."""
        try:
            self.network.children.check()
            self.reported = ""
        except RunError as problem:
            if str(problem) != self.reported:
                self.reported = str(problem)
                say(f"*** {problem}")
        try:
            return super().onecmd(line)
        except (RunError, UsageError) as problem:
            say(f"*** {problem}")
        except Exception as problem:  # from one of Mininet's verbs: it must not end the network
            say(f"*** {line.strip()}: {type(problem).__name__}: {problem}")
        return None

    def do_source(self, line: str) -> bool | None:
        "Execute the commands of a file; `#` begins a comment.\nUsage: source FILE"
        words = line.split()
        if len(words) != 1:
            say("usage: source FILE")
            return None
        path = Path(words[0])
        if path.resolve() in self.sourced:
            raise UsageError(f"source {path}: is being read already; take the line out of the file")
        self.sourced.append(path.resolve())
        try:
            return any(self.onecmd(self.precmd(command)) for command in _lines_of(path))
        finally:
            self.sourced.pop()

    def waitForNode(self, node: Station) -> None:
        """Wait until the command or the shell has ended. What is typed meanwhile goes to the command, as in Mininet; lines
        of a pipe are the next commands."""
        if not self.isatty():
            while node.waiting:
                output(node.monitor())
            return
        quietRun("stty -icanon min 1")  # character by character, as Mininet does
        typed = self.stdin.fileno()
        while node.waiting:
            try:
                ready = node.wait_for_input(typed)
                if typed in ready:
                    os.write(node.master, os.read(typed, 4096))
                if ready != [typed]:
                    output(node.monitor())
            except KeyboardInterrupt:
                node.sendInt()

    def do_links(self, _line: str) -> None:
        "List the stations in range of each station, and the wires.\nUsage: links"
        heard: dict[str, list[str]] = {station.name: [] for station in self.network.stations}
        for source, target in self.network.medium.links():
            heard[source].append(target)
        for name, others in heard.items():
            say(f"{name} -> {' '.join(others) or '(none)'}")
        for wire in self.network.net.wires:
            settings = wire.settings
            say(f"{wire.gateway.name} -- {wire.host.name} (wire, {settings.rate:g} bit/s, {settings.delay:g} s)")

    def do_net(self, _line: str) -> None:
        "List the interfaces of each node, and what each is connected to.\nUsage: net"
        for name, ends in self.connections().items():
            say(" ".join([name, *(f"{interface}:{peer}" for interface, peer in ends)]))

    def connections(self) -> dict[str, list[tuple[str, str]]]:
        """The interfaces of each node, each with the other end of its wire, or `wifi`."""
        radios = {station.name: station.wintfs.values() for station in self.network.stations}
        interfaces = {host.name: [(radio.name, "wifi") for radio in radios.get(host.name, ())] for host in self.network.net.hosts}
        for wire in self.network.net.wires:
            ends = (wire.gateway.name, wire.interface), (wire.host.name, wire.host_interface)
            for (name, interface), other in zip(ends, ends[::-1], strict=True):
                interfaces[name].append((interface, "-".join(other)))
        return interfaces

    def do_routes(self, line: str) -> None:
        "Print the routes of the kernel, and what the routing daemons say.\nUsage: routes [station]"
        names = line.split() or [host.name for host in self.network.net.hosts]
        answers, texts = self.protocol.status(), self.protocol.status_texts()
        for name in names:
            if self._is_node(name):
                versions = ("-4", "-6") if self.network.site.scenario.ipv6 else ("-4",)
                tables = [iproute.ask(self.network.net[name], version, "route", "show") for version in versions]
                say(f"{name}:\n{''.join(tables).rstrip()}")
                if name in answers:
                    say("\n".join(status.lines(name, answers[name])))
                if name in texts:
                    say(texts[name].rstrip())

    def do_move(self, line: str) -> None:
        "Move a station (metres), at once or at a speed (m/s).\nUsage: move station x y [z] [speed]"
        words = line.split()
        if not 3 <= len(words) <= 5:
            say("usage: move station x y [z] [speed]        (metres, m/s)")
        elif self._is_node(words[0]):
            place, _, speed = self.move(words[0], words[1:4], *words[4:]).removeprefix("to ").partition(" at ")
            x, y, z = [*place.split(), "0"][:3]
            pace = f"at {speed} m/s" if speed else "at once"
            say(f"{words[0]}: to ({x}, {y}) m, height {z} m, {pace}")  # a third number is no speed

    def do_replay(self, line: str) -> None:
        "Follow a movement file (ns-2, BonnMotion, CSV, GPX, FCD).\nUsage: replay FILE [speed=M/S | factor=N]; replay off"
        self.replay(line)

    def do_map(self, line: str) -> None:
        "Draw stations, ranges, links and paths of flows as PNG and text.\nUsage: map [FILE.png [SECONDS]] [A B ...]; map off"
        self.map(line)

    def do_power(self, line: str) -> None:
        "Switch radio and wires of a station off or on; its host keeps running.\nUsage: power station off|on"
        words = line.split()
        if len(words) != 2 or words[1] not in ("off", "on"):
            say("usage: power station off|on")
        elif self._is_node(words[0]):
            self.live.do({"power": words[0], "on": words[1] == "on"}, PROMPT)

    def do_daemon(self, line: str) -> None:
        "Start, stop, restart or kill (SIGKILL) a station's routing daemon.\nUsage: daemon station start|stop|restart|kill"
        words = line.split()
        if len(words) != 2 or words[1] not in DAEMON_ACTIONS:
            say(f"usage: daemon station {'|'.join(DAEMON_ACTIONS)}")
        elif self._is_node(words[0]):
            self.live.do({"daemon": words[1], "station": words[0]}, PROMPT)

    def do_drops(self, _line: str) -> None:
        "Count the dropped packets by station and reason.\nUsage: drops"
        drops = self.network.medium.ask("drops")["drops"]
        lines = [
            f"{name}: " + ", ".join(f"{count} {reason}" for reason, count in d.items() if count) for name, d in drops.items()
        ]
        wires = self.network.medium.ask("counters")["wires"]
        lines += [f"{w['from']} -> {w['to']}: {w['queue_full']} queue-full (wire)" for w in wires if w["queue_full"]]
        say("\n".join(line for line in lines if not line.endswith(": ")) or "none")

    def do_air(self, line: str) -> None:
        "Print the last rows of the air log.\nUsage: air [how many]"
        if line.strip() and not line.strip().isdigit():
            say("usage: air [how many]")
            return
        answer = self.network.medium.ask("air", last=int(line.strip() or 20))
        for row in (answer["header"], *answer["rows"]):
            say(row)

    def do_iperf(self, line: str) -> None:
        "Measure TCP by iperf3 for 5 s: client on the first, server on the second.\nUsage: iperf [station station]"
        ends = self._two_ends(line.split(), "iperf station station")
        if ends:
            self._measure(*ends)

    def do_iperfudp(self, line: str) -> None:
        "Measure UDP by iperf3 for 5 s at a rate in bit/s (1M).\nUsage: iperfudp [rate station station]"
        rate, *names = line.split() or [UDP_RATE]
        if not re.fullmatch(r"[1-9][0-9]*(\.[0-9]+)?[KMGkmg]?", rate) or (line.strip() and not names):
            say("usage: iperfudp rate station station        (bit/s: 500K, 1M)")
            return
        ends = self._two_ends(names, "iperfudp rate station station")
        if ends:
            self._measure(*ends, udp_rate=rate)

    def _measure(self, source: NamespaceHost, target: NamespaceHost, udp_rate: str | None = None) -> None:
        wait_s = patience_s(self.network) if self.protocol.has_daemons else 0.0
        ip = 6 if self.network.site.scenario.ipv6 else 4
        throughput = measure_with_route(self.network, source, target, udp_rate, patience_s=wait_s, ip=ip)
        say(f"{source.name} -> {target.name}: {throughput.text()}")

    def do_help(self, line: str) -> None:
        "List the commands, or describe one.\nUsage: help [command]"
        if line.strip():
            super().do_help(line)
            return
        verbs = {name.removeprefix("do_") for name in self.get_names() if name.startswith("do_")}
        classes = type(self).__mro__[: type(self).__mro__.index(CLI)]
        ours = {name.removeprefix("do_") for owner in classes for name in vars(owner)} & verbs
        about = {name: (getattr(self, f"do_{name}").__doc__ or "").partition("\n")[0] for name in sorted(ours)}
        say("\n".join(["Commands of this testbed; `help COMMAND` says how each is written:", *rows(about.items())]))
        say(folded(f"Mininet's own: {', '.join(sorted(verbs - about.keys() - {'EOF'}))}"))
        say(HELP.strip())

    def names_of_nodes(self) -> list[str]:
        """The stations and hosts, for the tab key."""
        return [host.name for host in self.network.net.hosts]

    def get_names(self) -> list[str]:
        """The verbs that `help` and the tab key offer."""
        return [name for name in super().get_names() if name.removeprefix("do_") not in NOT_HERE]

    def do_switch(self, _line: str) -> None:
        "Not supported: stations have no switches; use `links` and `move`."
        say(f"*** {self.do_switch.__doc__}")

    def do_dpctl(self, _line: str) -> None:
        "Not supported: stations have no switches; `routes` shows the paths of packets."
        say(f"*** {self.do_dpctl.__doc__}")
