"""A scenario: the complete description of one run, as a frozen value (formats/scenario.md).

The keys are those of `/formats/scenario.md`; they are the same in TOML files, after `--set` and in `scenario.json`.
`scenarios.definition` reads files, `scenarios.refusal` words errors. This module uses neither the kernel nor the file system.

Each part of the keys has a module with its checks: layout, radios, wires, movement, sending. A part has those before it as its
base.
"""

import json
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from keys.models import KeyProblem, as_tuple
from keys.quantities import Seconds, Whole
from scenarios.containers import check_containers
from scenarios.energy import Energy, as_energy
from scenarios.events import Event, check_events
from scenarios.gps import Gps
from scenarios.layout import UNPLACED
from scenarios.routing import OWN_DAEMONS
from scenarios.sending import TrafficKeys

MAX_TRAFFIC_AT_S = 3600
MODEL_TRAFFIC_AT_S = 10.0  # default time from the medium's start to that of traffic and movement
MODEL_STATIONS = 100  # each station beyond these delays that default by MODEL_STATION_S
MODEL_STATION_S = 0.05


class Scenario(TrafficKeys):
    """One scenario; `positions()` and `flows` are complete after validation."""

    traffic_at: Seconds | None = Field(None, ge=0, le=MAX_TRAFFIC_AT_S)
    events: Annotated[tuple[Event, ...], BeforeValidator(as_tuple)] = Field((), max_length=10_000)
    clock: Literal["real", "virtual"] = "real"
    seeds: Whole = Field(1, ge=1, le=10_000)

    monitor: bool = False
    energy: Annotated[Energy | None, BeforeValidator(as_energy)] = None
    gps: Gps | None = None
    capture_program: Literal["manet-capture", "tcpdump"] = "manet-capture"
    snaplen: int = Field(128, ge=128, le=65_535)  # bytes: headers with all options and the CBR stamp need 128
    input_log: bool = True
    log_limit: int = Field(4_000_000_000, ge=100_000)  # bytes, of air.csv, air.pcapng and inputs.jsonl each

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """Complete the keys, each completion by those before it, then check the complete scenario; the first error counts."""
        for complete in (
            self._complete_mobility,
            self._complete_duration,
            self._complete_layout,
            self._complete_flows,
            self._complete_settle,
            self._complete_traffic_at,
        ):
            for key, value in complete().items():
                object.__setattr__(self, key, value)  # while it is validated, a frozen model is completed
        for check in (
            self._check_net,
            self._check_overrides,
            self._check_channel,
            self._check_hwsim,
            self._check_places,
            self._check_gps,
            self._check_radio_names,
            self._check_radios,
            self._check_jammers,
            self._check_wires,
            self._check_internet,
            self._check_station_references,
            self._check_ports,
            self._check_sack,
            self._check_ecn,
            self._check_routing,
            self._check_gateways,
            self._check_hops,
            self._check_error_notices,
            self._check_ipv6,
            self._check_times,
            self._check_sizes,
            self._check_containers,
            self._check_events,
        ):
            check()
        return self

    def to_json(self) -> str:
        """Text of scenario.json: every key and default written out, the same for equal scenarios."""
        return json.dumps(self.model_dump(by_alias=True, mode="json"), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The scenario of a scenario.json that `to_json` wrote; pydantic's ValidationError for any other text."""
        return cls.model_validate(json.loads(text))

    def _check_internet(self) -> None:
        for index, wire in enumerate(self.wires):
            if wire.nat and self.clock == "virtual":
                text = 'the guests of clock = "virtual" have no network; set clock = "real", or leave it out'
                raise KeyProblem(("wires", index, "nat"), text)
            if wire.nat != self.wires[0].nat:
                text = "one gateway would lead to the real network and another not, and stations do not tell them apart; "
                raise KeyProblem(("wires", index, "nat"), text + "set it for every wire, or for none")

    def _complete_traffic_at(self) -> dict[str, Any]:
        if self.traffic_at is not None or not self.mobility.with_traffic:
            return {}
        further = max(0, len(self.station_names()) - MODEL_STATIONS)
        settle_s = getattr(self.routing, "settle", None) or 0.0
        return {"traffic_at": min(MAX_TRAFFIC_AT_S, MODEL_TRAFFIC_AT_S + MODEL_STATION_S * further + settle_s)}

    def _check_containers(self) -> None:
        check_containers(self.containers, self.station_names(), self.host_names(), self.clock)

    def _check_gps(self) -> None:
        if self.gps is not None and self.topology == UNPLACED:
            raise KeyProblem(("gps",), f'tells positions, which topology "{UNPLACED}" has not; remove it')

    def _check_events(self) -> None:
        ends = {frozenset((wire.station, wire.host)) for wire in self.wires}
        routing = self.routing
        without = None if routing.protocol in OWN_DAEMONS or routing.DESCRIPTION is not None else routing.protocol
        jammers = [jammer.name for jammer in self.jammers]
        nodes = (self.station_names(), self.host_names())
        check_events(self.events, *nodes, self.traffic_seconds(), self.area, ends, without, jammers)
