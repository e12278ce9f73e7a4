"""Mininet_wifi: a network declared call by call, and brought up as a run of this testbed by build().

The calls only write down what a script wants; `scenario()` makes a scenario of it (formats/scenario.md), checked like any
other, and build() runs its stages. What Mininet-WiFi has no name for is given as keys of a scenario:
`Mininet_wifi(scenario={"queue": 20})`, or after `./manet script --set`.
"""

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from random import Random
from typing import Any

from mininet.log import info, output

from mobility.trace import Leg, Trace, TraceError
from scenarios.definition import scenario_of
from scenarios.keys import Keys
from scenarios.scenario import Scenario
from testbed.errors import UsageError
from testbed.mn_wifi import link as links
from testbed.mn_wifi import settings
from testbed.mn_wifi.arguments import number, point, say
from testbed.mn_wifi.movement import Bounds, Model, Place, Timeline, replayed
from testbed.mn_wifi.node import Host, Node, Station
from testbed.mn_wifi.propagation import DEFAULT, propagation
from testbed.mn_wifi.protocols import protocol
from testbed.mn_wifi.radio import PROFILES, Radio
from testbed.mn_wifi.session import Standing, current
from testbed.runs.live_map import Live, Updater
from testbed.runs.verdict import VOID_REMEDY, reasons_of, verdict_of
from testbed.stages import iproute, replay
from testbed.stages.station import NamespaceHost
from topologies.addresses import INTERFACE, ip_address

PICTURE_EVERY_S = 2.0
RADIO_LINKS = (links.adhoc, links.mesh)
DEFAULT_TCP = Path("/proc/sys/net/ipv4/tcp_congestion_control")
TCP_NAMES = {"reno": "sack", "vegas": "kernel-vegas"}  # of the kernel's that are called otherwise in a scenario


