"""A rerun of a recorded run: the values taken from the record, the reported differences, and the air from its log of inputs."""

import json
import subprocess
from pathlib import Path

import pytest

from record.errors import RunFileError
from testbed.__main__ import main
from testbed.errors import UsageError
from testbed.programs import BUILT, ROOT
from testbed.runs import again, metadata
from testbed.runs.by_hand import with_actions
from testbed.runs.recorded import Recorded
from testbed.runs.replayed import Replayed, compare, replay
from testbed.runs.run import RunResult, run_scenario
from testbed.tests.running import chain, needs_runs

built = pytest.mark.skipif(not BUILT.medium.exists(), reason="the medium is not built (./setup.sh)")


@pytest.fixture
def record(tmp_path: Path):
    """The directory of a run that never was."""

    def make(**fields: object) -> Path:
        directory = tmp_path / "record" / "hv-hops3" / "seed-7"
        directory.mkdir(parents=True)
        scenario = chain(hops=3, profile="modern", tcp="cubic")
        run = {
            "format": "manet-run/1", "seed": 7, "experiment": "hv-fig1", "cell": "hv-hops3", "variant": "hv", "axes": {"hops": 3},
            "status": "complete", "commit": metadata.commit(), "kernel": metadata.kernel(), "clock": {"kind": "real"},
            "versions": metadata.versions("static"), **fields,
        }  # fmt: skip
        (directory / "run.json").write_text(json.dumps(run))
        (directory / "scenario.json").write_text(scenario.to_json())
        (directory / "trace.csv").write_text("as it was\n")
        return directory

    return make


class Runner:
    """Stands in for a run: keeps what it was asked for."""

    def __call__(self, scenario, seed, directory, *, progress, **record):
        self.scenario, self.seed, self.record = scenario, seed, record
        progress("traffic", 0.5)
        directory.mkdir(parents=True)
        (directory / "trace.csv").write_text("otherwise\n")
        return RunResult("failed", None, directory, "no medium; run ./setup.sh")


def test_a_run_is_repeated_with_the_scenario_seed_and_profile_of_its_record(record, tmp_path: Path) -> None:
    recorded, runner = Recorded.read(record()), Runner()
    answer = again.run_again(recorded, tmp_path / "again", runner, lambda _stage, _fraction: None)
    assert runner.scenario == chain(hops=3, profile="modern", tcp="cubic") and runner.seed == 7
    assert runner.record == {
        "experiment": "hv-fig1", "cell": "hv-hops3", "variant": "hv", "axes": {"hops": 3}, "repeats": str(recorded.directory),
    }  # fmt: skip
    assert (answer["seed"], answer["profile"], answer["status"]) == (7, "modern", "failed")
    assert len(answer["differences"]) == 1 and answer["differences"][0].startswith("trace.csv: ")


def test_differences_are_named_one_per_line(record) -> None:
    assert Recorded.read(record()).differences() == []


def test_kernel_commit_and_a_version_that_are_others_now(record) -> None:
    versions = metadata.versions("static") | {"iperf3": "iperf 2.0"}
    found = Recorded.read(record(kernel="5.10.0", commit="abc", versions=versions)).differences()
    assert found == [
        f"commit: abc, now {metadata.commit()}",
        f"kernel: 5.10.0, now {metadata.kernel()}",
        f"iperf3: iperf 2.0, now {metadata.versions('static')['iperf3']}",
    ]


def test_of_a_run_in_virtual_time_the_host_s_kernel_is_compared(record) -> None:
    clock = {"kind": "virtual", "host_kernel": metadata.kernel()}
    assert Recorded.read(record(kernel="6.12-guest", clock=clock)).differences() == []


def test_the_new_directory_is_outside_the_experiment_and_new(record, tmp_path: Path) -> None:
    recorded = Recorded.read(record())
    first = again.new_directory(tmp_path, recorded)
    assert first == tmp_path / "again" / "hv-fig1-hv-hops3-seed-7"
    first.mkdir(parents=True)
    assert again.new_directory(tmp_path, recorded).name == "hv-fig1-hv-hops3-seed-7-2"


def test_a_session_whose_events_were_not_recorded_is_no_run_to_repeat(record) -> None:
    with pytest.raises(UsageError, match=r"an earlier version did not record.*manet replay"):
        again.require_repeatable(Recorded.read(record(experiment="cli")))


def test_a_recorded_session_is_a_run_to_repeat(record) -> None:
    again.require_repeatable(Recorded.read(record(experiment="cli", session_s=3.5)))


def test_the_repetition_of_a_session_is_a_run_to_repeat(record) -> None:
    """It has the session's experiment, and `repeats`."""
    again.require_repeatable(Recorded.read(record(experiment="cli", repeats="results/session")))


