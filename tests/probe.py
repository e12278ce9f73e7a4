"""Was the host idle enough for a test in real time? A process that only sleeps measures by how much it woke too late.

A run that is void, or a timing that is out of bounds, says something about the code only on a host that had processors to spare.
`manet test` reruns what failed once, alone (testbed/commands/test.py). On that second try `Probe.void` skips the test if
the host was too busy for it; in every other case it fails it.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import NoReturn, Self

import pytest

SECOND_TRY = "MANET_SECOND_TRY"  # set by `manet test` for its second try
# A wake-up that comes later than this, and the share of the time lost in them: the limits of `suspect` for late frames and
# for stalls (docs/verdict.md).
LATE_S, BUSY_SHARE = 0.005, 0.01
SLEEP_S = 0.005
# Ends with its standard input; a process of its own, since the test's interpreter may hold its lock for longer than LATE_S.
SLEEPER = f"""
import select, sys, time
began = last = time.monotonic()
lost, asked = 0.0, False
while not asked:
    asked = select.select([sys.stdin], [], [], {SLEEP_S})[0]
    now = time.monotonic()
    late = now - last - {SLEEP_S}
    lost += late if late > {LATE_S} else 0.0
    last = now
print(lost, time.monotonic() - began)
"""


@dataclass(frozen=True)
class Idleness:
    """The time that was lost in late wake-ups, of the time watched."""

    lost_s: float
    watched_s: float

    @property
    def busy(self) -> bool:
        return self.lost_s >= BUSY_SHARE * self.watched_s

    def __str__(self) -> str:
        word = "too busy" if self.busy else "idle enough"
        share, limit = 100 * self.lost_s / self.watched_s, 100 * BUSY_SHARE
        return f"the host was {word} (a sleeping process lost {share:.1f} % of {self.watched_s:.1f} s, limit {limit:g} %)"


class Probe:
    """Watches the host from `with` to its end, or until `void` is called."""

    def __enter__(self) -> Self:
        self._idleness: Idleness | None = None
        self._sleeper = subprocess.Popen(
            [sys.executable, "-S", "-c", SLEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.idleness()

    def idleness(self) -> Idleness:
        """Ends the measurement when it is first called."""
        if self._idleness is None:
            out, _ = self._sleeper.communicate("\n")
            self._idleness = Idleness(*map(float, out.split()))
        return self._idleness

    def void(self, why: str) -> NoReturn:
        """Ends a test whose run shows nothing, or one that a late host may have spoilt."""
        idleness = self.idleness()
        if idleness.busy and SECOND_TRY in os.environ:
            pytest.skip(f"void twice: {why}; {idleness}")
        pytest.fail(f"void: {why}; {idleness}", pytrace=False)
