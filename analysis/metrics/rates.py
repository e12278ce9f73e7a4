"""The rates of a run: for each station and peer the attempts and their fates by rate, of the air log (formats/air.md), and what
the sender's rate control knew at the end (rates.json).

An attempt is a data frame to one station, of an A-MPDU each MPDU. The counts are of the whole run, warm-up included, as those of
rates.json.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl

from analysis.captures.air import begins_ppdu, natural, read_data_attempts
from record.errors import RunFileError
from record.files import read_object

NAME, FORMAT = "rates.json", "manet-rates/1"
TABLE_FORMAT = "manet-rate-tables/1"
LEGEND = (
    "now: A to D have the best estimated throughput, P is the most reliable (minstrel, minstrel-ht); "
    "other rate controls have A alone"
)


@dataclass(frozen=True)
class Known:
    """A rate as the sender's rate control knew it at the end of the run."""

    roles: str
    success: float | None  # of an MPDU, 0 to 1
    throughput_bps: float | None
    acknowledged: int  # MPDUs, by ACK or Block Ack


@dataclass(frozen=True)
class RateRow:
    """The attempts of a station to a peer at one rate. `known` is None without rates.json, and for a rate that is not in it."""

    mode: str | None  # name of an MCS
    rate_bps: int
    attempts: int
    delivered: int
    ppdus: int
    airtime_ns: int
    known: Known | None

    @property
    def name(self) -> str:
        """`ht-mcs7-20`, or `54` for Mbit/s."""
        return self.mode or f"{self.rate_bps / 1e6:g}"


@dataclass(frozen=True)
class Link:
    """A station's attempts to one peer, slowest rate first; not empty."""

    station: str
    peer: str
    rows: list[RateRow]

    @property
    def attempts(self) -> int:
        """At all rates."""
        return sum(row.attempts for row in self.rows)

    @property
    def delivered(self) -> int:
        """At all rates."""
        return sum(row.delivered for row in self.rows)

    @property
    def mean_mpdus(self) -> float | None:
        """Mean number of MPDUs in a PPDU; None if nothing was sent."""
        ppdus = sum(row.ppdus for row in self.rows)
        return self.attempts / ppdus if ppdus else None

    @property
    def mean_rate_bps(self) -> float | None:
        """Mean data rate of the attempts; None if nothing was sent."""
        weighted = sum(row.rate_bps * row.attempts for row in self.rows)
        return weighted / self.attempts if self.attempts else None


@dataclass(frozen=True)
class RunRates:
    """All links of a run. `rate_control` is its key in the scenario; None without rates.json."""

    rate_control: str | None
    links: list[Link] = field(default_factory=list)

    def of(self, station: str | None) -> "RunRates":
        """Those of one sender; None: all."""
        links = [link for link in self.links if station in (None, link.station)]
        return RunRates(self.rate_control, links)


def read_rates(directory: Path, air_log: str = "air.csv") -> RunRates:
    """The rates of the run in `directory`. RunFileError for a run without data frames to one station, and for malformed files."""
    path = directory / air_log
    attempts = read_data_attempts(path)
    if attempts.is_empty():
        raise RunFileError(
            f"{path}: no station sent data to a single station, so there are no rates; run it with a flow, or see log/ of the run"
        )
    rate_control, known = _known(directory / NAME)
    counted = attempts.group_by("station", "peer", "mode", "rate_bps").agg(
        pl.len().alias("attempts"),
        (pl.col("fate") == "delivered").sum().alias("delivered"),
        begins_ppdu(attempts).sum().alias("ppdus"),
        pl.col("airtime_ns").sum(),
    )
    rows = {(*map(str, row[:2]), row[2], row[3]): row[4:] for row in counted.iter_rows()}
    keys = sorted({*rows, *known}, key=lambda key: (natural(key[0]), natural(key[1]), key[3], key[2] or ""))
    links = []
    for (station, peer), of_link in groupby(keys, key=lambda key: key[:2]):
        table = []
        for key in of_link:
            attempts_at, delivered, ppdus, airtime_ns = rows.get(key, (0, 0, 0, 0))
            table.append(RateRow(key[2], key[3], attempts_at, delivered, ppdus, airtime_ns, known.get(key)))
        links.append(Link(station, peer, table))
    return RunRates(rate_control, links)


