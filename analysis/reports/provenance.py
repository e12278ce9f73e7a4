"""The origin of an experiment's results: commit, kernel, versions, profile, size, seeds and time, as its runs recorded them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from analysis.tables.results import Results, size_of

MAX_VALUES = 4  # of different values in one line


def provenance(description: Mapping[str, Any], results: Results) -> tuple[tuple[str, str], ...]:
    """(label, value) pairs; a label without any value is left out."""
    rows = results.rows
    records = [row["record"] for row in rows]
    seeds = sorted({row["seed"] for row in rows if row["seed"] is not None})
    lengths = sorted({record["duration"] for record in records if record["duration"] is not None})
    times = [time_text(text) for text in sorted(record[key] for record in records for key in ("started", "ended") if record[key])]
    versions = sorted({f"{name}: {version}" for record in records for name, version in record["versions"].items()})
    entries = {
        "size": size_of(description),
        "seeds": _seeds(seeds),
        "measured time per run": f"{', '.join(f'{length:g}' for length in lengths[:MAX_VALUES])} s" if lengths else "",
        "profile": _values(row["profile"] for row in rows),
        "commit": _values(record["commit"] for record in records),
        "kernel": _values(record["kernel"] for record in records),
        "host": _values(record["host"] for record in records),
        "clock": _values(record["clock"] for record in records),
        "first run began, last ended": f"{times[0]}, {times[-1]}" if times else "",
        "versions": "; ".join(versions),
    }
    return tuple((label, value) for label, value in entries.items() if value)


def time_text(text: str) -> str:
    """An ISO 8601 time for readers, `2026-11-25 16:50:41 UTC`; another text as it is."""
    try:
        return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return text


def _values(values: Iterable[str]) -> str:
    """The only value, or each with its number of runs."""
    counted = Counter(value for value in values if value)
    if len(counted) <= 1:
        return next(iter(counted), "")
    shown = [f"{value} ({count} runs)" for value, count in counted.most_common(MAX_VALUES)]
    more = len(counted) - MAX_VALUES
    return "; ".join(shown + ([f"and {more} more"] if more > 0 else []))


def _seeds(seeds: list[int]) -> str:
    if not seeds:
        return ""
    together = seeds[-1] - seeds[0] == len(seeds) - 1
    return f"{seeds[0]} to {seeds[-1]}" if together and len(seeds) > 1 else ", ".join(map(str, seeds))
