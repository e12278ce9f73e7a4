"""The wires of a scenario: links from stations, its gateways, to plain hosts (formats/scenario.md)."""

from typing import Annotated, NamedTuple, Self

from pydantic import BeforeValidator, Field, model_validator

from keys.models import KeyProblem, Strict, as_tuple
from keys.quantities import BitsPerSecond, Seconds, Whole
from scenarios import owned
from scenarios.radios import RadioKeys
from topologies.addresses import MAX_WIRES, wire_interfaces
from topologies.layouts import STATION_NAME


class Wire(Strict):
    """A wired link from a station (the gateway) to a plain host, which exists by being named here."""

    station: str
    host: str
    rate: Annotated[BitsPerSecond, owned.number("medium", "wires.rate_bps")] = 100e6
    delay: Annotated[Seconds, owned.number("medium", "wires.delay_us", per=1e6)] = 0.002
    queue: Annotated[Whole, owned.number("medium", "wires.queue_packets")] = owned.default("medium", "wires.queue_packets")
    nat: bool = False  # whether the host leads to the real network, by NAT; needs --allow-internet

    @model_validator(mode="after")
    def _named(self) -> Self:
        if STATION_NAME.fullmatch(self.host) is None:
            text = f'"{self.host}" is no host name; use at most 10 of a-z, 0-9 and "-", beginning with a letter'
            raise KeyProblem(("host",), text)
        return self


class WireEnds(NamedTuple):
    """The interfaces at the two ends of a wire."""

    station: str
    interface: str
    host: str
    host_interface: str


class WireKeys(RadioKeys):
    """The keys of the wires."""

    wires: Annotated[tuple[Wire, ...], BeforeValidator(as_tuple)] = Field((), max_length=MAX_WIRES)

    def host_names(self) -> list[str]:
        """The plain wired hosts, in the order of their first wires."""
        return list(dict.fromkeys(wire.host for wire in self.wires))

    def gateways(self) -> dict[str, str]:
        """The gateway of each wired host, of several the first."""
        return {wire.host: wire.station for wire in reversed(self.wires)}

    def wire_ends(self) -> list[WireEnds]:
        """The ends of the wires, in the order of their numbers."""
        interfaces = (wire_interfaces([getattr(wire, end) for wire in self.wires]) for end in ("station", "host"))
        ends = zip(self.wires, *interfaces, strict=True)
        return [WireEnds(wire.station, interface, wire.host, host_interface) for wire, interface, host_interface in ends]

    @property
    def reaches_internet(self) -> bool:
        """Whether hosts lead to the real network."""
        return any(wire.nat for wire in self.wires)

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
