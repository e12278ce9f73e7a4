"""The key `routing` of a scenario: a protocol's name, or a table with its options (formats/scenario.md, routing.md).

A class per protocol, selected by `protocol`. Times are in seconds. The options of our own daemons, with limits and
defaults, are those that the daemons print (formats/schema); formats/routing.md and the README of each explain them. Beside
them `events` (keep the daemons' event logs) and `settle` (how long the traffic waits for routes) are the testbed's own.
testbed/stages/routing starts the protocols.
"""

import ipaddress
import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self, Union

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    SerializeAsAny,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
    model_serializer,
    model_validator,
)

from keys.errors import did_you_mean
from keys.models import KeyProblem, Strict, as_tuple
from keys.quantities import Seconds
from scenarios import owned
from scenarios.daemon_description import Description, shipped

MAX_INTERVAL_S = 86_400.0
MINIMAL_HEADER_BYTES = 12  # RFC 2004, of a half tunnel to a gateway
MAX_SETTLE_S, MAX_MOVING_SETTLE_S = 600.0, 60.0
Time = Annotated[Seconds, Field(ge=0, le=MAX_INTERVAL_S)]


def _network(text: str) -> str:
    try:
        return str(ipaddress.IPv4Network(text))
    except ValueError as problem:
        raise ValueError(f'"{text}" is no network ({problem}); write for example "192.168.1.0/30"') from None


def _address(text: str) -> str:
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise ValueError(f'"{text}" is no IPv4 address; write for example "10.1.0.1"') from None


Network = Annotated[str, AfterValidator(_network)]
Addresses = Annotated[tuple[Annotated[str, AfterValidator(_address)], ...], BeforeValidator(as_tuple)]
Networks = Annotated[tuple[Network, ...], BeforeValidator(as_tuple)]


class Protocol(Strict):
    """Common part of all protocols. `settle_s`: the default of `settle`, as seconds and seconds for each hop that the stations
    allow."""

    OURS: ClassVar[frozenset[str]] = frozenset({"protocol", "events", "settle"})
    TO_WIRES: ClassVar[bool] = True  # whether stations may reach a wired host over the air
    NEAREST_GATEWAY: ClassVar[bool] = False  # whether a station sends to every wired host over the nearest gateway
    ROUTES_IPV4: ClassVar[bool] = True
    ROUTES_IPV6: ClassVar[bool] = False  # whether it has routes for a scenario's `ipv6`
    KNOWS_HOPS: ClassVar[bool] = False  # whether the lengths of paths are known without one of our own daemons
    DESCRIPTION: ClassVar[Description | None] = None  # of a daemon that a description names
    settle_s: ClassVar[tuple[float, float] | None] = None
    protocol: str

    @property
    def headers_bytes(self) -> int:
        """The maximum that the protocol adds to the headers of a data packet on the air, bytes."""
        return 0

    @property
    def udp_port(self) -> int | None:
        """The UDP port of its control packets, which are captured whole."""
        return udp_ports().get(self.protocol)

    @property
    def needs_ipv6(self) -> bool:
        """Whether it uses IPv6 on the radio, regardless of the scenario's `ipv6`."""
        return False

    @property
    def has_gateways(self) -> bool:
        """Whether a station with wires is a gateway for the others, as far as the option `gateway` decides it."""
        return bool(getattr(self, "gateway", True))

    def options(self) -> dict[str, Any]:
        """The protocol's options in its daemon's format."""
        return {key: value for key, value in self.model_dump(mode="json").items() if key not in self.OURS}

    def for_stations(self, stations: int, still: bool) -> Self:
        """A copy with `settle` filled in, by the maximum length of a path; it is shorter if stations move."""
        if self.settle_s is None or getattr(self, "settle", None) is not None:
            return self
        once, per_hop = self.settle_s
        longest = MAX_SETTLE_S if still else MAX_MOVING_SETTLE_S
        return self.model_copy(update={"settle": min(longest, once + per_hop * (stations - 1))})


class Plain(Protocol):
    """No daemon and no options: written as the bare name."""

    @model_serializer(mode="plain")
    def _name(self) -> str:
        return self.protocol


