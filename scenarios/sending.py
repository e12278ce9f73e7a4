"""The traffic of a scenario: its routing, the settings of TCP, and the flows, which must fit them (formats/scenario.md).

A TCP setting left out (None) is the profile's own (kernel-tcp/profiles/<profile>.toml), not a default of this file.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidatorFunctionWrapHandler, WrapValidator

from keys.models import KeyProblem, as_tuple
from keys.quantities import Bytes, Length, Seconds, Whole
from scenarios.flows import FIRST_PORT, Flow, KindOfDefaultFlows
from scenarios.movement import MovementKeys, seconds_of
from scenarios.propagation import MatrixEntry
from scenarios.radios import MAX_MTU, LinkErrors
from scenarios.routing import OWN_DAEMONS, TO_WIRES, Routing, Static, routing_of_ipv6
from scenarios.sysctls import Sysctls
from scenarios.tcp import Tcp, TcpText
from traffic import DEFAULT_KIND

IPV6_MTU = 1280  # the minimum MTU for IPv6
TCP_HEADERS = 40  # IPv4 and TCP without options, which the segment size does not count (RFC 9293, 3.7.1)
IPV6_MORE = 20  # bytes by which a header of IPv6 is longer than one of IPv4 (RFC 8200, 3)
MIN_MSS = 88  # TCP_MIN_MSS, include/net/tcp.h
MAX_COPY_BYTES = 1500  # COPY_BYTES of kernel-tcp/layers/layers.h: an IP packet that a layer sends again
MIN_DURATION_S, MAX_DURATION_S = 0.1, 86_400.0  # of a measurement
WHOLE_MOVEMENT = "movement"  # as `duration`
MAX_FLOWS = 10_000  # each has a port of its own, up to 65535
# SACK of a TCP that does not set it: tcp_sack of profiles/period.toml; Linux's own default (ip-sysctl.rst).
SACK_OF_PROFILE = {"period": False, "modern": True}


def _or_movement(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    """A time; WHOLE_MOVEMENT as NaN, for which `_complete_duration` puts the time."""
    return math.nan if value == WHOLE_MOVEMENT else handler(value)


class TrafficKeys(MovementKeys):
    """The keys of routing, TCP and flows; `flows` are complete after validation."""

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

    def tcp_flows_at(self, station: str) -> list[tuple[int, Flow]]:
        """The TCP flows that end at a station or host, with their numbers from 0."""
        return self._tcp_flows_by_end.get(station, [])

    @cached_property
    def _tcp_flows_by_end(self) -> dict[str, list[tuple[int, Flow]]]:
        """The TCP flows of each end: kept, since the configuration of every station asks for its own."""
        by_end: dict[str, list[tuple[int, Flow]]] = {}
        for index, flow in enumerate(self.flows):
            for end in dict.fromkeys((flow.source, flow.target)) if flow.has_tcp else ():
                by_end.setdefault(end, []).append((index, flow))
        return by_end

    def tcps_at(self, station: str) -> list[Tcp]:
        """The TCPs of the flows that end at a station or host."""
        return list(dict.fromkeys(self.tcp_of(flow) for _, flow in self.tcp_flows_at(station)))

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
        values = [tcp.sack for tcp in self.tcps_at(station)] or [self.tcp.sack]
        return any(self._wants_sack(sack) for sack in values) if any(sack is not None for sack in values) else None

    def ecn_of(self, station: str) -> bool | None:
        """Whether a station or host offers explicit congestion notification; None: as the profile says."""
        return any(tcp.ecn for tcp in self.tcps_at(station) or [self.tcp]) or None

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

    # --- checks and completion of the flows -------------------------------------------------------

    def _complete_duration(self) -> dict[str, Any]:
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
            return {"duration": lasts_s, "travel": None}
        if self.travel is not None and "duration" not in self.model_fields_set:
            raise KeyProblem(("travel",), f'is for duration = "{WHOLE_MOVEMENT}"; add that')
        return {"travel": None}

    def _complete_flows(self) -> dict[str, Any]:
        """The default flows, and the version of IP of each; a list without entries says that there are none."""
        if self.hwsim.mode == "managed" and ("flows" not in self.model_fields_set or self.flows):
            text = '"managed" radios join no network by themselves, so that no flow arrives; '
            text += 'add flows = [] and configure them at the prompt, or take "ibss", "mesh" or "ocb"'
            raise KeyProblem(("hwsim", "mode"), text)
        flows = self.flows
        if "flows" not in self.model_fields_set:
            ends = self._ends_of_default_flows()
            flows = tuple(Flow.model_validate({"from": a, "to": b, "traffic": self.traffic}) for a, b in ends)
        return {"flows": tuple(flow if flow.ip or not self.ipv6 else flow.model_copy(update={"ip": 6}) for flow in flows)}

    def _check_station_references(self) -> None:
        stations, hosts = set(self.station_names()), set(self.host_names())
        wired = f", the hosts {', '.join(self.host_names())}" if hosts else ""
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
                        raise KeyProblem((*base, index, key), self.no_such(name, wired if base == ("flows",) else ""))

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

    def _check_sack(self) -> None:
        self._check_options("SACK", lambda tcp: self._wants_sack(tcp.sack))

    def _check_ecn(self) -> None:
        self._check_options("ECN", lambda tcp: tcp.ecn)

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

    def _check_routing(self) -> None:
        """Refuse flows that the protocol can never carry; the run itself searches for paths."""
        gateways = self.gateways()
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

    def _complete_settle(self) -> dict[str, Any]:
        return {"routing": self.routing.for_stations(len(self.station_names()), not self.mobility.moving)}

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
            if key and self.ip_of(flow) == 6 and size < (minimum := flow.kind.min_packet_bytes + IPV6_MORE):
                text = f"{size} bytes are too few for a packet of IPv6, whose header is {IPV6_MORE} bytes longer; "
                raise KeyProblem(("flows", index, key), f"{text}give {minimum} or more")
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
