"""Movement in scenarios on this kernel: the example in experiments/scenarios, against its geometry."""

from bisect import bisect_left
from itertools import pairwise
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from mobility import files
from scenarios.definition import load_scenario
from scenarios.scenario import Scenario
from testbed.programs import ROOT
from testbed.runs.run import run_scenario
from testbed.tests.running import air_rows, captured, needs_runs, run_json

pytestmark = [pytest.mark.root, pytest.mark.slow, needs_runs]

# Of ns2-dsss-2m under two-ray ground: its power times its antennas' heights, squared, over its threshold; 250.0107 m.
RANGE_M = (0.28183815 * 1.5**4 / 3.652e-10) ** 0.25
SECOND_NS = 1_000_000_000
GAP_S = 0.05  # between two datagrams of the example's second flow
LATE_S = 0.5  # how late a program may be on a loaded host; the medium itself acts at the instants of the trace
ON_THE_WAY_S = 0.02  # an exchange that began in range may end out of it, behind a TCP segment's


def crossings(scenario: Scenario, stations: tuple[str, str]) -> list[float]:
    """When the two stations pass each other's range, from the trace alone, to a nanosecond: a frame may begin just after."""
    trace = files.read(Path(scenario.mobility.file), scenario.station_names())

    def apart(at_ns: int) -> bool:
        one, other = (trace.position(station, at_ns / 1e9)[0] for station in stations)
        return abs(one - other) > RANGE_M

    found = []
    for begin_ns in range(0, 16 * SECOND_NS, SECOND_NS):
        now, times_ns = apart(begin_ns), range(begin_ns, begin_ns + SECOND_NS)
        index = bisect_left(times_ns, True, key=lambda at_ns, now=now: apart(at_ns) != now)
        found += [at_ns / 1e9 for at_ns in times_ns[index : index + 1]]
    return found


def longest_silence(times: list[float]) -> tuple[float, float]:
    return max(pairwise(times), key=lambda pair: pair[1] - pair[0])


def test_a_station_walks_out_of_range_and_back_and_tcp_stops_and_resumes(tmp_path: Path) -> None:
    scenario = load_scenario(ROOT / "experiments" / "scenarios" / "walk.toml")
    result = run_scenario(scenario, 1, tmp_path / "run")
    assert result.status == "complete", result.error
    out_s, back_s = crossings(scenario, ("sta2", "sta3"))
    assert (out_s, back_s) == pytest.approx((5.0, 9.0), abs=0.002)

    delivered = [int(row["t_ns"]) / 1e9 for row in air_rows(tmp_path / "run", "sta3", "deliver", "data") if row["peer"] == "sta2"]
    stops_s, resumes_s = longest_silence(delivered)
    assert out_s - GAP_S - LATE_S < stops_s < out_s + ON_THE_WAY_S
    # the relay still has some older datagrams to try when the station comes back; each may wait a last backoff
    assert back_s < resumes_s < back_s + 2 * GAP_S + LATE_S

    weak = [int(row["t_ns"]) / 1e9 for row in air_rows(tmp_path / "run", "sta2", "tx", "rts") if row["fate"] == "weak"]
    assert out_s <= min(weak) < out_s + 2 * GAP_S + LATE_S
    assert max(weak) < back_s

    epoch_s = run_json(tmp_path / "run")["epoch_ns"] / 1e9
    segments = captured(tmp_path / "run", "sta3", "tcp dst port 5201 and ip[2:2] = 1500", "-tt")
    times = [float(line.split()[0]) - epoch_s for line in segments]
    silent, speaks = longest_silence(times)
    assert silent < out_s + LATE_S
    # retransmissions at least double their distance: the first one that arrives left within twice the absence
    assert back_s < speaks < back_s + (back_s - out_s) + LATE_S
    assert sum(time > speaks for time in times) > 50
    checks = analyse_run(tmp_path / "run")["checks"]
    assert [check for check in checks if not check["ok"]] == []