_Key = tuple[str, str, str | None, int]  # station, peer, mode, rate


def _known(path: Path) -> tuple[str | None, dict[_Key, Known]]:
    """The content of rates.json. A run whose data were all sent at the profile's rate, and an old one, has none."""
    if not path.exists():
        return None, {}
    content = read_object(path)
    try:
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']}")
        return content["rate_control"], dict(_entries(content["stations"]))
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise RunFileError(f"{path}: not what {FORMAT} says (formats/air.md): {problem!r}; run it again") from None


def _entries(stations: dict[str, Any]) -> Iterator[tuple[_Key, Known]]:
    for station, peers in stations.items():
        for peer, rows in peers.items():
            for row in rows:
                known = Known(row["roles"], row["success"], row["throughput_bps"], row["acknowledged"])
                yield (station, peer, row["mode"], int(row["rate_bps"])), known


def lines(rates: RunRates) -> list[str]:
    """The tables as text: a head for each link, then a line for each rate."""
    found = []
    for link in rates.links:
        found += [_head(rates, link), _COLUMNS, *(_line(link, row) for row in link.rows)]
    if any(row.known and row.known.roles for link in rates.links for row in link.rows):
        found.append(LEGEND)
    return found


_COLUMNS = (
    f"  {'rate':<19} {'Mbit/s':>6} {'frames':>7} {'share':>6} {'arrived':>7} {'a PPDU':>6}"
    f"  {'now':<5} {'success':>7} {'Mbit/s':>6}"
)


def _head(rates: RunRates, link: Link) -> str:
    text = f"{link.station} to {link.peer}"
    if rates.rate_control:
        text += f", {rates.rate_control}"
    text += f": {link.attempts} frame{'s' * (link.attempts != 1)}"
    if not link.attempts or link.mean_mpdus is None or link.mean_rate_bps is None:
        return text
    text += f", {link.delivered / link.attempts:.1%} arrived, mean rate {link.mean_rate_bps / 1e6:.1f} Mbit/s"
    return text + (f", {link.mean_mpdus:.1f} in a PPDU" if link.mean_mpdus > 1 else "")


def _line(link: Link, row: RateRow) -> str:
    known = row.known
    success = "" if known is None or known.success is None else f"{known.success:.1%}"
    throughput = "" if known is None or known.throughput_bps is None else f"{known.throughput_bps / 1e6:.1f}"
    arrived = f"{row.delivered / row.attempts:.1%}" if row.attempts else ""
    share = f"{row.attempts / link.attempts:.1%}" if row.attempts else ""
    ppdu = f"{row.attempts / row.ppdus:.1f}" if row.ppdus else ""
    text = f"  {row.name:<19} {row.rate_bps / 1e6:>6.4g} {row.attempts:>7} {share:>6} {arrived:>7} {ppdu:>6}"
    return f"{text}  {known.roles if known else '':<5} {success:>7} {throughput:>6}".rstrip()


def as_json(rates: RunRates) -> dict[str, Any]:
    """The object that `manet rates --json` prints (docs/medium.md)."""
    return {
        "format": TABLE_FORMAT,
        "rate_control": rates.rate_control,
        "links": [
            {
                "from": link.station, "to": link.peer, "frames": link.attempts, "delivered": link.delivered,
                "mean_mpdus": link.mean_mpdus, "mean_rate_bps": link.mean_rate_bps,
                "rates": [_row_json(link, row) for row in link.rows],
            }
            for link in rates.links
        ],
    }  # fmt: skip


def _row_json(link: Link, row: RateRow) -> dict[str, Any]:
    known = row.known
    return {
        "mode": row.mode, "rate_bps": row.rate_bps, "frames": row.attempts,
        "share": row.attempts / link.attempts if link.attempts else None, "delivered": row.delivered, "ppdus": row.ppdus,
        "airtime_s": row.airtime_ns / 1e9,
        "roles": known.roles if known else None, "success": known.success if known else None,
        "throughput_bps": known.throughput_bps if known else None, "acknowledged": known.acknowledged if known else None,
    }  # fmt: skip
