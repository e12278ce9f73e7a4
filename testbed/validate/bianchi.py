"""Saturation throughput of n stations that all hear one another: Bianchi's model and its retry-limited form.

G. Bianchi, "Performance Analysis of the IEEE 802.11 Distributed Coordination Function", IEEE JSAC 18(3), 2000:
a station transmits in a slot with probability tau, a transmission collides with probability p, both constant;
    tau = f(p)                      the station's backoff chain, equation (7)
    p = 1 - (1 - tau)^(n-1)         equation (9)
and a slot is idle (sigma), a success (Ts) or a collision (Tc), equations (10) to (13).

The chain enters only through the mean number of slots per stage, so it is written here for any list of windows
W_i (backoff uniform in 0..W_i-1, mean stay (W_i+1)/2 slots, the slot of the transmission included):
    tau = sum_i p^i / sum_i p^i (W_i+1)/2
With W_i = 2^i W up to stage m and for ever at stage m this is equation (7) (a test compares); cut off after R
attempts, the packet then being dropped, it is H. Wu et al., "Performance of Reliable Transport Protocol over
IEEE 802.11 Wireless LAN", INFOCOM 2002. The windows are a list since ns-2 has 31, 63, 127, ... (`random % cw`)
where the standard has 32, 64, 128, ...

Freezing. In the 2000 paper a counter also goes down by one for a busy slot (the busy period is one slot). The
standard's counter (802.11-1999 9.2.5.2) freezes: a station with k slots left before a busy period has k left
after it, so that the first slot after it can be used only by a station that was itself on the air and drew 0
(I. Tinnirello, G. Bianchi, Y. Xiao, "Refinements on IEEE 802.11 Distributed Coordination Function Modeling
Approaches", IEEE Trans. Vehicular Technology 59(3), 2010). `freezing=True` is our form of that: a draw of k takes
k slots and not k+1; every busy period takes one empty slot more; after a success a draw of 0 (probability 1/W_0)
sends again at once, and after a collision, taken to be of two, either party does so with 1/W of its next stage,
which is a success (both at once is left out). ns-3's reference for its wifi-bianchi example has the same slot
and the same row of successes with the chain of 2000, and nothing after collisions; a test compares.
"""

from collections.abc import Sequence
from dataclasses import dataclass

RETRY_FOREVER = 500  # attempts; 0.9^500 is 1e-23


@dataclass(frozen=True)
class Backoff:
    """The windows of the stages (the last one repeats), and the attempts after which a packet is dropped (None: never)."""

    windows: Sequence[int]
    attempts: int | None = None


@dataclass(frozen=True)
class Slots:
    """Durations in any one unit: empty slot, success and collision (a busy period up to the next slot), payload."""

    empty: float
    success: float
    collision: float
    payload: float


@dataclass(frozen=True)
class Saturation:
    """tau and p at the fixed point, and the share of time (0 to 1) that is payload."""

    tau: float
    p: float
    utilisation: float


def saturation(stations: int, backoff: Backoff, slots: Slots, freezing: bool = False) -> Saturation:
    """Solve the model for `stations` saturated senders."""
    tau = transmission_probability(stations, backoff, freezing)
    silent = (1.0 - tau) ** stations
    one = stations * tau * (1.0 - tau) ** (stations - 1)
    several = 1.0 - silent - one
    p = 1.0 - (1.0 - tau) ** (stations - 1)
    time = silent * slots.empty + one * slots.success + several * slots.collision
    successes = one
    if freezing:
        # The slots only a party of the busy period can use: a row of successes after a success (geometric), one
        # such row after a collision.
        row = 1.0 / (1.0 - 1.0 / backoff.windows[0])
        after_collision = several * 2.0 * _zero_after_failure(p, backoff)
        successes = (one + after_collision) * row
        time += (successes - one) * slots.success + (one + several) * slots.empty
    return Saturation(tau, p, successes * slots.payload / time)


def transmission_probability(stations: int, backoff: Backoff, freezing: bool = False) -> float:
    """tau where the chain and the coupling meet: bisection, since tau(p(tau)) - tau falls with tau."""
    low, high = 0.0, 1.0
    for _ in range(100):
        tau = (low + high) / 2
        if tau in (low, high):
            break  # no number lies between
        collision = 1.0 - (1.0 - tau) ** (stations - 1)
        low, high = (tau, high) if chain(collision, backoff, freezing) > tau else (low, tau)
    return (low + high) / 2


def chain(collision: float, backoff: Backoff, freezing: bool = False) -> float:
    """Probability of sending in a slot, given the probability that a sent frame collides."""
    weights, windows = _attempts(collision, backoff)
    slots = sum(w * _mean_stay(window, freezing) for w, window in zip(weights, windows, strict=True))
    return sum(weights) / slots


def _attempts(collision: float, backoff: Backoff) -> tuple[list[float], list[int]]:
    """For each possible attempt of a packet: its frequency and its window."""
    numbers = range(backoff.attempts or RETRY_FOREVER)
    last = len(backoff.windows) - 1
    return [collision**i for i in numbers], [backoff.windows[min(i, last)] for i in numbers]


def _zero_after_failure(collision: float, backoff: Backoff) -> float:
    """Probability that a station whose attempt failed draws 0; after the last attempt the first window is back."""
    weights, windows = _attempts(collision, backoff)
    following = [*windows[1:], windows[0]]
    return sum(w / window for w, window in zip(weights, following, strict=True)) / sum(weights)


def _mean_stay(window: int, freezing: bool) -> float:
    """Mean slots from a draw to its transmission, the latter's slot included.

    Frozen: a draw of k takes k slots, and one of 0 sends inside the busy period and is no stay: the mean of 1..W-1.
    """
    return window / 2 if freezing else (window + 1) / 2
