"""Rounds of a campaign with a stand-in for the workers: which runs are wanted, until the questions are answered."""

import argparse
import json
import math
from dataclasses import replace

import pytest

from testbed.campaigns.batch import Batch
from testbed.campaigns.experiment import load
from testbed.campaigns.folder import CampaignFolder
from testbed.campaigns.request import Request
from testbed.campaigns.rounds import DONE, Member, Rounds, batches_in, write_record
from testbed.campaigns.time_limit import Cut, TimeLimit
from testbed.commands import campaign
from testbed.errors import RunError, UsageError
from testbed.tests.workers import TEXT, Workers, clear, noisy


@pytest.fixture
def rounds(tmp_path):
    (tmp_path / "e.toml").write_text(TEXT)
    out = tmp_path / "out"

    def make(workers, deadline=math.inf, names=("e",)):
        """The clock of the time limit is the number of runs that have begun."""
        members = [Member(load(tmp_path / "e.toml", Request(quick=True)), out / name) for name in names]
        limit = TimeLimit(deadline, lambda: len(getattr(workers, "runs", ())))
        return Rounds(out, members, Batch(()), workers, lambda _line: None, limit=limit)

    make.out = out
    return make


def test_a_clear_question_is_decided_at_its_first_look(rounds):
    workers = Workers(clear)
    rounds(workers).run()
    assert sorted(workers.runs) == [(f"hops{hops}", seed) for hops in (1, 2) for seed in range(1, 5)]


def test_cells_that_no_question_compares_can_be_left_out(tmp_path, rounds):
    """The question is about one and two hops."""
    (tmp_path / "e.toml").write_text(TEXT.replace("hops = [1, 2]", "hops = [1, 2, 3]"))
    workers = Workers(clear)
    campaign = rounds(workers)
    campaign.members = [Member(replace(member.experiment, asked_only=True), member.directory) for member in campaign.members]
    campaign.run()
    assert {name for name, _ in workers.runs} == {"hops1", "hops2"}


def test_an_experiment_without_questions_is_refused_where_only_asked_cells_are_run():
    parser = argparse.ArgumentParser()
    campaign.add(parser.add_subparsers())
    with pytest.raises(UsageError, match="hv-fig10: has no questions, so --asked leaves no run of it; leave out --asked"):
        campaign.members_of(parser.parse_args(["campaign", "hv-fig3", "hv-fig10", "--quick", "--asked"]))
    assert campaign.members_of(parser.parse_args(["campaign", "hv", "--quick", "--asked"]))


def test_options_of_snakemake_are_refused_without_a_cluster():
    parser = argparse.ArgumentParser()
    campaign.add(parser.add_subparsers())
    with pytest.raises(UsageError, match="--snakemake: goes with --cluster"):
        campaign.run(parser.parse_args(["campaign", "hv-fig3", "--snakemake=--verbose"]))


def test_an_open_question_gets_seeds_until_its_limit(rounds):
    workers = Workers(noisy)
    campaign = rounds(workers)
    campaign.run()
    assert [len(Batch.read(path).tasks) for folder in campaign.folders for path in batches_in(folder)] == [8, 4, 6, 10]
    (answer,) = campaign.members[0].answers()
    assert (answer.verdict, answer.looks, answer.seeds) == ("undecided", [4, 6, 9, 14], None)


def test_a_killed_campaign_goes_on_and_ends_as_an_undisturbed_one(rounds):
    first = Workers(noisy, die_after=11)
    with pytest.raises(KeyboardInterrupt):
        rounds(first).run()
    second = Workers(noisy)
    campaign = rounds(second)
    campaign.run()
    assert not set(first.runs) & set(second.runs)
    assert len(first.runs) + len(second.runs) == 28
    assert campaign.members[0].answers()[0].looks == [4, 6, 9, 14]


def test_a_call_that_goes_on_gives_the_batches_left_its_own_jobs_and_captures(rounds):
    with pytest.raises(KeyboardInterrupt):
        rounds(Workers(noisy, die_after=9)).run()
    campaign = rounds(Workers(noisy))
    campaign.request = Batch((), jobs=5, captures="none")
    campaign.run()
    batches = [Batch.read(path) for folder in campaign.folders for path in batches_in(folder)]
    assert [(batch.jobs, batch.captures) for batch in batches] == [(None, "all"), (5, "none"), (5, "none"), (5, "none")]
    assert [len(batch.tasks) for batch in batches] == [8, 4, 6, 10]


