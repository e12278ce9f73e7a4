"""Results as CSV: the result store of a folder, or the time series of a run."""

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc

from analysis.captures.rundir import RunDirectory
from analysis.exports.series import STEP_S, flow_series
from record.files import atomic_file

SUFFIX = ".csv"
COLUMNS = ("t_s", "flow", "metric", "unit", "value")


def write_table(table: pa.Table, out: Path) -> None:
    """A table of the result store; the units are in formats/store.md."""
    with atomic_file(out, "wb") as file:
        pc.write_csv(table, file)


def write_series(run: RunDirectory, out: Path) -> None:
    """One row per flow, metric and instant, in seconds from the start of the traffic: throughput of the step that begins
    then, and the samples of the sender's TCP."""
    with atomic_file(out) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for one in flow_series(run):
            name = one.flow.name
            writer.writerows(
                (f"{step * STEP_S:.1f}", name, "mbps", "Mbit/s", f"{value:.6g}") for step, value in enumerate(one.mbps)
            )
            for t_ns, cwnd, srtt_us in one.samples.select("t_ns", "snd_cwnd", "srtt_us").drop_nulls().iter_rows():
                t_s = f"{(t_ns - run.traffic_ns) / 1e9:.6f}"
                writer.writerow((t_s, name, "cwnd", "segments", cwnd))
                writer.writerow((t_s, name, "srtt", "ms", f"{srtt_us / 1e3:.6g}"))
