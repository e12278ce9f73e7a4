"""Records with values of another type: one line with file, key and remedy at each reader, and no traceback."""

import json
import shutil
from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from analysis.store import files
from analysis.store.rows import now
from analysis.tables.results import collect
from analysis.tests.test_found_runs import FIXTURE
from record import records
from record.errors import RunFileError
from record.found_runs import find_runs

WRONG = [
    ("seed", "1", '"seed" is "1"'),
    ("host", "laptop", '"host" is "laptop"'),
    ("host", {"name": 5}, '"host.name" is 5'),
    ("clock", [], '"clock" is []'),
    ("versions", {"iperf3": 3.16}, '"versions.iperf3" is 3.16'),
    ("tcp", {"flow1": None}, '"tcp.flow1" is null'),
    ("axes", [2], '"axes" is [2]'),
    ("id", ["a"], '"id" is ["a"]'),
    ("started", 1700000000, '"started" is 1700000000'),
    ("epoch_ns", 1.5, '"epoch_ns" is 1.5'),
    ("host_late", "no", '"host_late" is "no"'),
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURE, tmp_path / "hops2" / "seed-1"))


def edit(run: Path, key: str, value: object) -> None:
    path = run / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))


@pytest.mark.parametrize(("key", "value", "text"), WRONG)
def test_a_run_with_a_wrong_value_is_left_out_by_its_key_and_refused_by_its_readers(run, key, value, text):
    edit(run, key, value)
    (reason,) = find_runs(run.parents[1]).left_out.values()
    assert reason.startswith(f"run.json: {text}, of another type than expected; move the run out of the results")
    with pytest.raises(RunFileError) as problem:
        RunDirectory(run).run  # noqa: B018
    assert str(problem.value).startswith(f"{run}/run.json: {text}, of another type than expected; move the run")


@pytest.mark.parametrize(("key", "value", "text"), WRONG)
def test_a_run_put_aside_with_a_wrong_value_has_no_row(run, key, value, text):
    del text
    put = Path(shutil.copytree(run, run.parent / "void" / "seed-1-try-1"))
    edit(put, key, value)
    out = run.parents[1]
    files.write(collect(out, {"name": "e", "axes": {"hops": [2]}}), now())
    assert files.read(out)["run_dir"].to_pylist() == ["hops2/seed-1"]


def test_records_of_this_version_and_early_ones_have_no_wrong_value(run):
    assert records.wrong_value(records.RUN, json.loads((run / "run.json").read_text())) is None
    for name in (records.RUN, records.CAMPAIGN):
        assert records.wrong_value(name, {}) is None
        assert records.read(run / "nowhere" / name) == {}


def test_a_key_that_must_be_there_is_named():
    assert records.wrong_value(records.EXPERIMENT, {"name": "e"}) == '"cells" is missing'