def test_a_campaign_that_has_ended_runs_nothing(rounds):
    rounds(Workers(clear)).run()
    again = Workers(clear)
    rounds(again).run()
    assert again.runs == []


def test_a_time_limit_ends_the_campaign_in_order_and_the_next_call_ends_as_an_undisturbed_one(rounds):
    first = Workers(noisy)
    cut = rounds(first, deadline=11)  # in the second round, of 4 runs
    cut.run()
    assert (len(first.runs), cut.cut) == (11, Cut(round=2, runs=4, not_started=1))
    (answer,) = cut.members[0].answers()
    assert (answer.verdict, answer.looks, answer.seeds) == ("undecided", [4], 6)
    assert answer.answer.needed > 4
    second = Workers(noisy)
    campaign = rounds(second)
    campaign.run()
    assert campaign.cut is None
    assert sorted(first.runs + second.runs) == [(f"hops{hops}", seed) for hops in (1, 2) for seed in range(1, 15)]
    assert campaign.members[0].answers()[0].looks == [4, 6, 9, 14]


def test_a_look_takes_place_only_with_all_its_pairs(rounds):
    """Five pairs are complete when the limit ends the round up to six. The next call would forget a look at them."""
    campaign = rounds(Workers(noisy), deadline=10)
    campaign.run()
    assert campaign.members[0].answers()[0].looks == [4]


def test_a_time_limit_between_two_rounds_starts_no_further_round(rounds):
    campaign = rounds(Workers(noisy), deadline=8)
    campaign.run()
    assert campaign.cut == Cut(round=2, runs=4, not_started=4)
    assert [folder.name for folder in campaign.folders] == ["round-1"]
    assert campaign.cut.line().startswith("the time limit ended the campaign: 4 of 4 runs of round 2 were not started")


def test_a_time_limit_after_the_last_run_ends_nothing(rounds):
    campaign = rounds(Workers(clear), deadline=8)
    campaign.run()
    assert campaign.cut is None


def test_the_limit_of_a_call_holds_for_the_round_that_an_earlier_call_left(rounds):
    with pytest.raises(KeyboardInterrupt):
        rounds(Workers(noisy, die_after=3)).run()
    second = Workers(noisy)
    rounds(second, deadline=2).run()
    assert len(second.runs) == 2
    third = Workers(noisy)
    rounds(third).run()
    assert len(third.runs) == 28 - 3 - 2


def test_a_call_without_a_limit_goes_on_with_a_round_of_a_limited_one(rounds):
    with pytest.raises(KeyboardInterrupt):
        rounds(Workers(noisy, die_after=3), deadline=5).run()
    second = Workers(noisy)
    campaign = rounds(second)
    campaign.run()
    assert len(second.runs) == 28 - 3
    assert len(campaign.folders) == 4


def test_the_runs_of_a_round_are_ordered_by_seed_over_all_experiments(rounds):
    campaign = rounds(Workers(clear), names=("e", "f"))
    campaign.run()
    first = Batch.read(batches_in(campaign.folders[0])[0]).tasks
    places = [(task.seed, task.results.name, task.cell.name) for task in first]
    assert places == [(seed, name, f"hops{hops}") for seed in range(1, 5) for name in ("e", "f") for hops in (1, 2)]


def test_failed_runs_are_not_repeated_and_give_no_pair(rounds):
    workers = Workers(lambda hops, seed: None if seed == 2 else clear(hops, seed))
    campaign = rounds(workers)
    campaign.run()
    assert len(workers.runs) == len(set(workers.runs))
    assert campaign.members[0].answers()[0].answer.pairs < max(seed for _, seed in workers.runs)


def test_a_round_that_brings_nothing_ends_the_campaign_with_a_reason(rounds):
    with pytest.raises(RunError, match="round 1 brought no run to its end"):
        rounds(lambda folder: [path.with_name(path.stem + DONE).write_text("{}") for path in batches_in(folder)]).run()


