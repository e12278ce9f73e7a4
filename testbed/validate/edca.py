"""EDCA from IEEE Std 802.11-2020: throughput of one saturated category, and the shares of two.

Parameters are those of table 9-155 with the TXOP limits of AC_BE and AC_BK that docs/medium.md states.

One category alone never collides: a cycle is AIFS, the mean backoff, and the exchanges of a TXOP with SIFS between them
(10.23.2.8).

Two saturated contention functions with windows of a fixed size are a Markov chain over the slots that each has left when the
medium becomes idle. A slot counts at its beginning (10.23.2.4), so a function with r slots left and an AIFS that ends `late`
slots after the other's sends at the boundary r + late, and counts all boundaries from `late` on, that of the other's transmission
included. In one station a tie is an internal collision: the higher category sends, both draw anew. In two it is a collision: both
draw anew.
"""

from dataclasses import dataclass
from math import floor

import numpy as np

from testbed.validate import closed_form
from testbed.validate.radio import Radio

STEPS = 400  # of the chain, whose memory is a few rounds


@dataclass(frozen=True)
class Category:
    """Parameters of an access category: `txop_us` 0 is one exchange."""

    name: str
    dscp: int
    aifsn: int
    cw_min: int
    cw_max: int
    txop_us: int


def categories(radio: Radio) -> dict[str, Category]:
    """Table 9-155 for an OFDM PHY."""
    low, high = radio.cw_min, radio.cw_max
    return {
        one.name: one
        for one in (
            Category("voice", 46, 2, (low + 1) // 4 - 1, (low + 1) // 2 - 1, 2080),
            Category("video", 34, 2, (low + 1) // 2 - 1, low, 4096),
            Category("best_effort", 0, 3, low, high, 0),
            Category("background", 8, 7, low, high, 0),
        )
    }


def single_sender_bps(radio: Radio, category: Category, ip_bytes: int, rts: bool, distance_m: float) -> float:
    """Throughput of one saturated category in bit/s of IP packets, without aggregation."""
    exchange_us = closed_form.success_us(radio, ip_bytes, rts) - closed_form.difs_us(radio)
    exchange_us += (4 if rts else 2) * distance_m / closed_form.LIGHT_M_PER_US
    held = max(1, floor((category.txop_us + radio.sifs_us) / (exchange_us + radio.sifs_us)))
    aifs_us = radio.sifs_us + category.aifsn * radio.slot_us
    cycle_us = aifs_us + category.cw_min / 2 * radio.slot_us + held * exchange_us + (held - 1) * radio.sifs_us
    return 8e6 * ip_bytes * held / cycle_us


def share_of_second(first: tuple[int, int], second: tuple[int, int], *, in_one_station: bool) -> float:
    """Share of the second of two saturated functions in all successes. Each has (CW, AIFSN), CW fixed; the first is higher."""
    late = (max(0, first[1] - second[1]), max(0, second[1] - first[1]))
    sizes = (first[0] + 1, second[0] + 1)
    state = np.full(sizes, 1 / (sizes[0] * sizes[1]))
    sent = np.zeros(2)
    for _ in range(STEPS):
        following, sent = np.zeros(sizes), np.zeros(2)
        for (a, b), share in np.ndenumerate(state):
            at = (a + late[0], b + late[1])
            if at[0] == at[1]:
                sent[0] += share * in_one_station
                following += share / following.size
            elif at[0] < at[1]:
                sent[0] += share
                following[:, b - max(0, at[0] - late[1] + 1)] += share / sizes[0]
            else:
                sent[1] += share
                following[a - max(0, at[1] - late[0] + 1), :] += share / sizes[1]
        state = following
    return float(sent[1] / sent.sum())
