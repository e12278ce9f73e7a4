"""Verbs of the prompt about places, movement and radios: `distance`, `position`, `setPosition`, `stop`, `start`, `radio`.

Names and meaning are Mininet-WiFi's, in `manet cli` and in the prompt of a script alike.
"""

import math
from collections.abc import Sequence

from mininet.log import output

from keys.quantities import of_word
from record.events_file import PROMPT
from scenarios.owned import problem
from scenarios.radios import SETTINGS, dbm, watts
from testbed.errors import UsageError
from testbed.runs.live_network import LiveNetwork
from testbed.stages import radios
from testbed.stages.routing import Network
from testbed.stages.station import NamespaceHost

RADIO_USAGE = "radio [station [txpower=DBM] [gain=DB] [height=M]]"
RADIO_OPTIONS = {"txpower": "tx_power_w", "gain": "antenna_gain_db", "height": "antenna_height_m"}  # keys of `radios`


def say(text: str) -> None:
    """Print one answer on the stream of Mininet's own answers, so that they stay in order."""
    output(f"{text}\n")


class PromptVerbs:
    """Verbs that are mixed into a prompt: its network, and the nodes that a line names."""

    live: LiveNetwork
    network: Network

    def _is_node(self, name: str) -> bool:
        if name in self.network.net:
            return True
        say(f"*** there is no station {name}; `nodes` lists them")
        return False

    def _two_ends(self, names: list[str], usage: str) -> tuple[NamespaceHost, NamespaceHost] | None:
        """The hosts with these names; without names the first and the last, as in Mininet. Prints `usage` and returns None
        if wrong."""
        hosts = self.network.net.hosts
        names = names or [hosts[0].name, hosts[-1].name]
        if len(names) != 2 or names[0] == names[1]:
            say(f"usage: {usage}        (two different ones)")
            return None
        return (self.network.net[names[0]], self.network.net[names[1]]) if all([self._is_node(name) for name in names]) else None


class PlaceVerbs(PromptVerbs):
    """The verbs about places, movement and radios."""

    def do_distance(self, line: str) -> None:
        "Print the distance between two stations in metres.\nUsage: distance station station"
        ends = self._two_ends(line.split(), "distance station station")
        if ends and all(map(self._has_radio, ends)):
            places = self._places()
            metres = math.dist(*(places[end.name] for end in ends))
            say(f"The distance between {ends[0].name} and {ends[1].name} is {metres:.2f} meters")

    def do_position(self, line: str) -> None:
        "Print where stations are now (metres).\nUsage: position [station ...]"
        places = self._places()
        for name in line.split() or places:
            if self._is_node(name) and self._has_radio(self.network.net[name]):
                say(f"{name}: {', '.join(f'{metres:.2f}' for metres in places[name])}")

    def do_setPosition(self, line: str) -> None:
        "Put a station at a place (metres), at once.\nUsage: setPosition station x,y[,z]"
        words = line.replace(",", " ").split()
        if len(words) not in (3, 4):
            say("usage: setPosition station x,y[,z]        (metres)")
        elif self._is_node(words[0]) and self._has_radio(self.network.net[words[0]]):
            self.move(words[0], words[1:])

    def move(self, station: str, position: Sequence[str], speed: str | None = None) -> str:
        """Move a station, at once or at a speed, all as words of a line; returns what events.csv says. Raises UsageError."""
        pace = {} if speed is None else {"speed": of_word(speed)}
        keys = {"move": station, "to": [of_word(word) for word in position], **pace}
        return self.live.do(keys, PROMPT, {"to": "position"})[1]

    def do_stop(self, _line: str) -> None:
        "Stop all stations where they are; `start` lets them go on.\nUsage: stop"
        again = "`start` lets them go on" if self.live.movement.pause() else "no movement is left"
        say(f"all stations stand still; {again}")

    def do_start(self, _line: str) -> None:
        "Let the stations go on with the movement that `stop` interrupted.\nUsage: start"
        say("all stations go on" if self.live.movement.resume() else "no movement was interrupted; `stop` does that")

    def do_radio(self, line: str) -> None:
        "Print powers and antennas, or change a station's.\nUsage: radio [station [txpower=DBM] [gain=DB] [height=M]]"
        name, *options = line.split() or [""]
        if not name:
            for station, values in self.network.medium.ask("radios")["radios"].items():
                say(_radio_text(station, values))
        elif self._is_node(name) and self._has_radio(self.network.net[name]):
            changes = dict(map(_radio_option, options))
            medium, folder = self.network.medium, self.network.site.directory
            values = radios.change(medium, folder, name, **changes) if changes else medium.ask("radio", station=name)
            say(_radio_text(name, values))

    def _places(self) -> dict[str, list[float]]:
        places: dict[str, list[float]] = self.network.medium.ask("positions")["positions"]
        return places

    def _has_radio(self, host: NamespaceHost) -> bool:
        if host in self.network.stations:
            return True
        say(f"*** {host.name} is a wired host, which has no place; name a station")
        return False


def _radio_option(word: str) -> tuple[str, float]:
    """`txpower=14` as a key of the medium and its value. Raises UsageError."""
    option, equals, text = word.partition("=")
    if option not in RADIO_OPTIONS or not equals:
        raise UsageError(f"usage: {RADIO_USAGE}        ({word})")
    value = of_word(text)
    if wrong := problem(SETTINGS[option], value):
        raise UsageError(f"{option}: {wrong}")
    return RADIO_OPTIONS[option], watts(float(value)) if option == "txpower" else float(value)


def _radio_text(station: str, values: dict[str, float]) -> str:
    level = dbm(values["tx_power_w"])
    return f"{station}: {level:.2f} dBm, gain {values['antenna_gain_db']:g} dB, height {values['antenna_height_m']:g} m"
