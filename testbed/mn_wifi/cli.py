"""CLI(net): this testbed's prompt (testbed/runs/prompt.py), with Mininet-WiFi's verbs for moving nodes."""

import sys
from pathlib import Path

from testbed.errors import UsageError
from testbed.mn_wifi.arguments import Arguments, refuse_others
from testbed.mn_wifi.net import Mininet_wifi
from testbed.runs.prompt import Prompt, say
from testbed.stages import replay

REFUSED = {"stdin": "lines come from the terminal, a pipe or script=", "cmd": "use sta1.cmd('...'), or script= a file of lines"}
ARGUMENTS = Arguments("CLI", frozenset({"script"}), refused=REFUSED)


class ScriptPrompt(Prompt):
    """The prompt of a script's network."""

    prompt = "mininet-wifi> "

    def __init__(self, net: Mininet_wifi, **cli: object) -> None:
        assert net.standing is not None
        self.declared = net
        super().__init__(net.standing.network, net.standing.protocol, **cli)

    def getLocals(self) -> dict:
        """The names that `py` knows: the script's own net and stations."""
        self.locals.update(super().getLocals())
        self.locals.update({"net": self.declared}, **{station.name: station for station in self.declared.stations})
        return self.locals

    def do_pingall(self, line: str) -> None:
        "Ping between all stations and hosts; access points have no address.\nUsage: pingall [timeout in s]"
        self.declared.pingAll(line or None)

    def do_pingpair(self, _line: str) -> None:
        "Ping between the first two stations.\nUsage: pingpair"
        self.declared.pingPair()

    def do_distance(self, line: str) -> None:
        "Print the distance between two stations in metres.\nUsage: distance station station"
        ends = self._two_ends(line.split(), "distance station station")
        if ends:
            places = self.network.medium.ask("positions")["positions"]
            if all(end.name in places for end in ends):
                a, b = (places[end.name] for end in ends)
                metres = sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5
                say(f"The distance between {ends[0].name} and {ends[1].name} is {metres:.2f} meters")

    def do_stop(self, _line: str) -> None:
        "Stop all stations where they are and drop the rest of the movement.\nUsage: stop"
        replay.halt(self.network.medium)


class CLI:
    """The prompt; returns at `exit`. `script`: a file of its lines, in place of the terminal."""

    def __init__(self, net: Mininet_wifi, **given: object) -> None:
        options = ARGUMENTS.check(given, net.notes)
        if net.standing is None:
            raise UsageError("CLI: the network is not up; call net.build() before")
        if "script" in options and not Path(str(options["script"])).is_file():
            raise UsageError(f"CLI: script={options['script']!r}: there is no such file")
        sys.stdout.flush()
        ScriptPrompt(net, **options)


__getattr__ = refuse_others("mn_wifi.cli", {}, "is not supported; CLI is")
