"""From Mininet-WiFi's names of a radio (mode, channel, txpower, antennaGain, range) to a profile of medium/radios.

Here all stations have the same profile; in Mininet-WiFi each has its own. There all adapt their rates, here those of 802.11n
and ac. The range is what matters most to a script, so it is kept: as stated, or as it follows from power, gains, propagation
model and Mininet-WiFi's threshold of -91 dBm. The power is set so that reception ends at that distance; carrier sense reaches
farther, because its threshold is lower. Power and antenna may differ between stations: the power in the medium is Mininet-
WiFi's, raised by the ratio of the two thresholds, whatever the gains and the model.
"""

import math
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from analysis.metrics.radio_range import reach
from scenarios.radios import OF_A_STATION, overridden
from testbed.errors import UsageError
from testbed.programs import ROOT

PROFILES = {"g": "dot11g-54m", "b": "dot11b-11m", "a": "dot11a-54m", "n": "dot11n-ht20", "ac": "dot11ac-vht80"}
OF_ACCESS_POINTS = ("g", "b", "a")  # their radios are the kernel's
IN_5_GHZ = ("a", "ac")  # n is in both bands
# Mininet-WiFi's: mn_wifi/link.py, net.py (2.7)
TX_POWER_DBM, ANTENNA_GAIN_DB, ANTENNA_HEIGHT_M, THRESHOLD_DBM = 14.0, 5.0, 1.0, -91.0
OWN_RANGE = {"disc", "matrix"}  # models without transmit power
MAX_REACH_M = 1e5
# stations of an access point may have the short slot of 802.11g, an ad hoc network has not (IEEE Std 802.11-2012, 19.4.5)
SHORT_SLOT = {"network": "infrastructure", "slot_us": 9}
# what an ad hoc network of 802.11n differs in at 2.4 GHz: IEEE Std 802.11-2016, table 19-25 (slot, SIFS, signal extension) and
# 10.3.7 (EIFS has an ACK at the lowest mandatory rate)
HT_IN_2_4_GHZ: dict[str, Any] = {
    "slot_us": 20, "sifs_us": 10, "signal_extension_us": 6,
    "eifs_ack_rate_bps": 1_000_000, "plcp_bits": 192, "plcp_rate_bps": 1_000_000,
}  # fmt: skip
ROUNDING = 1 + 1e-6  # keeps rounding errors from deciding who is in range


@dataclass(frozen=True)
class Radio:
    """The radio of a station. `range_m` None: computed from the other settings; else it decides the power."""

    mode: str = "g"
    channel: int = 1
    range_m: float | None = None
    tx_power_dbm: float = TX_POWER_DBM
    gain_db: float = ANTENNA_GAIN_DB
    height_m: float = ANTENNA_HEIGHT_M
    of_profile: bool = False  # whether frequency and system loss are the profile's own, not Mininet-WiFi's

    def frequency_hz(self) -> float:
        """The channel's centre frequency in Hz (IEEE Std 802.11-2012, 17.4.6.3 and 18.3.8.4.3)."""
        if self.channel > 14:
            return 5.0e9 + self.channel * 5e6
        return 2.484e9 if self.channel == 14 else 2.407e9 + self.channel * 5e6

    def check(self) -> None:
        """Raise UsageError for a channel that the mode does not have."""
        bands = {"a": "34 to 196", "ac": "34 to 196", "n": "1 to 14 and 34 to 196"}
        in_2_4_ghz, in_5_ghz = self.channel in range(1, 15), self.channel in range(34, 197)
        if not (in_5_ghz if self.mode in IN_5_GHZ else in_2_4_ghz or (self.mode == "n" and in_5_ghz)):
            text = f"mode={self.mode!r} has channels {bands.get(self.mode, '1 to 14')}"
            raise UsageError(f"channel={self.channel}: {text}; give one of those, or another mode")

    def of_band(self, name: str) -> dict[str, Any]:
        """The key `radio_overrides` by which the profile `name` of 802.11n comes to the channel's band."""
        return HT_IN_2_4_GHZ if name == PROFILES["n"] and self.channel <= 14 else {}

    def reach_m(self, name: str, propagation: dict[str, Any], threshold_dbm: float = THRESHOLD_DBM) -> float:
        """The range in metres: as stated, or where the power falls to `threshold_dbm` for a station with the profile `name`."""
        if self.range_m is not None:
            return self.range_m
        theirs = {"tx_power_w": _watts(self.tx_power_dbm), "receive_threshold_w": _watts(threshold_dbm)}
        return min(reach({**_profile(name), **self._antennas(), **theirs}, _median(propagation))["received_m"], MAX_REACH_M)

    def _antennas(self) -> dict[str, Any]:
        antenna = {"antenna_gain_db": self.gain_db, "antenna_height_m": self.height_m}
        return antenna if self.of_profile else {"frequency_hz": self.frequency_hz(), **antenna, "system_loss_db": 0.0}

    def overrides(self, name: str, propagation: dict[str, Any]) -> dict[str, Any]:
        """The key `radio_overrides` that gives the profile `name` this range under a propagation model. Models without transmit
        power (disc, matrix) have their own range."""
        if propagation["model"] in OWN_RANGE:
            return {}
        if not _path(name).is_file():
            return {}  # the check of the scenario reports it
        profile, antennas, model = overridden(_profile(name), with_one_range(name)), self._antennas(), _median(propagation)
        reach_m = self.reach_m(name, propagation)
        of_one_watt = reach({**profile, **antennas, "tx_power_w": 1.0}, model, reach_m)["power_w"][0]
        return {**antennas, "tx_power_w": profile["receive_threshold_w"] / of_one_watt * ROUNDING}

    def of_station(self, name: str, propagation: dict[str, Any]) -> dict[str, float]:
        """The keys by which a station differs from the profile `name` (`radios` of formats/scenario.md)."""
        overrides = self.overrides(name, propagation)
        return {key: overrides[key] for key in OF_A_STATION if key in overrides}

    def at_power(self, name: str, propagation: dict[str, Any]) -> "Radio":
        """This radio with the power that gives its range, instead of the range."""
        if self.range_m is None:
            return self
        watts = self.overrides(name, propagation).get("tx_power_w")
        dbm = self.tx_power_dbm if watts is None else 10 * math.log10(1000 * watts / raised(name))
        return replace(self, range_m=None, tx_power_dbm=dbm)


