"""How far a radio is received, and sensed (m): where power falls to the receive threshold, from a run's medium.json.

The formulas are medium/src/phy/propagation.rs's: two-ray ground (ns-2, mobile/tworayground.cc), free space (Friis 1946),
log-distance (Rappaport, section 4.9.1), disc. Shadowing and a loss matrix have no one range: None.
"""

import math
import tomllib
from pathlib import Path
from typing import Any

LIGHT_MPS = 3.0e8  # the medium's value, and ns-2's


RECEIVED, SENSED = "receive_threshold_w", "carrier_sense_threshold_w"


def range_m(radio: dict[str, Any], propagation: dict[str, Any], threshold: str = RECEIVED) -> float | None:
    """`radio` is a radio profile (formats/radio.md), `propagation` that of medium.json; `threshold` RECEIVED or SENSED."""
    model = propagation.get("model", "two-ray")
    if model == "disc":
        return float(propagation["range_m" if threshold == RECEIVED else "sense_m"])
    wavelength_m = LIGHT_MPS / radio["frequency_hz"]
    gain = 10 ** (radio.get("antenna_gain_db", 0.0) / 10)
    loss = 10 ** (radio.get("system_loss_db", 0.0) / 10)
    share = radio["tx_power_w"] * gain * gain / loss / radio[threshold]
    free_m = wavelength_m / (4 * math.pi) * math.sqrt(share)
    if model == "free-space":
        return free_m
    if model == "two-ray":
        height_m = radio.get("antenna_height_m", 1.5)
        crossover_m = 4 * math.pi * height_m * height_m / wavelength_m
        return free_m if free_m < crossover_m else (share * height_m**4) ** 0.25
    if model == "log-distance":
        reference_m, exponent = propagation.get("reference_m", 1.0), propagation.get("exponent", 3.0)
        return free_m if free_m < reference_m else reference_m * (free_m / reference_m) ** (2 / exponent)
    return None


def range_of(medium: dict[str, Any], threshold: str = RECEIVED) -> float | None:
    """The same of a medium.json; None too where its radio's file is gone."""
    try:
        radio = tomllib.loads(Path(medium["radio"]).read_text())
    except OSError:
        return None
    return range_m(radio | medium.get("radio_overrides", {}), medium.get("propagation", {}), threshold)
