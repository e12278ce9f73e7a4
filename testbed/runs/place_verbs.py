"""Verbs of the prompt about places, movement and radios: `distance`, `position`, `setPosition`, `stop`, `start`, `radio`.

Names and meaning are Mininet-WiFi's, in `manet cli` and in the prompt of a script alike.
"""

import math

from mininet.log import output

from mobility.trace import is_inside, outside
from testbed.errors import UsageError
from testbed.stages import radios
from testbed.stages.pause import Movement
from testbed.stages.routing import Network
from testbed.stages.station import NamespaceHost

RADIO_USAGE = "radio [station [txpower=DBM] [gain=DB] [height=M]]"
# option of `radio`: key of the medium, smallest and largest value
RADIO_OPTIONS = {
    "txpower": ("tx_power_w", -100.0, 300.0),
    "gain": ("antenna_gain_db", -100.0, 100.0),
    "height": ("antenna_height_m", 0.001, 1000.0),
}


def say(text: str) -> None:
    """Print one answer on the stream of Mininet's own answers, so that they stay in order."""
    output(f"{text}\n")


class PlaceVerbs:
    """Mixed into a prompt, which has the network, the movement and `_is_node`."""

    network: Network
    movement: Movement

    def do_distance(self, line: str) -> None:
        "Print the distance between two stations in metres.\nUsage: distance station station"
        ends = self._two_ends(line.split(), "distance station station")  # type: ignore[attr-defined]
        if ends and all(map(self._has_radio, ends)):
            places = self._places()
            metres = math.dist(*(places[end.name] for end in ends))
            say(f"The distance between {ends[0].name} and {ends[1].name} is {metres:.2f} meters")

    def do_position(self, line: str) -> None:
        "Print where stations are now (metres).\nUsage: position [station ...]"
        places = self._places()
        for name in line.split() or places:
            if self._is_node(name) and self._has_radio(self.network.net[name]):  # type: ignore[attr-defined]
                say(f"{name}: {', '.join(f'{metres:.2f}' for metres in places[name])}")

    def do_setPosition(self, line: str) -> None:
        "Put a station at a place (metres), at once.\nUsage: setPosition station x,y[,z]"
        words = line.replace(",", " ").split()
        try:
            x, y, z = [*map(float, words[1:]), 0.0][:3] if len(words) in (3, 4) else ()
        except ValueError:
            say("usage: setPosition station x,y[,z]        (metres)")
            return
        if self._is_node(words[0]) and self._has_radio(self.network.net[words[0]]):  # type: ignore[attr-defined]
            area = self.network.site.scenario.area
            if area is not None and not is_inside((x, y, z), area):
                raise UsageError(f"{words[0]} would go to {outside((x, y, z), area)}; stay within, or give a larger area")
            self.network.medium.ask("move", station=words[0], position=[x, y, z])

    def do_stop(self, _line: str) -> None:
        "Stop all stations where they are; `start` lets them go on.\nUsage: stop"
        again = "`start` lets them go on" if self.movement.pause() else "no movement is left"
        say(f"all stations stand still; {again}")

    def do_start(self, _line: str) -> None:
        "Let the stations go on with the movement that `stop` interrupted.\nUsage: start"
        say("all stations go on" if self.movement.resume() else "no movement was interrupted; `stop` does that")

    def do_radio(self, line: str) -> None:
        "Print powers and antennas, or change a station's.\nUsage: radio [station [txpower=DBM] [gain=DB] [height=M]]"
        name, *options = line.split() or [""]
        if not name:
            for station, values in self.network.medium.ask("radios")["radios"].items():
                say(_radio_text(station, values))
        elif self._is_node(name) and self._has_radio(self.network.net[name]):  # type: ignore[attr-defined]
            changes = dict(map(_radio_option, options))
            medium, folder = self.network.medium, self.network.site.directory
            say(
                _radio_text(
                    name, radios.change(medium, folder, name, **changes) if changes else medium.ask("radio", station=name)
                )
            )

    def _places(self) -> dict[str, list[float]]:
        return self.network.medium.ask("positions")["positions"]

    def _has_radio(self, host: NamespaceHost) -> bool:
        if host in self.network.stations:
            return True
        say(f"*** {host.name} is a wired host, which has no place; name a station")
        return False


def _radio_option(word: str) -> tuple[str, float]:
    """`txpower=14` as a key of the medium and its value. Raises UsageError."""
    option, _, text = word.partition("=")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    key, least, most = RADIO_OPTIONS.get(option, ("", 0.0, 0.0))
    if not (key and least <= value <= most):
        limits = f"; {least:g} to {most:g}" if key else ""
        raise UsageError(f"usage: {RADIO_USAGE}        ({word}{limits})")
    return key, 10 ** (value / 10) / 1000 if option == "txpower" else value


def _radio_text(station: str, values: dict[str, float]) -> str:
    dbm = 10 * math.log10(1000 * values["tx_power_w"])
    return f"{station}: {dbm:.2f} dBm, gain {values['antenna_gain_db']:g} dB, height {values['antenna_height_m']:g} m"
