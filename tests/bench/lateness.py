"""How late the medium acts with 1, 4 and 8 runs of ten stations side by side, each with one TCP flow over nine hops."""

from concurrent.futures import ThreadPoolExecutor

from tests.bench import Table
from tests.bench.runs import TimedRun, bench_folder, chain, timed_run

STATIONS = 10
DURATION_S = 20.0
SIDE_BY_SIDE = (1, 4, 8)


def measure() -> Table:
    table = Table(
        f"Lateness of the medium, runs of {STATIONS} stations side by side, worst run of each row",
        ["runs", "p50 us", "p90 us", "p99 us", "p99.9 us", "max us", "valid", "suspect", "void"],
        "eight all valid on two cores",
    )
    for count in SIDE_BY_SIDE:
        with bench_folder() as folder, ThreadPoolExecutor(count) as pool:
            scenario = chain(STATIONS, DURATION_S)
            calls = [pool.submit(timed_run, scenario, folder / f"run{number}", number) for number in range(1, count + 1)]
            table.rows.append(_row(count, [call.result() for call in calls]))
    return table


def _row(count: int, runs: list[TimedRun]) -> list[str | float]:
    verdicts = [run.verdict for run in runs]
    worst = [
        float(max(verdict["lateness"][key] for verdict in verdicts))
        for key in ("p50_us", "p90_us", "p99_us", "p999_us", "max_us")
    ]
    words = [verdict["verdict"] for verdict in verdicts]
    return [count, *worst, *(words.count(word) for word in ("valid", "suspect", "void"))]
