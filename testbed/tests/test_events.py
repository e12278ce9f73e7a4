"""Events of a scenario: their requests to the medium, and their times in a run."""

import csv
import json
import re
from functools import partial
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from record.events_file import read_events
from scenarios.events import Event
from scenarios.live_events import live_event
from testbed.errors import HostLateError, RunError, UsageError
from testbed.host.protocols import missing_requirement
from testbed.programs import BUILT
from testbed.runs.routes import known_routes
from testbed.runs.run import run_scenario
from testbed.stages.events import carry_out, relay_in_use, require_before_traffic_at
from testbed.stages.site import Site
from testbed.tests.running import Background, air_rows, chain, needs_runs

HEADER = "t_ns,station,event,frame,peer,packet,attempt,bytes,rate_bps,airtime_ns,backoff_slots,fate,receivers"
DIAMOND = {"topology": "positions", "positions": [[0, 150], [200, 290], [200, 0], [400, 150]]}
CBR = {"from": "sta1", "to": "sta4", "traffic": "cbr", "rate": 100_000, "bytes": 500}
LATE_S = 0.5  # how late a thread may be on a loaded host


class FakeMedium:
    """Keeps its requests and answers from a log of the air."""

    def __init__(self, rows: list[str] = (), model_s: float = 10.0, **status: object) -> None:
        self.status = status
        self.requests: list[tuple[str, dict]] = []
        self.rows, self.model_ns = list(rows), round(model_s * 1e9)

    def ask(self, op: str, **arguments: object) -> dict:
        self.requests.append((op, arguments))
        return {"header": HEADER, "rows": self.rows} if op == "air" else {"model_ns": self.model_ns, **self.status}


def deliver(t_s: float, station: str, peer: str, size: int = 500, frame: str = "data") -> str:
    return f"{round(t_s * 1e9)},{station},deliver,{frame},{peer},7,,{size},,,,,"


@pytest.mark.parametrize(
    ("event", "requests", "recorded"),
    [
        ({"power": "sta3", "on": False}, [("power", {"station": "sta3", "on": False})], ("sta3", "off")),
        (
            {"link": ["sta1", "sta2"], "error_rate": 0.5},
            [
                ("link", {"from": "sta1", "to": "sta2", "error_rate": 0.5}),
                ("link", {"from": "sta2", "to": "sta1", "error_rate": 0.5}),
            ],
            ("sta1 sta2", "error_rate 0.5"),
        ),
        (
            {"move": "sta3", "to": [599, 599], "speed": 30},
            [("move", {"station": "sta3", "position": [599.0, 599.0, 0.0], "speed_mps": 30.0})],
            ("sta3", "to 599 599 at 30"),
        ),
        ({"move": "sta3", "to": [1, 2, 3]}, [("move", {"station": "sta3", "position": [1.0, 2.0, 3.0]})], ("sta3", "to 1 2 3")),
    ],
    ids=["power", "link", "move", "jump"],
)
def test_an_event_is_the_request_to_the_medium(event: dict, requests: list, recorded: tuple) -> None:
    medium = FakeMedium()
    assert carry_out(medium, Event.model_validate({"at": 1, **event})) == recorded
    assert medium.requests == requests


def test_an_event_now_is_checked_against_the_commands_that_were_started() -> None:
    before = [Event(at=0, command=("ping", "{sta2}"), station="sta1", name="ping")]
    check = partial(live_event, chain(), before=before)
    assert check({"command": ["true"], "station": "sta2"}).name == "command2"
    assert check({"command": "kill", "name": "ping"}).command == "kill"
    for error, keys in {
        "name: no event before starts a command": {"command": "kill", "name": "pong"},
        "at: the event is carried out now; leave it out": {"at": 3, "power": "sta1", "on": False},
        'name: "ping" is the name of an earlier command': {"command": ["true"], "station": "sta2", "name": "ping"},
        "command: {sta9} stands for the address of a station": {"command": ["ping", "{sta9}"], "station": "sta1"},
    }.items():
        with pytest.raises(UsageError, match=re.escape(error)):
            check(keys)


def test_whether_a_daemon_runs_is_not_known_before_an_event_now() -> None:
    for action in ("start", "stop", "restart", "kill"):
        assert live_event(chain(routing="aodv"), {"daemon": action, "station": "sta1"}).daemon == action
    with pytest.raises(UsageError, match=r'^daemon: routing "static" has no daemon; choose a protocol with a daemon$'):
        live_event(chain(), {"daemon": "start", "station": "sta1"}, without_daemon="static")


