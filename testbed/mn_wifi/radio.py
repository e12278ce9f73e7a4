"""From Mininet-WiFi's names of a radio (mode, channel, txpower, antennaGain, range) to a profile of medium/radios.

Here all stations have the same radio, which sends at one rate; in Mininet-WiFi each has its own and adapts its rate. The
range is what matters most to a script, so it is kept: as stated, or as it follows from power, gains, propagation model and
Mininet-WiFi's threshold of -91 dBm. The profile's power is set so that reception ends at that distance; carrier sense
reaches farther, because its threshold is lower.
"""

import math
import tomllib
from dataclasses import dataclass

from testbed.errors import UsageError
from testbed.programs import ROOT

PROFILES = {"g": "dot11g-54m", "b": "dot11b-11m", "a": "dot11a-54m"}
NOT_MODELLED = "802.11n and later (aggregation, block ACK) are not modelled"
# Mininet-WiFi's: mn_wifi/link.py, net.py (2.7)
TX_POWER_DBM, ANTENNA_GAIN_DB, ANTENNA_HEIGHT_M, THRESHOLD_DBM = 14.0, 5.0, 1.0, -91.0
POWER_MODELS = {"two-ray", "free-space", "log-distance", "shadowing"}
LIGHT_SPEED_MPS = 3.0e8  # medium/src/phy/propagation.rs
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

    def reach_m(self, propagation: dict) -> float:
        """The range in metres: as stated, or where the loss of `propagation` uses up the link budget."""
        if self.range_m is not None:
            return self.range_m
        budget_db = self.tx_power_dbm + 2 * self.gain_db - THRESHOLD_DBM
        low, high = 0.01, MAX_REACH_M
        while high - low > 1e-6 * high:  # the loss never falls with the distance
            middle = (low + high) / 2
            low, high = (middle, high) if self.loss_db(propagation, middle) <= budget_db else (low, middle)
        return low

    def loss_db(self, propagation: dict, distance_m: float) -> float:
        """Path loss in dB, as in medium/src/phy/propagation.rs; the median for shadowing."""
        wavelength_m = LIGHT_SPEED_MPS / self.frequency_hz()

        def free_space_db(d: float) -> float:
            return max(0.0, 20 * math.log10(4 * math.pi * d / wavelength_m))

        match propagation["model"]:
            case "two-ray":
                if distance_m <= 4 * math.pi * self.height_m**2 / wavelength_m:
                    return free_space_db(distance_m)
                return 40 * math.log10(distance_m) - 40 * math.log10(self.height_m)
            case "log-distance" | "shadowing":
                beyond = max(1.0, distance_m / propagation.get("reference_m", 1.0))
                near_m = min(distance_m, propagation.get("reference_m", 1.0))
                return free_space_db(near_m) + 10 * propagation.get("exponent", 3.0) * math.log10(beyond)
            case _:
                return free_space_db(distance_m)

    def overrides(self, name: str, propagation: dict) -> dict:
        """The key `radio_overrides` that gives the profile `name` this range under a propagation model. Models without transmit
        power (disc, matrix) have their own range."""
        if propagation["model"] not in POWER_MODELS:
            return {}
        path = ROOT / "medium" / "radios" / f"{name}.toml"
        if not path.is_file():
            return {}  # the check of the scenario reports it
        frequency_hz = self.frequency_hz()
        loss_db = self.loss_db(propagation, self.reach_m(propagation))
        power_w = tomllib.loads(path.read_text())["receive_threshold_w"] * 10 ** ((loss_db - 2 * self.gain_db) / 10)
        found = {"frequency_hz": frequency_hz, "antenna_gain_db": self.gain_db, "antenna_height_m": self.height_m}
        return {**found, "system_loss_db": 0.0, "tx_power_w": power_w * ROUNDING}
