"""Runs from Python, in real namespaces: to their end, in an event loop, in a thread, interrupted, with progress."""

import asyncio
import json
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from manet_testbed import Experiment, MeshError, MissingRequirement, Progress, Results, Scenario, WrongRequest
from manet_testbed.lab import execution
from testbed.__main__ import main
from testbed.errors import UsageError
from testbed.programs import ROOT
from testbed.tests.running import needs_runs, nothing_left, wait_until

pytestmark = [pytest.mark.root, needs_runs]
ONE_HOP = {"topology": "chain", "hops": 1, "warmup": 0, "duration": 2}
LONG = ONE_HOP | {"duration": 600}  # far beyond the test's own patience


def status_of(out: Path, seed: int = 1) -> str | None:
    path = out / "all" / f"seed-{seed}" / "run.json"
    return json.loads(path.read_text())["status"] if path.exists() else None


class Steps:
    """A callback that keeps its steps, and waits for one."""

    def __init__(self) -> None:
        self.seen: list[Progress] = []
        self.traffic = threading.Event()

    def __call__(self, step: Progress) -> None:
        self.seen.append(step)
        if step.stage == "traffic":
            self.traffic.set()


def test_a_blocking_run_ends_with_its_results_and_reports_each_step(tmp_path: Path) -> None:
    steps = Steps()
    results = Scenario(ONE_HOP, name="one").run(seeds=2, out=tmp_path / "out", progress=steps)
    assert (len(results), results.directory, results.name) == (2, tmp_path / "out", "one")
    of_first = [step for step in steps.seen if step.run == "all seed 1"]
    assert [step.stage for step in of_first][:2] == ["starts", "traffic"]
    assert of_first[-1].ended  # more often, if it was void
    assert all(step.total >= 2 and step.left_s >= 0 for step in of_first)
    assert "measuring the captures" in [step.stage for step in steps.seen if not step.run]
    assert str(steps.seen[0]).startswith("2 runs of 2 s, ")
    begun = of_first[0]
    assert str(begun) == f"[0/2] {begun.run}: starts, about {str(begun).partition('about ')[2]}"


def test_a_folder_with_results_is_refused_and_completed_by_resume(tmp_path: Path) -> None:
    scenario = Scenario(ONE_HOP, name="one")
    scenario.run(out=tmp_path / "out")
    with pytest.raises(WrongRequest) as refusal:
        scenario.run(out=tmp_path / "out")
    assert str(refusal.value) == (
        f"{tmp_path / 'out'}: holds results already; give another folder with out=, complete them with resume=True, "
        "or remove the folder"
    )
    before = (tmp_path / "out" / "all" / "seed-1" / "run.json").read_text()
    assert len(scenario.run(seeds=2, out=tmp_path / "out", resume=True)) == 2
    assert (tmp_path / "out" / "all" / "seed-1" / "run.json").read_text() == before


