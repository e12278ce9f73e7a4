"""A distribution of a data file: one value, an empirical distribution function, or a log-normal distribution; and its draws.

An empirical distribution function is drawn from by inversion: the value at a uniform share, with linear interpolation between
its points (`whole`: the first point's value with at least this share). A log-normal distribution has the mean and variance given
before `min` and `max` cut it.
"""

import math
from bisect import bisect_left
from itertools import pairwise
from random import Random
from statistics import NormalDist
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from keys.models import KeyProblem, Strict, as_tuple

Number = Annotated[float, Field(ge=-1e12, le=1e12)]
SMALLEST_SHARE = 2.0**-54  # half the step of random(), whose 0 would be -infinity
Point = tuple[Number, Number]


class Distribution(Strict):
    """`value`, or `cdf`, or `mean` and `variance`; `min` and `max` cut it."""

    value: Number | None = None
    mean: Number | None = None
    variance: Number | None = None
    cdf: Annotated[tuple[Point, ...] | None, BeforeValidator(as_tuple)] = None
    whole: bool = False
    min: Number | None = None
    max: Number | None = None

    @model_validator(mode="after")
    def _checked(self) -> Self:
        forms = [key for key in ("value", "cdf", "mean") if getattr(self, key) is not None]
        if len(forms) != 1:
            raise KeyProblem((), "needs one of value, cdf, and mean with variance; give exactly one of them")
        if (self.mean is None) != (self.variance is None):
            raise KeyProblem((), "needs mean and variance together; give both")
        if self.whole and self.cdf is None:
            raise KeyProblem(("whole",), "is for a cdf; remove it")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise KeyProblem(("min",), f"{self.min:g} is above max = {self.max:g}; lower it, or raise max")
        self._check_log_normal()
        self._check_cdf()
        return self

    def _check_log_normal(self) -> None:
        if self.variance is not None and self.variance < 0:
            raise KeyProblem(("variance",), f"{self.variance:g} is negative; give 0 or more")
        if self.mean is not None and self.mean <= 0:
            raise KeyProblem(("mean",), f"{self.mean:g} is not above 0, as a log-normal mean is; correct it")

    def _check_cdf(self) -> None:
        points = self.cdf
        if points is None:
            return
        if not points:
            raise KeyProblem(("cdf",), "has no points; give pairs of value and share, as [[10, 0.5], [20, 1.0]]")
        for number, ((low, before), (high, share)) in enumerate(pairwise(points), start=2):
            if high < low or share < before:
                text = f"does not rise at point {number}: [{high:g}, {share:g}] follows [{low:g}, {before:g}]; correct it"
                raise KeyProblem(("cdf",), text)
        if not 0 <= points[0][1] <= 1 or points[-1][1] != 1:
            text = f"goes from a share of {points[0][1]:g} to {points[-1][1]:g}; shares are 0 to 1, the last is 1"
            raise KeyProblem(("cdf",), text)

    def draw(self, rng: Random) -> float:
        """The next value of the stream. Each draw takes one number of it."""
        return self._cut(self._at(rng.random()))

    def _at(self, share: float) -> float:
        if self.value is not None:
            return self.value
        if self.cdf is not None:
            return _inverse(self.cdf, share, self.whole)
        assert self.mean is not None and self.variance is not None
        square = math.log1p(self.variance / self.mean**2)
        normal = NormalDist().inv_cdf(max(share, SMALLEST_SHARE))
        return math.exp(math.log(self.mean) - square / 2 + math.sqrt(square) * normal)

    def _cut(self, value: float) -> float:
        if self.min is not None:
            value = max(value, self.min)
        return value if self.max is None else min(value, self.max)

    @property
    def lower_bound(self) -> float:
        """No draw is below it."""
        lowest = self.value if self.value is not None else self.cdf[0][0] if self.cdf is not None else 0.0
        return self._cut(lowest)


def _inverse(points: tuple[Point, ...], share: float, whole: bool) -> float:
    index = min(bisect_left(points, share, key=lambda point: point[1]), len(points) - 1)
    value, up_to = points[index]
    if whole or index == 0:
        return value
    low, before = points[index - 1]
    return value if up_to == before else low + (value - low) * (share - before) / (up_to - before)
