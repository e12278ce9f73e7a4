"""Campaigns with a stand-in for the runs: side by side, void, failing, resumed, interrupted."""

import io
import json
import signal
import threading
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

import pytest

from record import manifest
from record.found_runs import scenario_sum
from scenarios.identity import identity
from testbed import __main__ as manet
from testbed.campaigns.campaign import Campaign, claimed, tasks_of
from testbed.campaigns.experiment import load
from testbed.campaigns.progress import Progress
from testbed.campaigns.request import Request
from testbed.campaigns.safe_load import SafeLoad
from testbed.campaigns.schedule import Schedule
from testbed.errors import RunError, UsageError

TEXT = 'question = "?"\n[scenario]\nhops = 1\n[axes]\nhops = [1, 2]\n[full]\nseeds = 2\n'


@dataclass
class Ended:
    status: str = "complete"
    verdict: str | None = "valid"
    error: str | None = None
    host_late: bool = False
    reasons: tuple[str, ...] = ()


class FakeRuns:
    """Writes what a run would leave; `plan` gives the endings of a cell and seed in turn."""

    def __init__(self, plan=None, hold_s=0.0):
        self.plan = plan or {}
        self.hold_s = hold_s
        self.calls = []
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()

    def __call__(self, scenario, seed, directory, *, progress, cancel, experiment, cell, variant, axes, allow_internet=False):
        with self.lock:
            self.calls.append((cell, seed))
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        progress("traffic", 0.5)
        cancelled = cancel.wait(self.hold_s)
        with self.lock:
            self.at_once -= 1
            endings = self.plan.get((cell, seed), [])
            ended = Ended("interrupted", None, "interrupted") if cancelled else (endings.pop(0) if endings else Ended())
        directory.joinpath("scenario.json").write_text(scenario.to_json())
        directory.joinpath("run.json").write_text(json.dumps({"status": ended.status, "experiment": experiment, "axes": axes}))
        verdict = {"verdict": ended.verdict, "reasons": ended.reasons, "model_ns": 3_000_000_000}
        directory.joinpath("verdict.json").write_text(json.dumps(verdict))
        if not cancelled:
            manifest.write(directory)
        return ended


@pytest.fixture
def campaign(tmp_path):
    (tmp_path / "e.toml").write_text(TEXT)
    log = io.StringIO()

    def make(runs, *overrides, jobs=1, out=tmp_path / "out"):
        experiment = load(tmp_path / "e.toml", Request(overrides=overrides))
        return Campaign(experiment, out, jobs, Progress(stream=log), runs)

    make.log = log
    make.out = tmp_path / "out"
    return make


def test_the_time_left_is_that_of_the_scenarios_over_the_jobs(campaign):
    """Four runs of 35 s and what starting and stopping takes, two at a time."""
    made = campaign(FakeRuns(), jobs=2)
    left = []
    expect = made.progress.expect
    made.progress.expect = lambda *words: (expect(*words), left.append(made.progress.seconds_left()))
    made.run(resume=False)
    assert 70 <= left[0] <= 90


def test_every_cell_is_run_at_one_seed_before_the_next(campaign):
    runs = FakeRuns()
    outcomes = campaign(runs).run(resume=False)
    assert runs.calls == [("hops1", 1), ("hops2", 1), ("hops1", 2), ("hops2", 2)]
    assert [(o.task.name, o.status, o.verdict) for o in outcomes][-1] == ("hops2 seed 2", "complete", "valid")
    assert (campaign.out / "hops2" / "seed-2" / "scenario.json").exists()
    assert json.loads((campaign.out / "experiment.json").read_text())["cells"][1] == {
        "name": "hops2", "variant": "", "axes": {"hops": 2}, "profile": "period",
        "scenario_sha256": scenario_sum(json.loads((campaign.out / "hops2" / "seed-2" / "scenario.json").read_text())),
        "identity": identity(load(campaign.out.parent / "e.toml").cells[1].scenario),
    }  # fmt: skip


def test_no_more_runs_are_parallel_than_requested(campaign):
    runs = FakeRuns(hold_s=0.05)
    campaign(runs, jobs=2).run(resume=False)
    assert runs.most_at_once == 2