def test_the_record_adds_up_rounds_batches_and_verdicts(rounds):
    rounds(Workers(noisy)).run()
    head = {"name": "e", "resume": "./manet campaign e", "experiments": ["e"], "size": "quick", "began": "now", "cluster": None}
    record = write_record(rounds.out, head, ended=True)
    assert [each["runs"] for each in record["rounds"]] == [8, 4, 6, 10]
    assert (record["verdicts"]["valid"], record["wall_s"], record["emulated_s"]) == (28, 8.0, 80.0)
    assert json.loads((rounds.out / "campaign.json").read_text()) == record


def test_one_campaign_holds_a_folder_and_only_its_own(tmp_path):
    out = tmp_path / "out"
    with CampaignFolder.claimed(out) as folder:
        with pytest.raises(UsageError, match="another campaign is under way"), CampaignFolder.claimed(out):
            pass
        folder.require_same({}, {"experiments": ["e"], "size": "quick"})
        with pytest.raises(UsageError, match="other experiments"):
            folder.require_same({"experiments": ["f"], "size": "quick"}, {"experiments": ["e"], "size": "quick"})
        begun = {"experiments": ["e"], "size": "quick", "scenarios": "a"}
        with pytest.raises(UsageError, match="other scenarios"):
            folder.require_same(begun, begun | {"scenarios": "b"})
        folder.require_same({"experiments": ["e"], "size": "quick"}, begun)  # of a version that wrote no hash
    with CampaignFolder.claimed(out):
        pass
    (out / "notes.txt").write_text("mine")
    with CampaignFolder.claimed(out) as folder, pytest.raises(UsageError, match="holds other files"):
        folder.require_same({}, {"experiments": ["e"], "size": "quick"})
    (out / "batches").mkdir()  # of a campaign whose campaign.json is damaged
    with CampaignFolder.claimed(out) as folder:
        folder.require_same({}, {"experiments": ["e"], "size": "quick"})


def test_the_settings_of_a_campaign_change_its_hash_and_a_limit_of_pairs_its_seeds(tmp_path):
    def members(*words):
        parser = argparse.ArgumentParser()
        campaign.add(parser.add_subparsers())
        return campaign.members_of(parser.parse_args(["campaign", "hv-fig3", "--quick", "--out", str(tmp_path), *words]))

    plain, fewer, other = members(), members("--max-pairs", "2"), members("--set", "duration=5")
    assert plain[0].experiment.seeds > 2 == fewer[0].experiment.seeds
    assert campaign.hash_of_scenarios(plain) == campaign.hash_of_scenarios(fewer) != campaign.hash_of_scenarios(other)


@pytest.mark.parametrize(("text", "seconds"), [("90m", 5400), ("2h", 7200), ("45", 2700), ("0.5h", 1800)])
def test_a_time_limit_is_in_minutes_or_names_its_unit(text, seconds):
    parser = argparse.ArgumentParser()
    campaign.add(parser.add_subparsers())
    assert parser.parse_args(["campaign", "hv", "--time", text]).time == seconds


@pytest.mark.parametrize("text", ["", "m", "0", "-5", "2d", "inf", "nan", "1e999h"])
def test_a_time_limit_that_is_no_duration_is_refused_with_an_example(text, capsys):
    parser = argparse.ArgumentParser()
    campaign.add(parser.add_subparsers())
    with pytest.raises(SystemExit):
        parser.parse_args(["campaign", "hv", f"--time={text}"])
    assert f'"{text}" is not a duration such as 90m or 2h' in capsys.readouterr().err


def test_the_folder_of_a_file_has_its_name_without_its_path(tmp_path):
    (tmp_path / "e.toml").write_text(TEXT)
    parser = argparse.ArgumentParser()
    campaign.add(parser.add_subparsers())
    members = campaign.members_of(parser.parse_args(["campaign", str(tmp_path / "e.toml"), "--quick"]))
    assert members[0].directory.parent.name == "campaign-e-quick"
    assert campaign.name_of(["hv", "../x/e.toml", "rt-mobile"]) == "hv-e-rt-mobile"


def test_a_value_compared_with_itself_is_refused(tmp_path):
    (tmp_path / "e.toml").write_text(TEXT.replace("with = 1", "with = 2"))
    with pytest.raises(UsageError, match=r"with.*is 2 as compared is; name two values of hops"):
        load(tmp_path / "e.toml", Request(quick=True))