class Static(Plain):
    """Shortest paths of the positions at the start, never changed."""

    protocol: Literal["static"] = "static"
    ROUTES_IPV6: ClassVar[bool] = True
    KNOWS_HOPS: ClassVar[bool] = True


class NoRouting(Plain):
    """Neighbours only."""

    protocol: Literal["none"] = "none"
    ROUTES_IPV6: ClassVar[bool] = True
    KNOWS_HOPS: ClassVar[bool] = True


# --- our own daemons (routing/) ---------------------------------------------------------------------------------------


class OwnDaemon(Protocol):
    """One of our daemons; its schema may derive omitted options from others."""

    @model_validator(mode="after")
    def _derived(self) -> Self:
        for key, owner in owned.schema(self.protocol)["properties"].items():
            if "derived" in owner and getattr(self, key) is None:
                value = owned.derived(owner["derived"], vars(self))
                # while it is validated, a frozen model is completed
                object.__setattr__(self, key, float(value) if "number" in owner["type"] else value)
        return self


class AodvRules(OwnDaemon):
    """AODV (RFC 3561) by manet-aodv: routes on demand. The constants are those of section 10. Options that are not given are
    AODV-UU's with `style = "uu"`, where they differ."""

    @property
    def headers_bytes(self) -> int:
        """The header of a half tunnel to a gateway, bytes; default routes have none."""
        options: Any = self
        return MINIMAL_HEADER_BYTES if options.internet == "tunnel" else 0


class DsdvRules(OwnDaemon):
    """DSDV (Perkins and Bhagwat 1994) by manet-dsdv: distance vectors, with ns-2's timers. A route travels one hop with each
    triggered update, or one hop a period if that is lost."""

    NEAREST_GATEWAY = True
    settle_s = (30.0, 16.0)


class AdvRules(OwnDaemon):
    """ADV (Boppana and Konduru 2001) by manet-adv: distance vectors for active receivers only, updated as traffic demands."""

    TO_WIRES = False


class OlsrRules(OwnDaemon):
    """OLSR (RFC 3626) by manet-olsr: link states. The constants are those of section 18."""

    settle_s = (30.0, 5.0)

    def options(self) -> dict[str, Any]:
        """Networks as pairs of address and prefix length."""
        options = super().options()
        networks = [ipaddress.IPv4Network(text) for text in options["hna"]]
        return {**options, "hna": [[str(network.network_address), network.prefixlen] for network in networks]}

    @model_validator(mode="after")
    def _outlives(self) -> Self:
        """Information must be announced again before it expires; jitter is at most half of an interval."""
        options: Any = self
        jitter_s = options.jitter * options.hello_interval
        for message, held in (("hello", "neighbour"), ("tc", "topology"), ("mid", "mid"), ("hna", "hna")):
            interval_s, hold_s = getattr(self, f"{message}_interval"), getattr(self, f"{held}_hold")
            if hold_s <= interval_s:
                text = f"{hold_s:g} s is not longer than {message}_interval = {interval_s:g} s; RFC 3626 has three times as long"
                raise KeyProblem((f"{held}_hold",), text)
            if interval_s < 2 * jitter_s:
                text = f"{interval_s:g} s is less than twice the jitter, jitter x hello_interval = {jitter_s:g} s"
                raise KeyProblem((f"{message}_interval",), text)
        return self


class DsrRules(OwnDaemon):
    """DSR (RFC 4728) by manet-dsr: source routes on demand. The constants are those of section 9."""

    @property
    def headers_bytes(self) -> int:
        """Fixed header 4, source route 4 and 4 an address, acknowledgement request 4 (RFC 4728, 6)."""
        options: Any = self
        return int(4 + 4 + 4 * options.max_hops + 4)


class ToraRules(OwnDaemon):
    """TORA (draft-ietf-manet-tora-spec-04) by manet-tora: directed acyclic graphs on demand, over beacons and acknowledgements as
    IMEP's."""

    TO_WIRES = False


