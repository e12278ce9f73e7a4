"""Histories made up for the tests."""

import numpy as np
from scipy import stats

from analysis.nights.change import ALARMS_OF_MONTH, MAX_NIGHTS, MIN_NIGHTS, NIGHTS_OF_MONTH, Night, Series, judge

# of night values and of repetitions: near those of the medium's speed (docs/archive/validation.md)
SPREAD, REPETITION_SPREAD = 0.008, 0.02
REPETITIONS, METRICS = 15, 3
CHUNK = 1000  # months in memory at a time


def noisy_night(random, number, mean=1.0, spread=SPREAD, repetition_spread=REPETITION_SPREAD):
    """A night whose level differs from others, with repetitions around it."""
    level = mean * (1 + spread * random.standard_normal())
    values = level * (1 + repetition_spread * random.standard_normal(REPETITIONS))
    return Night(f"night{number:03}", f"c{number}", tuple(values))


def series(nights, metric="speed/x/cpu-ratio", relevant=0.03, exact=False, part="speed"):
    return Series(part, metric, "of reference", relevant, exact, tuple(nights), (part, metric))


def quiet_values(random, months):
    """Values of nights without a change, months x metrics x nights: a month, after the fewest nights that a test takes."""
    shape = (months, METRICS, MIN_NIGHTS + NIGHTS_OF_MONTH, 1)
    levels = 1 + SPREAD * random.standard_normal(shape)
    repetitions = levels * (1 + REPETITION_SPREAD * random.standard_normal((*shape[:-1], REPETITIONS)))
    return np.median(repetitions, axis=-1)


def judged(values, relevant=0.0, month=ALARMS_OF_MONTH):
    """Whether each night of a month (metrics x nights) has an alarm, by the program."""
    histories = [[Night(str(number), "c", (float(value),)) for number, value in enumerate(row)] for row in values]
    return [
        any(one.alarm for one in judge([series(row[: last + 1], str(k), relevant) for k, row in enumerate(histories)], month))
        for last in range(MIN_NIGHTS, values.shape[-1])
    ]


def simulated(values, month=ALARMS_OF_MONTH):
    """Whether each night of each month has an alarm without a smallest change that matters, by the rule for all months at once:
    Holm's procedure rejects something if the least significance is at most the error by the number of metrics."""
    alarms = []
    for last in range(MIN_NIGHTS, values.shape[-1]):
        earlier, tonight = values[..., max(0, last - MAX_NIGHTS) : last], values[..., last]
        nights = earlier.shape[-1]
        scale = earlier.std(axis=-1, ddof=1) * np.sqrt(1 + 1 / nights)
        limit = stats.t.isf(month / NIGHTS_OF_MONTH / METRICS / 2, nights - 1)
        alarms.append((np.abs(tonight - earlier.mean(axis=-1)) >= limit * scale).any(axis=1))
    return np.stack(alarms, axis=1)


def months_with_an_alarm(months, seed=0, month=ALARMS_OF_MONTH):
    """How many of so many months without a change raise an alarm."""
    random = np.random.default_rng(seed)
    return sum(int(simulated(quiet_values(random, CHUNK), month).any(axis=1).sum()) for _ in range(months // CHUNK))
