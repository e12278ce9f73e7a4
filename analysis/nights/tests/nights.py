"""Histories made up for the tests."""

import numpy as np

from analysis.nights.change import Night, Series, judge

SPREAD, REPETITION_SPREAD = (
    0.008,
    0.02,
)  # of night values and of repetitions: chosen near those of the medium's speed (docs/validation.md)


def noisy_night(random, number, mean=1.0, spread=SPREAD):
    """A night whose level differs from others, with repetitions around it."""
    level = mean * (1 + spread * random.standard_normal())
    values = level * (1 + REPETITION_SPREAD * random.standard_normal(15))
    return Night(f"night{number:03}", f"c{number}", tuple(values))


def series(nights, metric="speed/x/cpu-ratio", relevant=0.03, exact=False, part="speed"):
    return Series(part, metric, "of reference", relevant, exact, tuple(nights), (part, metric))


def quiet_month(seed, metrics=3, relevant=0.0, before=5, nights=30, month=0.05):
    """How many alarms a month without a change raises, `before` earlier nights in the history."""
    random = np.random.default_rng(seed)
    histories = [[noisy_night(random, number) for number in range(before)] for _ in range(metrics)]
    alarms = 0
    for number in range(before, before + nights):
        for history in histories:
            history.append(noisy_night(random, number))
        verdicts = judge([series(history, f"speed/{k}", relevant) for k, history in enumerate(histories)], 1, month)
        alarms += sum(verdict.alarm for verdict in verdicts)
    return alarms