class Daemon(NamedTuple):
    """One of our own daemons: its rules in addition to its options, and whether its event logs are kept by default."""

    rules: type[OwnDaemon]
    events: bool = True

    def model(self, protocol: str) -> type[OwnDaemon]:
        """The class of its table: the options of formats/schema/PROTOCOL.json, then the testbed's own."""
        written = {"mid": Addresses, "hna": Networks}  # with another form in a scenario than in the daemon's options
        fields: owned.Fields = {"protocol": (Literal[protocol], ...)}
        fields |= owned.fields(owned.schema(protocol)["properties"], written)
        fields["events"] = (bool, self.events)
        if self.rules.settle_s is not None:
            fields["settle"] = (Time | None, None)
        make: Any = create_model
        model: type[OwnDaemon] = make(protocol, __base__=self.rules, __module__=__name__, __doc__=self.rules.__doc__, **fields)
        return model


# The registry of our own daemons, by which they are started, checked and captured.
DAEMONS: dict[str, Daemon] = {
    "aodv": Daemon(AodvRules),
    "dsdv": Daemon(DsdvRules),
    "olsr": Daemon(OlsrRules),
    "adv": Daemon(AdvRules),
    "tora": Daemon(ToraRules),
    "dsr": Daemon(DsrRules, events=False),  # every packet passes the daemon: its log is as large as a capture
}
OWN_DAEMONS = tuple(DAEMONS)
MIN_MTU: int = owned.schema(OWN_DAEMONS[0])["min_mtu_bytes"]  # of a radio; the host around each protocol checks it
TO_WIRES = tuple(protocol for protocol, daemon in DAEMONS.items() if daemon.rules.TO_WIRES)


def udp_ports() -> dict[str, int]:
    """The UDP ports of our own daemons that send control packets by UDP, by protocol."""
    schemas = {protocol: owned.schema(protocol) for protocol in OWN_DAEMONS}
    return {protocol: schema["udp_port"] for protocol, schema in schemas.items() if "udp_port" in schema}


# --- third-party daemons ----------------------------------------------------------------------------------------------


class Described(Protocol):
    """A daemon that a description names (scenarios/daemon_description.py): one of routing/third-party, or the user's own.

    The user's own is in the scenario itself, as `description`, so that scenario.json says everything and needs no other file.
    """

    OURS: ClassVar[frozenset[str]] = frozenset({"protocol", "events", "settle", "description"})

    @property
    def headers_bytes(self) -> int:
        """`header_bytes` of the description."""
        return self.description_of.header_bytes

    @property
    def udp_port(self) -> int | None:
        """`udp_port` of the description."""
        return self.description_of.udp_port

    @property
    def needs_ipv6(self) -> bool:
        """Whether the description wants link-local addresses on the radio."""
        return self.description_of.radio.link_local

    @property
    def has_gateways(self) -> bool:
        """An option `gateway` of a described daemon has its own meaning; `gateways` of the description decides."""
        return True

    @property
    def description_of(self) -> Description:
        """The description, which each of the classes made by `described` has."""
        assert self.DESCRIPTION is not None
        return self.DESCRIPTION

    def options(self) -> dict[str, Any]:
        """The options as templates get them."""
        return {key: self.description_of.options[key].text(value) for key, value in super().options().items()}


def described(name: str, description: Description, tables: dict[str, Any] | None = None) -> type[Described]:
    """The class of a daemon's table: its options, then the testbed's own. `tables`: the description, if it is the user's."""
    fields: owned.Fields = {"protocol": (Literal[name], ...)}
    if tables is not None:
        fields["description"] = (dict[str, Any], tables)
    fields |= {key: option.field() for key, option in description.options.items()}
    if description.settle is not None:
        fields["settle"] = (Time | None, None)
    make: Any = create_model
    model: type[Described] = make(name, __base__=Described, __module__=__name__, __doc__=description.about, **fields)
    model.DESCRIPTION, model.TO_WIRES = description, description.gateways
    model.ROUTES_IPV4, model.ROUTES_IPV6 = description.ipv6 != "only", bool(description.ipv6)
    if description.settle is not None:
        model.settle_s = (description.settle.once, description.settle.per_hop)
    return model


