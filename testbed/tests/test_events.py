"""Events of a scenario: their requests to the medium, and their times in a run."""

import csv
import json
from pathlib import Path

import pytest

from scenarios.events import Event
from testbed.errors import HostLateError, RunError
from testbed.programs import BUILT
from testbed.runs.run import run_scenario
from testbed.stages.events import carry_out, read_events, relay_in_use
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


@pytest.mark.root
@needs_runs
def test_a_network_that_is_ready_too_late_for_its_traffic_is_reported(tmp_path: Path) -> None:
    result = Background(chain(traffic_at=0), tmp_path / "run").result()
    assert result.status == "failed"
    assert result.error is not None and "after traffic_at = 0 s; give a later one" in result.error
