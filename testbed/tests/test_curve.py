"""Chain curves: only valid runs are in them, and the cache says of which runs each is."""

import io
import json
from pathlib import Path

import pytest

from record import manifest
from scenarios.scenario import Scenario
from testbed import __main__ as manet
from testbed.campaigns.experiment import load
from testbed.campaigns.library import find
from testbed.campaigns.progress import Progress
from testbed.curves.curve import Curve, curve_of, read, store
from testbed.curves.measure import measure
from testbed.errors import RunError
from testbed.tests.test_campaign import Ended, FakeRuns

TRIES = 3  # a run is repeated twice


class Chains(FakeRuns):
    """h hops carry 1200 / h kbit/s, in a run that is not valid a third of it."""

    def __call__(self, scenario: Scenario, seed: int, directory: Path, **options: object) -> Ended:
        ended = super().__call__(scenario, seed, directory, **options)
        record = json.loads((directory / "run.json").read_text())
        (directory / "run.json").write_text(json.dumps(record | {"seed": seed, "cell": options["cell"], "id": str(directory)}))
        bps = 1.2e6 / scenario.hops / (1 if ended.verdict == "valid" else 3)
        flow = {"traffic": "bulk", "from": "sta1", "to": "sta2", "acked_bps": bps}
        metrics = {"format": "manet-metrics/1", "flows": {"flow1": flow}, "air": None, "checks": []}
        (directory / "metrics.json").write_text(json.dumps(metrics))
        manifest.write(directory)
        return ended


@pytest.fixture
def curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Curve:
    monkeypatch.setenv("MANET_CACHE", str(tmp_path / "cache"))
    return curve_of(Scenario(hops=2))


def test_a_suspect_run_is_repeated_and_not_in_the_curve(curve: Curve) -> None:
    runs = Chains({("hops4", 2): [Ended(verdict="suspect")]})
    document = measure(curve, runs, Progress(stream=io.StringIO()), jobs=2)
    assert runs.calls.count(("hops4", 2)) == 2
    assert document["values"]["4"] == 300
    assert (document["measured"]["verdicts"], document["measured"]["left_out"]) == ({"valid": 24}, {})
    assert read(curve) == document


def test_a_run_that_stays_suspect_is_left_out_and_counted(curve: Curve) -> None:
    runs = Chains({("hops4", 2): [Ended(verdict="suspect")] * TRIES})
    document = measure(curve, runs, Progress(stream=io.StringIO()), jobs=2)
    assert document["values"]["4"] == 300
    assert (document["measured"]["verdicts"], document["measured"]["left_out"]) == ({"valid": 23}, {"suspect": 1})


def test_a_chain_without_a_valid_run_gives_no_curve(curve: Curve) -> None:
    runs = Chains({("hops4", seed): [Ended(verdict="suspect")] * TRIES for seed in (1, 2, 3)})
    with pytest.raises(RunError, match=r"no run of 4 hops is valid after 3 tries; run again on a quieter machine"):
        measure(curve, runs, Progress(stream=io.StringIO()), jobs=2)
    assert read(curve) is None


def test_a_cached_curve_of_suspect_runs_is_measured_again(curve: Curve) -> None:
    store(curve, {1: 1200.0}, {"verdicts": {"suspect": 12, "valid": 12}})
    assert read(curve) is None


def test_show_says_when_where_and_of_which_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv("MANET_CACHE", str(tmp_path))
    of_cell = curve_of(load(find("hv-fig3")).cells[0].scenario)
    measure(of_cell, Chains({("hops4", 2): [Ended(verdict="suspect")] * TRIES}), Progress(stream=io.StringIO()), jobs=2)
    assert manet.main(["curve", "show", "hv-fig3"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "1, 2, 3, ... hops: 1200 600 400 300 240 200 171 150 kbit/s" in printed
    assert ": 23 valid runs of 30 s, 1 suspect left out, ±0 kbit/s at most" in printed
