"""The rates of a scenario's radio in the notation of hostapd, wpa_supplicant and iw."""

import tomllib
from typing import Any

from scenarios import profiles
from scenarios.radios import overridden
from scenarios.scenario import Scenario

# kbit/s; IEEE Std 802.11-2012 clauses 16.2.3.4 and 17.2.3.4 (DSSS, HR/DSSS), 18.2.3.4 (OFDM)
OF_PHY = {"dsss": (1000, 2000, 5500, 11000), "ofdm": (6000, 9000, 12000, 18000, 24000, 36000, 48000, 54000)}


def profile(scenario: Scenario) -> dict[str, Any]:
    """The radio profile with the scenario's overrides."""
    return overridden(tomllib.loads(profiles.path_of(scenario.radio).read_text()), scenario.radio_keys())


def rates(scenario: Scenario) -> str:
    """The rates of the profile's PHY in hostapd's unit, 100 kbit/s."""
    return " ".join(str(rate // 100) for rate in OF_PHY[profile(scenario)["modulation"]])


def basic_rates(scenario: Scenario) -> str:
    """The profile's basic rates in the same unit, with that of broadcast frames, which every member must support."""
    radio = profile(scenario)
    basic = sorted({*radio["basic_rates_bps"], radio["broadcast_rate_bps"]})
    return " ".join(str(int(rate) // 100_000) for rate in basic)