def test_the_pace_is_model_time_over_host_time_without_kept_runs(campaign):
    first = campaign(FakeRuns(), jobs=4)
    first.run(resume=False)
    assert first.pace.emulated_s == 12  # four runs of three seconds
    again = campaign(FakeRuns(), jobs=4)
    again.run(resume=True)
    assert again.pace.emulated_s == 0


def test_cells_of_equal_names_in_two_experiments_count_apart(campaign, tmp_path):
    log, runs = io.StringIO(), FakeRuns()
    one, two = (campaign(runs, out=tmp_path / name) for name in ("one", "two"))
    tasks = tasks_of(one.experiment, one.directory)
    tasks += [replace(task, experiment="two") for task in tasks_of(two.experiment, two.directory)]
    Schedule(1, Progress(stream=log), runs, name_of=attrgetter("full_name")).run(tasks, resume=False)
    printed = [line for line in log.getvalue().splitlines() if line.startswith("[")]
    assert [line.split()[0] for line in printed] == [f"[{number}/8]" for number in range(1, 9)]
    assert printed[-1] == "[8/8] two/hops2 seed 2: valid"


def test_a_void_run_is_put_aside_and_rerun_alone(campaign):
    reason = "flow1-sender was stopped for 4.0 s: run it again"
    runs = FakeRuns({("hops1", 1): [Ended(verdict="void", reasons=(reason,))]})
    outcomes = campaign(runs, jobs=2).run(resume=False)
    assert runs.calls.count(("hops1", 1)) == 2
    assert (outcomes[0].verdict, outcomes[0].voids) == ("valid", 1)
    assert (campaign.out / "hops1" / "void" / "seed-1-try-1" / "run.json").exists()
    assert "hops1 seed 1: void (flow1-sender was stopped for 4.0 s), rerun alone" in campaign.log.getvalue()


def test_void_runs_are_rerun_with_few_in_parallel_and_alone_the_second_time(campaign):
    plan = {("hops1", seed): [Ended(verdict="void")] * 2 for seed in (1, 2)}
    runs, beside = FakeRuns(plan, hold_s=0.1), []

    def runner(*arguments, **named):
        beside.append(runs.at_once)
        return runs(*arguments, **named)

    outcomes = campaign(runner, "seeds=4", jobs=8).run(resume=False)
    assert [outcome.voids for outcome in outcomes].count(2) == 2
    assert (sorted(beside[8:10]), beside[10:]) == ([0, 1], [0, 0])
    assert "hops1 seed 1: void, rerun with fewer runs in parallel" in campaign.log.getvalue()


def test_the_repetition_of_a_void_run_counts_as_soon_as_it_is_void(campaign):
    runs = FakeRuns({("hops1", 1): [Ended(verdict="void")]})
    campaign(runs, jobs=1).run(resume=False)
    printed = [line for line in campaign.log.getvalue().splitlines() if line.startswith("[")]
    assert printed[0].startswith("[1/5] hops1 seed 1: void, about ")
    assert printed[-1] == "[5/5] hops1 seed 1: valid"
    # the repetition is still to come when all four have ended: 35 s of the scenario, and what starting and stopping takes
    assert printed[3].startswith("[4/5] hops2 seed 2: valid, about ") and not printed[3].endswith("about 0 s left")


@pytest.mark.parametrize("voids", [1, 2])
def test_after_two_void_first_runs_the_number_of_parallel_runs_is_halved(campaign, voids):
    plan = {(f"hops{hops}", 1): [Ended(verdict="void")] for hops in range(1, voids + 1)}
    runs, beside = FakeRuns(plan, hold_s=0.1), []

    def runner(*arguments, **named):
        beside.append(runs.at_once)
        return runs(*arguments, **named)

    campaign(runner, "seeds=4", jobs=2).run(resume=False)
    halved = "the first 2 runs are void: 1 side by side from now on instead of 2" in campaign.log.getvalue()
    assert halved == (voids == 2)
    assert not halved or set(beside[3:]) == {0}


def test_a_run_with_a_late_host_is_rerun_like_a_void_one(campaign):
    runs = FakeRuns({("hops1", 1): [Ended("failed", None, "the network was ready too late", host_late=True)]})
    outcomes = campaign(runs, "hops=[1]", jobs=1).run(resume=False)
    assert [(o.status, o.voids) for o in outcomes] == [("complete", 1), ("complete", 0)]
    assert "hops1 seed 1: the host was late, rerun alone" in campaign.log.getvalue()


