"""Limits of a mean without normality: from the sample and a bound beyond which no value lies.

Gaffke (*Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable*, Mathematical
Methods of Statistics 14, 2005): weigh the values and the bound by a random vector of the uniform Dirichlet distribution; the
quantile of the weighted mean is an upper limit of the mean. Values without spread give the limit of Clopper and Pearson
(Biometrika 26, 1934): of n pairs without an event, its share is at most 1 - error^(1/n). With many values it is the limit of
Student's t with its correction for skew. That it holds for every bounded distribution is Gaffke's conjecture, without a
counterexample (Phan, Thomas and Learned-Miller, *Towards practical mean bounds for small samples*, ICML 2021); tests/campaigns.py
tries it on ours.

The weighted mean of n + 1 points has a B-spline of degree n - 1 with these points as knots as its density (Curry and Schoenberg,
J. d'Analyse Mathematique 17, 1966), which is evaluated without cancellation.
"""

from collections.abc import Sequence

import scipy

CLOSE = 1e-9  # of the distance of the outermost points: the limit's tolerance


def upper_limit(values: Sequence[float], bound: float, error: float) -> float:
    """The mean is below it with a probability of at least 1 - `error`, if no value is above `bound`. At least two values, none
    of them above."""
    points = sorted([*values, bound])
    low, high = points[0], points[-1]
    if low == high:
        return high
    # on the unit interval, where the density's scale does not depend on the unit of the metric
    knots = [(point - low) / (high - low) for point in points]
    share = scipy.interpolate.BSpline.basis_element(knots, extrapolate=False).antiderivative()
    below, area = float(share(0.0)), 1 / len(values)

    def excess(place: float) -> float:
        return (float(share(place)) - below) / area - (1 - error)

    if excess(1 - CLOSE) <= 0:
        return high
    return low + (high - low) * float(scipy.optimize.brentq(excess, CLOSE, 1 - CLOSE, xtol=CLOSE))


def lower_limit(values: Sequence[float], bound: float, error: float) -> float:
    """The mean is above it with a probability of at least 1 - `error`, if no value is below `bound`."""
    return -upper_limit([-value for value in values], -bound, error)