class Mininet_wifi:
    """The network of a script."""

    def __init__(self, **given: object) -> None:
        self.session = current()
        self.said: set[str] = set()
        options = settings.NET.check(given, self.said)
        self.options = settings.net_options(options)
        self.stations: list[Station] = []
        self.wired: list[Host] = []
        self.standing: Standing | None = None
        self._adhoc: dict[str, dict[str, Any]] = {}
        self._wires: list[dict[str, Any]] = []
        self._propagation: dict | None = None
        self._model: Model | None = None
        self._bounds = Bounds()
        self._timeline = Timeline()
        self._picture: str | None = "map.png" if options.get("plot") else None
        self._updater: Updater | None = None

    # --- declaring ------------------------------------------------------------------------------------------------

    def addStation(self, name: str, cls: object = None, **given: object) -> Station:
        if cls not in (None, Station):
            raise UsageError(f"addStation({name}): cls={cls!r}: a station is of this testbed's own class; leave cls out")
        self._new(name)
        params = settings.STATION.check(given, self.said)
        station = Station(self, name, len(self.stations) + 1, params)
        self.stations.append(station)
        return station

    addCar = addStation  # a station by another name, without a road

    def addHost(self, name: str, cls: object = None, **given: object) -> Host:
        """A host without a radio; addLink(station, host) is its wire."""
        self._new(name)
        settings.HOST.check({"cls": cls, **given} if cls is not None else given, self.said)
        self.wired.append(Host(self, name, dict(given)))
        return self.wired[-1]

    def _new(self, name: str) -> None:
        if self.standing is not None:
            raise UsageError(f"{name}: nodes are added before net.build()")
        if name in self.nameToNode:
            raise UsageError(f"{name}: there is a node of this name already; give each its own")

    def addLink(self, node1: Node | str, node2: Node | str | None = None, cls: object = None, **given: object) -> None:
        """addLink(sta, cls=adhoc, ...): its radio takes part; addLink(sta, host): a wire."""
        if self.standing is not None:
            raise UsageError("addLink: links are added before net.build()")
        a, b = self._node(node1), None if node2 is None else self._node(node2)
        if cls is links.mesh and self._kind_of_stations() != "hwsim":
            raise UsageError(settings.NO_MESH)
        if cls in RADIO_LINKS and b is None:
            self._join(a, cls, given)
        elif b is not None and cls not in RADIO_LINKS:
            self._wire(a, b, given)
        else:
            raise UsageError("addLink: neither a radio's, addLink(sta, cls=adhoc, ...), nor a wire's, addLink(sta, host)")

    def _join(self, station: Node, cls: type, given: dict) -> None:
        if not isinstance(station, Station):
            raise UsageError(f"addLink({station}): has no radio; cls={cls.__name__} is for stations")
        station.interface("addLink", given.pop("intf", None))
        options = settings.ADHOC.check(given, self.said)
        if cls is links.mesh and "proto" in options:
            raise UsageError(
                f"addLink: cls=mesh, proto={options['proto']!r}: 802.11s finds its own ways; leave proto out, or cls=adhoc"
            )
        self._adhoc[station.name] = {**options, "cls": cls.__name__}

    def _kind_of_stations(self) -> str:
        """`tap` or `hwsim`: the scenario's key, wherever it was given."""
        given = {"stations": self.options["scenario"].get("stations", "tap")}
        kinds = [setting for setting in self.session.overrides if setting.partition("=")[0].strip() == "stations"]
        return str(Keys.of_script(given, self.session.script.name).set(kinds).values["stations"])

    def _wire(self, a: Node, b: Node, given: dict) -> None:
        station, host = (a, b) if isinstance(a, Station) else (b, a)
        if not isinstance(station, Station) or not isinstance(host, Host):
            text = "a wire joins a station and a host; stations meet by radio, addLink(sta, cls=adhoc, ...)"
            raise UsageError(f"addLink({a}, {b}): {text}")
        self._wires.append(settings.wire(station.name, host.name, settings.WIRE.check(given, self.said)))

    def _declaring(self, call: str) -> None:
        """UsageError once the network is up: what moves, and how the radio propagates, is settled by build()."""
        if self.standing is not None:
            raise UsageError(f"{call}: it is too late once the network is up; move the line above net.build()")

    def setPropagationModel(self, **given: object) -> None:
        self._declaring("setPropagationModel")
        self._propagation = propagation(**given)

    def setMobilityModel(self, **given: object) -> None:
        self._declaring("setMobilityModel")
        options = settings.MODEL.check(given, self.said)
        self._bounds = self._bounded(self._bounds, options, "setMobilityModel")
        times = {"start_s": options["time"]} if "time" in options else {}
        numbers = {"seed", "min_wt", "max_wt", "velocity_mean", "alpha", "variance"} & options.keys()
        found = {key: number("setMobilityModel", key, options[key], 0) for key in numbers}
        if "model" not in options:
            raise UsageError("setMobilityModel: names no model; add model='RandomWayPoint'")
        found |= {key: number("setMobilityModel", "time", value, 0, 1e5) for key, value in times.items()}
        self._model = Model(str(options["model"]), **{**found, **({"seed": int(found["seed"])} if "seed" in found else {})})

    def startMobility(self, **given: object) -> None:
        self._declaring("startMobility")
        options = settings.START.check(given, self.said)
        self._timeline.start_s = number("startMobility", "time", options.get("time", 0), 0, 1e6)
        self._timeline.repetitions = int(number("startMobility", "mob_rep", options.get("mob_rep", 1), 1, 1000))
        self._timeline.reverse = bool(options.get("reverse", False))

    def mobility(self, station: Station, word: str, **given: object) -> None:
        self._declaring("mobility")
        options = settings.MOBILITY.check(given, self.said)
        self._timeline.of(str(station)).say(word, options.get("time", 0), options.get("position"))

    def stopMobility(self, **given: object) -> None:
        self._declaring("stopMobility")
        self._timeline.stop_s = number("stopMobility", "time", settings.STOP.check(given, self.said).get("time"), 0, 1e6)

    def plotGraph(self, **given: object) -> None:
        """A picture of stations, ranges and links in the results' folder, drawn anew every two seconds; no window."""
        options = settings.PLOT.check(given, self.said)
        self._bounds = self._bounded(self._bounds, options, "plotGraph")
        self._picture = "map.png"
        if self.standing is not None:
            self._draw()

    def configureNodes(self) -> None:
        """Nothing: radios are made by build()."""

    configureWifiNodes = configureNodes

    def _bounded(self, bounds: Bounds, options: Mapping[str, object], call: str) -> Bounds:
        known = {field.name for field in fields(Bounds)}
        return replace(bounds, **{key: number(call, key, value) for key, value in options.items() if key in known})

    # --- as a scenario --------------------------------------------------------------------------------------------

    def scenario(self) -> Scenario:
        """All that was declared, checked as a scenario file would be."""
        declared = {**self._declared(), **self.options["scenario"]}
        keys = Keys.of_script(declared, self.session.script.name).set(self.session.overrides)
        raw = keys.values
        if "radio" not in raw:
            raw = {**raw, "radio": PROFILES[self._radio().mode]}
        elif not self._states_its_range():
            return scenario_of(keys)  # the profile's own range
        model = raw["propagation"] if isinstance(raw["propagation"], dict) else {"model": raw["propagation"]}
        overrides = {**self._radio().overrides(raw["radio"], model), **raw.get("radio_overrides", {})}
        return scenario_of(replace(keys, values={**raw, "radio_overrides": overrides}))

    def _states_its_range(self) -> bool:
        """Whether the script says of its radios how far they reach, in whatever terms."""
        said = {
            *(key for station in self.stations for key in station.params),
            *(key for one in self._adhoc.values() for key in one),
        }
        return bool(said & {"range", "txpower", "antennaGain", "antennaHeight"})

    def _declared(self) -> dict[str, Any]:
        for station in self.stations:
            if station.name not in self._adhoc:
                raise UsageError(f"{station.name}: has no link; add net.addLink({station.name}, cls=adhoc, ssid='adhocNet')")
        for host in self.wired:
            if not any(wire["host"] == host.name for wire in self._wires):
                raise UsageError(f"{host.name}: has no wire; add net.addLink(station, {host.name})")
        self._radio()  # contradictions are said, whatever the profile
        routing, remark = protocol(self._common("proto"))
        if remark:
            say(remark, self.said)
        mesh = {"hwsim": {"mode": "mesh"}} if self._common("cls") == "mesh" else {}
        return {
            **mesh,
            "topology": "positions",
            "positions": [{"name": station.name, "at": list(self._place(station))} for station in self.stations],
            "propagation": self._propagation or DEFAULT,
            "wires": self._wires,
            "flows": [],  # what is sent is the script's own
            "routing": routing,
            "arp": "static" if self.options["static_arp"] else "real",
            "ipv6": any("ip6" in station.params for station in self.stations),
            "profile": "modern",  # Linux as shipped, which is what scripts have run on
            "tcp": TCP_NAMES.get(tcp := DEFAULT_TCP.read_text().strip(), tcp),
        }

    def _common(self, name: str, otherwise: Any = None) -> Any:
        """An option that all radios of a network have in common."""
        values = {station: options.get(name, otherwise) for station, options in self._adhoc.items()}
        if len(set(map(str, values.values()))) > 1:
            (first, one), (second, other) = next(
                ((a, x), (b, y)) for a, x in values.items() for b, y in values.items() if str(x) != str(y)
            )
            text = f"{name}={one!r} of {first} and {name}={other!r} of {second}: {settings.COMMON[name]}"
            raise UsageError(f"addLink: {text}; give all of them the same")
        return next(iter(values.values()), otherwise)

    def _radio(self) -> Radio:
        """The one radio that all stations have: of addLink, else of addStation, else the network's."""
        self._common("ssid", "adhocNet")
        found: dict[str, Any] = {}
        for name, key, least, most in settings.RADIO:
            per_station = [
                self._adhoc[station.name].get(name, station.params.get(name, self.options.get(name))) for station in self.stations
            ]
            numbers = {None if value is None else number("addStation", name, value, least, most) for value in per_station}
            if len(numbers) > 1:
                text = f"{', '.join(map(str, per_station))} of {', '.join(map(str, self.stations))}"
                raise UsageError(f"{name}: {text}: all stations have the same radio here; give all of them the same {name}")
            if numbers - {None}:
                found[key] = numbers.pop()
        modes = {
            self._adhoc[station.name].get("mode", station.params.get("mode", self.options["mode"])) for station in self.stations
        }
        mode = settings.mode(modes)
        radio = Radio(**{"mode": mode, "channel": 36 if mode == "a" else 1, **found})
        radio = replace(radio, channel=int(radio.channel))
        radio.check()
        return radio

    def _place(self, station: Station) -> Place:
        """Where it stands at the start."""
        course = self._timeline.courses.get(station.name)
        replayed_first = getattr(station, "p", None)
        if replayed_first:
            return point(station.name, "p", replayed_first[0])
        if course is not None:
            return course.points(getattr(station, "coord", None))[0]
        if station._place is not None:
            return station._place
        if self._model is not None:
            return self._bounds_of(station).anywhere(Random(f"mn_wifi place {self._model.seed} {station.order}"))
        raise UsageError(f"{station.name}: has no position; add position='x,y,z' to addStation, in metres")

    def _bounds_of(self, station: Station) -> Bounds:
        bounds = self._bounded(self._bounds, station.params, f"addStation({station.name})")
        bounds.check(station.name)
        return bounds

    def movement(self) -> Trace | None:
        """All that moves from the end of build() on; None if nobody does."""
        legs: list[Leg] = []
        for station in self.stations:
            course = self._timeline.courses.get(station.name)
            if course is not None:
                own = course.legs(getattr(station, "coord", None), self._timeline)
            elif self._model is not None and station._place is None and not hasattr(station, "p"):
                own = self._model.legs(station.order, station.name, self._place(station), self._bounds_of(station))
            else:
                continue
            legs += [Leg(0.0, station.name, self._place(station), 0.0), *own]
        try:
            return Trace(self.session.script.name, legs) if legs else None
        except TraceError as problem:
            raise UsageError(str(problem)) from None

    # --- running --------------------------------------------------------------------------------------------------

    def build(self) -> None:
        """Bring the network up; movement begins as it returns."""
        if self.standing is not None:
            return
        self.check_addresses()
        scenario, movement = self.scenario(), self.movement()
        self.standing = self.session.up(scenario)
        self._name_devices()
        info(f"*** {len(self.stations)} stations, routing {scenario.routing.protocol}, results in {self.directory}\n")
        if self._picture is not None:
            self._draw()
        if movement is not None:
            replay.play(self.standing.network.medium, movement)

    def start(self) -> None:
        self.build()

    def stop(self) -> str | None:
        """Take the network down; its results are complete then. The verdict on it, which Mininet-WiFi's stop() has not."""
        if self._updater is not None:
            self._updater.stop()
            self._updater = None
        if self.standing is None:
            return None
        ended, self.standing = self.standing, None
        self.session.down()
        directory = ended.site.directory
        verdict, reasons = verdict_of(directory), "; ".join(reasons_of(directory))
        remedy = f"{VOID_REMEDY}; " if verdict == "void" else ""
        output(f"*** {verdict or 'no verdict'}{reasons and f' ({reasons})'}: {remedy}results in {_short(directory)}\n")
        return verdict

    def replay(self, stations: list[Station]) -> None:
        """From now on, instead of what else was to come."""
        if self.standing is None:
            raise UsageError("ReplayingMobility: the network is not up; call net.build() before")
        legs: list[Leg] = []
        for station in stations:
            pace = number(station.name, "speed", station.params.get("speed", 1), 0.001, 1e4)
            times = station.__dict__.get("time")
            legs += [Leg(0.0, station.name, station.position, 0.0), *replayed(station.name, station.p, times, pace)]
        replay.play(self.standing.network.medium, Trace(self.session.script.name, legs))

    def check_addresses(self) -> None:
        """A script's own addresses are taken where no daemon has been told of others."""
        changed = [station for station in self.stations if station.IP() != ip_address(station.order)]
        for other in changed:
            twins = [station for station in self.stations if station.IP() == other.IP()]
            if len(twins) > 1:
                raise UsageError(f"{twins[1].name}: ip={twins[1].ip!r}: {twins[0].name} has it, too; give each its own")
        wanted = self._common("proto")
        why = f"proto={wanted!r} knows stations" if wanted else "static ARP knows stations" * self.options["static_arp"]
        if changed and why:
            first = changed[0]
            text = f"{why} by their numbers: {first.name} is {ip_address(first.order)}"
            raise UsageError(f"{first.name}: ip={first.ip!r}: {text}; leave ip out, or write that")

    def _name_devices(self) -> None:
        """`sta1-wlan0` beside `wlan0`, for whatever a script does with a device; then the script's own addresses."""
        assert self.standing is not None
        add = f"link property add dev {INTERFACE} altname"
        lines = {station.host: [f"{add} {station.params['wlan'][0]}"] for station in self.stations}
        iproute.batches(lines, "names", self.standing.site.log)
        for station in self.stations:
            station.host.nameToIntf[station.params["wlan"][0]] = station.host.radio
            station.take_address()
            if "ip6" in station.params:
                station.setIP6(str(station.params["ip6"]))

    def _draw(self) -> None:
        assert self.standing is not None and self._picture is not None
        hosts = {host.name: host.netns for host in self.standing.network.net.hosts}
        live = Live(self.directory, hosts, title=self.session.script.name)
        self._updater = self._updater or Updater(live, self.directory / self._picture, PICTURE_EVERY_S)
        output(f"*** picture, drawn every {PICTURE_EVERY_S:g} s: {_short(self.directory / self._picture)}\n")

    def counters(self) -> dict[str, dict]:
        """What the medium has counted of each station up to now (counters.json of formats/air.md); Mininet-WiFi has no such."""
        self._up("counters")
        assert self.standing is not None
        return self.standing.network.medium.ask("counters")["stations"]

    # --- asking ---------------------------------------------------------------------------------------------------

    @property
    def directory(self) -> Path:
        """Of the results."""
        assert self.standing is not None
        return self.standing.site.directory

    @property
    def hosts(self) -> list[Node]:
        return [*self.wired]

    @property
    def nameToNode(self) -> dict[str, Node]:
        return {node.name: node for node in [*self.stations, *self.wired]}

    def host_of(self, name: str) -> NamespaceHost | None:
        return None if self.standing is None else self.standing.network.net[name]

    def _node(self, node: Node | str) -> Node:
        name = str(node)
        if name not in self.nameToNode:
            raise UsageError(f"there is no node {name!r}; the nodes are {', '.join(self.nameToNode) or 'yet to be added'}")
        return self.nameToNode[name]

    def __getitem__(self, name: str) -> Node:
        return self._node(name)

    def get(self, *names: str) -> Any:
        nodes = [self._node(name) for name in names]
        return nodes[0] if len(nodes) == 1 else nodes

    getNodeByName = get

    def __contains__(self, name: str) -> bool:
        return str(name) in self.nameToNode

    def __iter__(self):
        return iter(self.nameToNode)

    def keys(self) -> list[str]:
        return list(self.nameToNode)

    def values(self) -> list[Node]:
        return list(self.nameToNode.values())

    def items(self) -> list[tuple[str, Node]]:
        return list(self.nameToNode.items())

    def __len__(self) -> int:
        return len(self.nameToNode)

    def get_distance(self, src: str, dst: str) -> None:
        a, b = self._node(src), self._node(dst)
        output(f"The distance between {src} and {dst} is {a.get_distance_to(b)} meters\n")

    def ping(self, hosts: list[Node] | None = None, timeout: object = None) -> float:
        """Per cent lost."""
        return self._up("ping").ping([node.host for node in hosts or self.values()], timeout)

    def pingAll(self, timeout: object = None) -> float:
        return self.ping(timeout=timeout)

    def pingPair(self) -> float:
        return self.ping(self.values()[:2])

    def iperf(self, hosts: list[Node] | None = None, **given: object) -> list[str]:
        """TCP by iperf3 for `seconds` (5) from the first host, the client, to the second: the rates of server and client, as
        Mininet has them."""
        from testbed.runs.throughput import MAX_SECONDS, SECONDS, measure

        options = settings.IPERF.check(given, self.said)
        seconds = number("iperf", "seconds", options.get("seconds", SECONDS), 1, MAX_SECONDS)
        if seconds != int(seconds):
            raise UsageError(f"iperf: seconds={seconds:g}: iperf3 takes whole seconds; write {math.ceil(seconds)}")
        a, b = hosts or (self.values()[0], self.values()[-1])
        self._up("iperf")
        assert self.standing is not None
        output(f"*** Iperf: testing TCP bandwidth between {a} and {b}\n")
        result = measure(self.standing.network.children, a.host, b.host, seconds=int(seconds)).as_iperf()
        output(f"*** Results: {result}\n")
        return result

    def _up(self, call: str) -> Any:
        if self.standing is None:
            raise UsageError(f"{call}: the network is not up; call net.build() before")
        return self.standing.network.net

    def __getattr__(self, name: str) -> Any:
        """Mininet-WiFi's other calls, which have no place here."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise settings.NotACall(f"{name}: {settings.NO_CALLS.get(name, 'is not here; docs/mininet-wifi.md lists what is')}")


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
