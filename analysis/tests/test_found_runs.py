"""Which run directories count: each what its run.json says, each as it was left, each once; the others are named."""

import json
import os
import pickle
import shutil
import socket
import stat
from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from analysis.metrics.analyse import analyse_run
from analysis.tables.results import collect_runs
from record import manifest
from record.errors import PlaceError
from record.files import atomic_file, plain_file, write_atomic
from record.found_runs import exclusion_reason, find_runs, scenario_sum, title_of

FIXTURE = Path(__file__).parent / "fixtures" / "two-flows"
GOLDEN = Path(__file__).parents[2] / "formats" / "examples" / "manifest.json"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """One cell with one run, as `manet run` leaves it."""
    run_dir = Path(shutil.copytree(FIXTURE, tmp_path / "hops2" / "seed-1"))
    record = json.loads((run_dir / "run.json").read_text())
    (run_dir / "run.json").write_text(json.dumps(record | {"id": "1122334455667788"}))
    manifest.write(run_dir)
    analyse_run(run_dir)
    return tmp_path


def test_a_run_as_it_was_left_counts(results: Path) -> None:
    found = find_runs(results)
    assert ([run.name for run in found.runs], found.left_out, found.not_checked) == (["seed-1"], {}, [])


def test_a_copy_is_no_second_seed(results: Path) -> None:
    shutil.copytree(results / "hops2" / "seed-1", results / "hops2" / "seed-2")
    found = find_runs(results)
    assert [run.name for run in found.runs] == ["seed-1"]
    reason = "is seed 1 by its run.json; a copy is no second seed: move it out of the results"
    assert found.left_out == {"hops2/seed-2": reason}
    assert len(collect_runs(results, ())) == 1


def test_a_copy_whose_seed_was_edited_is_known_by_its_manifest_and_without_one_by_its_id(results: Path) -> None:
    copy = Path(shutil.copytree(results / "hops2" / "seed-1", results / "hops2" / "seed-2"))
    record = (copy / "run.json").read_text()
    (copy / "run.json").write_text(record.replace('"seed": 1', '"seed": 2'))
    assert find_runs(results).left_out == {"hops2/seed-2": "run.json was changed"}
    (copy / "manifest.json").unlink()
    reason = "is a copy of hops2/seed-1, by the id in its run.json; move it out of the results"
    assert find_runs(results).left_out == {"hops2/seed-2": reason}


@pytest.mark.parametrize("name", ["seed-1-backup", "seed-01", "seed-", "seed-x", "copy of seed-1"])
def test_a_folder_that_is_no_seed_is_named_and_does_not_count(results: Path, name: str) -> None:
    shutil.copytree(results / "hops2" / "seed-1", results / "hops2" / name)
    found = find_runs(results)
    assert [run.name for run in found.runs] == ["seed-1"]
    assert found.left_out[f"hops2/{name}"].startswith("is no seed-<n>; a run has one place")


def test_a_run_in_another_cell_is_named(results: Path) -> None:
    shutil.copytree(results / "hops2" / "seed-1", results / "hops3" / "seed-1")
    assert find_runs(results).left_out == {
        "hops3/seed-1": 'is of cell "hops2" by its run.json; move it back, or out of the results'
    }


def test_a_seed_of_another_scenario_is_named(results: Path) -> None:
    """As `cp -a other/hops2/seed-1 hops2/seed-2` with the seed's number right: its run.json and its manifest know of nothing."""
    scenario = json.loads((results / "hops2" / "seed-1" / "scenario.json").read_text())
    cells = [{"name": "hops2", "scenario_sha256": scenario_sum(scenario)}]
    (results / "experiment.json").write_text(json.dumps({"cells": cells}))
    assert exclusion_reason(results / "hops2" / "seed-1") is None
    other = Path(shutil.copytree(FIXTURE, results / "hops2" / "seed-2"))
    record = json.loads((other / "run.json").read_text())
    (other / "run.json").write_text(json.dumps(record | {"id": "8877665544332211", "seed": 2}))
    (other / "scenario.json").write_text(json.dumps(scenario | {"hops": 1}))
    manifest.write(other)
    found = find_runs(results)
    assert [run.name for run in found.runs] == ["seed-1"]
    assert found.left_out["hops2/seed-2"].startswith("is of another scenario than its cell (scenario.json); move it out")


def _remove(path: Path) -> None:
    path.unlink()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _edit(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))


@pytest.mark.parametrize(
    ("name", "damage", "reason"),
    [
        ("captures/sta1.pcap", _remove, "captures/sta1.pcap is missing"),
        ("captures/sta2.pcap", _cut, "captures/sta2.pcap has {cut} bytes instead of {size}"),
        ("air.csv", _edit, "air.csv was changed"),
        ("verdict.json", lambda path: path.write_text('{"verdict": "valid"}'), "verdict.json has 20 bytes instead of {size}"),
        ("metrics.json", _edit, "metrics.json was changed; `manet report --again` recalculates it"),
        ("metrics.json", _cut, "metrics.json was changed; `manet report --again` recalculates it"),
        ("datagrams/flow2.csv", _edit, "datagrams/flow2.csv was changed; `manet report --again` recalculates it"),
        ("run.json", lambda path: path.write_text("{"), "run.json is no JSON object"),
        ("manifest.json", lambda path: path.write_text("{"), 'manifest.json is no "manet-manifest/1"'),
        (
            "manifest.json",
            lambda path: path.write_text('{"format": "manet-manifest/1", "files": {"a": 1}}'),
            "manifest.json is no",
        ),
    ],
)
def test_changes_are_reported_in_one_line_and_the_run_does_not_count(results: Path, name: str, damage, reason: str) -> None:
    path = results / "hops2" / "seed-1" / name
    size = path.stat().st_size
    assert find_runs(results).left_out == {}  # and what was found then is not remembered
    damage(path)
    if path.exists():
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 10**9))  # later, however coarse the file system's clock is
    found = find_runs(results)
    assert found.runs == []
    assert found.left_out["hops2/seed-1"].startswith(reason.format(size=size, cut=size - 1))
    assert "\n" not in found.left_out["hops2/seed-1"]