def test_the_relay_in_use_is_the_one_that_took_most_of_late() -> None:
    rows = [
        *(deliver(8.5, "sta2", "sta1") for _ in range(9)),  # long ago
        deliver(9.5, "sta2", "sta1", 28),  # an ARP answer
        deliver(9.6, "sta3", "sta1"),
        deliver(9.7, "sta4", "sta3", 1500),  # the relay's own hop
        deliver(9.8, "sta2", "sta1", 1500, "bcast"),
        deliver(9.9, "sta4", "sta1", 1500),  # directly: no relay
    ]
    assert relay_in_use(FakeMedium(rows), "sta1", "sta4") == "sta3"
    with pytest.raises(RunError, match="no station relayed frames of sta2"):
        relay_in_use(FakeMedium(rows), "sta2", "sta4")


def test_no_relay_on_a_host_that_is_too_busy_is_not_the_user_s_mistake() -> None:
    late = FakeMedium(verdict="void", lateness={"max_us": 812_000.0})
    with pytest.raises(HostLateError, match=r"the host was too busy \(the medium was up to 812 ms late\); run it again"):
        relay_in_use(late, "sta1", "sta4")
    with pytest.raises(HostLateError, match=r"the host was too busy \(programs waited\)"):
        relay_in_use(FakeMedium(verdict="valid"), "sta1", "sta4", lambda: "programs waited")
    with pytest.raises(RunError, match="is there a route to sta4") as caught:
        relay_in_use(FakeMedium(verdict="suspect"), "sta1", "sta4", lambda: None)
    assert not isinstance(caught.value, HostLateError)


@pytest.mark.root
@pytest.mark.slow
@needs_runs
def test_a_run_carries_its_events_out_on_time(tmp_path: Path) -> None:
    events = [
        {"at": 3, "power": "sta2", "on": True},
        {"at": 1.5, "cut": "next-hop", "from": "sta1", "to": "sta4"},
        {"at": 4, "move": "sta3", "to": [300, 0]},
        {"at": 4.5, "link": ["sta1", "sta4"], "error_rate": 1},
    ]
    scenario = chain(**{"hops": None, **DIAMOND, "flows": [CBR], "duration": 5, "events": events, "traffic_at": 4})
    run = tmp_path / "run"
    result = Background(scenario, run).result()
    assert result.status == "complete", result.error
    judged, record = (json.loads((run / name).read_text()) for name in ("verdict.json", "run.json"))
    assert judged["traffic_start"]["late_s"] == pytest.approx(record["traffic_ns"] / 1e9 - 4, abs=0.001)
    done = read_events(run)
    # static routes take the relay of the lowest number
    assert [(row["at_s"], row["event"], row["station"]) for row in done] == [
        ("1.5", "cut", "sta2"), ("3", "power", "sta2"), ("4", "move", "sta3"), ("4.5", "link", "sta1 sta4"),
    ]  # fmt: skip
    for row in done:
        assert 0 <= float(row["t_s"]) - 4 - float(row["at_s"]) < LATE_S
    off_s, on_s = float(done[0]["t_s"]), float(done[1]["t_s"])
    heard = [int(row["t_ns"]) / 1e9 for row in air_rows(run, "sta4", "deliver", "data")]
    assert min(heard) > 4
    assert [t for t in heard if off_s < t < on_s] == []
    assert [t for t in heard if t < off_s] and [t for t in heard if t > on_s]
    with (run / "air.csv").open() as file:
        assert any(row["fate"] == "off" or row["fate"] == "weak" for row in csv.DictReader(file))


