"""Files of a run that are removed, cut, swapped with another run's or edited, during the run and after it: the run is never
`valid` with a wrong number, and `manet` never ends with status 0.

The cells of one damage share a run. Each night each cell has one of its own (`make nightly-faults`).
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from record import manifest
from record.found_runs import scenario_sum
from testbed import __main__ as manet
from testbed.programs import BUILT, ROOT
from testbed.runs.run import run_scenario
from testbed.tests.running import Background, chain, needs_runs

FIXTURE = ROOT / "analysis" / "tests" / "fixtures" / "two-flows"
# written during the traffic; their writers keep them open, or have written them before
DURING = [
    "air.csv", "air.pcapng", "inputs.jsonl", "tcp.csv", "captures/sta1.pcap", "captures/sta2.pcap",
    "captures/sta1.held.pcapng", "routing/sta1.jsonl", "routing/sta1.events.jsonl", "scenario.json", "medium.json", "trace.csv",
    "tcp-settings.json", "routes/sta1.txt",
]  # fmt: skip
EARLY_BYTE = 20  # it was there a second before, also in files whose writers do not say what they wrote
SCENARIO = {"routing": "aodv", "duration": 6}
TOML = 'hops = 1\nwarmup = 0\nduration = 6\nrouting = "aodv"\n'


def _remove(path: Path, _other: Path) -> None:
    path.unlink()


def _cut(path: Path, _other: Path) -> None:
    os.truncate(path, EARLY_BYTE)


def _swap(path: Path, other: Path) -> None:
    shutil.copy(other, path.with_name("swapped"))
    path.with_name("swapped").rename(path)


def _edit(path: Path, _other: Path) -> None:
    """The file's size stays."""
    with path.open("r+b") as file:
        file.seek(EARLY_BYTE)
        byte = file.read(1)
        file.seek(EARLY_BYTE)
        file.write(bytes([byte[0] ^ 1]))


DAMAGES: dict[str, Callable[[Path, Path], None]] = {"removed": _remove, "cut": _cut, "swapped": _swap, "edited": _edit}
damages = pytest.mark.parametrize("damage", list(DAMAGES))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another run of another scenario, whose files have the same names."""
    directory = tmp_path_factory.mktemp("other") / "run"
    assert run_scenario(chain(**SCENARIO, hops=2), 2, directory, programs=BUILT).status == "complete"
    return directory


@pytest.mark.root
@pytest.mark.slow
@needs_runs
@damages
def test_files_that_are_damaged_during_a_run_make_it_void_and_are_named(tmp_path: Path, other: Path, damage: str) -> None:
    run = Background(chain(**SCENARIO), tmp_path / "run").at("traffic", 0.5)
    for name in DURING:
        DAMAGES[damage](tmp_path / "run" / name, other / name)
    result = run.result()
    assert (result.status, result.verdict) == ("complete", "void")
    lines = json.loads((tmp_path / "run" / "verdict.json").read_text())["files"]
    assert [name for name in DURING if not any(name in line for line in lines)] == []


@pytest.mark.root
@needs_runs
def test_a_run_that_nobody_touches_has_no_such_reason(tmp_path: Path) -> None:
    assert run_scenario(chain(routing="aodv"), 1, tmp_path / "run", programs=BUILT).status == "complete"
    verdict = json.loads((tmp_path / "run" / "verdict.json").read_text())
    assert "files" not in verdict
    assert not [reason for reason in verdict["reasons"] if "written" in reason or "wrote" in reason]


CELLS = [
    pytest.param(name, damage, marks=() if (name, damage) == ("tcp.csv", "removed") else pytest.mark.nightly)
    for name in DURING
    for damage in DAMAGES
]


@pytest.mark.root
@pytest.mark.slow
@needs_runs
@pytest.mark.parametrize(("name", "damage"), CELLS)
def test_manet_run_does_not_end_with_status_0(tmp_path: Path, other: Path, name: str, damage: str) -> None:
    """The run is repeated twice because it is void, and each time the file is damaged in the middle of the traffic."""
    (tmp_path / "x.toml").write_text(TOML)
    out = tmp_path / "out"
    argv = [sys.executable, "-P", "-m", "testbed", "run", str(tmp_path / "x.toml"), "--out", str(out)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    damaged: set[int] = set()
    while process.poll() is None:
        time.sleep(0.1)
        with suppress(OSError):  # the run is put aside
            run = out / "all" / "seed-1"
            begun = (run / "traffic").stat()
            if begun.st_ino not in damaged and time.time() - begun.st_mtime > SCENARIO["duration"] / 2:
                DAMAGES[damage](run / name, other / name)
                damaged.add(begun.st_ino)
    output = process.communicate()[0]
    assert (process.returncode, len(damaged)) == (1, 3), output
    assert "void (0 valid" in output


@pytest.mark.root
@needs_runs
def test_a_session_of_the_prompt_that_lost_a_file_ends_with_status_1(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(TOML)
    argv = [sys.executable, "-P", "-m", "testbed", "cli", str(tmp_path / "x.toml"), "--out", str(tmp_path / "run")]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    lines = f"sta1 ping -c 1 sta2\nsta1 rm {tmp_path}/run/tcp.csv\nexit\n"
    done = subprocess.run(argv, input=lines, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("/run: void: tcp.csv was removed; open the prompt again")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The results of an experiment of one run, as `manet run` leaves them, and beside them those of another one."""
    for name, hops in (("results", 2), ("other", 3)):
        run = Path(shutil.copytree(FIXTURE, tmp_path / name / "all" / "seed-1"))
        record = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps(record | {"id": f"{hops:016x}", "cell": "all"}))
        scenario = json.loads((run / "scenario.json").read_text()) | {"hops": hops}
        (run / "scenario.json").write_text(json.dumps(scenario))
        for path in run.rglob("*.*") if name == "other" else []:
            if path.name not in ("run.json", "scenario.json"):
                path.write_bytes(path.read_bytes().replace(b"0", b"1") + b"\n")
        cells = [{"name": "all", "variant": "", "axes": {}, "scenario_sha256": scenario_sum(scenario)}]
        description = {"format": "manet-experiment/1", "name": "x", "question": "", "axes": {}, "seeds": 1, "cells": cells}
        (tmp_path / name / "experiment.json").write_text(json.dumps(description))
        manifest.write(run)
        if name == "results":
            analyse_run(run)
    assert manet.main(["report", str(tmp_path / "results")]) == 0
    assert manet.main(["sql", "select acked_kbps from runs", str(tmp_path / "results")]) == 0
    return tmp_path / "results"


