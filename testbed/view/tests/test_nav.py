"""NAV of a recorded run: that of the medium while it ran."""

from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from testbed.errors import UsageError
from testbed.runs.under_way import medium_of
from testbed.tests.running import Background, chain, needs_runs
from testbed.view.nav import _times
from testbed.view.recorded import RecordedRun
from testbed.view.tests.serving import view

STATIONS = {"hops": 4, "window": 8, "duration": 6, "tcp": "newreno", "routing": "static"}
SAMPLES = 400


@pytest.mark.root
@needs_runs
def test_nav_of_the_record_is_that_of_the_medium_while_it_ran(tmp_path: Path):
    directory = tmp_path / "run"
    running = Background(chain(**STATIONS), directory).at("traffic", 0.1)
    medium = medium_of(directory)
    assert medium is not None
    samples = [medium.ask("nav") for _ in range(SAMPLES)]
    medium.close()
    assert running.result().status == "complete"
    recorded = RecordedRun(directory)
    end_ns = recorded.end_ns
    times = recorded.nav(0, end_ns + 1)["stations"]
    seen = 0
    for sample in samples:
        now_ns = sample["model_ns"]
        for station, until_ns in sample["nav_until_ns"].items():
            reserved = any(begin <= now_ns < end for begin, end in times[station])
            assert reserved == (until_ns > now_ns), (station, now_ns, until_ns)
            seen += reserved
    assert seen > SAMPLES / 10, "the stations of a busy chain defer"
    with view(directory) as served:
        begin_ns = samples[0]["model_ns"]
        found = served.ask(f"/api/nav?from={begin_ns}&to={begin_ns + 20_000_000}")["stations"]
    assert found == {
        name: [list(time) for time in times[name] if time[0] <= begin_ns + 20_000_000 and time[1] > begin_ns] for name in times
    }


@pytest.mark.root
@needs_runs
def test_nav_is_unknown_without_the_log_of_inputs_or_with_another_air_log(tmp_path: Path):
    directory = tmp_path / "run"
    assert Background(chain(), directory).result().status == "complete"
    air = directory / "air.csv"
    air.write_text(air.read_text().replace(",ack,", ",cts,", 1))
    with pytest.raises(UsageError, match=r"NAV is unknown: this version's replay differs from air.csv in line"):
        RecordedRun(directory).nav(0, 10**9)
    (directory / "inputs.jsonl").unlink()
    with pytest.raises(UsageError, match="has no log of inputs"):
        RecordedRun(directory).nav(0, 10**9)
    assert RunDirectory(directory).flows


def test_changes_become_times_that_do_not_touch():
    # reserved, extended, again; forgotten at 70 by a switch
    assert _times([(10, 20), (15, 30), (40, 50), (60, 90), (70, 0), (75, 75)]) == [(10, 30), (40, 50), (60, 70)]
    assert _times([(10, 20), (20, 25)]) == [(10, 25)]