@pytest.mark.root
@pytest.mark.slow
@needs_runs
def test_receivers_are_ready_before_traffic_at(tmp_path: Path, host) -> None:
    """The network is ready after about a second, the receiver three seconds later, still before 6 s."""
    flow = {"from": "sta1", "to": "sta2", "traffic": "command", "command": ["true"], "server": ["sleep", "60"], "ready_after": 3}
    result = run_scenario(chain(traffic_at=6, duration=1, flows=[flow]), 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    late_s = json.loads((tmp_path / "run" / "verdict.json").read_text())["traffic_start"]["late_s"]
    if late_s > LATE_S:
        host.void(f"the traffic began {late_s} s after traffic_at")
    assert late_s >= 0


@pytest.mark.root
@pytest.mark.slow
@needs_runs
def test_an_event_that_cannot_be_carried_out_ends_the_run_in_one_line(tmp_path: Path) -> None:
    cut = {"at": 1, "cut": "next-hop", "from": "sta4", "to": "sta1"}  # the flow goes the other way
    scenario = chain(**{"hops": None, **DIAMOND, "flows": [CBR], "duration": 30, "events": [cut], "arp": "static"})
    result = Background(scenario, tmp_path / "run").result()
    assert result.status == "failed"
    assert result.error is not None and result.error.startswith("events: cut: no station relayed frames of sta4")


@pytest.mark.parametrize(
    ("ready_s", "others_s", "late"),
    [
        (9.9, 0.0, None),
        (12.0, 2.0, HostLateError),  # without them it might have been ready at 10 s
        (12.0, 1.9, RunError),
    ],
)
def test_a_late_network_is_repeated_only_if_other_programs_can_be_the_reason(tmp_path: Path, ready_s, others_s, late) -> None:
    site = Site(chain(traffic_at=10), 1, tmp_path, Path("/"))
    medium = FakeMedium(model_s=ready_s)
    if late is None:
        require_before_traffic_at(site, medium, others_s)
        return
    with pytest.raises(RunError, match=r"ready 2\.0 s after traffic_at = 10 s.*; give a later one") as problem:
        require_before_traffic_at(site, medium, others_s)
    assert type(problem.value) is late


@pytest.mark.root
@needs_runs
def test_a_network_that_is_ready_too_late_for_its_traffic_is_reported(tmp_path: Path) -> None:
    result = Background(chain(traffic_at=0), tmp_path / "run").result()
    assert result.status == "failed"
    assert result.error is not None and "after traffic_at = 0 s" in result.error and "give a later one" in result.error


# Ends a process of the run by itself, as a defect would: the events know nothing of it.
CRASH = """for link in /proc/[0-9]*/exe; do
case $(readlink $link) in */manet-aodv) pid=${link%/exe}; kill -9 ${pid#/proc/}; exit;; esac
done"""
DATAGRAMS = {"from": "sta1", "to": "sta3", "traffic": "cbr", "rate": 100_000, "bytes": 500}


def started_at(run: Path, station: str) -> list[tuple[float, int]]:
    """The starts of a station's daemon: time in s, and whether its predecessor was killed."""
    notes = [json.loads(line) for line in (run / "routing" / f"{station}.jsonl").read_text().splitlines()]
    return [(note["t_ns"] / 1e9, note["value"]) for note in notes if note["event"] == "started"]


@pytest.mark.root
@pytest.mark.slow
@needs_runs
def test_events_end_and_start_daemons_and_commands(tmp_path: Path, host) -> None:
    """AODV's own daemons: that of sta2 is killed, started, restarted; that of sta3 stopped."""
    events = [
        {"at": 4, "station": "sta2", "daemon": "restart"},
        {"at": 1, "station": "sta2", "daemon": "kill"},
        {"at": 2, "station": "sta2", "daemon": "start"},
        {"at": 5, "station": "sta3", "daemon": "stop"},
        {"at": 0.5, "station": "sta1", "command": ["ping", "-i", "0.2", "{sta2}"], "name": "ping"},
        {"at": 2, "command": "restart", "name": "ping"},
        {"at": 4, "command": "kill", "name": "ping"},
        {"at": 1, "station": "sta3", "command": ["sh", "-c", "echo heard; exit 3"]},
        {"at": 1, "station": "sta2", "command": ["sh", "-c", "echo {{}}; sleep 600 & sleep 600"], "name": "long"},
        {"at": 5, "command": "stop", "name": "command2"},  # the second command of the list
        {"at": 4, "station": "sta1", "command": ["true"]},
    ]
    run = tmp_path / "run"
    result = Background(chain(hops=2, routing="aodv", flows=[DATAGRAMS], duration=6, events=events), run).result()
    assert (result.status, result.error) == ("complete", None)
    rows = sorted((row["at_s"], row["event"], row["station"], row["detail"]) for row in read_events(run))
    assert rows == [
        ("0.5", "command", "sta1", "ping started"),
        ("1", "command", "sta2", "long started"),
        ("1", "command", "sta3", "command2 started"),
        ("1", "daemon", "sta2", "killed"),
        ("2", "command", "sta1", "ping restarted"),
        ("2", "daemon", "sta2", "started"),
        ("4", "command", "sta1", "command4 started"),
        ("4", "command", "sta1", "ping killed"),
        ("4", "daemon", "sta2", "restarted"),
        ("5", "command", "sta3", "command2 had ended"),
        ("5", "daemon", "sta3", "stopped"),
    ]
    record = json.loads((run / "run.json").read_text())
    began_s = record["traffic_ns"] / 1e9
    (_, first), (killed_s, after_kill), (restarted_s, after_stop) = started_at(run, "sta2")
    assert (first, after_kill, after_stop) == (0, 1, 0)  # what the killed one left is cleared
    late_s = [killed_s - began_s - 2, restarted_s - began_s - 4]
    if max(late_s) > LATE_S:
        host.void(f"daemons started {max(late_s)} s late")
    assert min(late_s) >= 0
    ends = {(one["name"], one["argv"][0], one["exit_status"], one["ended_by"]) for one in record["commands"]}
    assert ends == {
        ("ping", "ping", -15, "event"), ("ping", "ping", -9, "event"), ("command2", "sh", 3, "itself"),
        ("long", "sh", -15, "run"), ("command4", "true", 0, "itself"),
    }  # fmt: skip
    assert len(record["commands"]) == 5 and record["commands"][0]["argv"][-1] == "10.0.0.2"
    assert (run / "log" / "event-command2.log").read_text() == "heard\n"
    assert (run / "log" / "event-long.log").read_text() == "{}\n"
    known = known_routes(run)
    assert (known.when, list(known.stations), list(known.silent)) == ("end", ["sta1", "sta2"], ["sta3"])
    remarks = "\n".join(analyse_run(run)["remarks"])
    assert "events: daemon of sta2 killed at 1 s; daemon of sta2 started at 2 s; daemon of sta2 restarted at 4 s" in remarks
    assert "command command2 of sta3 ended with status 3 at" in remarks


@pytest.mark.root
@needs_runs
def test_a_daemon_that_ends_by_itself_fails_the_run_beside_those_that_events_end(tmp_path: Path) -> None:
    events = [
        {"at": 0.5, "station": "sta2", "daemon": "kill"},
        {"at": 1, "station": "sta2", "daemon": "start"},
        {"at": 2, "station": "sta1", "command": ["sh", "-c", CRASH.replace("{", "{{").replace("}", "}}")]},
    ]
    result = Background(chain(hops=2, routing="aodv", flows=[DATAGRAMS], duration=30, events=events), tmp_path / "run").result()
    assert result.status == "failed"
    assert result.error is not None and "manet-aodv was killed by SIGKILL; the routes went with it" in result.error


@pytest.mark.root
@needs_runs
@pytest.mark.skipif(missing_requirement("bird-babel") is not None, reason="BIRD is not installed (apt-get install bird2)")
def test_an_event_restarts_a_daemon_by_its_description(tmp_path: Path) -> None:
    """BIRD, whose control socket and routes a kill leaves behind."""
    routing = {"protocol": "bird-babel", "hello_interval": 0.3, "update_interval": 0.6}
    events = [
        {"at": 1, "station": "sta2", "daemon": "kill"},
        {"at": 1.5, "station": "sta2", "daemon": "start"},
        {"at": 5, "station": "sta2", "daemon": "restart"},
    ]
    run = tmp_path / "run"
    result = Background(chain(hops=2, routing=routing, flows=[DATAGRAMS], duration=12, events=events), run).result()
    assert (result.status, result.error) == ("complete", None)
    assert [row["detail"] for row in read_events(run)] == ["killed", "started", "restarted"]
    status = (run / "routing" / "sta2.status.txt").read_text().split("# at the end of the traffic")[1]
    assert "10.0.0.1/32" in status and "10.0.0.3/32" in status
    arrived_s = [int(row["t_ns"]) / 1e9 for row in air_rows(run, "sta3", "deliver", "data")]
    restarted_s = float(read_events(run)[2]["t_s"])
    assert [at_s for at_s in arrived_s if at_s > restarted_s + 1]


@pytest.mark.root
@needs_runs
def test_a_missing_program_of_an_event_is_refused_before_anything_starts(tmp_path: Path) -> None:
    events = [{"at": 1, "station": "sta1", "command": ["/proc/nowhere/x"]}]
    with pytest.raises(UsageError, match=r'key "events\.0\.command": "/proc/nowhere/x" is no program at this path; install it'):
        run_scenario(chain(events=events), 1, tmp_path / "run", programs=BUILT)
