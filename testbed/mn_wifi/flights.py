"""ReplayingMobility: stations fly along the places of their lists `p`, which scripts may change on the way.

As in Mininet-WiFi a place is removed from the list when the station reaches it, and the list counts as it is then. The medium
has the whole flight ahead of time (testbed/stages/replay.py), so lateness of this process moves no station; a thread looks for
changes, which count a fraction of a second later.
"""

import threading
from collections.abc import Sequence
from typing import Any

from mininet.log import output

from mobility.trace import Leg, Position, Trace
from testbed.errors import ManetError
from testbed.mn_wifi.arguments import note, number, point
from testbed.mn_wifi.movement import between, due, replayed
from testbed.mn_wifi.net import Mininet_wifi
from testbed.mn_wifi.node import Station

LOOK_EVERY_S = 0.1
CALL = "ReplayingMobility"


class Flight:
    """One station's list, as it was seen last, with the time of each place."""

    def __init__(self, station: Station) -> None:
        self.station, self.gone, self.over = station, 0, False
        self.pace = number(station.name, "speed", station.params.get("speed", 1), 0.001, 1e4)
        self._seen: list[list[Any]] = []
        self.places: list[Any] = []
        self.due_s: list[float] = []
        self.read()

    def _lists(self) -> list[list[Any]]:
        """`p`, and `time` of a station that has it, as lists from which places can be removed."""
        own = self.station.__dict__
        names = [name for name in ("p", "time") if name in own] if "p" in own else []
        for name in names:
            if not isinstance(own[name], list):
                own[name] = list(own[name])
        return [own[name] for name in names]

    def changed(self) -> bool:
        """Whether the script has changed the lists."""
        try:
            return self._lists() != self._seen
        except ValueError:  # arrays, which have no truth
            return True

    def read(self) -> None:
        """Take the lists as they are now. Raises UsageError."""
        lists = self._lists()
        places, times = (lists[0], lists[1] if len(lists) > 1 else None) if lists else ([], None)
        self.due_s = due(self.station.name, len(places), times, self.pace, self.gone)
        self._seen, self.places = [list(each) for each in lists], list(places)

    def first_legs(self) -> list[Leg]:
        """The whole flight, from its time 0."""
        name = self.station.name
        return [Leg(0.0, name, self.station.position, 0.0), *replayed(name, self.places, self.due_s)]

    def legs_from(self, time_s: float, here: Position) -> list[Leg]:
        """The rest of the flight from `time_s` on, as a movement whose time 0 is `time_s`."""
        name = self.station.name
        path = [here, *(point(name, "p", place) for place in self.places)]
        return between(name, path, [0.0, *(max(0.0, at_s - time_s) for at_s in self.due_s)])

    def take(self, time_s: float) -> None:
        """Take the places that are reached off the lists."""
        while self.due_s and self.due_s[0] <= time_s:
            for own, seen in zip(self._lists(), self._seen, strict=True):
                del own[0], seen[0]
            del self.places[0], self.due_s[0]
            self.gone += 1
            self.over = not self.places


class Flights:
    """The flights of one ReplayingMobility, until the next movement or the end of the network."""

    def __init__(self, net: Mininet_wifi, stations: Sequence[Station]) -> None:
        self._notes, self._movement = net.notes, net.moving(CALL)
        self.flights = [Flight(station) for station in stations]
        self._movement.play(Trace(net.session.script.name, [leg for flight in self.flights for leg in flight.first_legs()]))
        self._number, self._stop = self._movement.played, threading.Event()
        self._thread = threading.Thread(target=self._run, name=CALL, daemon=True)
        self._thread.start()
        net.running.stages.callback(self.stop)

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(LOOK_EVERY_S) and self._movement.played == self._number:
            try:
                self._look()
            except ManetError as problem:
                output(f"*** {CALL}: ends: {problem}\n")
                return

    def _look(self) -> None:
        time_s = self._movement.time_s()
        if time_s is None:  # `stop` of the prompt
            return
        changed = {}
        for flight in self.flights:
            if not flight.changed():
                flight.take(time_s)
            elif flight.over:
                note(f"{CALL}: {flight.station}.p: its flight was over; a new list counts after another {CALL}", self._notes)
            else:
                flight.read()
                flight.over = not flight.places
                changed[flight.station.name] = flight.legs_from
        if changed:
            self._movement.change(changed)
