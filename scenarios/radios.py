"""Radios of single stations: power, antenna, channel, and radios beyond the first (formats/scenario.md)."""

import math
import re
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel

from scenarios import owned
from scenarios.models import STRICT, KeyProblem
from scenarios.quantities import Whole

if TYPE_CHECKING:
    from scenarios.scenario import Scenario

INTERFACE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,14}")  # IFNAMSIZ of linux/if.h, without its end
OF_A_STATION = ("tx_power_w", "antenna_gain_db", "antenna_height_m")  # keys by which a station differs from the radio


def dbm(power_w: float) -> float:
    """The level of a power (W), dBm."""
    return 10 * math.log10(1000 * power_w)


def watts(level_dbm: float) -> float:
    """The power of a level (dBm), W."""
    return 10.0 ** (level_dbm / 10) / 1000


def _level() -> owned.Node:
    owner = owned.node("radio", "tx_power_w")
    return {**owner, "unit": "dBm", **{key: round(dbm(owner[key]), 6) for key in owned.WORDS if key in owner}}


# what a user changes at a radio, by the names of prompt and scripts: the owner's schema, a power as a level
SETTINGS: dict[str, owned.Node] = {
    "range": owned.node("medium", "propagation.range_m"),
    "txpower": _level(),
    "gain": owned.node("radio", "antenna_gain_db"),
    "height": owned.node("radio", "antenna_height_m"),
}


class StationRadio(BaseModel):
    """A radio of a station: the first one, or with `name`, of its interface, a further one."""

    model_config = STRICT
    station: str
    name: str | None = None
    tx_power_w: Annotated[float, owned.number("medium", "stations.tx_power_w")] | None = None
    antenna_gain_db: Annotated[float, owned.number("medium", "stations.antenna_gain_db")] | None = None
    antenna_height_m: Annotated[float, owned.number("medium", "stations.antenna_height_m")] | None = None
    freq_mhz: Annotated[Whole, owned.number("medium", "stations.freq_mhz")] | None = None

    def for_medium(self) -> dict[str, float]:
        """The keys of the radio in medium.json."""
        return self.model_dump(exclude={"station", "name"}, exclude_none=True)


def check_radios(scenario: "Scenario") -> None:
    """Raise KeyProblem for an entry of `radios` that names no station, says a thing twice, or does not fit the rest."""
    seen: set[str] = set()
    for index, radio in enumerate(scenario.radios):
        if radio.station not in scenario.station_names():
            raise KeyProblem(("radios", index, "station"), scenario.no_such(radio.station))
        known = radio.name or radio.station
        if known in seen or (radio.name is not None and radio.name in scenario.station_names()):
            raise KeyProblem(
                ("radios", index), f'"{known}" has an entry already; make one of the two, or give a radio another name'
            )
        seen.add(known)
        if radio.name is not None and INTERFACE_NAME.fullmatch(radio.name) is None:
            text = f'"{radio.name}" is no name of an interface; use at most 15 letters, digits and "-"'
            raise KeyProblem(("radios", index, "name"), text)
        _check_use(scenario, index, radio)


def _check_use(scenario: "Scenario", index: int, radio: StationRadio) -> None:
    if radio.name is not None and (scenario.stations != "hwsim" or scenario.hwsim.mode != "managed"):
        text = 'is for stations = "hwsim" and hwsim.mode = "managed"; all others have one radio each'
        raise KeyProblem(("radios", index, "name"), text)
    if radio.freq_mhz is not None and scenario.stations != "hwsim":
        raise KeyProblem(("radios", index, "freq_mhz"), 'is for stations = "hwsim"; all others are on one channel')
    if radio.name is None and not radio.for_medium():
        text = "changes nothing; add tx_power_w, antenna_gain_db or antenna_height_m"
        raise KeyProblem(("radios", index), text)
    if scenario.propagation.model == "disc" and any(getattr(radio, key) is not None for key in OF_A_STATION):
        raise KeyProblem(("radios", index), 'propagation "disc" has ranges of its own; remove it, or take another model')
