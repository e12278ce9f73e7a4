"""The radios of a scenario: their device, profile and propagation, links and queue, and radios of single stations
(formats/scenario.md)."""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from keys.models import KeyProblem, Strict, as_tuple
from keys.quantities import Bytes, Whole
from scenarios import owned
from scenarios.antennas import Antenna
from scenarios.containers import Container
from scenarios.jammers import MAX_JAMMERS, Jammer
from scenarios.layout import UNPLACED, LayoutKeys
from scenarios.propagation import Fading, Propagation, Wall, as_model
from scenarios.routing import MIN_MTU
from topologies.layouts import MAX_STATIONS, STATION_NAME

INTERFACE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,14}")  # IFNAMSIZ of linux/if.h, without its end
MAX_INTERFACE_NAME = 15  # IFNAMSIZ of linux/if.h, without its end
MAX_MTU: int = owned.schema("medium")["max_mtu_bytes"]  # of a radio
MAX_HWSIM_QUEUE: int = owned.schema("medium")["hwsim_queue_packets"]
MAX_RADIOS = 10_000  # entries of `radios`
MAX_WALLS = 1000  # each is looked at for each pair of stations
Override = bool | int | float | str | list[int | float] | dict[str, bool | int | float | str | dict[str, int | float]]
WITHOUT_PLACES = ("trace", "matrix")  # models that need no positions
OWN_OF_RADIO = ("reception", "aggregation", "rate_control", "access")  # keys of the profile that a scenario sets at its top
OF_A_STATION = ("tx_power_w", "antenna_gain_db", "antenna_height_m")  # keys by which a station differs from the radio
WITH_PATTERN = (*OF_A_STATION, "antenna")  # and its antenna with a pattern, which does not change during a run


def dbm(power_w: float) -> float:
    """The level of a power (W), dBm."""
    return 10 * math.log10(1000 * power_w)


def watts(level_dbm: float) -> float:
    """The power of a level (dBm), W."""
    return 10.0 ** (level_dbm / 10) / 1000


_POWER = owned.node("radio", "tx_power_w")
# what a user changes at a radio, by the names of prompt and scripts: the owner's schema, a power as a level
SETTINGS: dict[str, owned.Node] = {
    "range": owned.node("medium", "propagation.range_m"),
    "txpower": {**_POWER, "unit": "dBm", **{key: round(dbm(_POWER[key]), 6) for key in owned.WORDS if key in _POWER}},
    "gain": owned.node("radio", "antenna_gain_db"),
    "height": owned.node("radio", "antenna_height_m"),
}


class StationRadio(Strict):
    """A radio of a station: the first one, or with `name`, of its interface, a further one."""

    station: str
    name: str | None = None
    tx_power_w: Annotated[float, owned.number("medium", "stations.tx_power_w")] | None = None
    antenna_gain_db: Annotated[float, owned.number("medium", "stations.antenna_gain_db")] | None = None
    antenna_height_m: Annotated[float, owned.number("medium", "stations.antenna_height_m")] | None = None
    antenna: Antenna | None = None
    freq_mhz: Annotated[Whole, owned.number("medium", "stations.freq_mhz")] | None = None

    def for_medium(self) -> dict[str, Any]:
        """The keys of the radio in medium.json."""
        return self.model_dump(exclude={"station", "name"}, exclude_none=True, mode="json")


class Hwsim(Strict):
    """Properties of `stations = "hwsim"` radios: the kind of network that they join, and who selects the rate of a data frame."""

    mode: Annotated[str, owned.choice("medium", "hwsim.mode")] = owned.default("medium", "hwsim.mode")
    rates: Annotated[str, owned.choice("medium", "hwsim.rates")] = owned.default("medium", "hwsim.rates")


class LinkErrors(Strict):
    """Packet error rate of a directed link; "*" is any station."""

    source: str = Field("*", alias="from")
    target: str = Field("*", alias="to")
    error_rate: Annotated[float, owned.number("medium", "links.error_rate")]
    unit: Annotated[str, owned.choice("medium", "links.unit")] = owned.default("medium", "links.unit")
    frames: Annotated[str, owned.choice("medium", "links.frames")] = owned.default("medium", "links.frames")