def test_the_command_line_completes_what_python_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the recorded command, for a definition that was made in Python and one that was loaded."""
    monkeypatch.chdir(tmp_path)
    made = Scenario(ONE_HOP, name="mine").changed({"spacing": 150})
    loaded = Scenario.load("chain5", set=ONE_HOP)
    for scenario in (made, loaded):
        (tmp_path / "mine.toml").write_text(Scenario(ONE_HOP).toml)
        out = Path("results") / scenario.name
        scenario.run(seeds=2, out=out)
        for folder in (out / "all").glob("seed-2"):
            folder.rename(tmp_path / f"aside-{scenario.name}")
        words = shlex.split(json.loads((out / "experiment.json").read_text())["resume"])
        assert words[:2] == ["./manet", "run"] and words[-1] == "--resume"
        before = (out / "all" / "seed-1" / "run.json").read_text()
        assert main(words[1:]) == 0
        assert (out / "all" / "seed-1" / "run.json").read_text() == before and status_of(out, 2) == "complete"


def test_a_run_in_a_thread_is_as_one_in_the_main_thread(tmp_path: Path) -> None:
    found: list[Results] = []
    thread = threading.Thread(target=lambda: found.append(Scenario(ONE_HOP).run(out=tmp_path / "out")))
    thread.start()
    thread.join(300)
    assert len(found) == 1 and status_of(tmp_path / "out") == "complete"


def test_other_tasks_go_on_while_a_run_is_awaited(tmp_path: Path) -> None:
    async def both() -> tuple[Results, int, set[int]]:
        threads: set[int] = set()
        work = asyncio.create_task(
            Scenario(ONE_HOP).run_async(out=tmp_path / "out", progress=lambda _step: threads.add(threading.get_ident()))
        )
        turns = 0
        while not work.done():
            await asyncio.sleep(0.05)
            turns += 1
        return await work, turns, threads

    results, turns, threads = asyncio.run(both())
    assert len(results) == 1 and turns > 10
    assert threads == {threading.get_ident()}  # the callback is the loop's


def test_cancelling_ends_the_run_in_order_before_the_task_ends(tmp_path: Path) -> None:
    async def cancelled() -> None:
        steps = Steps()
        task = asyncio.create_task(Scenario(LONG).run_async(out=tmp_path / "out", progress=steps))
        while not steps.traffic.is_set():
            await asyncio.sleep(0.05)
            assert not task.done(), task
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert status_of(tmp_path / "out") == "interrupted"  # at once: nothing is waited for

    asyncio.run(cancelled())
    assert nothing_left(tmp_path / "out" / "all" / "seed-1")
    assert (tmp_path / "out" / "all" / "seed-1" / "manifest.json").exists()  # of what was captured until then


INTERRUPTED = """
from manet_testbed import Scenario
try:
    Scenario({keys!r}).run(out={out!r}, progress=lambda step: print(step, flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_a_blocking_run_in_order(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = INTERRUPTED.format(keys=LONG, out=str(out))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "traffic" in line:
                break
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert rest.endswith("ending the runs under way; those that are complete stay\ninterrupted\n"), rest
    assert process.returncode == 0 and status_of(out) == "interrupted" and nothing_left(out / "all" / "seed-1")


def test_an_error_of_the_callback_ends_the_runs_and_is_raised(tmp_path: Path) -> None:
    class Mine(Exception):
        pass

    def fails(step: Progress) -> None:
        if step.stage == "traffic":
            raise Mine("enough")

    with pytest.raises(Mine, match="enough"):
        Scenario(LONG).run(out=tmp_path / "out", progress=fails)
    wait_until(lambda: status_of(tmp_path / "out") == "interrupted", "the end of the run")
    assert nothing_left(tmp_path / "out" / "all" / "seed-1")


def test_what_this_machine_lacks_is_named_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks() -> None:
        raise UsageError("not root: network namespaces, TAP devices and BPF need it; run it with sudo")

    monkeypatch.setattr(execution, "require_for_runs", lacks)
    with pytest.raises(MissingRequirement, match=r"^not root: "):
        Scenario(ONE_HOP).run(out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_program_that_this_machine_lacks_is_refused_with_the_key_and_the_remedy(tmp_path: Path) -> None:
    scenario = Scenario(ONE_HOP | {"tcp": "no-such-tcp"}, name="mine")
    with pytest.raises(WrongRequest, match="no-such-tcp"):
        scenario.run(out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_failed_run_is_in_the_table_and_no_error(tmp_path: Path, host: Any) -> None:
    """The event finds no relay to switch off."""
    event = {"at": 1, "cut": "next-hop", "from": "sta1", "to": "sta2"}
    results = Scenario(ONE_HOP | {"events": [event]}).run(out=tmp_path / "out")
    assert results.runs["status"].to_list() == ["failed"]
    if json.loads((tmp_path / "out" / "all" / "seed-1" / "run.json").read_text())["host_late"]:
        host.void(results.verdict)
    assert results.of()["mean"].to_list() == [None] and results.verdict.startswith("failed ")
    assert results.run().doubt is not None and not results.run().counts


def test_a_disk_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MeshError, match=r"file/out: Not a directory; give another folder with out="):
        Scenario(ONE_HOP).run(out=tmp_path / "file" / "out")


def test_an_experiment_runs_every_cell_and_seed(tmp_path: Path, host: Any) -> None:
    made = Experiment.of(Scenario(ONE_HOP), name="own", axes={"hops": [1, 2]}, seeds=2, question="Is it far?")
    results = made.run(out=tmp_path / "out")
    assert sorted(zip(results.runs["hops"], results.runs["seed"], strict=True)) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    if "void" in results.runs["verdict"].to_list():
        host.void(results.verdict)
    by_hops = dict(results.of().select("hops", "mean").iter_rows())
    assert by_hops[1] > 1.5 * by_hops[2] > 0  # one channel: half the throughput over two hops
    assert results.question == "Is it far?" and results.axes == {"hops": [1, 2]}
