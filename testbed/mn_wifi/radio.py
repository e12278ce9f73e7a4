"""From Mininet-WiFi's names of a radio (mode, channel, txpower, antennaGain, range) to a profile of medium/radios.

Here a radio sends at one rate, and all stations have the same radio; there each has its own and adapts its rate. What a script
means by its radio is above all how far it reaches: its range is kept, as stated, or as it follows from power, gains,
propagation model and that medium's threshold of -91 dBm. The profile's power is set to what ends reception at that
distance; carrier sense then reaches as much farther as its threshold is lower.
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
BY_POWER = {"two-ray", "free-space", "log-distance", "shadowing"}
LIGHT_MPS = 3.0e8  # medium/src/phy/propagation.rs
FARTHEST_M = 1e5
ROUNDING = 1 + 1e-6  # must not decide who is in range


@dataclass(frozen=True)
class Radio:
    """What all stations have in common. `range_m` None: as it follows from the rest."""

    mode: str = "g"
    channel: int = 1
    range_m: float | None = None
    tx_power_dbm: float = TX_POWER_DBM
    gain_db: float = ANTENNA_GAIN_DB
    height_m: float = ANTENNA_HEIGHT_M

    def frequency_hz(self) -> float:
        """IEEE Std 802.11-2012, 17.4.6.3 and 18.3.8.4.3."""
        if self.mode == "a":
            return 5.0e9 + self.channel * 5e6
        return 2.484e9 if self.channel == 14 else 2.407e9 + self.channel * 5e6

    def check(self) -> None:
        known = range(34, 197) if self.mode == "a" else range(1, 15)
        if self.channel not in known:
            text = f"mode={self.mode!r} has channels {known[0]} to {known[-1]}"
            raise UsageError(f"channel={self.channel}: {text}; give one of those, or another mode")

    def reach_m(self, propagation: dict) -> float:
        """The range a script means."""
        if self.range_m is not None:
            return self.range_m
        budget_db = self.tx_power_dbm + 2 * self.gain_db - THRESHOLD_DBM
        low, high = 0.01, FARTHEST_M
        while high - low > 1e-6 * high:  # the loss never falls with the distance
            middle = (low + high) / 2
            low, high = (middle, high) if self.loss_db(propagation, middle) <= budget_db else (low, middle)
        return low

    def loss_db(self, propagation: dict, distance_m: float) -> float:
        """As medium/src/phy/propagation.rs has it; of shadowing the median."""
        wavelength_m = LIGHT_MPS / self.frequency_hz()

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
        """The key `radio_overrides` that makes the profile `name` reach as far under a model of propagation. Those that ask
        for no power (disc, matrix) have their own range."""
        if propagation["model"] not in BY_POWER:
            return {}
        path = ROOT / "medium" / "radios" / f"{name}.toml"
        if not path.is_file():
            return {}  # said by whoever checks the scenario
        frequency_hz = self.frequency_hz()
        loss_db = self.loss_db(propagation, self.reach_m(propagation))
        power_w = tomllib.loads(path.read_text())["receive_threshold_w"] * 10 ** ((loss_db - 2 * self.gain_db) / 10)
        found = {"frequency_hz": frequency_hz, "antenna_gain_db": self.gain_db, "antenna_height_m": self.height_m}
        return {**found, "system_loss_db": 0.0, "tx_power_w": power_w * ROUNDING}
