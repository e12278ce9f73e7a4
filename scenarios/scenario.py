"""A scenario: the complete description of one run, as a frozen value (formats/scenario.md).

The keys are those of `/formats/scenario.md`; they are the same in TOML files, after `--set` and in `scenario.json`.
`scenarios.definition` reads files, `scenarios.refusal` words errors. This module uses neither the kernel nor the file system.

A TCP setting left out (None) is the profile's own (kernel-tcp/profiles/<profile>.toml), not a default of this file.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

import topologies
from mobility.trace import is_inside
from scenarios import owned
from scenarios.containers import Container, check_containers
from scenarios.events import Event, check_events
from scenarios.flows import FIRST_PORT, Flow, KindOfDefaultFlows
from scenarios.models import STRICT, KeyProblem, as_tuple
from scenarios.movement import Mobility, Still, completed, refuse_misfit, seconds_of
from scenarios.propagation import MatrixEntry, Propagation, as_propagation
from scenarios.quantities import BitsPerSecond, Bytes, Coordinate, Length, Seconds, Speed, Whole
from scenarios.radios import StationRadio, check_radios
from scenarios.routing import MIN_MTU, OWN_DAEMONS, TO_WIRES, Routing, Static, routing_of_ipv6
from scenarios.sysctls import Sysctls
from scenarios.tcp import Tcp, TcpText
from scenarios.traffic import DEFAULT_KIND
from topologies.addresses import MAX_WIRES, wire_interfaces
from topologies.layouts import MAX_STATIONS, cross_ends

# The layout keys of each topology; any other of them is an error. OPTIONAL need not be given.
LAYOUT_KEYS = {
    "chain": {"hops", "nodes", "spacing"},
    "grid": {"rows", "columns", "spacing"},
    "cross": {"hops", "spacing"},
    "random": {"nodes", "positions"},
    "positions": {"positions"},
}
OPTIONAL = {("random", "positions"), *((topology, "spacing") for topology in LAYOUT_KEYS)}
MAX_INTERFACE_NAME = 15  # IFNAMSIZ of linux/if.h, without its end
MAX_MTU: int = owned.schema("medium")["max_mtu_bytes"]  # of a radio
IPV6_MTU = 1280  # the minimum MTU for IPv6
TCP_HEADERS = 40  # IPv4 and TCP without options, which the segment size does not count (RFC 9293, 3.7.1)
IPV6_MORE = 20  # bytes by which a header of IPv6 is longer than one of IPv4 (RFC 8200, 3)
MIN_MSS = 88  # TCP_MIN_MSS, include/net/tcp.h
MAX_COPY_BYTES = 1500  # COPY_BYTES of kernel-tcp/layers/layers.h: an IP packet that a layer sends again
MAX_HWSIM_QUEUE: int = owned.schema("medium")["hwsim_queue_packets"]
MODEL_TRAFFIC_AT_S = 10.0  # default time from the medium's start to that of traffic and movement
DEFAULT_SPACING_M = 200.0
MIN_DURATION_S, MAX_DURATION_S = 0.1, 86_400.0  # of a measurement
WHOLE_MOVEMENT = "movement"  # as `duration`
MAX_RADIOS = 10_000  # entries of `radios`
MAX_FLOWS = 10_000  # each has a port of its own, up to 65535
# SACK of a TCP that does not set it: tcp_sack of profiles/period.toml; Linux's own default (ip-sysctl.rst).
SACK_OF_PROFILE = {"period": False, "modern": True}
HOST_NAME = re.compile(r"[a-z][a-z0-9-]{0,9}")  # as a station's


class Place(BaseModel):
    """One explicit position, with a name if it is not `sta<i>`."""

    model_config = STRICT
    name: str | None = None
    at: Annotated[tuple[Coordinate, ...], BeforeValidator(as_tuple)]


class Hwsim(BaseModel):
    """Properties of `stations = "hwsim"` radios: the kind of network that they join, and who selects the rate of a data frame."""

    model_config = STRICT
    mode: Annotated[str, owned.choice("medium", "hwsim.mode")] = owned.default("medium", "hwsim.mode")
    rates: Annotated[str, owned.choice("medium", "hwsim.rates")] = owned.default("medium", "hwsim.rates")


def _as_place(value: object) -> object:
    return {"at": value} if isinstance(value, list | tuple) else value


class LinkErrors(BaseModel):
    """Packet error rate of a directed link; "*" is any station."""

    model_config = STRICT
    source: str = Field("*", alias="from")
    target: str = Field("*", alias="to")
    error_rate: Annotated[float, owned.number("medium", "links.error_rate")]
    unit: Annotated[str, owned.choice("medium", "links.unit")] = owned.default("medium", "links.unit")
    frames: Annotated[str, owned.choice("medium", "links.frames")] = owned.default("medium", "links.frames")


class Wire(BaseModel):
    """A wired link from a station (the gateway) to a plain host, which exists by being named here."""

    model_config = STRICT
    station: str
    host: str
    rate: Annotated[BitsPerSecond, owned.number("medium", "wires.rate_bps")] = 100e6
    delay: Annotated[Seconds, owned.number("medium", "wires.delay_us", per=1e6)] = 0.002
    queue: Annotated[Whole, owned.number("medium", "wires.queue_packets")] = owned.default("medium", "wires.queue_packets")
    nat: bool = False  # whether the host leads to the real network, by NAT; needs --allow-internet

    @model_validator(mode="after")
    def _named(self) -> Self:
        if HOST_NAME.fullmatch(self.host) is None:
            text = f'"{self.host}" is no host name; use at most 10 of a-z, 0-9 and "-", beginning with a letter'
            raise KeyProblem(("host",), text)
        return self


class WireEnds(NamedTuple):
    """The interfaces at the two ends of a wire."""

    station: str
    interface: str
    host: str
    host_interface: str


def _or_movement(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    """A time; WHOLE_MOVEMENT as NaN, for which `_complete_duration` puts the time."""
    return math.nan if value == WHOLE_MOVEMENT else handler(value)


def _within_limits(overrides: dict[str, bool | int | float | str]) -> dict[str, bool | int | float | str]:
    """The medium's limits. A key that no profile has is refused with the profile in hand."""
    keys = owned.schema("radio")["properties"]
    for key, value in overrides.items():
        if key in keys and keys[key]["type"] not in ("array", "object") and (wrong := owned.problem(keys[key], value)):
            raise KeyProblem((key,), wrong)
    return overrides


