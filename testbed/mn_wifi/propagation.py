"""Mininet-WiFi's propagation models as models of the medium (formats/medium.md)."""

from typing import Any

from scenarios import owned
from testbed.errors import UsageError
from testbed.mn_wifi.arguments import choice, number

CALL = "setPropagationModel"
DEFAULT = {"model": "log-distance", "exponent": 3.0}  # logDistance, exp=3: Mininet-WiFi's
MODELS = {
    "friis": "free-space",
    "logDistance": "log-distance",
    "logNormalShadowing": "shadowing",
    "twoRayGround": "two-ray",
}
ARGUMENTS: dict[str, set[str]] = {
    "friis": set(),
    "logDistance": {"exp"},
    "logNormalShadowing": {"exp", "variance"},
    "twoRayGround": set(),
}
MIN_EXP = 0.1
REFUSED = {
    "sL": "a system loss only shifts the power; leave it out and give the stations a range",
    "lF": "floors are not modelled; leave it out",
    "nFloors": "floors are not modelled; leave it out",
    "pL": "is the ITU model's, which is not supported; use model='logDistance' with exp=pL/10",
    "gRandom": "the draws are the medium's own, by the seed; leave it out",
}


def propagation(**arguments: Any) -> dict[str, Any]:
    """The key `propagation` of a scenario, from the arguments of setPropagationModel. Raises UsageError."""
    script_model = arguments.pop("model", "logDistance")
    model = choice(CALL, "model", script_model, MODELS, "is not supported")
    accepted = ARGUMENTS[script_model]
    for name, value in arguments.items():
        if name in accepted:
            continue
        if name in REFUSED:
            raise UsageError(f"{CALL}: {name}={value!r}: {REFUSED[name]}")
        takes = ", ".join(sorted(accepted)) or "no further arguments"
        raise UsageError(f'{CALL}: unknown argument "{name}"; model={script_model!r} takes {takes}')
    keys: dict[str, Any] = {"model": model}
    if "exp" in accepted:
        keys["exponent"] = number(
            CALL, "exp", arguments.get("exp", 3.0), MIN_EXP, owned.bounds("medium", "propagation.exponent")[1]
        )
    if model == "shadowing":
        # Mininet-WiFi calls it variance and uses it as the standard deviation
        keys["sigma_db"] = number(
            CALL, "variance", arguments.get("variance", 2.0), *owned.bounds("medium", "propagation.sigma_db")
        )
    return keys
