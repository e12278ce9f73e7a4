"""A run as a data file of Flent (https://flent.org, "The data file format" of its manual; version 4 of the file).

The file names Flent's test `tcp_nup`, whose plots find the series: `TCP upload::1` is flow 1, `TCP upload sum` and `TCP
upload avg` are over all flows, in Mbit/s. The kernel's samples are in `raw_values`: `tcp_rtt` (smoothed RTT, ms) and `tcp_cwnd`
(segments). There is no ping: Flent's series `Ping (ms) ICMP` is absent, and plots of it are empty.
"""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from analysis.captures.rundir import RunDirectory
from analysis.exports.series import STEP_S, FlowSeries, flow_series
from record.files import atomic_file

VERSION = 4
SUFFIX = ".flent.gz"
TEST = "tcp_nup"
SERIES = "TCP upload"
MADE_FOR = "2.3.0"  # of Flent: the version whose reader was tried


def write(run: RunDirectory, out: Path) -> None:
    """Write the file; the same bytes for the same run."""
    text = json.dumps(data(run), indent=1, sort_keys=True)
    with atomic_file(out, "wb") as file:
        file.write(gzip.compress(text.encode(), mtime=0))


def data(run: RunDirectory) -> dict[str, Any]:
    """The content of the file; times count from the start of the traffic."""
    series = flow_series(run)
    length = max(len(one.mbps) for one in series)
    names = [f"{SERIES}::{one.flow.name.removeprefix('flow')}" for one in series]
    results: dict[str, list[float | None]] = {}
    results |= {name: [*one.mbps, *[None] * (length - len(one.mbps))] for name, one in zip(names, series, strict=True)}
    sums = [sum(one.mbps[step] for one in series if step < len(one.mbps)) for step in range(length)]
    results[f"{SERIES} sum"], results[f"{SERIES} avg"] = [*sums], [value / len(series) for value in sums]
    raw = {name: _raw(run, one) for name, one in zip(names, series, strict=True)}
    return {
        "version": VERSION,
        "metadata": _metadata(run, series, length),
        "x_values": [round(step * STEP_S, 9) for step in range(length)],
        "results": results,
        "raw_values": raw,
    }


def _raw(run: RunDirectory, series: FlowSeries) -> list[dict[str, float]]:
    """Throughput at the end of each step, and every sample, in the order of time (s since the Unix epoch)."""
    begin_s = run.traffic_ns / 1e9
    rows = [{"t": round(begin_s + (step + 1) * STEP_S, 6), "val": value} for step, value in enumerate(series.mbps)]
    for t_ns, srtt_us, cwnd in series.samples.select("t_ns", "srtt_us", "snd_cwnd").drop_nulls().iter_rows():
        rows.append({"t": round(t_ns / 1e9, 6), "tcp_rtt": srtt_us / 1e3, "tcp_cwnd": cwnd})
    return sorted(rows, key=lambda row: row["t"])


def _metadata(run: RunDirectory, series: list[FlowSeries], length: int) -> dict[str, Any]:
    record = run.run
    began = datetime.fromtimestamp(run.traffic_ns / 1e9, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    place = [record.get("experiment"), record.get("cell"), f"seed {record.get('seed')}"]
    flows = {one.flow.name: {"from": one.flow.source, "to": one.flow.target, "traffic": one.flow.traffic} for one in series}
    hosts = list(dict.fromkeys(one.flow.target for one in series))
    return {
        "NAME": TEST,
        "TITLE": " ".join(str(word) for word in place if word),
        "TIME": began,
        "T0": began,
        "LENGTH": length * STEP_S,
        "TOTAL_LENGTH": length * STEP_S,
        "STEP_SIZE": STEP_S,
        "HOST": hosts[0],
        "HOSTS": hosts,
        "LOCAL_HOST": series[0].flow.source,
        "IP_VERSION": 4,
        "FLENT_VERSION": MADE_FOR,
        "KERNEL_NAME": "Linux",
        "KERNEL_RELEASE": record.get("kernel"),
        "TEST_PARAMETERS": {"upload_streams": str(len(series))},
        "NOTE": f"made by manet export; commit {record.get('commit')}; verdict {run.verdict.get('verdict')}",
        "MANET": {"flows": flows, "tcp": record.get("tcp"), "scenario": run.scenario_keys},
        "SERIES_META": {},
    }
