"""The way from the TCP and the stations of 1999 to those of today, switch by switch: the shares of `hv-eras`.

The way is the order of the variants in the experiment, for each beginning of their names up to its `today`; variants behind it
turn one setting of 1999. Each difference is between two variants over the same movements, with the interval that it has
everywhere (analysis/decisions/pairs.py).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.decisions.answers import Answered
from analysis.decisions.pairs import VARIANT, Pair, pairs
from analysis.tables.results import Row, counts, mean_and_interval

AXES = ("speed",)  # of the experiment
METRIC = "acked_kbps"
FIRST, LAST = "1999", "today"  # stations at the ends of a way
WITHOUT, WITH = "reno", "elfn"
TCPS = {WITHOUT: "Reno", WITH: "ELFN"}
SWITCHES = {  # station -> what it switches
    "icmp": "ELFN: notice of drops only",
    "no-arp": "no ARP",
    "dsr-rfc": "DSR: back-off of RFC 4728",
    "ack": "DSR: link breaks by its ACKs",
    "rto": "first RTO 1 s, not 6",
    "iw10": "initial window 10, not 1",
    "window": "window not bound to 8",
    "today": "Linux as shipped, CUBIC",
    "silent-arp": "ARP reports no failure",
    "rto-floor-1s": "RTO at least 1 s, not 0.2",
    "no-delayed-ack": "each segment acknowledged",
    "no-learning": "no routes from data packets",
}


@dataclass(frozen=True)
class Way:
    """The variants with one beginning of their names: `path` from 1999 to today, `turned` those with one setting of 1999
    turned."""

    tcp: str
    path: list[str]
    turned: list[str]

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Each variant with the one before it."""
        return list(zip(self.path[1:], self.path, strict=False))

    @property
    def whole(self) -> tuple[str, str]:
        """The last variant with the first."""
        return self.path[-1], self.path[0]

    @property
    def of_turned(self) -> list[tuple[str, str]]:
        """Each variant with one setting turned, with the first."""
        return [(variant, self.path[0]) for variant in self.turned]


@dataclass(frozen=True)
class Shares:
    """The differences of an experiment, by speed, variant compared and its base; `means` by speed and variant. `gains`: ELFN with
    Reno, at the stations of both ways."""

    speeds: list[str]
    ways: list[Way]
    gains: list[tuple[str, str]]
    means: Mapping[tuple[str, str], Mapping[str, Any]]
    pairs: Mapping[tuple[str, str, str], Pair]


def shares(variants: Sequence[str], rows: Iterable[Row], answers: Sequence[Answered]) -> Shares:
    """The shares by rows of table.csv; `variants` and `answers` are those of the experiment."""
    counted = [run for run in rows if counts(run)]
    speeds = sorted({str(run["speed"]) for run in counted}, key=float)
    ways = [_way(tcp, variants) for tcp in dict.fromkeys(variant.partition("-")[0] for variant in variants)]
    paths = {way.tcp: [station(variant) for variant in way.path] for way in ways}
    both = [each for each in paths.get(WITHOUT, ()) if each in paths.get(WITH, ())]
    gains = [(f"{WITH}-{each}", f"{WITHOUT}-{each}") for each in both]
    wanted = [pair for way in ways for pair in (*way.steps, way.whole, *way.of_turned)] + gains
    differences = [
        pair
        for compared, base in wanted
        if compared != base
        for pair in pairs(counted, AXES, VARIANT, base, (METRIC,), [compared], answers)
    ]
    values: dict[tuple[str, str], list[float | None]] = {}
    for run in counted:
        values.setdefault((str(run["speed"]), run[VARIANT]), []).append(run[METRIC])
    means = {(speed, variant): mean_and_interval(values.get((speed, variant), [])) for speed in speeds for variant in variants}
    return Shares(speeds, ways, gains, means, {(pair.where, pair.compared, pair.base): pair for pair in differences})


def station(variant: str) -> str:
    """`no-arp` of `reno-no-arp`."""
    return variant.partition("-")[2]


def name(variant: str) -> str:
    """The switch of a variant, in words."""
    here = station(variant)
    return here if here == FIRST else SWITCHES.get(here, here or variant)


def in_words(pair: Pair) -> str:
    """`+31 [-92, +149]`; without interval for a single pair."""
    low, high = pair.answer.low, pair.answer.high
    return f"{pair.difference:+.0f}" + ("" if low is None or high is None else f" [{low:+.0f}, {high:+.0f}]")


def _way(tcp: str, variants: Sequence[str]) -> Way:
    own = [variant for variant in variants if variant.partition("-")[0] == tcp]
    ends = next((number for number, variant in enumerate(own, start=1) if station(variant) == LAST), len(own))
    return Way(tcp, own[:ends], own[ends:])
