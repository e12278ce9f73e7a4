"""The energy of a run's radios: the time of each in its states, by radio-time.csv (formats/air.md), times the powers of the
scenario's key `energy` (scenarios/energy.py).

The file has a row for each station and second; of a second that is partly in the window its times count by the part. It is the
time of radios alone: not that of processors, displays or batteries.
"""

from typing import Any

import polars as pl

from analysis.captures.air import natural
from analysis.captures.rundir import RunDirectory
from record.errors import RunFileError
from record.files import plain_file
from scenarios.energy import Energy
from traffic.shared.kind import Metric

NAME = "radio-time.csv"
STATES = ("transmit", "receive", "sense", "idle", "off")
COLUMNS: dict[str, type[pl.DataType]] = {
    "t_ns": pl.Int64,
    "station": pl.String,
    **dict.fromkeys((f"{state}_ns" for state in STATES), pl.Int64),
}
MEGABYTE = 1e6

OF_RUN = (
    Metric("energy_joules", "J", "energy of all radios of stations over the span of the flows' windows, with the scenario's key "
           "`energy` ([below](#definitions))"),
    Metric("joules_per_megabyte", "J/MB", "that energy over the megabytes (10^6 bytes) of `goodput_bps` of all flows in their "
           "windows; `null` if nothing was delivered"),
)  # fmt: skip


def read_radio_time(run: RunDirectory) -> pl.DataFrame:
    """The rows of radio-time.csv as COLUMNS says. RunFileError for a file that is missing or is none."""
    path = run.path / NAME
    if not path.exists():
        raise RunFileError(f"{path}: missing; the medium writes it at the end of a run with the key `energy`")
    try:
        with plain_file(path) as file:
            return pl.read_csv(file, columns=list(COLUMNS), schema_overrides=COLUMNS)
    except pl.exceptions.PolarsError as problem:
        text = str(problem).splitlines()[0]
        raise RunFileError(f"{path}: not the times of radios (formats/air.md): {text}") from None


def seconds_in_states(rows: pl.DataFrame, begin_ns: int, end_ns: int) -> dict[str, dict[str, float]]:
    """The time of each station in each state between two instants of model time, s."""
    times = [f"{state}_ns" for state in STATES]
    length = pl.sum_horizontal(times)
    begins = pl.max_horizontal(pl.col("t_ns") - length, pl.lit(begin_ns))
    inside = (pl.min_horizontal(pl.col("t_ns"), pl.lit(end_ns)) - begins).clip(lower_bound=0) / length
    summed = rows.filter(length > 0).group_by("station").agg(((pl.col(time) * inside).sum() / 1e9).alias(time) for time in times)
    by_station = {
        name: dict(zip(STATES, seconds, strict=True)) for name, *seconds in summed.select("station", *times).iter_rows()
    }
    return {name: by_station[name] for name in sorted(by_station, key=natural)}


def joules(seconds: dict[str, float], powers: Energy) -> float:
    """The energy of a radio that was so long in each state."""
    sense_w = powers.idle_w if powers.sense_w is None else powers.sense_w
    of_state = {"transmit": powers.transmit_w, "receive": powers.receive_w, "sense": sense_w, "idle": powers.idle_w}
    return sum(seconds[state] * power_w for state, power_w in of_state.items())


def energy_of(run: RunDirectory, flows: dict[str, dict[str, Any]], begin_ns: int, end_ns: int) -> dict[str, Any] | None:
    """metrics.json's `energy` between two instants of model time; `flows` is its entry of that name. None without the scenario's
    key. RunFileError without the times of the radios."""
    powers = run.scenario.energy
    if powers is None:
        return None
    stations = {name: dict(seconds) for name, seconds in seconds_in_states(read_radio_time(run), begin_ns, end_ns).items()}
    by_station = {name: joules(seconds, powers) for name, seconds in stations.items()}
    rates = [(entry.get("goodput_bps"), entry.get("window_s")) for entry in flows.values()]
    megabytes = sum(rate / 8 * (window[1] - window[0]) for rate, window in rates if rate and window) / MEGABYTE
    total = sum(by_station.values())
    return {
        "window_s": (end_ns - begin_ns) / 1e9,
        "energy_joules": total,
        "joules_per_megabyte": total / megabytes if megabytes else None,
        "stations": {
            name: {f"{state}_s": second for state, second in seconds.items()} | {"joules": by_station[name]}
            for name, seconds in stations.items()
        },
    }
