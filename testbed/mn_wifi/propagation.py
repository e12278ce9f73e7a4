"""Mininet-WiFi's propagation models as models of the medium (formats/medium.md)."""

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
ARGUMENTS = {"friis": set(), "logDistance": {"exp"}, "logNormalShadowing": {"exp", "variance"}, "twoRayGround": set()}
MIN_EXP = 0.1
REFUSED = {
    "sL": "a system loss only shifts the power; leave it out and give the stations a range",
    "lF": "floors are not modelled; leave it out",
    "nFloors": "floors are not modelled; leave it out",
    "pL": "is the ITU model's, which is not supported; use model='logDistance' with exp=pL/10",
    "gRandom": "the draws are the medium's own, by the seed; leave it out",
}


def propagation(**given: object) -> dict:
    """The key `propagation` of a scenario, from the arguments of setPropagationModel. Raises UsageError."""
    script_model = given.pop("model", "logDistance")
    model = choice(CALL, "model", script_model, MODELS, "is not supported")
    for name, value in given.items():
        if name in ARGUMENTS[str(script_model)]:
            continue
        if name in REFUSED:
            raise UsageError(f"{CALL}: {name}={value!r}: {REFUSED[name]}")
        takes = ", ".join(sorted(ARGUMENTS[str(script_model)])) or "no further arguments"
        raise UsageError(f'{CALL}: unknown argument "{name}"; model={script_model!r} takes {takes}')
    made: dict = {"model": model}
    if "exp" in ARGUMENTS[str(script_model)]:
        made["exponent"] = number(CALL, "exp", given.get("exp", 3.0), MIN_EXP, owned.bounds("medium", "propagation.exponent")[1])
    if model == "shadowing":
        # Mininet-WiFi calls it variance and uses it as the standard deviation
        made["sigma_db"] = number(CALL, "variance", given.get("variance", 2.0), *owned.bounds("medium", "propagation.sigma_db"))
    return made
