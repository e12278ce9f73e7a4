"""The key `routing` of a scenario: a protocol's name, or a table with its options (formats/scenario.md, routing.md).

A class per protocol, found by its `protocol`. Times are in seconds. What the options of our own daemons mean is said in
formats/routing.md and in the README of each; the defaults here are theirs, which a test compares. Beside them:
`events` (keep the daemons' event logs) and `settle` (how long the traffic waits for routes) are the testbed's own.
How a protocol is started is testbed/stages/routing's part.
"""

import ipaddress
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_serializer, model_validator

from testbed.scenarios.models import STRICT, as_tuple
from testbed.scenarios.quantities import Seconds

LONGEST_S = 86_400.0
SETTLE_AT_MOST_S, MOVING_SETTLE_AT_MOST_S = 600.0, 60.0
Interval = Annotated[Seconds, Field(gt=0, le=LONGEST_S)]
Time = Annotated[Seconds, Field(ge=0, le=LONGEST_S)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0, le=65_535)]
Positive = Annotated[int, Field(ge=1, le=65_535)]


def _network(text: str) -> str:
    try:
        return str(ipaddress.IPv4Network(text))
    except ValueError as problem:
        raise ValueError(f'"{text}" is no network ({problem}); write for example "192.168.1.0/30"') from None


Network = Annotated[str, AfterValidator(_network)]
Networks = Annotated[tuple[Network, ...], BeforeValidator(as_tuple)]


class Protocol(BaseModel):
    """What all have. `settle_s`: the default of `settle`, as seconds and seconds for each hop that the stations allow."""

    model_config = STRICT
    OURS: ClassVar[frozenset[str]] = frozenset({"protocol", "events", "settle"})
    TO_WIRES: ClassVar[bool] = True  # whether stations may reach a wired host over the air
    HEADERS_BYTES: ClassVar[int] = 0  # the most that the protocol adds to the headers of a data packet on the air
    settle_s: ClassVar[tuple[float, float] | None] = None
    protocol: str

    def options(self) -> dict[str, Any]:
        """The protocol's own options, as its daemon takes them."""
        return {key: value for key, value in self.model_dump(mode="json").items() if key not in self.OURS}

    def for_stations(self, stations: int, still: bool) -> Self:
        """With `settle` filled in, which depends on how long a path may be. Where stations move a path is not waited for long."""
        if self.settle_s is None or getattr(self, "settle", None) is not None:
            return self
        once, per_hop = self.settle_s
        longest = SETTLE_AT_MOST_S if still else MOVING_SETTLE_AT_MOST_S
        return self.model_copy(update={"settle": min(longest, once + per_hop * (stations - 1))})


class Plain(Protocol):
    """No daemon and no options: written as the bare name."""

    @model_serializer(mode="plain")
    def _name(self) -> str:
        return self.protocol


class Static(Plain):
    """Shortest paths of the positions at the start, never changed."""

    protocol: Literal["static"] = "static"


class NoRouting(Plain):
    """Neighbours only."""

    protocol: Literal["none"] = "none"


# --- our own daemons (routing/) ---------------------------------------------------------------------------------------


class Aodv(Protocol):
    """RFC 3561; constants of its section 10."""

    HEADERS_BYTES = 12  # RFC 2004's, of the half tunnel to a gateway
    protocol: Literal["aodv"]
    link: Literal["feedback", "hello"] = "feedback"
    style: Literal["rfc", "uu"] = "rfc"
    active_route_timeout: Interval | None = None
    my_route_timeout: Interval | None = None
    hello_interval: Interval = 1.0
    allowed_hello_loss: Positive = 2
    node_traversal_time: Interval = 0.04
    net_diameter: Annotated[int, Field(ge=1, le=255)] = 35
    rreq_retries: Count = 2
    rreq_ratelimit: Positive = 10
    rerr_ratelimit: Positive = 10
    ttl_start: Annotated[int, Field(ge=1, le=255)] = 1
    ttl_increment: Annotated[int, Field(ge=1, le=255)] = 2
    ttl_threshold: Annotated[int, Field(ge=1, le=255)] = 7
    timeout_buffer: Count = 2
    local_add_ttl: Annotated[int, Field(ge=0, le=255)] = 2
    next_hop_wait: Interval | None = None
    expanding_ring: bool = True
    gratuitous: bool = True
    destination_only: bool = False
    local_repair: bool = True
    unidirectional: bool = False
    hello_while_active: bool = True
    hello_interval_extension: bool = False
    requeue: bool = True
    reboot_wait: bool = True
    held_packets: Count = 64
    held_seconds: Interval = 30.0
    gateway: bool = True
    broadcast: Literal["limited", "subnet"] = "limited"
    events: bool = True

    @model_validator(mode="after")
    def _derived(self) -> Self:
        """RFC 3561, section 10: what follows from other constants where it is not given."""
        if self.active_route_timeout is None:
            _set(self, "active_route_timeout", 10.0 if self.link == "feedback" else 3.0)
        if self.my_route_timeout is None:
            _set(self, "my_route_timeout", 2 * self.active_route_timeout)
        if self.next_hop_wait is None:
            _set(self, "next_hop_wait", round(self.node_traversal_time + 0.01, 9))
        return self


class Dsdv(Protocol):
    """ns-2's timers. A route travels one hop a triggered update, or a period where that is lost."""

    TO_WIRES = False
    settle_s = (30.0, 15.0)
    protocol: Literal["dsdv"]
    period: Interval = 15.0
    jitter: Share = 0.25
    trigger_interval: Time = 1.0
    broadcast_jitter: Time = 0.01
    settling: Time = 6.0
    settling_weight: Share = 0.875
    missed_periods: Positive = 3
    full_dump_share: Share = 0.333
    link: Literal["feedback", "hello"] = "feedback"
    held_per_destination: Count = 5
    held_packets: Count = 64
    held_seconds: Interval = 30.0
    bidirectional_check: bool = False
    port: Annotated[int, Field(ge=1, le=65_535)] = 269
    events: bool = True
    settle: Time | None = None