AFTER = sorted(str(path.relative_to(FIXTURE)) for path in FIXTURE.rglob("*") if path.is_file())


@damages
@pytest.mark.parametrize("name", AFTER)
def test_a_file_that_is_damaged_after_the_run_is_named_and_its_run_does_not_count(
    results: Path, capsys: pytest.CaptureFixture, name: str, damage: str
) -> None:
    other = results.parent / "other" / "all" / "seed-1" / name
    DAMAGES[damage](results / "all" / "seed-1" / name, other)
    assert manet.main(["sql", "select acked_kbps from runs", str(results)]) == 1
    _contains(
        capsys.readouterr().err, f"manet sql: {results}/all/seed-1: {name}", f"its row is of before: `./manet report {results}`"
    )
    assert manet.main(["report", str(results)]) == 1
    printed = capsys.readouterr().out
    if (name, damage) == ("run.json", "removed"):
        return _contains(printed, "missing: all seed 1;", "verdict   incomplete (0 valid")
    reason = "is of another scenario" if name == "scenario.json" else f"{name}"
    return _contains(printed, f"left out  all/seed-1: {reason}", "verdict   void (0 valid")


@pytest.mark.parametrize("same_scenario", [False, True], ids=["of another scenario", "again"])
def test_a_run_that_is_exchanged_as_a_whole_is_named(results: Path, capsys: pytest.CaptureFixture, same_scenario: bool) -> None:
    """Its files agree with its own manifest."""
    run, other = results / "all" / "seed-1", results.parent / "other" / "all" / "seed-1"
    if same_scenario:
        shutil.copy(run / "scenario.json", other / "scenario.json")
        manifest.write(other)
    shutil.rmtree(run)
    shutil.copytree(other, run)
    reason = "is another run (id of run.json)" if same_scenario else "is of another scenario than its cell"
    assert manet.main(["sql", "select acked_kbps from runs", str(results)]) == 1
    _contains(capsys.readouterr().err, f"manet sql: {run}: {reason}")
    assert manet.main(["bundle", str(results), "--out", str(results.parent / "x.zip")]) == (0 if same_scenario else 1)
    assert (f"not counted  all/seed-1 {reason}" in capsys.readouterr().out) is not same_scenario


def test_an_edited_result_whose_manifest_was_removed_does_not_count(results: Path, capsys: pytest.CaptureFixture) -> None:
    run = results / "all" / "seed-1"
    metrics = run / "metrics.json"
    metrics.write_text(metrics.read_text().replace('"acked_kbps": ', '"acked_kbps": 9'))
    (run / manifest.NAME).unlink()
    assert manet.main(["sql", "select acked_kbps from runs", str(results)]) == 1
    _contains(capsys.readouterr().err, f"manet sql: {run}: has no manifest.json")
    assert manet.main(["report", str(results)]) == 1
    _contains(capsys.readouterr().out, "left out  all/seed-1: has no manifest.json", "verdict   void (0 valid")


def _contains(text: str, *parts: str) -> None:
    assert [part for part in parts if part not in text] == [], text


def test_a_run_whose_sources_disagree_is_suspect_and_the_status_is_1(results: Path, capsys: pytest.CaptureFixture) -> None:
    """As of a run that was recorded so: its manifest has the file as it is."""
    run = results / "all" / "seed-1"
    log = run / "air.csv"
    log.write_text("".join(line for line in log.read_text().splitlines(keepends=True) if ",deliver," not in line))
    (run / "metrics.json").unlink()
    manifest.write(run)
    for _ in range(2):  # measured now, and from what was measured then
        assert manet.main(["report", str(results)]) == 1
        printed = " ".join(capsys.readouterr().out.split())
        _contains(
            printed, "cross-checks failed in 1 of 1 run", "verdict suspect (0 valid, 1 suspect, 0 void): the cross-check flow1"
        )
    assert (results / "table.csv").read_text().splitlines()[1].count("suspect") == 1


@pytest.mark.root
@pytest.mark.slow
@needs_runs
def test_a_file_that_is_damaged_before_the_run_reads_it_again_is_a_failure_of_one_line(tmp_path: Path) -> None:
    run = Background(chain(**SCENARIO), tmp_path / "run").at("traffic", 0.5)
    (tmp_path / "run" / "routing" / "sta1.status.json").write_text("{")
    result = run.result()
    assert result.status == "failed"
    assert str(result.error).startswith(f"{tmp_path}/run/routing/sta1.status.json: not JSON")