class Scenario(BaseModel):
    """One scenario; `positions()` and `flows` are complete after validation."""

    model_config = STRICT

    topology: Literal["chain", "grid", "cross", "random", "positions"] = "chain"
    hops: Whole | None = Field(None, ge=1, le=MAX_STATIONS - 1)
    nodes: Whole | None = Field(None, ge=1, le=MAX_STATIONS)
    rows: Whole | None = Field(None, ge=1, le=MAX_STATIONS)
    columns: Whole | None = Field(None, ge=1, le=MAX_STATIONS)
    spacing: Length | None = None
    places: Annotated[tuple[Annotated[Place, BeforeValidator(_as_place)], ...] | None, BeforeValidator(as_tuple)] = Field(
        None, alias="positions", max_length=MAX_STATIONS
    )
    area: Annotated[tuple[Length, Length] | None, BeforeValidator(as_tuple)] = None

    net: Literal["manet", "mininet-wifi"] = "manet"
    stations: Annotated[
        Literal["tap", "hwsim"] | Annotated[tuple[Container, ...], Field(max_length=MAX_STATIONS)], BeforeValidator(as_tuple)
    ] = "tap"
    hwsim: Hwsim = Hwsim()
    radio: str = Field("ns2-dsss-2m", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    radio_overrides: Annotated[dict[str, bool | int | float | str], AfterValidator(_within_limits)] = Field(default_factory=dict)
    radios: Annotated[tuple[StationRadio, ...], BeforeValidator(as_tuple)] = Field((), max_length=MAX_RADIOS)
    interface: Literal["wlan0", "station-wlan0"] = "wlan0"
    propagation: Annotated[Propagation, BeforeValidator(as_propagation)] = Propagation.model_validate({})
    interference: Annotated[str, owned.choice("medium", "interference")] = owned.default("medium", "interference")
    fading_db: Annotated[float, owned.number("medium", "fading_db")] = owned.default("medium", "fading_db")
    links: Annotated[tuple[LinkErrors, ...], BeforeValidator(as_tuple)] = ()
    queue: Annotated[Whole, owned.number("medium", "queue.packets")] = owned.default("medium", "queue.packets")
    control_first: bool = owned.default("medium", "queue.control_first")
    mtu: Bytes = Field(1500, ge=MIN_MTU, le=MAX_MTU)
    wires: Annotated[tuple[Wire, ...], BeforeValidator(as_tuple)] = Field((), max_length=MAX_WIRES)

    mobility: Mobility = Still()
    speed: Speed | None = None
    pause: Seconds | None = Field(None, ge=0, le=86_400)

    routing: Routing = Static()
    arp: Literal["real", "static"] = "real"
    unres_qlen: Whole | None = Field(None, ge=1, le=10_000)
    ipv6: bool = False

    tcp: TcpText = Field("newreno", validate_default=True)
    profile: Literal["period", "modern"] = "period"
    window: Whole | None = Field(None, ge=1, le=32_767)
    initial_window: Whole | None = Field(None, ge=1, le=1000)
    rto_min: Seconds | None = Field(None, ge=0.001, le=120)
    rto_max: Seconds | None = Field(None, ge=1, le=120)
    rto_initial: Seconds | None = Field(None, ge=0.001, le=120)
    delayed_ack: bool | None = None
    mss: Bytes | None = Field(None, ge=MIN_MSS, le=MAX_MTU - TCP_HEADERS)
    # absent from scenario.json when empty, so that those of earlier versions stay as they were
    sysctls: Sysctls = Field(default_factory=dict, exclude_if=lambda table: not table)

    traffic: KindOfDefaultFlows = DEFAULT_KIND
    flows: Annotated[tuple[Flow, ...], BeforeValidator(as_tuple)] = Field((), max_length=MAX_FLOWS)
    warmup: Seconds = Field(5.0, ge=0, le=86_400)
    duration: Annotated[Seconds, Field(ge=MIN_DURATION_S, le=MAX_DURATION_S), WrapValidator(_or_movement)] = 30.0
    travel: Length | None = Field(None, exclude=True)  # None after validation: `duration` has its time then
    traffic_at: Seconds | None = Field(None, ge=0, le=3600)
    events: Annotated[tuple[Event, ...], BeforeValidator(as_tuple)] = Field((), max_length=10_000)
    clock: Literal["real", "virtual"] = "real"
    seeds: Whole = Field(1, ge=1, le=10_000)

    monitor: bool = False
    snaplen: int = Field(128, ge=128, le=65_535)  # bytes: headers with all options and the CBR stamp need 128
    input_log: bool = True
    log_limit: int = Field(4_000_000_000, ge=100_000)  # bytes, of air.csv, air.pcapng and inputs.jsonl each

    @model_validator(mode="after")
    def _complete(self) -> Self:
        self._check_net()
        self._check_hwsim()
        self._check_mobility()
        self._complete_duration()
        self._check_layout()
        places = [(p.name, p.x_m, p.y_m, p.z_m) for p in self.positions()]
        refuse_misfit(self.mobility, places, self.area)
        self._check_radio_names()
        check_radios(self)
        if self.spacing is None and self.topology not in ("positions", "random"):
            object.__setattr__(self, "spacing", DEFAULT_SPACING_M)
        if "flows" not in self.model_fields_set:  # a list without entries says that there are none
            object.__setattr__(self, "flows", self._default_flows())
        if self.ipv6:
            flows = tuple(flow if flow.ip else flow.model_copy(update={"ip": 6}) for flow in self.flows)
            object.__setattr__(self, "flows", flows)
        self._check_wires()
        self._check_station_references()
        self._check_ports()
        self._check_options("SACK", lambda tcp: self._wants_sack(tcp.sack))
        self._check_options("ECN", lambda tcp: tcp.ecn)
        self._check_routing()
        self._check_gateways()
        self._check_hops()
        self._check_error_notices()
        self._check_ipv6()
        object.__setattr__(self, "routing", self.routing.for_stations(len(self.station_names()), not self.mobility.moving))
        if self.traffic_at is None and self.mobility.with_traffic:
            object.__setattr__(self, "traffic_at", MODEL_TRAFFIC_AT_S + (getattr(self.routing, "settle", None) or 0.0))
        self._check_times()
        self._check_sizes()
        ends = {frozenset((wire.station, wire.host)) for wire in self.wires}
        check_containers(self.containers, self.station_names(), self.host_names(), self.clock)
        routing = self.routing
        without = None if routing.protocol in OWN_DAEMONS or routing.DESCRIPTION is not None else routing.protocol
        check_events(self.events, self.station_names(), self.host_names(), self.traffic_seconds(), self.area, ends, without)
        return self

    # --- queries -------------------------------------------------------------------------------

    def positions(self, seed: int = 1) -> list[topologies.Placed]:
        """The positions of all stations at time 0, in the order of their numbers. Only a random layout uses the seed."""
        spacing_m = self.spacing or DEFAULT_SPACING_M
        match self.topology:
            case "chain":
                return topologies.chain(self.hops if self.hops is not None else (self.nodes or 1) - 1, spacing_m)
            case "grid":
                return topologies.grid(self.rows or 0, self.columns or 0, spacing_m)
            case "cross":
                return topologies.cross(self.hops or 0, spacing_m)
            case "random":
                drawn = topologies.random_uniform(self.nodes or 0, self.area or (0.0, 0.0), seed)
            case _:
                drawn = []
        places = self.places or ()
        points = [*((one.x_m, one.y_m, one.z_m) for one in drawn), *(place.at for place in places)]
        return topologies.explicit(points, [*(None for _ in drawn), *(place.name for place in places)])

    def still_stations(self) -> list[str]:
        """Stations that a mobility model does not move: those with a position of their own among random ones."""
        return self.station_names()[self.nodes or 0 :] if self.topology == "random" else []

    def station_names(self) -> list[str]:
        """The stations, in the order of their numbers."""
        return [placed.name for placed in self.positions()]

    def host_names(self) -> list[str]:
        """The plain wired hosts, in the order of their first wires."""
        return list(dict.fromkeys(wire.host for wire in self.wires))

    @property
    def containers(self) -> tuple[Container, ...]:
        """The stations that have a root file system of their own."""
        return self.stations if isinstance(self.stations, tuple) else ()

    @property
    def radio_devices(self) -> Literal["tap", "hwsim"]:
        """The devices of all stations' radios; containers have TAPs."""
        return "tap" if isinstance(self.stations, tuple) else self.stations

    def further_radios(self) -> dict[int, StationRadio]:
        """The radios beyond the first of each station, by the number that gives their address: after those of all stations."""
        named = (radio for radio in self.radios if radio.name is not None)
        return dict(enumerate(named, start=len(self.station_names()) + 1))

    def radio_numbers(self) -> dict[str, int]:
        """The number of each radio, which gives its addresses. The first radio of a station has the station's name."""
        first = {name: number for number, name in enumerate(self.station_names(), start=1)}
        return first | {radio.name or "": number for number, radio in self.further_radios().items()}

    def wire_ends(self) -> list[WireEnds]:
        """The ends of the wires, in the order of their numbers."""
        interfaces = (wire_interfaces([getattr(wire, end) for wire in self.wires]) for end in ("station", "host"))
        ends = zip(self.wires, *interfaces, strict=True)
        return [WireEnds(wire.station, interface, wire.host, host_interface) for wire, interface, host_interface in ends]

    def flow_names(self) -> list[str]:
        """`flow1`, `flow2`, ... in the order of `flows`."""
        return [f"flow{index}" for index in range(1, len(self.flows) + 1)]

    def traffic_seconds(self) -> float:
        """From the start of the traffic to its end: that of the last measurement, or `stop` if that is earlier."""
        ends = (flow.start + self.warmup_of(flow) + self.duration for flow in self.flows)
        stops = (math.inf if flow.stop is None else flow.stop for flow in self.flows)
        return max(map(min, ends, stops), default=self.warmup + self.duration)

    def warmup_of(self, flow: Flow) -> float:
        """The time for which a flow sends before it is measured."""
        return self.warmup if flow.warmup is None else flow.warmup

    def seconds_of(self, flow: Flow) -> float:
        """The time for which a flow sends."""
        return (self.traffic_seconds() if flow.stop is None else flow.stop) - flow.start

    def ip_of(self, flow: Flow) -> int:
        """The version of IP, 4 or 6, over which a flow goes."""
        return flow.ip or 4

    def tcp_of(self, flow: Flow) -> Tcp:
        """The TCP of a flow: its own, else the scenario's."""
        return flow.tcp or self.tcp

    def tcp_of_flows(self) -> dict[str, Tcp]:
        """The TCP of each TCP flow, by the flow's name."""
        named = zip(self.flow_names(), self.flows, strict=True)
        return {name: self.tcp_of(flow) for name, flow in named if flow.has_tcp}

    def tcps(self) -> list[Tcp]:
        """All TCPs in use: the scenario's, which connections outside of flows have, then the flows' own."""
        return list(dict.fromkeys([self.tcp, *(flow.tcp for flow in self.flows if flow.tcp)]))

    @property
    def tcp_wants_notices(self) -> bool:
        """Whether the routing daemons must report `held` and `restored` to the sources of packets (TCP-F, TCP-BuS)."""
        return any(tcp.wants_notices for tcp in self.tcps())

    @property
    def tcp_wants_error_notices(self) -> bool:
        """Whether DSR's Route Errors must carry notices to the sources of packets."""
        return any(tcp.wants_error_notices for tcp in self.tcp_of_flows().values())

    @property
    def tcp_hears_unreachable(self) -> bool:
        """Whether our daemons answer a TCP packet without a route by ICMP unreachable. Linux then reverts one RTO backoff (RFC
        6069, 2009), which cannot be disabled; TCPs of the papers' years did not. So under the profile `period` they are
        sent only if some flow's TCP has a layer that uses them."""
        return self.profile != "period" or any(tcp.hears_unreachable for tcp in self.tcps())

    def sack_of(self, station: str) -> bool | None:
        """Whether a station or host offers selective acknowledgements; None: as the profile says. A connection uses them if both
        ends offer them; `_check_options` refuses conflicts."""
        values = [tcp.sack for tcp in self._tcps_at(station)] or [self.tcp.sack]
        return any(self._wants_sack(sack) for sack in values) if any(sack is not None for sack in values) else None

    def ecn_of(self, station: str) -> bool | None:
        """Whether a station or host offers explicit congestion notification; None: as the profile says."""
        return any(tcp.ecn for tcp in self._tcps_at(station) or [self.tcp]) or None

    def _tcps_at(self, station: str) -> list[Tcp]:
        return [self.tcp_of(flow) for flow in self.flows if flow.has_tcp and station in (flow.source, flow.target)]

    def _wants_sack(self, sack: bool | None) -> bool:
        return SACK_OF_PROFILE[self.profile] if sack is None else sack

    def tcp_settings(self, tcp: Tcp | None = None) -> dict[str, Any]:
        """The scenario's own settings of connections with `tcp` (default: the scenario's), with the names of tcp-settings.json;
        all others come from the profile."""
        stated = {
            **(tcp or self.tcp).settings(),
            "window_segments": self.window,
            "initial_window_segments": self.initial_window,
            "rto_min_us": _scaled(self.rto_min, 1_000_000),
            "rto_max_ms": _scaled(self.rto_max, 1000),
            "rto_initial_ms": _scaled(self.rto_initial, 1000),
            "delayed_ack": self.delayed_ack,
            "mss": self.mss,
        }
        return {key: value for key, value in stated.items() if value is not None}

    def to_json(self) -> str:
        """Text of scenario.json: every key and default written out, the same for equal scenarios."""
        return json.dumps(self.model_dump(by_alias=True, mode="json"), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The scenario of a scenario.json that `to_json` wrote; pydantic's ValidationError for any other text."""
        return cls.model_validate(json.loads(text))

    # --- checks over several keys ---------------------------------------------------------------------------------

    def _check_net(self) -> None:
        if self.net != "mininet-wifi":
            return
        if self.stations != "hwsim":
            raise KeyProblem(("net",), 'stations of Mininet-WiFi have the radios of mac80211_hwsim; add stations = "hwsim"')
        if self.hwsim.mode != "ibss":
            text = f'stations of Mininet-WiFi are in an ad hoc network here, not in "{self.hwsim.mode}"; leave it out, or net'
            raise KeyProblem(("hwsim", "mode"), text)

    def _check_radio_names(self) -> None:
        by_mininet_wifi = self.net == "mininet-wifi"
        if by_mininet_wifi and self.interface != "wlan0":
            raise KeyProblem(("interface",), 'stations of Mininet-WiFi get wlan0 here; remove it, or net = "mininet-wifi"')
        who = "Mininet-WiFi, which" if by_mininet_wifi else f'interface = "{self.interface}", which'
        longest = MAX_INTERFACE_NAME - len("-wlan0")
        for name in self.station_names() if by_mininet_wifi or self.interface != "wlan0" else []:
            if len(name) > longest:
                text = f'"{name}" is too long for {who} adds "-wlan0" to it; use at most {longest} characters'
                raise KeyProblem(("positions",), text)

    def _check_hwsim(self) -> None:
        if self.stations != "hwsim":
            if self.hwsim != Hwsim():
                raise KeyProblem(("hwsim",), 'is for stations = "hwsim"; TAP radios have neither mode nor rates of their own')
        elif self.queue > MAX_HWSIM_QUEUE:
            text = f"{self.queue} is above {MAX_HWSIM_QUEUE}: hwsim throws away what waits beyond 200"
            raise KeyProblem(("queue",), text)
        if self.hwsim.mode == "managed" and ("flows" not in self.model_fields_set or self.flows):
            text = '"managed" radios join no network by themselves, so that no flow arrives; '
            text += 'add flows = [] and configure them at the prompt, or take "ibss", "mesh" or "ocb"'
            raise KeyProblem(("hwsim", "mode"), text)

    def _check_mobility(self) -> None:
        """Merge `speed` and `pause` with the movement's options of that name; both are equal afterwards."""
        movement = completed(self.mobility, {"speed": self.speed, "pause": self.pause})
        object.__setattr__(self, "mobility", movement)
        for key in ("speed", "pause"):
            object.__setattr__(self, key, getattr(movement, key, None))

    def _complete_duration(self) -> None:
        """Replace `duration = "movement"` by its time."""
        if math.isnan(self.duration):
            warmups = {("warmup",): self.warmup} | {("flows", i, "warmup"): flow.warmup for i, flow in enumerate(self.flows)}
            if found := next(((key, lasts_s) for key, lasts_s in warmups.items() if lasts_s), None):
                text = f"{found[1]:g} s are another part of the movement at every speed; "
                raise KeyProblem(found[0], text + 'duration = "movement" needs warmup = 0')
            lasts_s = seconds_of(self.mobility, self.travel)
            if not MIN_DURATION_S <= lasts_s <= MAX_DURATION_S:
                text = f"{self.travel:g} m take {lasts_s:g} s at {self.speed:g} m/s; give a length that takes "
                raise KeyProblem(("travel",), f"{text}{MIN_DURATION_S:g} to {MAX_DURATION_S:g} s")
            object.__setattr__(self, "duration", lasts_s)
        elif self.travel is not None and "duration" not in self.model_fields_set:
            raise KeyProblem(("travel",), f'is for duration = "{WHOLE_MOVEMENT}"; add that')
        object.__setattr__(self, "travel", None)

    def _check_layout(self) -> None:
        given = {"hops", "nodes", "rows", "columns", "spacing"} & {k for k, v in self if v is not None}
        given |= {"positions"} if self.places is not None else set()
        for key in sorted(given - LAYOUT_KEYS[self.topology]):
            raise KeyProblem((key,), f'topology "{self.topology}" does not use it; remove it')
        self._check_layout_is_complete(given)
        try:
            positions = self.positions()
        except topologies.LayoutError as problem:
            raise KeyProblem((_blame(self.topology, str(problem), given),), str(problem)) from None
        outsiders = (placed for placed in positions if self.area and not is_inside(placed[1:], self.area))
        if (placed := next(outsiders, None)) and self.area:
            text = f"{placed.name} at ({placed.x_m:g}, {placed.y_m:g}) m is outside {self.area[0]:g} x "
            raise KeyProblem(("area",), text + f"{self.area[1]:g} m; enlarge the area or move the station")

    def _check_layout_is_complete(self, given: set[str]) -> None:
        if self.topology == "chain":
            if not given & {"hops", "nodes"}:
                raise KeyProblem((), 'a "chain" needs "hops"; add hops = 5')
            if {"hops", "nodes"} <= given and self.nodes != (self.hops or 0) + 1:
                text = f"{self.nodes} nodes contradict {self.hops} hops; remove one of the two keys"
                raise KeyProblem(("nodes",), text)
            return
        for key in sorted(key for key in LAYOUT_KEYS[self.topology] - given if (self.topology, key) not in OPTIONAL):
            raise KeyProblem((), f'topology "{self.topology}" needs "{key}"; add it')
        if self.topology == "random" and self.area is None:
            raise KeyProblem((), 'topology "random" needs "area"; add area = [1500, 300]')

    def _default_flows(self) -> tuple[Flow, ...]:
        names = self.station_names()
        if len(names) < 2:
            raise KeyProblem((), "a single station has no peer; give at least two stations")
        ends = cross_ends(self.hops or 0) if self.topology == "cross" else [(names[0], names[-1])]
        return tuple(Flow.model_validate({"from": a, "to": b, "traffic": self.traffic}) for a, b in ends)

    def _check_station_references(self) -> None:
        stations, hosts = set(self.station_names()), set(self.host_names())
        matrix = self.propagation.matrix or ()
        references: tuple[tuple[tuple[str, ...], Sequence[Flow | LinkErrors | MatrixEntry], set[str]], ...] = (
            (("flows",), self.flows, stations | hosts),
            (("links",), self.links, stations | {"*"}),
            (("propagation", "matrix"), matrix, stations),
        )
        for base, entries, known in references:
            for index, entry in enumerate(entries):
                for key, name in (("from", entry.source), ("to", entry.target)):
                    if name in hosts and name not in known:
                        text = f'"{name}" is a wired host, which has no radio; name a station'
                        raise KeyProblem((*base, index, key), text)
                    if name not in known:
                        raise KeyProblem((*base, index, key), self.no_such(name, hosts=base == ("flows",)))

    def _check_ports(self) -> None:
        """Refuse flows that would share a server's port at their target. Every flow has a port of its own at its target, whether
        used or not."""
        taken = {(flow.target, FIRST_PORT + index): index for index, flow in enumerate(self.flows)}
        for index, flow in enumerate(self.flows):
            key, port = flow.chosen_port or ("", FIRST_PORT + index)
            other = taken.setdefault((flow.target, port), index)
            if other != index:
                text = f"port {port} of {flow.target} is flow{other + 1}'s already; give another port"
                raise KeyProblem(("flows", index, key), text)

    def _check_options(self, option: str, wants: Callable[[Tcp], bool]) -> None:
        """SACK and ECN are sysctls of a station's whole namespace; a connection has them if both of its ends do."""
        flows = [(index, flow) for index, flow in enumerate(self.flows) if flow.has_tcp]
        having: dict[str, int] = {}
        for index, flow in flows:
            if wants(self.tcp_of(flow)):
                having = {flow.source: index, flow.target: index, **having}
        for index, flow in flows:
            if not wants(self.tcp_of(flow)) and {flow.source, flow.target} <= set(having):
                others = " and ".join(f"flow{other + 1}" for other in sorted({having[flow.source], having[flow.target]}))
                text = f"flow{index + 1} is without {option}, but {flow.source} and {flow.target} have it for {others}, and a "
                text += "station has it for all or none; give them TCPs that agree, or other ends"
                raise KeyProblem(("flows", index, "tcp") if flow.tcp else ("flows", index), text)

    def _check_wires(self) -> None:
        stations, ends = set(self.station_names()), set()
        for index, wire in enumerate(self.wires):
            if wire.station not in stations:
                raise KeyProblem(("wires", index, "station"), self.no_such(wire.station))
            if wire.host in stations:
                text = f'"{wire.host}" is a station already; give the host a name of its own'
                raise KeyProblem(("wires", index, "host"), text)
            if (wire.station, wire.host) in ends:
                text = f'"{wire.host}" has a wire to {wire.station} already; take one out, or give this host another name'
                raise KeyProblem(("wires", index, "host"), text)
            ends.add((wire.station, wire.host))
        self._check_internet()

    def _check_internet(self) -> None:
        for index, wire in enumerate(self.wires):
            if wire.nat and self.clock == "virtual":
                text = 'the guests of clock = "virtual" have no network; set clock = "real", or leave it out'
                raise KeyProblem(("wires", index, "nat"), text)
            if wire.nat != self.wires[0].nat:
                text = "one gateway would lead to the real network and another not, and stations do not tell them apart; "
                raise KeyProblem(("wires", index, "nat"), text + "set it for every wire, or for none")

    def _check_routing(self) -> None:
        """Refuse flows that the protocol can never carry; the run itself searches for paths."""
        gateways = {wire.host: wire.station for wire in reversed(self.wires)}  # of several the first
        for index, flow in enumerate(self.flows):
            ends = {gateways.get(flow.source, flow.source), gateways.get(flow.target, flow.target)}
            wired = {flow.source, flow.target} & set(gateways)
            if wired and len(ends) > 1 and not self.routing.TO_WIRES:
                text = f'"{self.routing.protocol}" routes over the air to stations only, not to {", ".join(sorted(wired))}; '
                *others, last = (f'"{name}"' for name in ("static", *TO_WIRES))
                text += f"take {', '.join(others)} or {last}, or end the flow at the gateway"
                raise KeyProblem(("flows", index), text)
            if wired and len(ends) > 1 and not self.routing.has_gateways:
                text = f"no station reaches {', '.join(sorted(wired))} over the air; "
                text += f"leave it out, or end flow{index + 1} at the gateway"
                raise KeyProblem(("routing", "gateway"), text)

    def _check_gateways(self) -> None:
        """A station's default route leads to the nearest gateway, which must reach every wired host."""
        if not (self.routing.NEAREST_GATEWAY and self.routing.has_gateways):
            return
        behind: dict[str, set[str]] = {}
        for wire in self.wires:
            behind.setdefault(wire.station, set()).add(wire.host)
        for index, wire in enumerate(self.wires):
            for other, hosts in behind.items():
                if wire.host not in hosts:
                    text = f'{other} has no wire to it, and "{self.routing.protocol}" sends to every host over the nearest '
                    text += f'gateway; add a wire from {other} to "{wire.host}", or take "static" or "olsr"'
                    raise KeyProblem(("wires", index, "host"), text)

    def _check_hops(self) -> None:
        """Refuse TCP-AP without the length of the path: it would be NewReno."""
        protocol = self.routing.protocol
        by_the_kernel = self.stations == "hwsim" and self.hwsim.mode == "mesh"
        for index, flow in enumerate(self.flows):
            if not flow.has_tcp or not self.tcp_of(flow).asks_for_hops:
                continue
            if self.routing.KNOWS_HOPS and not by_the_kernel:
                continue
            if protocol in OWN_DAEMONS:
                continue
            who = "the kernel's mesh" if by_the_kernel else f'routing = "{protocol}"'
            text = f'"{self.tcp_of(flow).name}" paces by the length of the path, which {who} does not tell; write it, as '
            text += "tcpap(hops=4), or take static, " + ", ".join(OWN_DAEMONS[:-1]) + f" or {OWN_DAEMONS[-1]}"
            raise KeyProblem(("flows", index, "tcp") if flow.tcp else ("tcp",), text)

    def _check_error_notices(self) -> None:
        """Refuse a TCP that follows Route Errors with any protocol but our DSR, whose Route Errors go to the source of the
        packet."""
        protocol = self.routing.protocol
        for index, flow in enumerate(self.flows):
            if flow.has_tcp and self.tcp_of(flow).wants_error_notices and protocol != "dsr":
                text = f'"{self.tcp_of(flow).spelled}" follows DSR\'s Route Errors, which routing = "{protocol}" has not; '
                text += 'take routing = "dsr", or notice=icmp'
                raise KeyProblem(("flows", index, "tcp") if flow.tcp else ("tcp",), text)

    def _check_ipv6(self) -> None:
        """Refuse IPv6 without routes for it, and flows over IPv6 with parts that support IPv4 only."""
        if self.ipv6 and not self.routing.ROUTES_IPV6:
            text = f'routing "{self.routing.protocol}" routes IPv4 only; take {", ".join(routing_of_ipv6())}, or leave ipv6 out'
            if self.routing.DESCRIPTION is not None:
                text += " (a daemon that routes IPv6 has ipv6 = true in its description)"
            raise KeyProblem(("ipv6",), text)
        if not self.routing.ROUTES_IPV4 and not self.ipv6:
            raise KeyProblem(("routing",), f'"{self.routing.protocol}" routes IPv6 only; add ipv6 = true')
        for index, flow in enumerate(self.flows):
            if self.ip_of(flow) == 4 and not self.routing.ROUTES_IPV4:
                text = f'"{self.routing.protocol}" routes IPv6 only; leave it out, or take another routing'
                raise KeyProblem(("flows", index, "ip"), text)
            if flow.ip == 6 and not self.ipv6:
                raise KeyProblem(("flows", index, "ip"), "the stations have no IPv6 addresses; add ipv6 = true, or take ip = 4")
            tcp = self.tcp_of(flow)
            if self.ip_of(flow) == 6 and flow.has_tcp and tcp.layers:
                text = f'"{tcp.spelled}" acts on packets and notices of IPv4 only, and flow{index + 1} goes over IPv6; '
                text += "take a TCP without layers, or ip = 4 for the flow"
                raise KeyProblem(("flows", index, "tcp") if flow.tcp else ("tcp",), text)

    @property
    def reaches_internet(self) -> bool:
        """Whether hosts lead to the real network."""
        return any(wire.nat for wire in self.wires)

    def no_such(self, name: str, hosts: bool = False) -> str:
        """The error for an unknown station or host."""
        names = self.station_names()
        listed = ", ".join(names) if self.topology == "positions" else f"sta1 to {names[-1]}"
        wired = f", the hosts {', '.join(self.host_names())}" if hosts and self.wires else ""
        return f'there is no station "{name}"; the stations are {listed}{wired}'

    def _check_times(self) -> None:
        if self.rto_min is not None and self.rto_max is not None and self.rto_min > self.rto_max:
            raise KeyProblem(("rto_min",), f"{self.rto_min:g} s is above rto_max = {self.rto_max:g} s; lower it")
        for index, flow in enumerate(self.flows):
            if flow.stop is None:
                continue
            if flow.stop > self.traffic_seconds():
                text = f"{flow.stop:g} s is after the end of the traffic at {self.traffic_seconds():g} s; remove it"
                raise KeyProblem(("flows", index, "stop"), text)
            if self.seconds_of(flow) < self.warmup_of(flow) + MIN_DURATION_S:
                text = f"{flow.stop:g} s leaves nothing to measure after start = {flow.start:g} s and "
                text += f"warmup = {self.warmup_of(flow):g} s"
                raise KeyProblem(("flows", index, "stop"), f"{text}; give a later time")

    def _check_sizes(self) -> None:
        """No packet of the scenario may be fragmented, and no segment be smaller than `mss`."""
        options = self.routing.headers_bytes if self.routing.protocol == "dsr" else 0
        headers = TCP_HEADERS + IPV6_MORE * any(flow.has_tcp and self.ip_of(flow) == 6 for flow in self.flows)
        if self.mss is not None and self.mss + headers + options > self.mtu:
            more = f"{options} bytes of DSR's options and " if options else ""
            text = f"{self.mss} bytes go with {more}{headers} bytes of headers, more than mtu = {self.mtu}; "
            raise KeyProblem(("mss",), text + f"lower it to {self.mtu - options - headers}, or raise mtu")
        for index, flow in enumerate(self.flows):
            key, size = flow.largest_packet or ("", 0)
            if size > self.mtu:
                raise KeyProblem(("flows", index, key), f"{size} bytes are above mtu = {self.mtu}; lower them, or raise mtu")
            key, size = flow.smallest_packet or ("", 0)
            if key and self.ip_of(flow) == 6 and size < (least := flow.kind.min_packet_bytes + IPV6_MORE):
                text = f"{size} bytes are too few for a packet of IPv6, whose header is {IPV6_MORE} bytes longer; "
                raise KeyProblem(("flows", index, key), f"{text}give {least} or more")
        if self.mtu < IPV6_MTU and (self.ipv6 or self.routing.needs_ipv6):
            who = "ipv6 = true" if self.ipv6 else f'routing "{self.routing.protocol}"'
            text = f"{who} does not work with {self.mtu} bytes: IPv6 needs an MTU of {IPV6_MTU} (RFC 8200, 5); raise it"
            raise KeyProblem(("mtu",), text)
        if self.mtu > 1500 and self.routing.protocol == "batman-adv":
            raise KeyProblem(("mtu",), f"{self.mtu} bytes are too many for batman-adv, whose device has at most 1500; lower it")
        layered = next((tcp.spelled for tcp in self.tcps() if tcp.layers), None)
        if layered is not None and (self.mtu if self.mss is None else self.mss + TCP_HEADERS) > MAX_COPY_BYTES:
            text = f"{self.mtu} bytes are too many for {layered}: a layer sends copies of at most {MAX_COPY_BYTES} bytes; "
            raise KeyProblem(("mtu",), text + f"add mss = {MAX_COPY_BYTES - TCP_HEADERS}")


def _scaled(seconds: float | None, per_second: int) -> int | None:
    return None if seconds is None else round(seconds * per_second)


def _blame(topology: str, problem: str, given: set[str]) -> str:
    """The key that causes a layout's error: of those that the layout has, one that the scenario gives."""
    if topology in ("positions", "random"):
        return "positions"
    if " m, outside " in problem:
        return "spacing"
    counts = [key for key in ("rows", "hops", "nodes") if key in LAYOUT_KEYS[topology]]
    return next((key for key in counts if key in given), counts[0])