def test_no_more_runs_start_up_at_once_than_there_are_places(campaign):
    runs = FakeRuns(hold_s=0.1)
    one = campaign(runs, jobs=4)
    one.starts = threading.Semaphore(1)
    most, starting, lock = 0, 0, threading.Lock()

    def runner(*arguments, progress, **named):
        nonlocal most, starting
        with lock:
            starting += 1
            most = max(most, starting)
        named["cancel"].wait(0.05)
        with lock:
            starting -= 1
        progress("captures", None)
        return runs(*arguments, progress=progress, **named)

    one.runner = runner
    one.run(resume=False)
    assert (most, len(runs.calls)) == (1, 4)
    assert runs.most_at_once > 1  # once they have started they are side by side


def test_a_run_that_stays_void_is_done_three_times_and_kept_as_void(campaign):
    runs = FakeRuns({("hops2", 2): [Ended(verdict="void") for _ in range(5)]})
    outcomes = campaign(runs).run(resume=False)
    assert runs.calls.count(("hops2", 2)) == 3
    assert (outcomes[-1].verdict, outcomes[-1].voids) == ("void", 2)
    assert (campaign.out / "hops2" / "seed-2" / "run.json").exists()


def limited(campaign, runs, starts, jobs=1):
    """A schedule whose time limit is reached once `starts` runs have begun, and its outcomes."""
    made = campaign(runs, jobs=jobs)
    schedule = Schedule(jobs, made.progress, runs, may_start=lambda: len(runs.calls) < starts)
    return schedule, schedule.run(tasks_of(made.experiment, made.directory), resume=True)


def test_after_the_time_limit_the_runs_under_way_end_and_no_other_starts(campaign):
    runs = FakeRuns(hold_s=0.1)
    schedule, outcomes = limited(campaign, runs, starts=1, jobs=2)
    assert [(o.task.name, o.status) for o in outcomes] == [("hops1 seed 1", "complete"), ("hops2 seed 1", "complete")]
    assert [task.name for task in schedule.not_started] == ["hops1 seed 2", "hops2 seed 2"]
    assert len(runs.calls) == schedule.progress.total == 2
    assert "time limit: the runs under way are the last; 2 are not started" in campaign.log.getvalue()


def test_a_void_run_that_the_time_limit_keeps_from_its_rerun_is_missing(campaign):
    """In its place it would count as ended, and a look would take place without its pair."""
    runs = FakeRuns({("hops1", 2): [Ended(verdict="void")]})
    schedule, outcomes = limited(campaign, runs, starts=4)
    assert [task.name for task in schedule.not_started] == ["hops1 seed 2"]
    assert [o.task.name for o in outcomes] == ["hops1 seed 1", "hops2 seed 1", "hops2 seed 2"]
    assert not (campaign.out / "hops1" / "seed-2").exists()
    assert "hops1 seed 2: void, not rerun, by the time limit" in campaign.log.getvalue()
    again = FakeRuns()
    _, outcomes = limited(campaign, again, starts=9)
    assert again.calls == [("hops1", 2)] and len(outcomes) == 4


def test_a_failed_run_does_not_stop_the_others(campaign):
    runs = FakeRuns({("hops1", 1): [Ended("failed", None, "sta2: its shell was killed; run it again")]})
    outcomes = campaign(runs).run(resume=False)
    assert len(runs.calls) == 4
    assert outcomes[0].text() == "failed: sta2: its shell was killed; run it again"


def test_a_refused_run_does_not_stop_the_others(campaign):
    """A guest's kernel lacks something for one cell, or a program was removed in the meantime."""
    runs = FakeRuns()

    def refusing(scenario, seed, directory, **options):
        if (scenario.hops, seed) == (2, 1):
            raise UsageError("tcp_vegas: not there; install it")
        return runs(scenario, seed, directory, **options)

    outcomes = campaign(refusing).run(resume=False)
    assert [outcome.text() for outcome in outcomes] == ["valid", "failed: tcp_vegas: not there; install it", "valid", "valid"]


def test_after_failures_only_the_campaign_gives_up(campaign):
    failed = Ended("failed", None, "medium: cannot open the TAP")
    runs = FakeRuns({(cell, seed): [failed] for cell in ("hops1", "hops2") for seed in (1, 2)})
    with pytest.raises(RunError, match="the first 3 runs failed, the last with: medium: cannot open the TAP"):
        campaign(runs).run(resume=False)
    assert len(runs.calls) == 3