THIRD_PARTY = Path(__file__).resolve().parents[1] / "routing" / "third-party"
SHIPPED = {name: described(name, description) for name, description in shipped(THIRD_PARTY).items()}


class BatmanAdv(Protocol):
    """B.A.T.M.A.N. IV or V in the kernel (layer 2)."""

    ROUTES_IPV6 = True  # of layer 2, so it carries packets of any protocol
    settle_s = (30.0, 2.0)
    protocol: Literal["batman-adv"]
    algorithm: Literal["BATMAN_IV", "BATMAN_V"] = "BATMAN_IV"
    originator_interval: Annotated[Seconds, Field(ge=0.04, le=60)] = 1.0
    fragmentation: bool = False
    settle: Time | None = None

    @property
    def headers_bytes(self) -> int:
        """Its unicast header and a second Ethernet header."""
        return 10 + 14


# Names for a table of options. Those with "ns2": the constants and rules of ns-2.35, which the papers ran (docs/routing.md has
# what each changes). ADV's: seconds that TCP packets and all others wait for a route (Boppana and Konduru).
PRESETS: dict[str, dict[str, Any]] = {
    "aodv-ns2": {
        "protocol": "aodv",
        "node_traversal_time": 0.01,
        "net_diameter": 12,
        "path_discovery_time": 6,  # BCAST_ID_SAVE and REV_ROUTE_LIFE
        "rreq_retries": 3,
        "hold_down": 10,
        "local_repair": False,
        "requeue": False,
    },
    "dsr-ns2": {"protocol": "dsr", "learn_from_data": False, "request_period": 2},
    "adv-30-30": {"protocol": "adv", "buffer_tcp": 30, "buffer_udp": 30},
    "adv-30-1": {"protocol": "adv", "buffer_tcp": 30, "buffer_udp": 1},
}
PROTOCOLS: dict[str, type[Protocol]] = {
    "static": Static,
    "none": NoRouting,
    **{protocol: daemon.model(protocol) for protocol, daemon in DAEMONS.items()},
    **SHIPPED,
    "batman-adv": BatmanAdv,
}


def routing_of_ipv6() -> list[str]:
    """The protocols that route IPv6, without those of the user's own."""
    return [name for name, protocol in PROTOCOLS.items() if protocol.ROUTES_IPV6]


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")  # of a user's description: it is part of the names of logs


def _of_description(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    """The table of a user's daemon by the class of its description; any other by those of `PROTOCOLS`."""
    table = PRESETS.get(value, {"protocol": value}) if isinstance(value, str) else value
    if not isinstance(table, dict) or "description" not in table:
        return handler(table)
    tables, name = table["description"], table.get("protocol")
    if not isinstance(name, str) or NAME.fullmatch(name) is None or name in PROTOCOLS or name in PRESETS:
        text = f"{name!r} is no name for a daemon of your own; use letters, digits, '-' and '_', and none of the testbed's names"
        raise KeyProblem(("protocol",), text)
    model = _of_user(name, _text_of(tables))
    unknown = next((key for key in table if key not in model.model_fields), None)
    if unknown is not None:
        known = [key for key in model.model_fields if key != "description"]
        remedy = did_you_mean(str(unknown), known) or f"the keys here are {', '.join(known)}"
        raise KeyProblem((str(unknown),), f"unknown key; {remedy}")
    return model.model_validate(table)


def _text_of(tables: object) -> str:
    try:
        return json.dumps(tables)
    except TypeError:  # a date or time of TOML
        raise KeyProblem(("description",), "has a date or time; write text in quotes") from None


@cache
def _of_user(name: str, text: str) -> type[Described]:
    """One class for equal descriptions, so that equal scenarios are equal."""
    tables = json.loads(text)
    return described(name, _Own.model_validate({"description": tables}).description, tables)


class _Own(BaseModel):
    """A description within a scenario, whose errors name its key."""

    description: Description


if TYPE_CHECKING:
    Routing = Protocol
else:
    _Any = Annotated[Union[tuple(PROTOCOLS.values())], Field(discriminator="protocol")]  # noqa: UP007
    Routing = Annotated[SerializeAsAny[_Any], WrapValidator(_of_description)]
