"""From Mininet-WiFi's names of a radio (mode, channel, txpower, antennaGain, range) to a profile of medium/radios.

Here all stations have the same radio, which sends at one rate; in Mininet-WiFi each has its own and adapts its rate. The
range is what matters most to a script, so it is kept: as stated, or as it follows from power, gains, propagation model and
Mininet-WiFi's threshold of -91 dBm. The profile's power is set so that reception ends at that distance; carrier sense
reaches farther, because its threshold is lower.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from analysis.reception import reach
from testbed.errors import UsageError
from testbed.programs import ROOT

PROFILES = {"g": "dot11g-54m", "b": "dot11b-11m", "a": "dot11a-54m"}
NOT_MODELLED = "802.11n and later (aggregation, block ACK) are not modelled"
# Mininet-WiFi's: mn_wifi/link.py, net.py (2.7)
TX_POWER_DBM, ANTENNA_GAIN_DB, ANTENNA_HEIGHT_M, THRESHOLD_DBM = 14.0, 5.0, 1.0, -91.0
OWN_RANGE = {"disc", "matrix"}  # models without transmit power
MAX_REACH_M = 1e5
ROUNDING = 1 + 1e-6  # keeps rounding errors from deciding who is in range


@dataclass(frozen=True)
class Radio:
    """The radio of all stations. `range_m` None: computed from the other settings."""

    mode: str = "g"
    channel: int = 1
    range_m: float | None = None
    tx_power_dbm: float = TX_POWER_DBM
    gain_db: float = ANTENNA_GAIN_DB
    height_m: float = ANTENNA_HEIGHT_M

    def frequency_hz(self) -> float:
        """The channel's centre frequency in Hz (IEEE Std 802.11-2012, 17.4.6.3 and 18.3.8.4.3)."""
        if self.mode == "a":
            return 5.0e9 + self.channel * 5e6
        return 2.484e9 if self.channel == 14 else 2.407e9 + self.channel * 5e6

    def check(self) -> None:
        """Raise UsageError for a channel that the mode does not have."""
        known = range(34, 197) if self.mode == "a" else range(1, 15)
        if self.channel not in known:
            text = f"mode={self.mode!r} has channels {known[0]} to {known[-1]}"
            raise UsageError(f"channel={self.channel}: {text}; give one of those, or another mode")

    def reach_m(self, name: str, propagation: dict) -> float:
        """The range in metres: as stated, or where reception ends for a station with the profile `name`."""
        if self.range_m is not None:
            return self.range_m
        theirs = {"tx_power_w": _watts(self.tx_power_dbm), "receive_threshold_w": _watts(THRESHOLD_DBM)}
        return min(reach({**_profile(name), **self._antennas(), **theirs}, _median(propagation))["received_m"], MAX_REACH_M)

    def _antennas(self) -> dict:
        found = {"frequency_hz": self.frequency_hz(), "antenna_gain_db": self.gain_db, "antenna_height_m": self.height_m}
        return {**found, "system_loss_db": 0.0}

    def overrides(self, name: str, propagation: dict) -> dict:
        """The key `radio_overrides` that gives the profile `name` this range under a propagation model. Models without transmit
        power (disc, matrix) have their own range."""
        if propagation["model"] in OWN_RANGE:
            return {}
        if not _path(name).is_file():
            return {}  # the check of the scenario reports it
        profile, antennas, model = _profile(name), self._antennas(), _median(propagation)
        reach_m = self.reach_m(name, propagation)
        of_one_watt = reach({**profile, **antennas, "tx_power_w": 1.0}, model, reach_m)["power_w"][0]
        return {**antennas, "tx_power_w": profile["receive_threshold_w"] / of_one_watt * ROUNDING}


def _path(name: str) -> Path:
    return ROOT / "medium" / "radios" / f"{name}.toml"


def _profile(name: str) -> dict:
    return tomllib.loads(_path(name).read_text())


def _median(propagation: dict) -> dict:
    """The propagation model without the random draw of shadowing, which has no range of its own."""
    if propagation["model"] != "shadowing":
        return propagation
    return {**{key: value for key, value in propagation.items() if key != "sigma_db"}, "model": "log-distance"}


def _watts(dbm: float) -> float:
    return 10 ** (dbm / 10) / 1000