def test_a_full_disk_stops_the_campaign_at_once(campaign):
    runs = FakeRuns({("hops1", 1): [Ended("failed", None, "/out: disk full; make room")]})
    with pytest.raises(RunError, match="/out: disk full; make room"):
        campaign(runs).run(resume=False)
    assert len(runs.calls) == 1


def test_a_machine_that_refuses_every_run_ends_the_campaign(campaign):
    def unfit(*_arguments, **_named):
        raise UsageError("/dev/net/tun: not there; modprobe tun")

    with pytest.raises(RunError, match="the first 3 runs failed, the last with: /dev/net/tun: not there; modprobe tun"):
        campaign(unfit).run(resume=False)


def test_the_same_folder_twice_is_refused_with_the_remedy(campaign):
    campaign(FakeRuns()).run(resume=False)
    with pytest.raises(UsageError) as caught:
        campaign(FakeRuns()).run(resume=False)
    assert str(caught.value) == (
        f"{campaign.out}: holds results already; give another folder with --out, complete them with --resume, "
        "or remove the folder"
    )


def test_resume_runs_only_missing_or_changed_runs(campaign):
    campaign(FakeRuns({("hops2", 1): [Ended("failed", None, "killed")]})).run(resume=False)
    again = FakeRuns()
    outcomes = campaign(again).run(resume=True)
    assert again.calls == [("hops2", 1)]
    assert [o.status for o in outcomes] == ["kept", "complete", "kept", "kept"]
    assert (campaign.out / "hops2" / "void" / "seed-1-try-1" / "run.json").exists()

    changed = FakeRuns()
    campaign(changed, "window=4").run(resume=True)
    assert len(changed.calls) == 4


def test_resume_with_fewer_seeds_leaves_no_run_of_another_scenario_in_the_means(campaign):
    campaign(FakeRuns()).run(resume=False)
    made = campaign(FakeRuns(), "window=4")
    made.experiment = replace(made.experiment, seeds=1)
    made.run(resume=True)
    assert sorted(run.name for run in (campaign.out / "hops2").glob("seed-*")) == ["seed-1"]
    assert (campaign.out / "hops2" / "void" / "seed-2-try-1" / "run.json").exists()
    assert "seed-2: is of another scenario; moved to" in campaign.log.getvalue()


def test_resume_with_fewer_seeds_keeps_the_others_of_the_same_scenario(campaign):
    campaign(FakeRuns()).run(resume=False)
    made = campaign(FakeRuns())
    made.experiment = replace(made.experiment, seeds=1)
    made.run(resume=True)
    assert len(list((campaign.out / "hops2").glob("seed-*"))) == 2


def test_a_run_whose_worker_was_killed_before_its_manifest_is_repeated(campaign):
    """run.json says complete before the manifest is written, last of all files."""
    campaign(FakeRuns()).run(resume=False)
    (campaign.out / "hops2" / "seed-1" / manifest.NAME).unlink()
    again = FakeRuns()
    campaign(again).run(resume=True)
    assert again.calls == [("hops2", 1)]


def test_resume_refuses_the_results_of_another_experiment(campaign, tmp_path):
    campaign(FakeRuns()).run(resume=False)
    (tmp_path / "f.toml").write_text(TEXT)
    other = Campaign(load(tmp_path / "f.toml"), campaign.out, 1, Progress(quiet=True), FakeRuns())
    with pytest.raises(UsageError, match=r"holds another experiment \(e\); give another folder with --out"):
        other.run(resume=True)


def test_two_at_once_do_not_share_a_folder(campaign):
    experiment = campaign(FakeRuns()).experiment
    with (
        claimed(campaign.out, experiment, resume=True),
        pytest.raises(UsageError, match="another manet is writing there"),
        claimed(campaign.out, experiment, resume=True),
    ):
        pass


