"""The `manet` command from an experiment's name to its tables and figure, with real runs on this kernel."""

import csv
import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from testbed import __main__ as manet
from testbed.tests.running import needs_runs

pytestmark = [pytest.mark.root, pytest.mark.slow, needs_runs]

SUMMARY = ["hops", "variant", "profile", "metric", "unit", "mean", "ci95", "n", "published", "ns2", "valid", "suspect", "void"]
ARGUMENTS = "run hv-fig1 --variant ns2 --set hops=[1,2] --set warmup=1 --set duration=6 --seeds 1 --jobs 2 --json"


def answered(*arguments: str) -> tuple[int, dict]:
    """Status and answer of a `manet run --json`."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        status = manet.main([*ARGUMENTS.split(), *arguments])
    return status, json.loads(printed.getvalue())


class Ended(NamedTuple):
    folder: Path
    status: int
    answer: dict
    host: Any  # its `void`


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory, watched_host) -> Ended:
    """One experiment for all tests."""
    folder = tmp_path_factory.mktemp("whole") / "results"
    with watched_host() as host:
        status, answer = answered("--out", str(folder))
    return Ended(folder, status, answer, host)


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_an_experiment_ends_in_tables_a_figure_and_an_answer(ended: Ended) -> None:
    folder, status, answer, _ = ended
    assert [run["status"] for run in answer["runs"]] == ["complete", "complete"]
    assert status == (1 if any(run["verdict"] == "void" for run in answer["runs"]) else 0)
    assert all(Path(path).stat().st_size for path in (*answer["figures"], answer["capture"]))
    rows = table(folder / "table.csv")
    assert [(row["hops"], row["seed"], row["checks"]) for row in rows] == [("1", "1", "ok"), ("2", "1", "ok")]
    assert list(table(folder / "summary.csv")[0]) == SUMMARY


def test_one_and_two_hops_are_within_7_percent_of_ns2(ended: Ended) -> None:
    """No chance is in these two: stations that all hear each other and one flow."""
    folder, _, answer, host = ended
    verdicts = [run["verdict"] for run in answer["runs"]]
    if "void" in verdicts:
        host.void(f"verdicts {verdicts}")
    cells = [row for row in table(folder / "summary.csv") if row["metric"] == "acked_kbps"]
    assert [cell["hops"] for cell in cells] == ["1", "2"]
    for cell in cells:
        assert float(cell["mean"]) == pytest.approx(float(cell["ns2"]), rel=0.07), cell


def test_the_same_folder_is_refused_and_resume_keeps_existing_runs(ended: Ended, capsys: pytest.CaptureFixture) -> None:
    folder, _, first, _ = ended
    assert manet.main([*ARGUMENTS.split(), "--out", str(folder)]) == 2
    assert "holds results already" in capsys.readouterr().err
    _, again = answered("--out", str(folder), "--resume")
    for before, after in zip(first["runs"], again["runs"], strict=True):
        assert after["status"] == ("complete" if before["verdict"] == "void" else "kept")
