"""The key `energy` of a scenario: the powers of a radio in its states, from which the energy of a run follows (docs/medium.md).

A card has measured powers. What it takes while it senses a busy medium without receiving is in neither measurement; it counts as
idle, as in ns-3's WifiRadioEnergyModel, whose CcaBusyCurrentA is by default its IdleCurrentA.
"""

from typing import Annotated

from pydantic import Field

from keys.errors import did_you_mean
from keys.models import KeyProblem, Strict

MAX_POWER_W = 1000.0  # of a state; a larger one is a mistake of the unit
Power = Annotated[float, Field(ge=0, le=MAX_POWER_W)]

# Lucent's IEEE 802.11 WaveLAN PC Cards at 4.74 V (Feeney and Nilsson, INFOCOM 2001): the mean currents to send, to receive and
# when idle, mA; ns-3.43's WifiRadioEnergyModel by default, at the 3 V of its BasicEnergySource.
CARDS: dict[str, dict[str, float]] = {
    "wavelan-2m": {"transmit_w": 4.74 * 0.280, "receive_w": 4.74 * 0.204, "idle_w": 4.74 * 0.178},
    "wavelan-11m": {"transmit_w": 4.74 * 0.284, "receive_w": 4.74 * 0.190, "idle_w": 4.74 * 0.156},
    "ns3": {"transmit_w": 3.0 * 0.380, "receive_w": 3.0 * 0.313, "idle_w": 3.0 * 0.273},
}


class Energy(Strict):
    """The powers of a radio, W; none while it is off. `sense_w` None: as `idle_w`."""

    transmit_w: Power
    receive_w: Power
    idle_w: Power
    sense_w: Power | None = None


def as_energy(value: object) -> object:
    """A card's name as the table of its powers, to the milliwatt."""
    if not isinstance(value, str):
        return value
    if value not in CARDS:
        remedy = did_you_mean(value, CARDS) or f"use one of {', '.join(CARDS)}, or a table of powers"
        raise KeyProblem((), f'"{value}" is no card with known powers; {remedy}')
    return {key: round(power_w, 3) for key, power_w in CARDS[value].items()}