def test_a_session_of_more_than_a_day_is_repeated_for_a_day(record) -> None:
    directory = record(session_s=100_000.5)
    assert with_actions(directory, Recorded.read(directory).scenario).scenario.duration == 86_400


@pytest.mark.parametrize(("key", "value"), [("session_s", "long"), ("commands", [{"name": "ping", "argv": 5}])])
def test_an_edited_record_of_a_session_is_refused(record, key: str, value: object) -> None:
    with pytest.raises(RunFileError, match=rf'run.json: "{key}.*of another type than expected'):
        Recorded.read(record(**{key: value}))


ROWS = """t_s,at_s,event,station,detail,source
1.0,0.5,power,sta2,off,prompt
1.1,0.6,link,sta1 sta2,error_rate 0.25,mesh
1.2,0.7,wire,sta1 h1,stalled,prompt
1.3,0.8,wire,sta1 h1,goes on,prompt
1.4,0.9,move,sta1,to 10 20 1.5 at 2,script
1.5,1,daemon,sta1,killed,view
1.6,1.1,daemon,sta1,started,view
1.7,1.2,command,h1,watch started,prompt
1.8,1.3,command,h1,watch restarted,prompt
1.9,1.4,command,h1,watch killed,prompt
2.0,1.5,cut,sta2,"off, next hop of sta1 to sta3",prompt
2.1,1.6,command,h1,watch had ended,prompt
2.2,,power,sta2,on,view
"""


def test_each_kind_of_row_is_an_event_again(tmp_path: Path) -> None:
    """The session began its own traffic or none: the repetition has that of no flow, and lasts as long."""
    (tmp_path / "events.csv").write_text(ROWS)
    (tmp_path / "radios.csv").touch()
    command = {"name": "watch", "station": "h1", "argv": ["awk", "{print}"]}
    (tmp_path / "run.json").write_text(json.dumps({"session_s": 7.25, "commands": [command]}))
    events = [{"at": 0, "power": "sta2", "on": True}]
    scenario = chain(hops=2, routing="aodv", events=events, wires=[{"station": "sta1", "host": "h1"}])
    by_hand = with_actions(tmp_path, scenario)
    assert (by_hand.scenario.flows, by_hand.scenario.traffic_seconds()) == ((), 7.25)
    made = [event.model_dump(by_alias=True, exclude={"at"}, mode="json") for event in by_hand.scenario.events]
    assert made == [
        {"power": "sta2", "on": False}, {"link": ["sta1", "sta2"], "error_rate": 0.25},
        {"wire": ["sta1", "h1"], "stalled": True}, {"wire": ["sta1", "h1"], "stalled": False},
        {"move": "sta1", "to": [10.0, 20.0, 1.5], "speed": 2.0}, {"daemon": "kill", "station": "sta1"},
        {"daemon": "start", "station": "sta1"}, {"command": ["awk", "{{print}}"], "station": "h1", "name": "watch"},
        {"command": "restart", "name": "watch"}, {"command": "kill", "name": "watch"}, {"power": "sta2", "on": False},
    ]  # fmt: skip
    assert [event.at for event in by_hand.scenario.events] == [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5]
    assert [line.partition(":")[0] for line in by_hand.left_out] == [
        "command of h1 (watch had ended) at 1.6 s", "power of sta2 (on) before the traffic, from which events count",
        "the changes of powers and antennas in radios.csv, which no event makes",
    ]  # fmt: skip


@pytest.mark.parametrize("option", [["--set", "hops=2"], ["--quick"], ["--seeds", "3"], ["--profile", "period"], ["--resume"]])
def test_a_repetition_takes_no_other_settings(record, capsys, option: list[str]) -> None:
    assert main(["run", str(record()), *option]) == 2
    assert f"{option[0]}: " in (error := capsys.readouterr().err) and error.count("\n") == 1


def test_the_verb_runs_it_again_and_tells_how_it_ended(record, tmp_path: Path, monkeypatch, capsys) -> None:
    from testbed.workers import runner

    monkeypatch.setattr(runner, "runner_for", lambda _scenarios, _seeds, **_options: Runner())
    assert main(["run", str(record()), "--out", str(tmp_path / "again")]) == 1
    output, error = capsys.readouterr()
    assert "verdict   failed" in output and f"results   {tmp_path / 'again'}" in output
    assert error.startswith("1 run of 2 s: about ")
    assert error.splitlines()[1:] == ["[1/1] again: failed", "manet run: no medium; run ./setup.sh"]


@pytest.mark.parametrize(
    ("fields", "key"), [({"clock": "real"}, "clock"), ({"versions": []}, "versions"), ({"seed": "7"}, "seed")]
)
def test_a_record_with_a_value_of_another_type_is_one_line(record, capsys, fields, key) -> None:
    assert main(["run", str(record(**fields))]) == 1
    error = capsys.readouterr().err
    assert f'run.json: "{key}" is ' in error and len(error.splitlines()) == 1


