"""Mininet_wifi: a network declared call by call, and brought up as a run of this testbed by build().

The calls only record what a script declares; `scenario()` turns it into a scenario (formats/scenario.md), checked like any other,
and build() runs its stages. Settings without a name in Mininet-WiFi are given as keys of a scenario:
`Mininet_wifi(scenario={"queue": 20})`, or after `./manet script --set`.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from mininet.log import info, output

from keys.quantities import MAX_SPEED_MPS
from mobility.trace import Leg, Position, Trace, TraceError
from record.events_file import SCRIPT
from scenarios.definition import scenario_of
from scenarios.keys import Keys
from scenarios.radios import overridden
from scenarios.routing import PROTOCOLS
from scenarios.scenario import Scenario
from testbed.errors import UsageError
from testbed.host.modules import is_available
from testbed.mn_wifi import link as links
from testbed.mn_wifi import settings
from testbed.mn_wifi.access_point import AccessPoint
from testbed.mn_wifi.arguments import Unsupported, choice, note, number, point, refuse_others
from testbed.mn_wifi.infrastructure import Controller, Infrastructure
from testbed.mn_wifi.movement import Bounds, MobilityModel, Timeline
from testbed.mn_wifi.node import Host, Nat, Node, Station, WirelessInterface, WireLink
from testbed.mn_wifi.powers import Powers
from testbed.mn_wifi.propagation import DEFAULT, propagation
from testbed.mn_wifi.protocols import protocol
from testbed.mn_wifi.radio import IN_5_GHZ, OWN_RANGE, THRESHOLD_DBM, Radio, adapting, of_access_points, with_one_range
from testbed.mn_wifi.session import Standing, current
from testbed.mn_wifi.socket_server import SocketServer
from testbed.runs.live_map import MappedNetwork, Updater
from testbed.runs.verdict import VOID_REMEDY, reasons_of, verdict_of
from testbed.stages.access_points import CHANNELS, frequency_mhz
from testbed.stages.pause import LiveMovement
from testbed.stages.radio_rates import profile
from testbed.stages.station import NamespaceHost
from topologies.addresses import ip_address
from topologies.layouts import MAX_COORDINATE_M

PICTURE_EVERY_S = 2.0
RADIO_LINKS = (links.adhoc, links.mesh, links.ITSLink)
# of min_x, max_v, ...: smallest and largest value by the last letter
BOUNDS = {**dict.fromkeys("xy", (-MAX_COORDINATE_M, MAX_COORDINATE_M)), "v": (0.0, MAX_SPEED_MPS)}
HWSIM_MODES = {"mesh": "mesh", "ITSLink": "ocb"}  # by the link's class; others: an IBSS
DEFAULT_TCP = Path("/proc/sys/net/ipv4/tcp_congestion_control")
TCP_NAMES = {"reno": "sack", "vegas": "kernel-vegas"}  # kernel names that differ from those of a scenario


class Mininet_wifi(Powers):
    """The network of a script. Wrong calls raise UsageError. Distances are in metres, times in seconds of the network."""

    def __init__(self, **given: object) -> None:
        self.session = current()
        self.notes = set()
        options = settings.NET.check(given, self.notes)
        self.options = settings.net_options(options)
        super().__init__()
        self.stations, self.aps, self.wired = [], [], []
        self.wires, self.cables, self.links, self.adhoc = [], [], [], {}
        self.cars: list[Station] = []  # those of the stations that addCar declared
        self.switches: list[Node] = []
        self.controllers: list[Controller] = []
        self.standing = None
        self._model: MobilityModel | None = None
        self._bounds = Bounds()
        self._timeline = Timeline()
        self._picture: str | None = "map.png" if options.get("plot") else None
        self._updater: Updater | None = None
        self._servers: list[SocketServer] = []
        self._records_params = False
        self.infrastructure = Infrastructure(self)
        self.bridges = self.infrastructure.bridges
        self.associated, self.rssi = self.infrastructure.associated, self.infrastructure.rssi
        self.infrastructure.control_by("Mininet_wifi", options)

    # --- declaring ------------------------------------------------------------------------------------------------

    def addStation(self, name: str, cls: object = None, **given: object) -> Station:
        """Declare a station; the arguments are those of settings.STATION."""
        if cls not in (None, Station):
            raise UsageError(f"addStation({name}): cls={cls!r}: a station is of this testbed's own class; leave cls out")
        self._new(name)
        params = settings.STATION.check(given, self.notes)
        station = Station(self, name, len(self.stations) + 1, params)
        self.stations.append(station)
        return station

    def addCar(self, name: str, cls: object = None, **given: object) -> Station:
        """A station; there are no roads."""
        self.cars.append(self.addStation(name, cls, **given))
        return self.cars[-1]

    def addAccessPoint(self, name: str, **given: object) -> AccessPoint:
        """Declare an access point; the arguments are those of infrastructure.ACCESS_POINT."""
        self._new(name)
        point = self.infrastructure.add(name, given)  # what is refused needs no guest
        self._need_kernel_radios(f"{name} is an access point", settings.NO_ACCESS_POINTS)
        return point

    def addController(self, name: str = "c0", *_classes: object, **_given: object) -> Controller:
        """A controller without effect: access points bridge by themselves."""
        note(f"addController({name}): {settings.NO_CONTROLLER}", self.notes, key="addController")
        self.controllers.append(Controller(name))
        return self.controllers[-1]

    def addHost(self, name: str, cls: object = None, **given: object) -> Host:
        """A host without a radio; addLink(station, host) is its wire."""
        self._new(name)
        params = settings.HOST.check({"cls": cls, **given} if cls is not None else given, self.notes)
        if "ip" in params:
            settings.address("addHost", params["ip"])
        self.wired.append(Host(self, name, params))
        return self.wired[-1]

    def addNAT(self, name: str = "nat0", linkTo: object = None, **_given: object) -> Nat:
        """A host at the cable of the access point `linkTo`, without a network outside."""
        self._new(name)
        if not isinstance(point := self._node(str(linkTo)), AccessPoint):
            raise UsageError(
                f"addNAT({name}): linkTo={str(linkTo)!r}: is no access point; a host is joined by addLink(sta, host)"
            )
        note(f"addNAT({name}): a run has no network outside; it is a host at a cable", self.notes)
        self.wired.append(host := Nat(self, name, {}))
        self.addLink(point, host)
        return host

    def setInitialMediums(self, mediums: object) -> None:
        """No effect, with a note: distance decides here which networks contend."""
        note(f"setInitialMediums: {settings.ONE_MEDIUM}", self.notes)

    def _new(self, name: str) -> None:
        if self.standing is not None:
            raise UsageError(f"{name}: nodes are added before net.build()")
        if name in self.nameToNode:
            raise UsageError(f"{name}: there is a node of this name already; give each its own")

    def addLink(
        self, node1: Node | str, node2: Node | str | None = None, cls: object = None, **given: object
    ) -> WirelessInterface | WireLink | None:
        """addLink(sta, cls=adhoc, ...): the station's radio joins the network; addLink(sta, host): a wire. Returns the link."""
        if self.standing is not None:
            raise UsageError("addLink: links are added before net.build()")
        a, b = self._node(node1), None if node2 is None else self._node(node2)
        if isinstance(cls, Unsupported):
            cls.refuse()
        if cls is links.mesh:
            self._need_kernel_radios("cls=mesh is IEEE 802.11s", settings.NO_MESH)
        link: WirelessInterface | WireLink
        if b is None and isinstance(cls, type) and cls in RADIO_LINKS:
            link = self._join(a, cls, given)
        elif self.infrastructure.takes(a, b):
            made = self.infrastructure.link(a, b, cls, given)
            self.links += [made] if isinstance(made, WireLink) else []  # an association is none
            return made
        elif b is not None and cls not in RADIO_LINKS:
            link = self._wire(a, b, given)
        else:
            raise UsageError("addLink: neither a radio's, addLink(sta, cls=adhoc, ...), nor a wire's, addLink(sta, host)")
        if link not in self.links:
            self.links.append(link)
        return link

    def _join(self, station: Node, cls: type, given: dict[str, Any]) -> WirelessInterface:
        if not isinstance(station, Station):
            raise UsageError(f"addLink({station}): has no radio; cls={cls.__name__} is for stations")
        radio = station.interface("addLink", given.pop("intf", None))
        options = settings.its(given, self.notes) if cls is links.ITSLink else settings.ADHOC.check(given, self.notes)
        if options.get("proto") == "batman_adv" and not is_available("batman_adv"):
            # where the script cannot move into a guest, the check before the run refuses it
            self.session.need_kernel(f"proto={options['proto']!r} is the kernel's")
        if cls is links.mesh and "proto" in options:
            raise UsageError(
                f"addLink: cls=mesh, proto={options['proto']!r}: 802.11s finds its own routes; leave proto out, or cls=adhoc"
            )
        station.params["wlan"][radio.id] = radio.name_of_kind("mp" if cls is links.mesh else "wlan")
        self.adhoc[radio.radio] = {**options, "cls": cls.__name__}
        radio.bss = None  # it was an access point's
        return radio

    def make_master(self, radio: WirelessInterface, given: dict[str, Any]) -> None:
        """Make a station's radio an access point; before build(). Raises UsageError."""
        self._declaring("setMasterMode")
        self.infrastructure.make_master(radio, given)
        self._need_kernel_radios(f"{radio.node} is an access point", settings.NO_ACCESS_POINTS)

    def radios(self) -> list[WirelessInterface]:
        """All radios in the order of their numbers: the first ones of all nodes, then the further ones."""
        nodes = self._with_radios()
        further = (radio for node in nodes for radio in node.wintfs.values() if radio.id)
        return [*(node.wintfs[0] for node in nodes), *further]

    def number_of(self, radio: WirelessInterface) -> int:
        """The number of a radio, from 1."""
        return self.radios().index(radio) + 1 if radio.id else radio.node.order

    def _need_kernel_radios(self, what: str, refusal: str) -> None:
        """Stations get the radios of mac80211_hwsim, unless they have them or the user chose TAPs."""
        if self._kind_of_stations() == "hwsim":
            return
        if "stations" in self.options["scenario"] or any(text.startswith("stations=") for text in self.session.overrides):
            raise UsageError(refusal)
        self.session.need_kernel_radios(what, refusal)

    def _kind_of_stations(self) -> str:
        """`tap` or `hwsim`: the scenario's key, from the script or from --set."""
        return str(self._key("stations", "tap"))

    def _wire(self, a: Node, b: Node, given: dict[str, Any]) -> WireLink:
        station, host = (a, b) if isinstance(a, Station) else (b, a)
        if not isinstance(station, Station) or not isinstance(host, Host):
            text = "a wire joins a station and a host; stations meet by radio, addLink(sta, cls=adhoc, ...)"
            raise UsageError(f"addLink({a}, {b}): {text}")
        self.wires.append(settings.wire(station.name, host.name, settings.WIRE.check(given, self.notes)))
        return WireLink(len(self.wires) - 1, station, host)

    def _declaring(self, call: str) -> None:
        """Raise UsageError once the network is up: build() fixes movement and propagation."""
        if self.standing is not None:
            raise UsageError(f"{call}: it is too late once the network is up; move the line above net.build()")

    def setPropagationModel(self, **given: object) -> None:
        """Choose the propagation model (mn_wifi/propagation.py); before build()."""
        self._declaring("setPropagationModel")
        self._propagation = propagation(**given)

    def setMobilityModel(self, **given: object) -> None:
        """Choose the mobility model of stations without a position of their own; before build()."""
        self._declaring("setMobilityModel")
        options = settings.MODEL.check(given, self.notes)
        self.infrastructure.control_by("setMobilityModel", options)
        self._bounds = self._bounded(self._bounds, options, "setMobilityModel")
        numbers = {"seed", "min_wt", "max_wt", "velocity_mean", "alpha", "variance", "g_velocity", "aggregation"} & options.keys()
        parameters: dict[str, Any] = {
            key: number("setMobilityModel", key, options[key], 0, MAX_SPEED_MPS if "velocity" in key else math.inf)
            for key in numbers
        }
        if "model" not in options:
            raise UsageError("setMobilityModel: names no model; add model='RandomWayPoint'")
        if "time" in options:
            parameters["start_s"] = number("setMobilityModel", "time", options["time"], 0, 1e5)
        if "pointlist" in options:
            parameters["pointlist"] = tuple(point("setMobilityModel", "pointlist", place) for place in options["pointlist"])
        if "seed" in parameters:
            parameters["seed"] = int(parameters["seed"])
        self._model = MobilityModel(str(options["model"]), **parameters)

    def startMobility(self, **given: object) -> None:
        """Begin of the scripted movement: `time` (s), `mob_rep` (repetitions), `reverse`; before build()."""
        self._declaring("startMobility")
        options = settings.START.check(given, self.notes)
        self.infrastructure.control_by("startMobility", options)
        self._timeline.start_s = number("startMobility", "time", options.get("time", 0), 0, 1e6)
        self._timeline.repetitions = int(number("startMobility", "mob_rep", options.get("mob_rep", 1), 1, 1000))
        self._timeline.reverse = bool(options.get("reverse", False))

    def mobility(self, station: Station, word: str, **given: object) -> None:
        """The position of a station at a `time` (s): `word` is 'start' or 'stop'; before build()."""
        self._declaring("mobility")
        options = settings.MOBILITY.check(given, self.notes)
        self._timeline.of(str(station)).set_end(word, options.get("time", 0), options.get("position"))

    def stopMobility(self, **given: object) -> None:
        """End of the scripted movement: `time` (s); before build()."""
        self._declaring("stopMobility")
        self._timeline.stop_s = number("stopMobility", "time", settings.STOP.check(given, self.notes).get("time"), 0, 1e6)

    def plotGraph(self, **given: object) -> None:
        """A picture of stations, ranges and links in the results' folder, redrawn every PICTURE_EVERY_S; no window."""
        options = settings.PLOT.check(given, self.notes)
        self._bounds = self._bounded(self._bounds, options, "plotGraph")
        self._picture = "map.png"
        if self.standing is not None:
            self._draw()

    def telemetry(self, **given: Any) -> None:
        """Record the data of Mininet-WiFi's live graphs in the results (mn_wifi/telemetry.py)."""
        from testbed.mn_wifi.telemetry import telemetry

        telemetry(**given)

    def configureNodes(self) -> None:
        """No effect: build() makes the radios."""

    configureWifiNodes = configureNodes

    def _bounded(self, bounds: Bounds, options: Mapping[str, object], call: str) -> Bounds:
        names = [name for name in options if name in {field.name for field in fields(Bounds)}]
        return replace(bounds, **{name: number(call, name, options[name], *BOUNDS[name[-1]]) for name in names})

    # --- as a scenario --------------------------------------------------------------------------------------------

    def scenario(self) -> Scenario:
        """The declared network as a scenario, checked like a scenario file. Raises UsageError."""
        declared = {**self._declared(), **self.options["scenario"]}
        keys = Keys.of_script(declared, self.session.script.name).set(self.session.overrides)
        raw = keys.values
        name, model = self._air()
        slot = of_access_points(name) if self.infrastructure.used else {}
        if self._has_own_range():
            entries = [*self._radio_entries({}), *raw.get("radios", ())]
            changed = {**slot, **raw.get("radio_overrides", {})}
            own = {**({"radios": entries} if entries else {}), **({"radio_overrides": changed} if changed else {})}
            return scenario_of(replace(keys, values={**raw, **own}))
        radios = {station.name: self.radio_of(station) for station in self._with_radios()}
        first = next(iter(radios.values()), Radio())
        stated = raw.get("radio_overrides", {})
        usual = {**with_one_range(name), **first.overrides(name, model), **first.of_band(name), **slot}
        overrides = overridden(usual, stated)
        others = {station: radio.of_station(name, model) for station, radio in radios.items() if radio != first}
        if others and model["model"] in OWN_RANGE:
            raise UsageError(
                f"propagation {model['model']!r} has ranges of its own, and {next(iter(others))} differs from "
                f"{self.stations[0]} in range, power or antenna; give all of them the same, or another model"
            )
        of_scenario = list(raw.get("radios", ()))  # made of the scenario's own keys
        names = {entry.get("name") or entry.get("station") for entry in of_scenario if isinstance(entry, dict)}
        entries = self._radio_entries(others)
        merged = [*(entry for entry in entries if (entry.get("name") or entry["station"]) not in names), *of_scenario]
        own_rates = {} if "rate_control" in stated else adapting(name)
        values = {**own_rates, **raw, "radio": name, "radio_overrides": overrides, **({"radios": merged} if merged else {})}
        return scenario_of(replace(keys, values=values))

    def _radio_entries(self, powers: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
        """The scenario's `radios`; `powers`: of the stations whose power or antenna differs from the first one's."""
        entries: list[dict[str, Any]] = []
        # of radios in the kernel that it joins to the network, iw shows the channel; 1 is its own
        ours = self._kind_of_stations() == "hwsim" and self._key("net", "manet") == "manet" and self.common_mode() not in IN_5_GHZ
        shown = {*CHANNELS} - {1} if ours else set()
        for radio in self.radios():
            further = {"name": radio.radio} if radio.id else {}
            if self.infrastructure.used:
                channel = {"freq_mhz": self.infrastructure.frequency_mhz(radio)}
            else:
                channel = {"freq_mhz": frequency_mhz(radio.channel)} if radio.channel in shown else {}
            if settings_of := {**further, **powers.get(radio.node.name, {}), **channel}:
                entries.append({"station": radio.node.name, **settings_of})
        return entries

    def _declared(self) -> dict[str, Any]:
        if self.infrastructure.used:
            self.infrastructure.check()
        else:
            self._check_ad_hoc()
        cabled = self.infrastructure.hosts()
        for host in self.wired:
            if host in cabled:
                continue
            if not any(wire["host"] == host.name for wire in self.wires):
                raise UsageError(f"{host.name}: has no wire; add net.addLink(station, {host.name})")
        self.common_option("ssid", "adhocNet")
        for station in self._with_radios():
            self.radio_of(station).check()
        routing, remark = protocol(self.common_option("proto"))
        if remark:
            note(remark, self.notes)
        mode = HWSIM_MODES.get(self.common_option("cls"))
        kernel_radios = {"hwsim": {"mode": mode}} if mode is not None and self._kind_of_stations() == "hwsim" else {}
        named = {} if self._key("net", "manet") == "mininet-wifi" else {"interface": "station-wlan0"}
        managed = {"stations": "hwsim", "hwsim": {"mode": "managed"}} if self.infrastructure.used else {}
        return {
            **kernel_radios,
            **managed,
            **named,
            **({"monitor": True} if self.options["rec_rssi"] else {}),
            **({"fading_db": self.options["fading_db"]} if self.options["fading_db"] else {}),
            **({"links": self.infrastructure.error_rates()} if self.options["error_prob"] else {}),
            "topology": "positions",
            "positions": [{"name": station.name, "at": list(self._start_of(station))} for station in self._with_radios()],
            "propagation": self._propagation or DEFAULT,
            "wires": self.wires,
            "flows": [],  # the script makes its own traffic
            "routing": routing,
            "arp": "static" if self.options["static_arp"] else "real",
            # of a protocol of IPv4 alone the stations are neighbours by IPv6, each with the address that it was given
            "ipv6": any(station.ip6 for station in self.stations) and PROTOCOLS[routing].ROUTES_IPV6,
            "profile": "modern",  # Linux as shipped, as under Mininet-WiFi
            "tcp": TCP_NAMES.get(tcp := DEFAULT_TCP.read_text().strip(), tcp),
        }

    def _check_ad_hoc(self) -> None:
        for station in self.stations:
            if len(station.wintfs) > 1:
                raise UsageError(f"addStation({station}): wlans={len(station.wintfs)}: {settings.ONE_RADIO}")
            if station.name not in self.adhoc:
                raise UsageError(f"{station.name}: has no link; add net.addLink({station.name}, cls=adhoc, ssid='adhocNet')")
            for name in sorted(key for key in ("passwd", "encrypt") if station.params.get(key)):
                raise UsageError(f"addStation: {name}={station.params[name]!r}: {settings.NO_ENCRYPTION}")

    def _at_wires(self) -> list[Host]:
        """The hosts at stations' wires."""
        cabled = self.infrastructure.hosts()
        return [host for host in self.wired if host not in cabled]

    def shift_db(self) -> float:
        """Difference of a signal here from that in Mininet-WiFi: reception ends at the profile's threshold, there at -91 dBm."""
        return 10 * math.log10(profile(self.scenario())["receive_threshold_w"] * 1000) - THRESHOLD_DBM

    def common_option(self, name: str, otherwise: Any = None) -> Any:
        """The value of an option that all radios must share. Raises UsageError if they differ."""
        values = {station: options.get(name, otherwise) for station, options in self.adhoc.items()}
        if len(set(map(str, values.values()))) > 1:
            (first, value), (second, other) = next(
                ((a, x), (b, y)) for a, x in values.items() for b, y in values.items() if str(x) != str(y)
            )
            text = f"{name}={value!r} of {first} and {name}={other!r} of {second}: {settings.COMMON[name]}"
            raise UsageError(f"addLink: {text}; give all of them the same")
        return next(iter(values.values()), otherwise)

    def _start_of(self, station: Station) -> Position:
        """The position of the station at the start, in metres."""
        course = self._timeline.courses.get(station.name)
        if replayed := getattr(station, "p", None):
            return point(station.name, "p", replayed[0])
        if course is not None:
            return course.points(getattr(station, "coord", None))[0]
        if station.declared_position is not None:
            return station.declared_position
        if self._model is not None:
            return self._model.first_position(station.order, self._bounds_of(station))
        if self.infrastructure.used and all(other.declared_position is None for other in self._with_radios()):
            note("no node has a position: they stand side by side, 1 m apart", self.notes)
            return float(station.order), 0.0, 0.0
        if beside := self.infrastructure.linked(station):
            note(f"{station}: has no position; it stands {station.order} m beside {beside}", self.notes)
            x, y, z = self._start_of(beside)
            return x + station.order, y, z
        raise UsageError(f"{station.name}: has no position; add position='x,y,z' to addStation, in metres")

    def _bounds_of(self, station: Station) -> Bounds:
        bounds = self._bounded(self._bounds, station.params, f"addStation({station.name})")
        bounds.check(station.name)
        return bounds

    def movement(self) -> Trace | None:
        """The movement of all stations from the end of build() on; None if no station moves."""
        legs: list[Leg] = []
        for station in self.stations:
            course = self._timeline.courses.get(station.name)
            if course is not None:
                own = course.legs(getattr(station, "coord", None), self._timeline)
            elif self._model is not None and station.declared_position is None and not hasattr(station, "p"):
                own = self._model.legs(station.order, station.name, self._start_of(station), self._bounds_of(station))
            else:
                continue
            legs += [Leg(0.0, station.name, self._start_of(station), 0.0), *own]
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
        self.infrastructure.require()
        self._own_range = self._has_own_range()
        self.standing = self.session.up(scenario)
        self._name_devices()
        if self.infrastructure.used:
            self.infrastructure.up(self.standing)
        for node in self.values():
            for name, address in node.wire_ips.items():
                node.set_address(name, address)
        info(f"*** {len(self.stations)} stations, routing {scenario.routing.protocol}, results in {self.directory}\n")
        if self._picture is not None:
            self._draw()
        self.standing.begin(settings_change=self.infrastructure.used)
        if movement is not None:
            self.moving().play(movement)
        self._record_params()

    def start(self) -> None:
        """Like build(), which in most scripts has already started the network."""
        self.build()

    def stop(self) -> str | None:
        """Take the network down, which completes its results. Returns its verdict (Mininet-WiFi's stop() returns nothing)."""
        if self._updater is not None:
            self._updater.stop()
            self._updater = None
        while self._servers:
            self._servers.pop().stop()
        if self.standing is None:
            return None
        self._record_params()
        ended, self.standing = self.standing, None
        self.session.down()
        directory = ended.site.directory
        verdict, reasons = verdict_of(directory), "; ".join(reasons_of(directory))
        remedy = f"{VOID_REMEDY}; " if verdict == "void" else ""
        output(f"*** {verdict or 'no verdict'}{reasons and f' ({reasons})'}: {remedy}results in {_relative(directory)}\n")
        return verdict

    def stop_simulation(self) -> None:
        """Stop all stations where they are, until start_simulation()."""
        self.moving("stop_simulation").pause()

    def start_simulation(self) -> None:
        """Let the stations go on with the movement that stop_simulation() interrupted."""
        self.moving("start_simulation").resume()

    def moving(self, call: str = "CLI") -> LiveMovement:
        """The movement under way."""
        return self._up(call).live.movement

    def check_addresses(self) -> None:
        """Raise UsageError for a script's own address that is used twice, or that a routing daemon or static ARP would not
        know."""
        changed = [station for station in self.stations if station.IP() != ip_address(station.order)]
        for other in changed:
            twins = [station for station in self.stations if station.IP() == other.IP()]
            if len(twins) > 1:
                raise UsageError(f"{twins[1].name}: ip={twins[1].ip!r}: {twins[0].name} has it, too; give each its own")
        proto = self.common_option("proto")
        why = f"proto={proto!r} knows stations" if proto else "static ARP knows stations" * self.options["static_arp"]
        if changed and why:
            first = changed[0]
            text = f"{why} by their numbers: {first.name} is {ip_address(first.order)}"
            raise UsageError(f"{first.name}: ip={first.ip!r}: {text}; leave ip out, or write that")

    def _name_devices(self) -> None:
        """Set the script's own addresses. Each radio is named `sta1-wlan0`; if `wlan0` is its name, that is added."""
        lines: dict[NamespaceHost, list[str]] = {}
        for station in self._with_radios():
            for radio, device in zip(station.wintfs.values(), station.host.wintfs.values(), strict=True):
                station.host.nameToIntf[radio.name] = device
                if device.name != radio.name:
                    lines.setdefault(station.host, []).append(f"link property add dev {device.name} altname {radio.name}")
        self.running.configure(lines, "names")
        for host in self._at_wires():
            host.take_address()
        for node in [*self._with_radios(), *self._at_wires()]:
            node.name_wires()
        for station in self.stations:
            station.take_address()
        for station in self._with_radios():
            for address in station.ip6:
                station.setIP6(address)

    def _draw(self) -> None:
        assert self._picture is not None
        hosts = {host.name: host.netns for host in self.running.network.net.hosts}
        live = MappedNetwork(self.directory, hosts, title=self.session.script.name)
        self._updater = self._updater or Updater(live, self.directory / self._picture, PICTURE_EVERY_S)
        output(f"*** picture, drawn every {PICTURE_EVERY_S:g} s: {_relative(self.directory / self._picture)}\n")

    def recordNodeParams(self) -> None:
        """Write `<station>.nodeParams` in the results' folder, now or after build(), and again at stop(): position, range, power,
        antenna, and the power in dBm at which each other station receives this one."""
        self._records_params = True
        self._record_params()

    def _record_params(self) -> None:
        if not self._records_params or self.standing is None:
            return
        links = self.standing.network.medium.ask("links")["links"]
        for station in self.stations:
            radio = station.wintfs[0]
            parameters = {
                "name": station.name, "ip": station.ip, "mac": radio.mac, "position": station.position, "wlan": [radio.name],
                "mode": radio.mode, "channel": radio.channel, "range": radio.range, "txpower": radio.txpower,
                "antennaGain": radio.antennaGain, "antennaHeight": radio.antennaHeight,
                "rssi": {link["to"]: link["power_dbm"] for link in links if link["from"] == station.name},
            }  # fmt: skip
            (self.directory / f"{station.name}.nodeParams").write_text(json.dumps(parameters, indent=1) + "\n")

    def socketServer(self, **given: object) -> None:
        """Answer programs of the script over TCP at `ip` (127.0.0.1) and `port` (12345), until stop() (socket_server.py)."""
        options = settings.SERVER.check(given, self.notes)
        self._up("socketServer")
        port = int(number("socketServer", "port", options.get("port", 12345), 1, 65535))
        self._servers.append(SocketServer(self, str(options.get("ip", "127.0.0.1")), port))

    def event(self, **keys: object) -> None:
        """Carry out an event of a scenario now: `power="sta1", on=False`. Mininet-WiFi has no such call."""
        live = self._up("event").live
        try:
            live.do(keys, SCRIPT)
        except UsageError as problem:
            raise UsageError(f"event: {problem}") from None

    def counters(self) -> dict[str, dict[str, Any]]:
        """The medium's counters of each station up to now (counters.json of formats/air.md). Mininet-WiFi has no such call."""
        stations: dict[str, dict[str, Any]] = self._up("counters").network.medium.ask("counters")["stations"]
        return stations

    # --- asking ---------------------------------------------------------------------------------------------------

    @property
    def directory(self) -> Path:
        """The folder of the results."""
        return self.running.site.directory

    @property
    def hosts(self) -> list[Node]:
        """The wired hosts."""
        return [*self.wired]

    @property
    def nameToNode(self) -> dict[str, Node]:
        """Stations and hosts by name."""
        return {node.name: node for node in [*self.stations, *self.aps, *self.wired]}

    def _node(self, node: Node | str) -> Node:
        name = str(node)
        if name not in self.nameToNode:
            raise UsageError(f"there is no node {name!r}; the nodes are {', '.join(self.nameToNode) or 'yet to be added'}")
        return self.nameToNode[name]

    def __getitem__(self, name: str) -> Node:
        return self._node(name)

    def get(self, *names: str) -> Any:
        """The node of this name, or a list for several names."""
        nodes = [self._node(name) for name in names]
        return nodes[0] if len(nodes) == 1 else nodes

    getNodeByName = get

    def __contains__(self, name: str) -> bool:
        return str(name) in self.nameToNode

    def __iter__(self) -> Iterator[str]:
        return iter(self.nameToNode)

    def keys(self) -> list[str]:
        """The names of all nodes, stations first."""
        return list(self.nameToNode)

    def values(self) -> list[Node]:
        """All nodes, stations first."""
        return list(self.nameToNode.values())

    def items(self) -> list[tuple[str, Node]]:
        """(Name, node) of all nodes, stations first."""
        return list(self.nameToNode.items())

    def __len__(self) -> int:
        return len(self.nameToNode)

    def get_distance(self, src: str, dst: str) -> None:
        """Print the distance between two nodes in metres."""
        a, b = self._node(src), self._node(dst)
        output(f"The distance between {src} and {dst} is {a.get_distance_to(b)} meters\n")

    def ping(self, hosts: list[Node] | None = None, timeout: object = None) -> float:
        """Ping between all pairs of `hosts` (default: all nodes); returns the share of lost packets in per cent."""
        return self._up("ping").network.net.ping([node.host for node in hosts or [*self.stations, *self.wired]], timeout)

    def pingAll(self, timeout: object = None) -> float:
        """Ping between all pairs; returns the share of lost packets in per cent."""
        return self.ping(timeout=timeout)

    def pingPair(self) -> float:
        """Ping between the first two nodes; returns the share of lost packets in per cent."""
        return self.ping([*self.stations, *self.wired][:2])

    def pingFull(self, hosts: list[Node] | None = None, timeout: object = None) -> list[tuple[Node, Node, tuple[float, ...]]]:
        """Ping between all pairs of `hosts` (default: all nodes); returns (source, destination, (sent, received, least, mean,
        largest round trip time, deviation)) of each pair, times in ms."""
        pings = self._up("pingFull").network.net.pingFull([node.host for node in hosts or self.values()], timeout)
        return [(self._node(source.name), self._node(target.name), values) for source, target, values in pings]

    def pingAllFull(self) -> list[tuple[Node, Node, tuple[float, ...]]]:
        """pingFull() of all nodes."""
        return self.pingFull()

    def pingPairFull(self) -> list[tuple[Node, Node, tuple[float, ...]]]:
        """pingFull() of the first two nodes."""
        return self.pingFull(self.values()[:2])

    def waitConnected(self, timeout: object = None, delay: object = 0.5) -> bool:
        """True: there are no switches and access points to wait for."""
        return True

    def iperf(self, hosts: list[Node] | None = None, **given: object) -> list[str]:
        """Measure TCP, or UDP (`l4Type`) offered at `udpBw` (10M), by iperf3 for `seconds` (5) from the first host, the client,
        to the second, once it has a route. Returns the rates of server and client as Mininet does, for UDP after the offered one;
        `fmt` is iperf's unit."""
        from testbed.runs.throughput import FORMATS, MAX_SECONDS, SECONDS, measure_with_route, patience_s

        options = settings.IPERF.check(given, self.notes)
        seconds = number("iperf", "seconds", options.get("seconds", SECONDS), 1, MAX_SECONDS)
        if seconds != int(seconds):
            raise UsageError(f"iperf: seconds={seconds:g}: iperf3 takes whole seconds; write {math.ceil(seconds)}")
        kind = choice("iperf", "l4Type", options.get("l4Type", "TCP"), {"TCP": None, "UDP": options.get("udpBw", "10M")})
        if "fmt" in options:
            choice("iperf", "fmt", options["fmt"], FORMATS)
        ends = [*self.stations, *self.wired]
        a, b = hosts or (ends[0], ends[-1])
        network = self._up("iperf").network
        udp = None if kind is None else settings.rate("iperf", "udpBw", kind)
        output(f"*** Iperf: testing {'TCP' if udp is None else 'UDP'} bandwidth between {a} and {b}\n")
        throughput = measure_with_route(network, a.host, b.host, udp, patience_s=patience_s(network), seconds=int(seconds))
        result = throughput.as_iperf(options.get("fmt"))
        output(f"*** Results: {result}\n")
        return result

    def _up(self, call: str) -> Standing:
        if self.standing is None:
            raise UsageError(f"{call}: the network is not up; call net.build() before")
        return self.standing

    def __getattr__(self, name: str) -> Any:
        """Raise NotACall, with the remedy, for the unsupported calls of Mininet-WiFi."""
        if name.startswith("_"):
            raise AttributeError(name)
        if isinstance(masked := getattr(type(self), name, None), property):  # its own AttributeError brought us here
            return masked.fget(self)  # type: ignore[misc]
        raise settings.NotACall(f"{name}: {settings.NO_CALLS.get(name, 'is not supported; docs/mininet-wifi.md lists what is')}")


__getattr__ = refuse_others("mn_wifi.net", {}, "is not supported; Mininet_wifi is")


def _relative(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
