"""Logs of RSSI samples by receivers: CSV with the columns `time_s`, `receiver`, `sender` and `rssi_dbm`, in any order; others are
left out.

A row is a frame of `sender` that `receiver` decoded. Times are seconds of any clock (of the day, since 1970): time 0 is the
earliest sample. The samples of a link within a window of `window_s` become one row in its middle, their mean in dBm. A link
without samples for longer than `gap_s` ends at the end of its last window: until its next sample, or for good; likewise a link
whose first sample is later than that begins there.

Frames that were not decoded leave no sample: near the sensitivity the mean is that of the better frames.
"""

import csv
import io
import math
from collections.abc import Iterator, Sequence

from mobility.measured.table import Links, LinksError, Row, made

COLUMNS = ("time_s", "receiver", "sender", "rssi_dbm")
WINDOW_S, GAP_S = 1.0, 10.0


def is_log(header: str) -> bool:
    """Whether a line of CSV is the header of such a log."""
    return set(COLUMNS) <= {word.strip() for word in header.split(",")}


def parse(text: str, name: str, stations: Sequence[str] | None = None, window_s: float = WINDOW_S, gap_s: float = GAP_S) -> Links:
    """The links of a log. LinksError names the line."""
    samples = list(_samples(text, name))
    if not samples:
        raise LinksError(f"{name}: has no samples; give a log with at least one")
    first_s, last_s = min(sample[0] for sample in samples), max(sample[0] for sample in samples)
    of_links: dict[tuple[str, str], dict[int, list[float]]] = {}
    for time_s, ends, rssi_dbm in samples:
        window = math.floor((time_s - first_s) / window_s)
        of_links.setdefault(ends, {}).setdefault(window, []).append(rssi_dbm)
    rows = [row for ends, windows in of_links.items() for row in _rows(ends, windows, last_s - first_s, window_s, gap_s)]
    note = f"{len(samples)} samples, means over {window_s:g} s; a link ends after {gap_s:g} s without one"
    return made(name, "rssi_dbm", rows, stations, [note])


def _rows(
    ends: tuple[str, str], windows: dict[int, list[float]], length_s: float, window_s: float, gap_s: float
) -> Iterator[Row]:
    numbers = sorted(windows)
    if numbers[0] * window_s > gap_s:
        yield Row(0.0, *ends, None)
    for number, following in zip(numbers, [*numbers[1:], math.inf], strict=True):
        yield Row((number + 0.5) * window_s, *ends, sum(windows[number]) / len(windows[number]))
        end_s = (number + 1) * window_s
        if min(following * window_s, length_s) - end_s > gap_s:
            yield Row(end_s, *ends, None)


def _samples(text: str, name: str) -> Iterator[tuple[float, tuple[str, str], float]]:
    """Time, (sender, receiver) and RSSI of each row."""
    lines = csv.reader(io.StringIO(text), skipinitialspace=True)
    places: list[int] | None = None
    width = 0
    try:
        for fields in lines:
            if not any(word.strip() for word in fields) or fields[0].lstrip().startswith("#"):
                continue
            if places is None:
                header = [word.strip() for word in fields]
                missing = next((column for column in COLUMNS if column not in header), None)
                if missing:
                    raise LinksError(f'{name}:{lines.line_num}: has no column "{missing}"; a log has {", ".join(COLUMNS)}')
                places, width = [header.index(column) for column in COLUMNS], len(header)
                continue
            if len(fields) != width:
                raise LinksError(f"{name}:{lines.line_num}: {len(fields)} fields; the header has {width}")
            time, receiver, sender, rssi = (fields[place].strip() for place in places)
            yield (
                _number(time, "time_s", name, lines.line_num),
                (sender, receiver),
                _number(rssi, "rssi_dbm", name, lines.line_num),
            )
    except csv.Error as problem:
        raise LinksError(f"{name}:{lines.line_num}: {problem}; give a plain CSV file") from None


def _number(text: str, column: str, name: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) < 1e12:
        raise LinksError(f"{name}:{line}: {column} `{text[:40]}` is no number; correct it")
    return value