def test_a_folder_that_cannot_be_made_is_named(campaign, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(UsageError, match=r"file/out: Not a directory; give another folder with --out"):
        campaign(FakeRuns(), out=blocked / "out").run(resume=False)


def test_ctrl_c_ends_the_runs_under_way_and_starts_no_more(campaign):
    runs = FakeRuns(hold_s=600)  # far beyond the test's own patience
    interrupted = campaign(runs, jobs=2)
    interrupted.progress.stage = _interrupt_once(interrupted.progress.stage)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        interrupted.run(resume=False)
    assert signal.getsignal(signal.SIGINT) is before
    assert len(runs.calls) <= 2
    assert runs.at_once == 0
    for path in Path(campaign.out).rglob("run.json"):
        assert json.loads(path.read_text())["status"] == "interrupted"


def test_another_thread_runs_a_campaign_and_stop_ends_it(campaign):
    """Only the main thread may set handlers of signals; `stop` takes their place."""
    runs = FakeRuns(hold_s=600)
    stopped = campaign(runs, jobs=2)
    began, ended = threading.Event(), []

    def note(*_arguments):
        began.set()

    def in_thread():
        try:
            stopped.run(resume=False)
        except BaseException as problem:
            ended.append(problem)

    stopped.progress.stage = note
    thread = threading.Thread(target=in_thread)
    thread.start()
    assert began.wait(60)
    stopped.stop.set()
    thread.join(60)
    assert [type(problem) for problem in ended] == [KeyboardInterrupt]
    assert runs.at_once == 0 and len(runs.calls) <= 2


def _interrupt_once(stage):
    """Ctrl-C for the main thread as soon as the first run reports a stage."""
    import _thread

    pressed = threading.Event()

    def wrapped(name, text, fraction=None):
        stage(name, text, fraction)
        if text.startswith("traffic") and not pressed.is_set():
            pressed.set()
            _thread.interrupt_main()

    return wrapped


def test_why_a_run_failed_is_printed_when_it_ends_and_in_the_last_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "e.toml").write_text(TEXT)
    runs = FakeRuns({("hops1", 1): [Ended("failed", None, "sta2: its shell was killed; run it again")]})
    monkeypatch.setattr("testbed.runs.run.run_scenario", runs)
    monkeypatch.setattr("testbed.host.requirements.require_for_runs", lambda: None)
    monkeypatch.setattr("testbed.campaigns.report.Report.make", lambda self: None)
    status = manet.main(["run", str(tmp_path / "e.toml"), "--out", str(tmp_path / "out"), "--json"])
    error = capsys.readouterr().err
    assert status == 1
    cause = "failed: sta2: its shell was killed; run it again"
    assert error.count(cause) == 2
    assert error.splitlines()[-1] == f"manet run: hops1 seed 1: {cause} [{tmp_path}/out/hops1/seed-1]"


def test_costly_runs_take_the_place_of_several(campaign):
    """Runs of two hops weigh 3: with 4 at once, one of them and one of one hop."""
    runs, beside = FakeRuns(hold_s=0.2), []

    def runner(scenario, *arguments, **named):
        beside.append((scenario.hops, runs.at_once))
        return runs(scenario, *arguments, **named)

    made = campaign(runner, "seeds=4")
    load = SafeLoad(4, 4, lambda: (0.0, 0.0))
    schedule = Schedule(4, made.progress, runner, load=load, weight_of=lambda task: 2 * task.cell.axes["hops"] - 1)
    assert len(schedule.run(tasks_of(made.experiment, made.directory), resume=True)) == 8
    assert max(at_once for _, at_once in beside) <= 1


def test_costly_runs_take_the_place_of_several_when_they_are_rerun(campaign):
    """Sixteen runs bear reruns of weight 4 at once: one of weight 3 and one of weight 1, never two of weight 3."""
    plan = {(cell, seed): [Ended(verdict="void")] for cell in ("hops1", "hops2") for seed in (1, 2)}
    runs, weights = FakeRuns(plan, hold_s=0.2), []
    under_way = []

    def runner(scenario, *arguments, **named):
        under_way.append(2 * scenario.hops - 1)
        weights.append(sum(under_way))
        ended = runs(scenario, *arguments, **named)
        under_way.remove(2 * scenario.hops - 1)
        return ended

    made = campaign(runner, jobs=16)
    load = SafeLoad(16, 16, lambda: (0.0, 0.0))
    load.ended = lambda *_: None  # else the void runs lower the number first
    schedule = Schedule(16, made.progress, runner, load=load, weight_of=lambda task: 2 * task.cell.axes["hops"] - 1)
    schedule.run(tasks_of(made.experiment, made.directory), resume=True)
    assert len(weights) == 8
    assert max(weights[4:]) <= 4
