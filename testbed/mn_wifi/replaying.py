"""Replays of recorded movement, bandwidth, network conditions and signal, from the lists that a script gives its stations."""

import math
from random import Random
from typing import Any

from mobility.trace import Leg, Position, Trace, place
from testbed.errors import UsageError
from testbed.mn_wifi.arguments import choice, note, number, refuse_others
from testbed.mn_wifi.flights import Flights
from testbed.mn_wifi.net import Mininet_wifi
from testbed.mn_wifi.node import Station
from testbed.mn_wifi.shaping import Condition, Shaping

CONDITIONS_AFTER_S = 5.0  # Mininet-WiFi's ReplayingNetworkConditions begins so long after its call
MODELS = dict.fromkeys(("friis", "logDistance", "ITU"))


class ReplayingMobility:
    """Move every station along the places in its `p` from now on: to each at its own `time` (s), or `speed` places a second. The
    lists count as they are when a place is due (flights.py)."""

    def __init__(self, net: Mininet_wifi, nodes: list[Station] | None = None) -> None:
        if net.standing is None:
            raise UsageError("ReplayingMobility: the network is not up; call net.build() before")
        flying = [*net.stations, *net.aps] if nodes is None else list(nodes)
        if not any(hasattr(node, "p") for node in flying):
            note("ReplayingMobility: no station has places yet; sta.p = [(x, y, z), ...] counts from now on", net.notes)
        Flights(net, flying)


class ReplayingBandwidth:
    """Limit what each station with `time` (s) and `throughput` (Mbit/s) sends, from each of its times on (shaping.py)."""

    def __init__(self, net: Mininet_wifi) -> None:
        conditions = [Condition(at_s, station, rate) for station, at_s, rate in recorded("ReplayingBandwidth", net, "throughput")]
        _shape(type(self).__name__, net, conditions, delay_s=0.0, linked=False)


class ReplayingNetworkConditions:
    """Like ReplayingBandwidth, with `bw` (Mbit/s), `loss` (per cent) and `latency` (ms), for stations with an access point."""

    def __init__(self, net: Mininet_wifi, **_given: object) -> None:
        rows = recorded(type(self).__name__, net, "bw", "loss", "latency")
        conditions = [Condition(at_s, station, *values) for station, at_s, *values in rows]
        _shape(type(self).__name__, net, conditions, delay_s=CONDITIONS_AFTER_S, linked=bool(net.aps))


class ReplayingRSSI:
    """Move each station with `time` (s) and `rssi` (dBm) to where it receives its access point with that power, in one
    direction. The distance is that of the network's propagation model, so that the medium's power is the recorded one."""

    def __init__(self, net: Mininet_wifi, ppm: str = "friis", **given: object) -> None:
        call = type(self).__name__
        choice(call, "ppm", ppm, MODELS, "is no propagation model of Mininet-WiFi's")
        if not net.aps:
            raise UsageError(f"{call}: there is no access point whose signal it could be; add net.addAccessPoint")
        note(f"{call}: ppm={ppm!r}: the distances are those of the network's propagation model", net.notes)
        for name in given:
            note(f"{call}: {name}: nothing is printed; it has no effect", net.notes)
        legs: list[Leg] = []
        for station, at_s, rssi_dbm in recorded(call, net, "rssi"):
            legs.append(Leg(at_s, station.name, _position_at(net, station, rssi_dbm), math.inf))
        still = place({leg.station: net[leg.station].position for leg in legs})
        net.moving(call).play(Trace(net.session.script.name, [*still, *legs]))


def recorded(call: str, net: Mininet_wifi, *names: str) -> list[tuple[Any, ...]]:
    """(Station, time in s, values) of each record of the stations that have the lists `time` and `names`. Raises UsageError."""
    if net.standing is None:
        raise UsageError(f"{call}: the network is not up; call net.build() before")
    rows: list[tuple[Any, ...]] = []
    for station in net.stations:
        lists = {name: station.__dict__.get(name) for name in ("time", *names)}
        if all(lists[name] is None for name in names):  # `time` may be another replay's
            continue
        if any(values is None or len(values) != len(lists["time"] or ()) for values in lists.values()):
            raise UsageError(f"{call}: {station}: give {', '.join(f'{station}.{name}' for name in lists)} lists of one length")
        for row in zip(*lists.values(), strict=True):
            lowest = {"time": 0.0, "bw": 0.0, "throughput": 0.0, "loss": 0.0, "latency": 0.0}
            values = [number(call, f"{station}.{n}", v, lowest.get(n, -200.0)) for n, v in zip(lists, row, strict=True)]
            rows.append((station, *values))
    if not rows:
        raise UsageError(f"{call}: no station has a record; set {', '.join(f'sta.{name}' for name in ('time', *names))} first")
    return rows


def _shape(call: str, net: Mininet_wifi, conditions: list[Condition], *, delay_s: float, linked: bool) -> None:
    note(f"{call}: netem limits what a station sends, above the medium's own rate, losses and delays", net.notes)
    Shaping(call, net.running, conditions, delay_s=delay_s, linked=linked)


def _position_at(net: Mininet_wifi, station: Station, rssi_dbm: float) -> Position:
    """A point at the distance from the station's access point at which it receives that with `rssi_dbm`."""
    point = net.infrastructure.point_of(station)
    distance_m = net.distance_of(point, station, rssi_dbm)
    angle = 2 * math.pi * Random(f"mn_wifi rssi {net.session.seed} {station.order}").random()
    x, y, z = point.position
    return x + distance_m * math.cos(angle), y + distance_m * math.sin(angle), z


__getattr__ = refuse_others("mn_wifi.replaying", {}, "is not supported")
