"""A long line as a short one that looks the same: the smallest and the largest value of each part of the time axis."""

import numpy as np


def envelope(t: np.ndarray, values: np.ndarray, points: int) -> dict[str, list]:
    """`{"t", "v"}` with at most about `points` values of the line, its extremes included; NaN (a gap) becomes None."""
    if len(t) > points:
        parts = np.array_split(np.arange(len(t)), max(1, points // 2))
        filled = np.where(np.isnan(values), np.inf, values), np.where(np.isnan(values), -np.inf, values)
        chosen = {int(part[filled[0][part].argmin()]) for part in parts} | {int(part[filled[1][part].argmax()]) for part in parts}
        places = np.array(sorted(chosen))
        t, values = t[places], values[places]
    return {"t": t.tolist(), "v": [None if np.isnan(value) else float(value) for value in values]}
