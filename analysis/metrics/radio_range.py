"""Range of reception and of carrier sense of a radio (m), and the received power at a distance, from the medium (`manet-medium
reach`).

Shadowing, a loss matrix and measured links have no single range, nor has a network with walls: None.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

from record.errors import RecordError
from record.files import plain_file
from record.run import RADIO_CHANGES
from scenarios import medium_program, profiles
from scenarios.radios import WITH_PATTERN, overridden

RECEIVED, SENSED = "received_m", "sensed_m"


def range_m(
    radio: dict[str, Any], propagation: dict[str, Any], which: str = RECEIVED, kernel_rates: bool = False
) -> float | None:
    """`radio` is a radio profile (formats/radio.md), `propagation` that of medium.json; `which`: RECEIVED or SENSED."""
    found: float | None = reach(radio, propagation, kernel_rates=kernel_rates)[which]
    return found


def reach(radio: dict[str, Any], propagation: dict[str, Any], *at_m: float, kernel_rates: bool = False) -> dict[str, Any]:
    """Both ranges, in `power_w` the power (W) at these distances (with shadowing the median), and in `neighbour_w` that from
    which on stations are neighbours. `kernel_rates`: the stations' kernels choose the rates."""
    model = {"propagation": propagation} if propagation else {}
    return json.loads(_answer(json.dumps({"radio": radio, "at_m": at_m, "kernel_rates": kernel_rates, **model})))


def kernel_rates_of(medium: dict[str, Any]) -> bool:
    """Whether the kernels of a medium.json's stations choose the rates."""
    return (medium.get("hwsim") or {}).get("rates") == "kernel"


def _answer(question: str) -> str:
    try:
        return medium_program.reach(question)
    except OSError as problem:
        raise RecordError(f"{medium_program.MEDIUM}: {problem.strerror}; run ./setup.sh") from None
    except medium_program.MediumRefusal as refused:
        raise RecordError(f"the range of a radio: {refused}") from None


def range_of(medium: dict[str, Any], which: str = RECEIVED, directory: Path = Path()) -> float | None:
    """The ranges of a medium.json in `directory`, without fading; None also if its radio's file is missing, if stations differ in
    power or antenna, or if there are walls."""
    if medium.get("walls") or any(key in station for station in medium.get("stations", ()) for key in WITH_PATTERN):
        return None
    radio = radio_of(medium, directory)
    return None if radio is None else range_m(radio, medium.get("propagation", {}), which, kernel_rates_of(medium))


def radio_of(medium: dict[str, Any], directory: Path = Path()) -> dict[str, Any] | None:
    """The radio profile of a medium.json in `directory` with its overrides (formats/radio.md); None if its file is missing."""
    try:
        with plain_file(profiles.of_run(directory, medium["radio"]), links=True) as file:
            radio = tomllib.load(file)
    except (OSError, ValueError, KeyError):
        return None
    return overridden(radio, medium.get("radio_overrides", {}))


def range_of_run(directory: Path, medium: dict[str, Any], which: str = RECEIVED) -> float | None:
    """The ranges of a run; None also if stations changed power or antenna during it."""
    return None if (directory / RADIO_CHANGES).exists() else range_of(medium, which, directory)
