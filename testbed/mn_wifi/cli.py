"""CLI(net): this testbed's prompt (testbed/runs/prompt.py) on a script's network."""

import sys
from pathlib import Path

from testbed.errors import UsageError
from testbed.mn_wifi.arguments import Arguments, refuse_others
from testbed.mn_wifi.net import Mininet_wifi
from testbed.runs.prompt import Prompt

REFUSED = {"stdin": "lines come from the terminal, a pipe or script=", "cmd": "use sta1.cmd('...'), or script= a file of lines"}
ARGUMENTS = Arguments("CLI", frozenset({"script"}), refused=REFUSED)


class ScriptPrompt(Prompt):
    """The prompt of a script's network."""

    prompt = "mininet-wifi> "

    def __init__(self, net: Mininet_wifi, **cli: object) -> None:
        assert net.standing is not None
        self.declared = net
        super().__init__(net.standing.network, net.standing.protocol, net.moving(), **cli)

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
