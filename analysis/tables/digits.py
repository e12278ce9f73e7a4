"""Numbers as tables, lines and pages show them: digits, no powers of ten."""

from collections.abc import Mapping
from typing import Any


def rounded(value: float | None, sign: str = "") -> str:
    """A number with three digits or more; empty for None. `sign` "+": also positive ones have a sign."""
    if value is None:
        return ""
    return f"{value:{sign}.0f}" if abs(value) >= 100 else f"{value:{sign}.3g}"


def with_interval(spread: Mapping[str, Any], decimals: int = 0) -> str:
    """`412 ±92` of a `mean` and its `ci95`; without interval for a single run."""
    interval = "" if spread["ci95"] is None else f" ±{spread['ci95']:.{decimals}f}"
    return f"{spread['mean']:.{decimals}f}{interval}"


def exact(value: object) -> str:
    """The value of a key, such as that of an axis, as a user writes it: 2000000, 0.5."""
    return f"{value:.12g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