def test_a_folder_without_a_run_is_named_with_the_remedy(tmp_path: Path, capsys) -> None:
    assert main(["run", str(tmp_path)]) in (1, 2)
    assert str(tmp_path) in (error := capsys.readouterr().err) and error.count("\n") == 1


# --- replay -----------------------------------------------------------------------------------------------------------


def test_the_first_line_that_differs_is_found(tmp_path: Path) -> None:
    def logs(was: str, now: str) -> Replayed:
        (tmp_path / "was").write_text(was)
        (tmp_path / "now").write_text(now)
        return compare(tmp_path / "was", tmp_path / "now")

    assert logs("a\nb\n", "a\nb\n") == Replayed(2)
    assert logs("a\nb\n", "a\nc\n") == Replayed(1, 2, "b", "c")
    assert logs("a\n", "a\nb\n") == Replayed(1, 2, None, "b")
    assert logs("a\nb", "a\nb\n") == Replayed(1, 2, "b", "b")


PACKET = "020000000002020000000001080045000054" + "00" * 20  # Ethernet to sta2, and the begin of an IPv4 packet of 84 bytes


@pytest.fixture
def with_inputs(record) -> Path:
    """A record with the medium's files, of three packets from sta1 to sta2."""
    directory = record()
    stations = [{"name": f"sta{n}", "mac": f"02:00:00:00:00:{n:02x}", "position": [200.0 * (n - 1), 0.0, 0.0]} for n in (1, 2)]
    config = {"format": "manet-medium/1", "radio": str(ROOT / "medium/radios/ns2-dsss-2m.toml"), "stations": stations}
    (directory / "medium.json").write_text(json.dumps(config | {"seed": 7}))
    packets = [{"at": n * 1000, "input": {"Air": {"Packet": {"station": 0, "frame": f"{PACKET}+60"}}}} for n in (1, 2, 3)]
    lines = [*packets, {"at": 50_000_000, "input": {"Air": "Stop"}}]
    (directory / "inputs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    argv = [BUILT.medium, "replay", directory / "medium.json", directory / "inputs.jsonl", directory / "air.csv"]
    subprocess.run(argv, check=True, timeout=60)
    return directory


@built
def test_the_air_log_of_a_replay_is_equal_or_the_line_is_shown(with_inputs: Path, capsys) -> None:
    air = with_inputs / "air.csv"
    lines = air.read_text().splitlines(keepends=True)
    assert sum(",deliver," in line for line in lines) == 3
    assert main(["replay", str(with_inputs)]) == 0
    assert f"{len(lines)} lines, byte for byte" in capsys.readouterr().out
    air.write_text("".join([*lines[:4], lines[4].replace("sta", "stb", 1), *lines[5:]]))
    assert main(["replay", str(with_inputs)]) == 1
    assert f"differs   {air}: line 5\nrecorded  " in capsys.readouterr().out
    assert main(["replay", str(with_inputs), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["equal"], answer["lines"], answer["line"], answer["replayed"]) == (False, 4, 5, lines[4].rstrip("\n"))


def test_without_a_log_of_inputs_the_error_has_the_remedy(record, capsys) -> None:
    assert main(["replay", str(record())]) == 2
    assert "input_log = true" in (error := capsys.readouterr().err) and error.count("\n") == 1


@built
def test_a_log_that_was_closed_at_its_limit_is_not_compared(with_inputs: Path) -> None:
    with (with_inputs / "air.csv").open("a") as log:
        log.write("# closed: air.csv has reached its limit of 9 bytes; raise log_limit\n")
    with pytest.raises(UsageError, match=r"is incomplete.*limit of 9 bytes"):
        replay(with_inputs)


@pytest.mark.root
@needs_runs
def test_a_run_of_the_kernel_s_tcp_is_replayed_byte_for_byte(tmp_path: Path, capsys) -> None:
    scenario = chain(hops=2, wires=[{"station": "sta3", "host": "inet1"}], flows=[{"from": "sta1", "to": "inet1"}])
    result = run_scenario(scenario, 1, tmp_path / "run")
    assert result.status == "complete", result.error
    assert main(["replay", str(tmp_path / "run")]) == 0
    assert "byte for byte" in capsys.readouterr().out


@pytest.mark.root
@needs_runs
def test_a_run_ends_when_its_logs_have_reached_their_limit(tmp_path: Path) -> None:
    result = run_scenario(chain(duration=60, log_limit=200_000), 1, tmp_path / "run")
    assert (result.status, result.verdict) == ("failed", "void")
    assert "has reached its limit of 200000 bytes; raise log_limit" in result.error
    assert (tmp_path / "run" / "air.csv").stat().st_size < 201_000
    with pytest.raises(UsageError, match="is incomplete"):
        replay(tmp_path / "run")