class Olsr(Protocol):
    """RFC 3626; constants of its section 18."""

    settle_s = (30.0, 5.0)
    protocol: Literal["olsr"]
    hello_interval: Interval = 2.0
    tc_interval: Interval = 5.0
    mid_interval: Interval = 5.0
    hna_interval: Interval = 5.0
    neighbour_hold: Interval = 6.0
    topology_hold: Interval = 15.0
    mid_hold: Interval = 15.0
    hna_hold: Interval = 15.0
    duplicate_hold: Interval = 30.0
    jitter: Share = 0.25
    willingness: Annotated[int, Field(ge=0, le=7)] = 3
    tc_redundancy: Annotated[int, Field(ge=0, le=2)] = 0
    mpr_coverage: Positive = 1
    hysteresis: bool = False
    link: Literal["feedback", "hello"] = "feedback"
    hna: Networks = ()
    held_packets: Count = 0
    events: bool = True
    settle: Time | None = None


class Dsr(Protocol):
    """RFC 4728; constants of its section 9."""

    # fixed header 4, source route 4 + 4 an address, acknowledgement request 4 (RFC 4728, 6)
    HEADERS_BYTES = 4 + 4 + 4 * 15 + 4
    protocol: Literal["dsr"]
    link: Literal["feedback", "ack"] = "feedback"
    cache_replies: bool = True
    nonpropagating: bool = True
    salvage: bool = True
    snoop: bool = True
    shortening: bool = True
    broadcast_jitter: Time = 0.01
    cache_timeout: Interval = 300.0
    cache_paths: Positive = 64
    send_buffer: Count = 64
    send_buffer_timeout: Interval = 30.0
    nonprop_timeout: Interval = 0.03
    request_period: Interval = 0.5
    max_request_period: Interval = 10.0
    max_request_rexmt: Count = 16
    discovery_hop_limit: Annotated[int, Field(ge=1, le=255)] = 15
    max_hops: Annotated[int, Field(ge=1, le=15)] = 15
    grat_reply_holdoff: Time = 1.0
    max_salvage: Annotated[int, Field(ge=0, le=15)] = 15
    maint_holdoff: Interval = 0.25
    max_maint_rexmt: Count = 2
    passive_ack_timeout: Interval = 0.1
    events: bool = False  # every packet passes the daemon: its log is as large as a capture


# --- daemons of others ------------------------------------------------------------------------------------------------


class Babeld(Protocol):
    """RFC 8966 by babeld; its own defaults for a wireless interface."""

    settle_s = (40.0, 4.0)
    protocol: Literal["babeld"]
    hello_interval: Annotated[Seconds, Field(ge=0.05, le=655)] = 4.0
    update_interval: Annotated[Seconds, Field(ge=0.05, le=655)] = 16.0
    settle: Time | None = None


class Batmand(Protocol):
    """B.A.T.M.A.N. III by batmand (layer 3)."""

    settle_s = (30.0, 5.0)
    protocol: Literal["batmand"]
    originator_interval: Annotated[Seconds, Field(ge=0.1, le=60)] = 1.0
    settle: Time | None = None


class Olsrd(Protocol):
    """RFC 3626 by olsrd, without its link-quality extension."""

    settle_s = (60.0, 5.0)
    protocol: Literal["olsrd"]
    hello_interval: Interval = 2.0
    tc_interval: Interval = 5.0
    neighbour_hold: Interval = 6.0
    topology_hold: Interval = 15.0
    # olsrd ignores an edge without its reverse: every node must announce all its neighbours
    tc_redundancy: Annotated[int, Field(ge=2, le=2)] = 2
    mpr_coverage: Positive = 1
    settle: Time | None = None


class AodvUu(Protocol):
    """RFC 3561 by AODV-UU, whose link feedback needs drivers of before mac80211."""

    HEADERS_BYTES = 12
    protocol: Literal["aodv-uu"]
    expanding_ring: bool = True
    local_repair: bool = False
    gratuitous: bool = False


class BatmanAdv(Protocol):
    """B.A.T.M.A.N. IV or V in the kernel (layer 2)."""

    HEADERS_BYTES = 24  # its unicast header and a second Ethernet header
    settle_s = (30.0, 2.0)
    protocol: Literal["batman-adv"]
    algorithm: Literal["BATMAN_IV", "BATMAN_V"] = "BATMAN_IV"
    originator_interval: Annotated[Seconds, Field(ge=0.04, le=60)] = 1.0
    settle: Time | None = None


OUR_DAEMONS = ("aodv", "dsdv", "olsr", "dsr")
_Any = Static | NoRouting | Aodv | Dsdv | Olsr | Dsr | Babeld | Batmand | Olsrd | AodvUu | BatmanAdv
PROTOCOLS: dict[str, type[Protocol]] = {get_args(model.model_fields["protocol"].annotation)[0]: model for model in get_args(_Any)}


def _as_table(value: object) -> object:
    return {"protocol": value} if isinstance(value, str) else value


Routing = Annotated[Annotated[_Any, Field(discriminator="protocol")], BeforeValidator(_as_table)]

# keys whose unit is the second, for the wording of errors
SECONDS = frozenset(
    key
    for model in PROTOCOLS.values()
    for key, field in model.model_fields.items()
    if "float" in str(field.annotation) and key not in ("jitter", "settling_weight", "full_dump_share")
)


def _set(model: BaseModel, key: str, value: object) -> None:
    """While it is validated, a frozen model is completed."""
    object.__setattr__(model, key, value)
