"""The energy of radios: times by part of a second, joules by four powers, joules per megabyte; and what is refused."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from analysis.metrics.analyse import analyse_run
from analysis.metrics.energy import COLUMNS, joules, seconds_in_states
from analysis.tables.results import collect
from scenarios.energy import Energy

FIXTURE = Path(__file__).parent / "fixtures" / "two-flows"
POWERS = {"transmit_w": 2.0, "receive_w": 1.0, "sense_w": 0.5, "idle_w": 0.25}
HEAD = ",".join(COLUMNS)


def rows(*lines: str) -> pl.DataFrame:
    return pl.read_csv("\n".join([HEAD, *lines]).encode(), schema_overrides=COLUMNS)


def test_a_second_that_is_partly_in_the_window_counts_by_the_part():
    table = rows(
        "1000000000,sta1,100000000,200000000,300000000,400000000,0",
        "1000000000,sta10,0,0,0,0,1000000000",
        "1000000000,sta2,1000000000,0,0,0,0",
        "2000000000,sta1,0,0,0,1000000000,0",
        "2500000000,sta1,500000000,0,0,0,0",
    )
    # the last 0.4 s of the first second, the second one, and half of the last half
    seconds = seconds_in_states(table, 600_000_000, 2_250_000_000)
    assert list(seconds) == ["sta1", "sta2", "sta10"]
    assert seconds["sta1"] == pytest.approx({"transmit": 0.04 + 0.25, "receive": 0.08, "sense": 0.12, "idle": 1.16, "off": 0})
    assert seconds["sta10"] == pytest.approx({"transmit": 0, "receive": 0, "sense": 0, "idle": 0, "off": 0.4})
    # 0.29 x 2 + 0.08 + 0.12 / 2 + 1.16 / 4
    assert joules(seconds["sta1"], Energy(**POWERS)) == pytest.approx(1.01)
    assert joules(seconds["sta10"], Energy(**POWERS)) == 0


@pytest.fixture
def run_dir(tmp_path) -> Path:
    folder = Path(shutil.copytree(FIXTURE, tmp_path / "all" / "seed-1"))
    scenario = json.loads((folder / "scenario.json").read_text())
    (folder / "scenario.json").write_text(json.dumps(scenario | {"energy": POWERS}))
    return folder


def _radio_time(folder: Path, seconds: int) -> None:
    """Each of three stations sends for a tenth of each second and receives for another."""
    lines = [f"{second}000000000,sta{n},100000000,100000000,0,800000000,0" for second in range(1, seconds + 1) for n in (1, 2, 3)]
    (folder / "radio-time.csv").write_text("\n".join([HEAD, *lines]) + "\n")


def test_a_run_has_its_joules_and_those_of_a_megabyte(run_dir):
    _radio_time(run_dir, 60)
    metrics = analyse_run(run_dir)
    energy = metrics["energy"]
    window_s = metrics["air"]["window_s"]
    assert energy["window_s"] == window_s
    # 0.1 x 2 + 0.1 x 1 + 0.8 / 4 W for each of three stations
    assert energy["energy_joules"] == pytest.approx(3 * 0.5 * window_s)
    assert energy["stations"]["sta2"]["joules"] == pytest.approx(0.5 * window_s)
    assert energy["stations"]["sta2"]["transmit_s"] == pytest.approx(0.1 * window_s)
    flows = metrics["flows"].values()
    megabytes = sum(flow["goodput_bps"] * (flow["window_s"][1] - flow["window_s"][0]) for flow in flows) / 8e6
    assert energy["joules_per_megabyte"] == pytest.approx(energy["energy_joules"] / megabytes)


def test_the_tables_have_the_energy_of_a_run(run_dir, tmp_path):
    _radio_time(run_dir, 60)
    energy = analyse_run(run_dir)["energy"]
    results = collect(tmp_path, {"name": "x"}, [run_dir])
    (row,) = results.rows
    assert (row["energy_joules"], row["joules_per_megabyte"]) == (energy["energy_joules"], energy["joules_per_megabyte"])


def test_a_run_without_the_key_has_no_energy_and_one_without_the_times_a_failed_check(run_dir):
    failed = [check for check in analyse_run(run_dir)["checks"] if not check["ok"]]
    assert any(check["name"] == "energy readable" and "radio-time.csv: missing" in check["detail"] for check in failed)
    (run_dir / "radio-time.csv").write_text("t_ns,station\nx,sta1\n")
    failed = [check for check in analyse_run(run_dir)["checks"] if not check["ok"]]
    assert any("not the times of radios" in check["detail"] for check in failed)
    shutil.copy(FIXTURE / "scenario.json", run_dir / "scenario.json")
    assert "energy" not in analyse_run(run_dir)
