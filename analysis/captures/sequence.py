"""TCP sequence space: 32-bit numbers unwrapped, and the bytes covered so far (RFC 9293, 3.4)."""

from collections.abc import Sequence

import numpy as np

MODULUS = 1 << 32
_HALF = 1 << 31


def unwrap(raw: Sequence[int] | np.ndarray, origin: int) -> np.ndarray:
    """Raw numbers in the order seen -> distances from `origin` that do not wrap.

    Each number is assumed to be less than 2^31 from the one before it (the first: from the origin), as RFC 9293 guarantees for
    numbers of one window. Distances may be negative (a byte before the origin).
    """
    numbers = np.asarray(raw, dtype=np.int64)
    if numbers.size == 0:
        return numbers
    steps = np.diff(numbers, prepend=np.int64(origin))
    return np.cumsum((steps + _HALF) % MODULUS - _HALF)


class Coverage:
    """Bytes seen so far, as disjoint half-open ranges, and the length of the prefix without a hole.

    Ranges beyond the prefix are few (the holes of one window), so that a sorted list is enough.
    """

    def __init__(self) -> None:
        self.prefix = 0
        self._beyond: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> None:
        """Mark the bytes start..end-1 as seen."""
        if end <= self.prefix:
            return
        if start > self.prefix:
            self._beyond = _merge([*self._beyond, (start, end)])
            return
        self.prefix = end
        self._absorb()

    def skip_to(self, end: int) -> int:
        """Mark all bytes before `end` as present, seen or not; returns how many were not seen."""
        if end <= self.prefix:
            return 0
        seen = sum(min(stop, end) - start for start, stop in self._beyond if start < end)
        unseen = end - self.prefix - seen
        self.prefix = end
        self._absorb()
        return unseen

    def _absorb(self) -> None:
        """Merge the ranges that now touch the prefix into it."""
        while self._beyond and self._beyond[0][0] <= self.prefix:
            self.prefix = max(self.prefix, self._beyond.pop(0)[1])


def _merge(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
