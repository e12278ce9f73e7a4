"""CLI(net): this testbed's prompt (testbed/runs/prompt.py) on a script's network.

As in Mininet, verbs are methods: a script derives a class with `do_hop`, or sets `CLI.do_hop`; `self.mn` is its network.
"""

import sys
from pathlib import Path

from testbed.errors import UsageError
from testbed.mn_wifi.arguments import Arguments, refuse_others
from testbed.mn_wifi.net import Mininet_wifi
from testbed.runs.prompt import Prompt

REFUSED = {"stdin": "lines come from the terminal, a pipe or script=", "cmd": "use sta1.cmd('...'), or script= a file of lines"}
ARGUMENTS = Arguments("CLI", frozenset({"script"}), refused=REFUSED, defaults={"cmd": None})


class CLI(Prompt):
    """The prompt; returns at `exit`. `script`: a file of its lines, in place of the terminal."""

    prompt = "mininet-wifi> "

    def __init__(self, net: Mininet_wifi, **given: object) -> None:
        if given.get("stdin") is sys.stdin:  # as a derived class hands it on
            del given["stdin"]
        options = ARGUMENTS.check(given, net.notes)
        if net.standing is None:
            raise UsageError("CLI: the network is not up; call net.build() before")
        if "script" in options and not Path(str(options["script"])).is_file():
            raise UsageError(f"CLI: script={options['script']!r}: there is no such file")
        sys.stdout.flush()
        super().__init__(net.standing.live, nodes=net, **options)

    def connections(self) -> dict[str, list[tuple[str, str]]]:
        """The connections, with Mininet-WiFi's names of interfaces."""
        return {node.name: node.connections() for node in self.mn.values()}

    def do_pingall(self, line: str) -> None:
        "Ping between all stations and hosts; access points have no address.\nUsage: pingall [timeout in s]"
        self.mn.pingAll(line or None)

    def do_pingpair(self, _line: str) -> None:
        "Ping between the first two stations.\nUsage: pingpair"
        self.mn.pingPair()


CLI_wifi = CLI  # its name in Mininet-WiFi before 2.4
__getattr__ = refuse_others("mn_wifi.cli", {}, "is not supported; CLI is")