def overridden(profile: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """A radio profile with the keys of `overrides`, which of a table may be some (medium/src/phy/radio.rs, `parse`)."""
    tables = {key: {**profile[key], **value} for key, value in overrides.items() if isinstance(profile.get(key), dict)}
    return {**profile, **overrides, **tables}


def _fitting(overrides: Any) -> Any:
    """Types and limits by the medium. A key that no profile has is refused later (definition.py)."""
    known = owned.schema("radio")["properties"]
    for key, value in overrides.items() if isinstance(overrides, dict) else ():
        if key in known and (wrong := owned.misfit(known[key], value, (key,))):
            raise KeyProblem(*wrong)
    return overrides


def _fitting_aggregation(value: Any) -> Any:
    """As `_fitting`, of the key at the top; None: the profile's."""
    if value is not None and (wrong := owned.misfit(owned.node("radio", "aggregation"), value)):
        raise KeyProblem(*wrong)
    return value


class RadioKeys(LayoutKeys):
    """The keys of the radios."""

    net: Literal["manet", "mininet-wifi"] = "manet"
    stations: Annotated[
        Literal["tap", "hwsim"] | Annotated[tuple[Container, ...], Field(max_length=MAX_STATIONS)], BeforeValidator(as_tuple)
    ] = "tap"
    hwsim: Hwsim = Hwsim()
    radio: str = Field("ns2-dsss-2m", pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*|[^\n]*/[^\n]*)$", max_length=4096)
    radio_overrides: Annotated[dict[str, Override], BeforeValidator(_fitting)] = Field(default_factory=dict)
    radios: Annotated[tuple[StationRadio, ...], BeforeValidator(as_tuple)] = Field((), max_length=MAX_RADIOS)
    interface: Literal["wlan0", "station-wlan0"] = "wlan0"
    propagation: Annotated[Propagation, BeforeValidator(as_model)] = Propagation.model_validate({})
    walls: Annotated[tuple[Wall, ...], BeforeValidator(as_tuple)] = Field((), max_length=MAX_WALLS)
    interference: Annotated[str, owned.choice("medium", "interference")] = owned.default("medium", "interference")
    reception: Annotated[str, owned.choice("radio", "reception")] | None = None  # None: the profile's
    aggregation: Annotated[bool | Whole | dict[str, bool | Whole] | None, BeforeValidator(_fitting_aggregation)] = None
    rate_control: Annotated[str, owned.choice("radio", "rate_control")] | None = None  # None: the profile's
    access: Annotated[str, owned.choice("radio", "access")] | None = None  # None: the profile's
    fading_db: Annotated[float, owned.number("medium", "fading_db")] = owned.default("medium", "fading_db")
    adjacent_channels: bool = owned.default("medium", "adjacent_channels")
    jammers: Annotated[tuple[Jammer, ...], BeforeValidator(as_tuple)] = Field((), max_length=MAX_JAMMERS)
    fading: Annotated[Fading, BeforeValidator(as_model)] = Fading.model_validate({})
    links: Annotated[tuple[LinkErrors, ...], BeforeValidator(as_tuple)] = ()
    queue_discipline: Annotated[str, owned.choice("medium", "queue.discipline")] = owned.default("medium", "queue.discipline")
    queue: Annotated[Whole, owned.number("medium", "queue.packets")] = owned.default("medium", "queue.packets")
    control_first: bool = owned.default("medium", "queue.control_first")
    mtu: Bytes = Field(1500, ge=MIN_MTU, le=MAX_MTU)

    @property
    def containers(self) -> tuple[Container, ...]:
        """The stations that have a root file system of their own."""
        return self.stations if isinstance(self.stations, tuple) else ()

    @property
    def radio_devices(self) -> Literal["tap", "hwsim"]:
        """The devices of all stations' radios; containers have TAPs."""
        return "tap" if isinstance(self.stations, tuple) else self.stations

    def of_medium(self) -> dict[str, Any]:
        """The medium's own keys under the same name, other than tables and lists, with another value than its default."""
        owners = owned.schema("medium")["properties"].items()
        own = {key: owner["default"] for key, owner in owners if isinstance(owner.get("default"), str | int | float)}
        return {key: value for key, value in self if key in own and value != own[key]}

    def channel_keys(self) -> dict[str, Any]:
        """The keys `fading` and `walls` of medium.json, if they are there."""
        fading = {} if self.fading.model == Fading.FIRST else {"fading": self.fading.for_medium()}
        walls = [wall.model_dump(by_alias=True, mode="json") for wall in self.walls]
        return {**fading, **({"walls": walls} if walls else {})}

    def radio_keys(self) -> dict[str, Any]:
        """The keys of the radio profile that the scenario replaces."""
        return {**self.radio_overrides, **self._own_of_radio()}

    def place_of_radio_key(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """The key of the scenario that replaces this one of the profile, or would."""
        at_top = bool(path) and path[0] in OWN_OF_RADIO and path[0] not in self.radio_overrides
        return path if at_top else ("radio_overrides", *path)

    def _own_of_radio(self) -> dict[str, Any]:
        return {key: value for key in OWN_OF_RADIO if (value := getattr(self, key)) is not None}

    @model_validator(mode="before")
    @classmethod
    def _queue_by_name(cls, values: Any) -> Any:
        """`queue = "fq-codel"` is short for `queue_discipline`; a number is the length."""
        name = values.get("queue") if isinstance(values, dict) else None
        if not isinstance(name, str) or name[:1].isdigit():
            return values
        if wrong := owned.problem(owned.node("medium", "queue.discipline"), name):
            raise KeyProblem(("queue",), f"{wrong}, or a number of packets")
        if values.get("queue_discipline", name) != name:
            raise KeyProblem(
                ("queue_discipline",), f'"{values["queue_discipline"]}" is another one than queue = "{name}"; give one'
            )
        return {"queue_discipline" if key == "queue" else key: value for key, value in values.items()}

    def queue_keys(self) -> dict[str, Any]:
        """The table `queue` of medium.json; the discipline only if it is not the default."""
        own = {"packets": self.queue, "control_first": self.control_first}
        return own if self.queue_discipline == "drop-tail" else {"discipline": self.queue_discipline, **own}

    def further_radios(self) -> dict[int, StationRadio]:
        """The radios beyond the first of each station, by the number that gives their address: after those of all stations."""
        named = (radio for radio in self.radios if radio.name is not None)
        return dict(enumerate(named, start=len(self.station_names()) + 1))

    def radio_numbers(self) -> dict[str, int]:
        """The number of each radio, which gives its addresses. The first radio of a station has the station's name."""
        first = {name: number for number, name in enumerate(self.station_names(), start=1)}
        return first | {radio.name or "": number for number, radio in self.further_radios().items()}

    def _check_overrides(self) -> None:
        for key in self._own_of_radio().keys() & self.radio_overrides.keys():
            raise KeyProblem(("radio_overrides", key), f"is there twice; leave it out, as the scenario has {key}")

    def _check_channel(self) -> None:
        model = self.propagation.model
        if self.topology == UNPLACED and model not in WITHOUT_PLACES:
            names = " or ".join(f'"{name}"' for name in WITHOUT_PLACES)
            raise KeyProblem(("propagation",), f'"{model}" needs positions, which topology "{UNPLACED}" has not; take {names}')

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
        elif self.queue_discipline != "drop-tail":
            why = "is for TAP radios, as hwsim throws away what waits beyond 200"
            text = f'"{self.queue_discipline}" {why}; leave it out, or stations = "tap"'
            raise KeyProblem(("queue_discipline",), text)
        elif self.radio_keys().get("rate_control", "fixed") != "fixed":
            raise KeyProblem(("rate_control",), 'is for TAP radios; those of hwsim have hwsim = { rates = "kernel" }')
        elif self.radio_keys().get("access", "dcf") != "dcf":
            text = 'is for TAP radios, as mac80211 orders its frames itself; leave it out, or stations = "tap"'
            raise KeyProblem(("access",), text)
        elif self.queue > MAX_HWSIM_QUEUE:
            text = f"{self.queue} is above {MAX_HWSIM_QUEUE}: hwsim throws away what waits beyond 200"
            raise KeyProblem(("queue",), text)

    def _check_radios(self) -> None:
        """Refuse an entry of `radios` that names no station, says a thing twice, or does not fit the rest."""
        seen: set[str] = set()
        for index, radio in enumerate(self.radios):
            if radio.station not in self.station_names():
                raise KeyProblem(("radios", index, "station"), self.no_such(radio.station))
            known = radio.name or radio.station
            if known in seen or (radio.name is not None and radio.name in self.station_names()):
                raise KeyProblem(
                    ("radios", index), f'"{known}" has an entry already; make one of the two, or give a radio another name'
                )
            seen.add(known)
            if radio.name is not None and INTERFACE_NAME.fullmatch(radio.name) is None:
                text = f'"{radio.name}" is no name of an interface; use at most 15 letters, digits and "-"'
                raise KeyProblem(("radios", index, "name"), text)
            self._check_use(index, radio)

    def _check_jammers(self) -> None:
        names = {*self.station_names(), *(radio.name for radio in self.radios if radio.name is not None)}
        for index, jammer in enumerate(self.jammers):
            if STATION_NAME.fullmatch(jammer.name) is None:
                text = f'"{jammer.name}" is no name; use at most 10 of a-z, 0-9 and "-", beginning with a letter'
                raise KeyProblem(("jammers", index, "name"), text)
            if jammer.name in names:
                text = f'"{jammer.name}" is the name of another station or jammer; give it one of its own'
                raise KeyProblem(("jammers", index, "name"), text)
            names.add(jammer.name)
            if jammer.follows is not None and jammer.follows not in self.station_names():
                raise KeyProblem(("jammers", index, "follows"), self.no_such(jammer.follows))
        if self.jammers and self.propagation.model == "disc":
            raise KeyProblem(("jammers",), 'propagation "disc" has ranges of its own; remove them, or take another model')

    def _check_use(self, index: int, radio: StationRadio) -> None:
        if radio.name is not None and (self.stations != "hwsim" or self.hwsim.mode != "managed"):
            text = 'is for stations = "hwsim" and hwsim.mode = "managed"; all others have one radio each'
            raise KeyProblem(("radios", index, "name"), text)
        if radio.antenna is not None and radio.antenna_gain_db is not None:
            raise KeyProblem(("radios", index, "antenna_gain_db"), "the antenna has a gain; leave one of them out")
        if radio.name is None and not radio.for_medium():
            text = "changes nothing; add tx_power_w, antenna_gain_db, antenna_height_m, antenna or freq_mhz"
            raise KeyProblem(("radios", index), text)
        if self.propagation.model == "disc" and any(getattr(radio, key) is not None for key in WITH_PATTERN):
            raise KeyProblem(("radios", index), 'propagation "disc" has ranges of its own; remove it, or take another model')
