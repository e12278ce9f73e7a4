"""ns-2.35 as the reference: rerun its scenarios, store and read its tables.

Scenarios are medium/validation/*.tcl, tables medium/validation/ns2_*.csv: one row per run (seed), a column
per parameter. Only a rerun needs Debian's package `ns2` (2.35+dfsg).
Same package, same seed: same row (ns-2 is deterministic), so a rerun leaves the files as they are.
"""

import csv
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import RunError, UsageError
from testbed.programs import ROOT

FOLDER = ROOT / "medium" / "validation"
SEEDS = (1, 2, 3, 4, 5)
TIMEOUT_S = 600.0
CAPTURE_RATIO = 10.0  # CPThresh of ns-2: 10 dB
NO_CAPTURE_RATIO = 1e9
SENSE_550_M_W, SENSE_250_M_W = 1.559e-11, 3.652e-10  # two-ray ground, 0.28183815 W: formats/radio.md
NEAR_M, FAR_M = 50, 200

Row = dict[str, str]
Value = int | float | str


@dataclass(frozen=True)
class Run:
    """One run of ns-2: a scenario, its arguments, and the columns that name the row."""

    table: str
    scenario: str
    arguments: dict[str, Value]
    columns: dict[str, Value]
    counts_frames: bool = False


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation over ns-2's seeds."""

    mean: float
    deviation: float
    seeds: int


def runs() -> list[Run]:
    """All runs of the reference, the longest first, so that two workers end at the same time."""
    return [*_saturation(), *_near_far(), *_hidden(), *_tcp_chains(), *_udp_chains()]


def _saturation() -> Iterator[Run]:
    for senders in (50, 20, 10, 5, 2, 1):
        for rts in ("on", "off"):
            for seed in SEEDS:
                offered_kbps = 2400 if senders <= 2 else 1000
                yield Run(
                    "ns2_saturation",
                    "one_hop",
                    {
                        "layout": "circle",
                        "senders": senders,
                        "rts_threshold": _threshold(rts),
                        "offered_bps": offered_kbps * 1000,
                        "start_s": 8 if senders > 35 else 4,  # ARP of 50 senders takes 5 s
                    },
                    {"senders": senders, "rts": rts, "offered_kbps": offered_kbps, "measured_s": 30, "seed": seed},
                    counts_frames=True,
                )


def _near_far() -> Iterator[Run]:
    """One sender 23 dB above the others: the receiver captures its frame among those that begin in one slot."""
    for senders in (16, 6, 2):
        for rts in ("on", "off"):
            for seed in SEEDS:
                yield Run(
                    "ns2_near_far",
                    "one_hop",
                    {
                        "layout": "near-far",
                        "senders": senders,
                        "distance_a_m": NEAR_M,
                        "distance_c_m": FAR_M,
                        "rts_threshold": _threshold(rts),
                        "ip_bytes": 1000,
                        "offered_bps": 2_400_000,
                        "measured_s": 120,
                    },
                    {
                        "senders": senders,
                        "near_m": NEAR_M,
                        "far_m": FAR_M,
                        "rts": rts,
                        "ip_bytes": 1000,
                        "offered_kbps": 2400,
                        "measured_s": 120,
                        "seed": seed,
                    },
                )


def _hidden() -> Iterator[Run]:
    for rts in ("on", "off"):
        for capture in ("on", "off"):
            for a_m, c_m in ((200, 200), (50, 240), (120, 240)):
                for offered_kbps in (2400, 400):
                    for seed in SEEDS:
                        yield Run(
                            "ns2_hidden",
                            "one_hop",
                            {
                                "layout": "line",
                                "distance_a_m": a_m,
                                "distance_c_m": c_m,
                                "rts_threshold": _threshold(rts),
                                "carrier_sense_w": SENSE_250_M_W,
                                "capture_ratio": CAPTURE_RATIO if capture == "on" else NO_CAPTURE_RATIO,
                                "offered_bps": offered_kbps * 1000,
                            },
                            {
                                "distance_a_m": a_m,
                                "distance_c_m": c_m,
                                "rts": rts,
                                "capture": capture,
                                "offered_kbps": offered_kbps,
                                "measured_s": 30,
                                "seed": seed,
                            },
                            counts_frames=True,
                        )


def _udp_chains() -> Iterator[Run]:
    long_chain = (150, 200, 250, 275, 300, 325, 350, 400, 450, 500, 550, 600, 800, 1000)
    for hops in range(10, 0, -1):
        for offered_kbps in {1: (1600, 2000), 2: (750, 900)}.get(hops, long_chain):
            for seed in SEEDS:
                yield Run(
                    "ns2_udp_chain",
                    "udp_chain",
                    {"hops": hops, "offered_bps": offered_kbps * 1000},
                    {"hops": hops, "spacing_m": 200, "offered_kbps": offered_kbps, "measured_s": 40, "seed": seed},
                )