def test_at_most_three_files_are_named(results: Path) -> None:
    for number in (1, 2, 3):
        (results / "hops2" / "seed-1" / "captures" / f"sta{number}.pcap").unlink()
    (results / "hops2" / "seed-1" / "air.csv").unlink()
    reason = find_runs(results).left_out["hops2/seed-1"]
    assert reason == "air.csv is missing; captures/sta1.pcap is missing; captures/sta2.pcap is missing; and 1 more"


def test_files_that_can_be_regenerated_are_not_a_difference(results: Path) -> None:
    run_dir = results / "hops2" / "seed-1"
    (run_dir / "metrics.json").unlink()
    (run_dir / "datagrams" / "flow2.csv").unlink()
    (run_dir / "map.png").write_bytes(b"another picture")
    assert exclusion_reason(run_dir) is None
    analyse_run(run_dir)
    assert exclusion_reason(run_dir) is None


def test_a_run_from_before_there_were_manifests_counts_and_is_named(results: Path) -> None:
    (results / "hops2" / "seed-1" / "manifest.json").unlink()
    found = find_runs(results)
    assert (len(found.runs), found.not_checked) == (1, ["hops2/seed-1"])
    analyse_run(results / "hops2" / "seed-1")  # gives it none: what is entered later is no witness of what was
    assert not (results / "hops2" / "seed-1" / "manifest.json").exists()


def test_runs_put_aside_are_neither_found_nor_named(results: Path) -> None:
    shutil.copytree(results / "hops2" / "seed-1", results / "hops2" / "void" / "seed-1-try-1")
    found = find_runs(results)
    assert (len(found.runs), found.left_out) == (1, {})


def test_the_golden_manifest_is_written_and_read(tmp_path: Path) -> None:
    run_dir = tmp_path / "seed-1"
    (run_dir / "captures").mkdir(parents=True)
    (run_dir / "run.json").write_text("{}\n")
    (run_dir / "captures" / "sta1.pcap").write_bytes(b"")
    (run_dir / "map.png").write_bytes(b"no part of it")
    manifest.write(run_dir)
    assert (run_dir / "manifest.json").read_text() == GOLDEN.read_text()
    assert manifest.difference(run_dir) is None


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    write_atomic(path, "before\n")
    with pytest.raises(RuntimeError), atomic_file(path) as file:
        file.write("half of what")
        raise RuntimeError
    assert path.read_text() == "before\n"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_names_the_file_and_not_the_temporary_one(tmp_path: Path) -> None:
    with pytest.raises(OSError) as problem:
        write_atomic(tmp_path / "missing" / "x.csv", "text\n")
    assert (problem.value.filename, problem.value.filename2) == (str(tmp_path / "missing" / "x.csv"), None)


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "socket", "device"])
def test_nothing_but_a_plain_file_is_replaced_or_read(tmp_path: Path, kind: str) -> None:
    """A rename over /dev/null, as by root, makes a file of it."""
    path = tmp_path / "x.csv"
    if kind == "link":
        (tmp_path / "elsewhere").write_text("kept")
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    else:
        try:
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("needs root to make a device; sudo ./manet test")
    before = path.lstat()
    with pytest.raises(PlaceError, match=rf"x\.csv: is a {kind} and no plain file; give another name"):
        write_atomic(path, "text\n")
    with pytest.raises(PlaceError, match=rf"x\.csv: is a {kind} and no plain file; put the file itself there"):
        plain_file(path)
    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert {entry.name for entry in tmp_path.iterdir()} <= {"x.csv", "elsewhere"}
    assert kind != "link" or (tmp_path / "elsewhere").read_text() == "kept"


def test_a_refused_place_comes_from_another_process_as_it_was(tmp_path: Path) -> None:
    problem = pickle.loads(pickle.dumps(PlaceError(tmp_path / "x.csv", "a link", "give another name")))
    assert str(problem) == f"{tmp_path}/x.csv: is a link and no plain file; give another name" and problem.kind == "a link"


@pytest.mark.parametrize("name", ["captures", "captures/sta1.pcap", "run.json"])
def test_a_link_below_a_run_is_not_followed(results: Path, tmp_path: Path, name: str) -> None:
    """A link to the folder of the run itself, which the user names, is."""
    run_dir = results / "hops2" / "seed-1"
    moved = tmp_path / "moved"
    shutil.move(run_dir / name, moved)
    (run_dir / name).symlink_to(moved)
    with pytest.raises(PlaceError, match="is a link and no plain file"):
        RunDirectory(run_dir).run, RunDirectory(run_dir).capture("sta1")
    (run_dir / name).unlink()
    shutil.move(moved, run_dir / name)
    (tmp_path / "here").symlink_to(run_dir)
    assert RunDirectory(tmp_path / "here").capture("sta1").height == RunDirectory(run_dir).capture("sta1").height > 0


def test_the_title_of_a_folder_is_the_end_of_its_path():
    assert title_of(Path("/home/me/results/hv-fig1/ns2-hops3/seed-1")) == "hv-fig1/ns2-hops3/seed-1"
    assert title_of(Path("/tmp/run")) == "/tmp/run"
