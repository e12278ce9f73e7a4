"""Jain's fairness index of the flows of a run (R. Jain, D. Chiu and W. Hawe, "A quantitative measure of fairness and
discrimination for resource allocation in shared computer systems", DEC Research Report TR-301, 1984).

Of n flows with rates x: (sum of x)^2 / (n * sum of x^2), from 1/n (one flow has everything) to 1 (all have the same).
"""

from collections.abc import Mapping, Sequence
from typing import Any

RATE = "goodput_bps"  # every kind that captures measure has it


def jain_index(rates: Sequence[float]) -> float | None:
    """The index; None without a rate above 0, for which it is not defined."""
    squares = sum(rate**2 for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else None


def fairness(flows: Mapping[str, Mapping[str, Any]]) -> dict[str, float | None]:
    """The index of each traffic kind with several flows; None if one of them was not measured. Kinds without a rate are left
    out."""
    by_kind: dict[str, list[Any]] = {}
    for entry in flows.values():
        if RATE in entry:
            by_kind.setdefault(entry["traffic"], []).append(entry[RATE])
    return {kind: None if None in rates else jain_index(rates) for kind, rates in by_kind.items() if len(rates) > 1}