def _tcp_chains() -> Iterator[Run]:
    """The references of hv-fig1: the default radio of ns-2, and the settings that fit figure 1 of Holland & Vaidya."""
    hv: dict[str, Value] = {"basic_rate": "2Mb", "plcp_rate": "2e6", "headers": 0}
    for radio, spacing_m, tcp, extra in (("ns2-dsss-2m", 200, "Newreno", {}), ("hv-dsss-2m", 180, "Reno", hv)):
        for hops in range(10, 0, -1):
            for seed in SEEDS:
                yield Run(
                    "ns2_tcp_chain",
                    "tcp_chain",
                    {"hops": hops, "spacing_m": spacing_m, "tcp": tcp, "window": 8, **extra},
                    {
                        "radio": radio,
                        "spacing_m": spacing_m,
                        "tcp": tcp,
                        "window": 8,
                        "hops": hops,
                        "measured_s": 100,
                        "seed": seed,
                    },
                )


def _threshold(rts: str) -> int:
    return 0 if rts == "on" else 3000


def rerun(progress: Callable[[int, int], None], workers: int | None = None) -> list[Path]:
    """Run everything again and write the tables; returns their paths. `progress(done, total)` after every run. Raises
    UsageError."""
    if shutil.which("ns") is None:
        raise UsageError("ns: not found; install ns-2.35 with: apt-get install ns2")
    todo = runs()
    rows: dict[str, list[tuple[int, Row]]] = {}
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        futures = {pool.submit(_run, run): position for position, run in enumerate(todo)}
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                position = futures[future]
                rows.setdefault(todo[position].table, []).append((position, future.result()))
                progress(done, len(todo))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [_write(name, [row for _, row in sorted(of_table, key=lambda pair: pair[0])]) for name, of_table in rows.items()]


def _run(run: Run) -> Row:
    with tempfile.TemporaryDirectory(prefix="manet-ns2-") as folder:
        trace = Path(folder) / "trace"
        arguments = dict(run.arguments, seed=run.columns["seed"])
        if run.counts_frames:
            arguments |= {"mac_trace": 1, "trace_file": str(trace)}
        result = call_ns(run.scenario, arguments, folder)
        row = {name: str(value) for name, value in run.columns.items()}
        row["throughput_kbps"] = result["kbps"]
        if run.counts_frames:
            start_s = float(arguments.get("start_s", 4)) + 1.0
            row["packets_per_sender"] = result["per_sender"]
            row |= _count_frames(trace, start_s, start_s + 30.0)
        elif run.table == "ns2_near_far":
            near_bits = 8 * int(result["per_sender"].split(":")[0]) * int(run.columns["ip_bytes"])
            row["near_kbps"] = f"{near_bits / int(run.columns['measured_s']) / 1000:.2f}"
            row["packets_per_sender"] = result["per_sender"]
        elif run.scenario == "tcp_chain":
            row |= {"retransmitted": result["retransmitted"], "timeouts": result["timeouts"]}
    return row


def call_ns(scenario: str, arguments: dict[str, Value], folder: str) -> Row:
    """The result that a scenario of ns-2 prints; `folder` takes its files. Raises RunError."""
    command = ["ns", str(FOLDER / f"{scenario}.tcl"), *(f"{name}={value}" for name, value in arguments.items())]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, cwd=folder, check=False)
    except subprocess.TimeoutExpired:
        raise RunError(f"{' '.join(command)}: not done after {TIMEOUT_S:.0f} s; run it by hand to see where it hangs") from None
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return dict(word.split("=", 1) for word in line.split()[1:])
    message = (done.stderr.strip().splitlines() or ["no message"])[-1]
    raise RunError(f"{' '.join(command)}: exit {done.returncode} without a result: {message}")


def _count_frames(trace: Path, from_s: float, to_s: float) -> Row:
    """Frames sent and packets given up between two times, from ns-2's MAC trace (old format)."""
    sent = {"RTS": 0, "cbr": 0, "ACK": 0}
    given_up = 0
    with trace.open() as lines:
        for line in lines:
            words = line.split(maxsplit=7)
            if len(words) < 8 or words[3] != "MAC" or not from_s <= float(words[1]) < to_s:
                continue
            if words[0] == "s" and words[6] in sent:
                sent[words[6]] += 1
            elif words[0] == "D" and words[4] == "RET" and words[6] == "cbr":
                given_up += 1
    attempts = sent["RTS"] or sent["cbr"]
    return {
        "rts_sent": str(sent["RTS"]),
        "data_sent": str(sent["cbr"]),
        "ack_sent": str(sent["ACK"]),
        "retry_drops": str(given_up),
        "failed_attempts": f"{1 - sent['ACK'] / attempts:.4f}" if attempts else "",
    }


def _write(name: str, rows: list[Row]) -> Path:
    path = FOLDER / f"{name}.csv"
    unfinished = path.with_suffix(".csv.new")
    with unfinished.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    unfinished.replace(path)
    return path


def read(name: str) -> list[Row]:
    """The rows of the stored table `name`, for example ns2_saturation. Raises UsageError."""
    path = FOLDER / f"{name}.csv"
    try:
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        raise UsageError(f"{path}: not found; make it with: manet validate --rerun-ns2") from None


def summarise(rows: list[Row], column: str = "throughput_kbps", **parameters: object) -> Summary:
    """Mean and deviation of `column` over the seeds of the rows with these parameters. Raises UsageError if there is none."""
    values = [float(r[column]) for r in rows if all(r[name] == str(value) for name, value in parameters.items())]
    if not values:
        raise UsageError(f"{parameters}: no such row in ns-2's table; make it with: manet validate --rerun-ns2")
    return summary(values)


def summary(values: Sequence[float]) -> Summary:
    """Mean and sample deviation, 0 for one value."""
    return Summary(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0, len(values))