def of_access_points(name: str) -> dict[str, Any]:
    """The key `radio_overrides` that turns the profile `name`, of an ad hoc network, into that of access points."""
    return SHORT_SLOT if _path(name).is_file() and "signal_extension_us" in _profile(name) else {}


def with_one_range(name: str) -> dict[str, Any]:
    """The key `radio_overrides` by which all frames of the profile `name` are received to the same distance, as in Mininet-WiFi.
    With reception by SINR that is where a receiver no longer notices a frame; the rate adapts up to there. Energy is sensed 10 dB
    below, as the other profiles sense it."""
    profile = _profile(name) if _path(name).is_file() else {}
    if _by_sinr(profile):
        noticed_w = profile["carrier_sense_threshold_w"]
        return {"receive_threshold_w": noticed_w, "energy_detect_w": noticed_w / 10}
    return {"rules": {"thresholds": "one"}} if "thresholds" in profile.get("rules", {}) else {}


def adapting(name: str) -> dict[str, str]:
    """The scenario's keys by which the rates of the profile `name` adapt as the kernel's do."""
    return {"rate_control": "minstrel-ht"} if _path(name).is_file() and _by_sinr(_profile(name)) else {}


def _by_sinr(profile: dict[str, Any]) -> bool:
    return profile.get("reception") == "sinr"


def own_of_profile(name: str, radio: Radio) -> Radio:
    """The radio with the power and the antenna of the profile `name`."""
    profile = _profile(name)
    dbm = 10 * math.log10(1000 * profile["tx_power_w"] / raised(name))
    gain_db, height_m = profile["antenna_gain_db"], profile["antenna_height_m"]
    return replace(radio, of_profile=True, range_m=None, tx_power_dbm=dbm, gain_db=gain_db, height_m=height_m)


def raised(name: str) -> float:
    """The factor from Mininet-WiFi's power to that of the profile `name` in the medium."""
    return overridden(_profile(name), with_one_range(name))["receive_threshold_w"] / _watts(THRESHOLD_DBM) * ROUNDING


def _path(name: str) -> Path:
    return ROOT / "medium" / "radios" / f"{name}.toml"


@cache
def _profile(name: str) -> dict[str, Any]:
    return tomllib.loads(_path(name).read_text())


def _median(propagation: dict[str, Any]) -> dict[str, Any]:
    """The propagation model without the random draw of shadowing, which has no range of its own."""
    if propagation["model"] != "shadowing":
        return propagation
    return {**{key: value for key, value in propagation.items() if key != "sigma_db"}, "model": "log-distance"}


def _watts(dbm: float) -> float:
    return 10 ** (dbm / 10) / 1000
