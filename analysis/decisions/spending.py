"""Boundaries of group-sequential tests by alpha spending (Lan and DeMets, *Discrete sequential boundaries for clinical trials*,
Biometrika 70(3), 1983).

Under "no difference" the statistic Z_k of look k, of a share t_k of all data, is B(t_k) / sqrt(t_k) with Brownian motion B. A
boundary c_k is such that the probability of |Z_j| > c_j at any look j up to k equals alpha(t_k), the error that may be spent
until then. The spending function needs neither the number of looks nor their times in advance. The probabilities follow from
the recursion of Armitage, McPherson and Rowe (J. Royal Statistical Society A 132, 1969): the density of B(t_k) of the paths that
have not crossed, integrated look by look.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy

NODES, WEIGHTS = np.polynomial.legendre.leggauss(201)  # the integration rule between the boundaries
LARGEST = 40.0  # boundary (standard deviations) where no error is left to spend


def linear(alpha: float) -> Callable[[float], float]:
    """Spends `alpha` in proportion to the data: the power family of Kim and DeMets (Biometrika 74, 1987) with exponent 1, near
    Pocock's constant boundaries. Early looks can decide, at the price of a wider last interval."""
    return lambda share: alpha * min(1.0, share)


def boundaries(shares: Sequence[float], spend: Callable[[float], float]) -> list[float]:
    """Two-sided boundaries c_k for looks at the `shares` of the data: ascending, above 0, at most 1.

    `spend`: error spent until a share, not descending. Raises ValueError for other shares.
    """
    edges = (0.0, *shares)
    if any(not earlier < later for earlier, later in pairwise(edges)) or edges[-1] > 1:
        raise ValueError(f"shares of the data ascend from above 0 to at most 1; these are {list(shares)}")
    found: list[float] = []
    paths, spent = Paths(), 0.0
    for before, share in pairwise(edges):
        budget = max(0.0, spend(share) - spent)
        step, largest = (share - before) ** 0.5, LARGEST * share**0.5
        bound = largest
        if paths.crossing(largest, step) < budget:
            bound = scipy.optimize.brentq(paths.excess, 0, largest, args=(step, budget), xtol=1e-10)
        found.append(float(bound / share**0.5))
        paths = paths.after(step, min(bound, 9 * share**0.5))  # no mass beyond nine standard deviations
        spent += budget
    return found


@dataclass(frozen=True)
class Paths:
    """The paths of B that have crossed no boundary until a look: their density at `places`, times the weights of the integration
    rule. None yet: all are at 0."""

    places: np.ndarray | None = None
    mass: np.ndarray | None = None

    def crossing(self, bound: float, step: float) -> float:
        """The probability of being beyond +-bound at the next look, which is `step` (standard deviation of B) away."""
        if self.places is None or self.mass is None:
            return float(2 * scipy.special.ndtr(-bound / step))
        beyond = scipy.special.ndtr((self.places - bound) / step) + scipy.special.ndtr((-bound - self.places) / step)
        return float(self.mass @ beyond)

    def excess(self, bound: float, step: float, budget: float) -> float:
        """By how much `crossing` is above `budget`."""
        return self.crossing(bound, step) - budget

    def after(self, step: float, reach: float) -> "Paths":
        """Those within +-reach at the next look."""
        places = reach * NODES
        if self.places is None or self.mass is None:
            density = np.exp(-((places / step) ** 2) / 2)
        else:
            density = np.exp(-(((places[:, None] - self.places[None, :]) / step) ** 2) / 2) @ self.mass
        return Paths(places, reach * WEIGHTS * density / (step * np.sqrt(2 * np.pi)))
