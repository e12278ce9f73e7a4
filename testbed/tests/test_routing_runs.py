"""Each routing protocol that this machine has, carrying TCP over a real chain; gateways, status, and the errors of a run."""

import json
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from scenarios.routing import OWN_DAEMONS, SHIPPED
from scenarios.scenario import Scenario
from testbed.errors import UsageError
from testbed.host.protocols import missing_requirement, protocols
from testbed.runs.routes import known_routes
from testbed.stages.status import lines
from testbed.tests.running import Background, captured, chain, needs_runs, prompt

pytestmark = [pytest.mark.root, pytest.mark.slow, needs_runs]

# as quick as each can be asked to find its routes
QUICK = {
    "dsdv": {"period": 2, "settling": 0.5},
    "olsr": {"hello_interval": 0.5, "tc_interval": 1},
    "babeld": {"hello_interval": 0.5, "update_interval": 2},
    "batmand": {"originator_interval": 0.5},
    "bird-babel": {"hello_interval": 0.5, "update_interval": 2},
    "frr-babel": {"hello_interval": 0.5, "update_interval": 2},
    "olsrd2": {"hello_interval": 0.5, "tc_interval": 1},
}
# BIRD sets a route again, without the metric, whenever its cost has changed
KEEP_METRIC = ("babeld", "batmand", "frr-babel")
HERE = [name for name in protocols() if missing_requirement(name) is None]
ABSENT = [f"{name}: {missing[1]}" for name in protocols() if (missing := missing_requirement(name)) is not None]
WIRE = {"station": "sta3", "host": "host1"}


def two_hops(protocol: str, **keys: object):
    return chain(hops=2, duration=3, warmup=0.5, routing={"protocol": protocol, **QUICK.get(protocol, {})}, **keys)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two hops with each protocol, two at a time."""
    folder, done = tmp_path_factory.mktemp("routing"), {}
    for pair in (HERE[i : i + 2] for i in range(0, len(HERE), 2)):
        started = {name: Background(two_hops(name), folder / name) for name in pair}
        for name, run in started.items():
            result = run.result()
            assert result.status == "complete", f"{name}: {result.error}"
            done[name] = folder / name
    return done


def test_our_own_daemons_are_all_built() -> None:
    assert [name for name in OWN_DAEMONS if name not in HERE] == []


@pytest.mark.skipif(bool(ABSENT), reason="; ".join(ABSENT))
def test_every_protocol_is_there() -> None:
    assert protocols() == HERE


@pytest.mark.parametrize("name", HERE)
def test_two_hops_carry_tcp_and_the_witnesses_agree(runs: dict[str, Path], name: str) -> None:
    metrics = analyse_run(runs[name])
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    flow = metrics["flows"]["flow1"]
    # 619 to 631 kbit/s over static routes; start-up and control packets cost some. One hop would carry 1255
    assert 450e3 < flow["acked_bps"] < 700e3
    assert flow["air_bps"] == pytest.approx(flow["delivered_bps"], rel=0.05)


@pytest.mark.parametrize("name", [name for name in HERE if name in KEEP_METRIC])
def test_the_routes_of_others_daemons_are_given_acks_at_once(runs: dict[str, Path], name: str) -> None:
    lines = (runs[name] / "routes" / "sta1.txt").read_text().split("# at the end")[1].splitlines()
    to_the_end = [line for line in lines if line.startswith("10.0.0.3 via 10.0.0.2")]
    assert len(to_the_end) == 1 and "quickack 1" in to_the_end[0]


@pytest.mark.parametrize("name", OWN_DAEMONS)
def test_configuration_notes_and_status_are_kept_of_each_station(runs: dict[str, Path], name: str) -> None:
    folder = runs[name] / "routing"
    logs = 3 if name != "dsr" else 0  # its event log would be as large as a capture
    assert (len(list(folder.glob("*.config.json"))), len(list(folder.glob("*.events.jsonl")))) == (3, logs)
    notes = [json.loads(line) for line in (folder / "sta1.jsonl").read_text().splitlines()]
    assert notes[0]["event"] == "started" and {"t_ns", "about", "value"} <= set(notes[0])
    known = known_routes(runs[name], "sta1")
    assert (known.when, list(known.stations)) == ("end", ["sta1"])
    status = known.stations["sta1"]
    assert (status["protocol"], status["address"]) == (name, "10.0.0.1")
    to_the_end = [route for route in status["routes"] if route["destination"] == "10.0.0.3"]
    assert [(route["via"], route["hops"]) for route in to_the_end] == [("10.0.0.2", 2)]


@pytest.mark.parametrize("name", HERE)
def test_processor_time_and_memory_of_the_daemons_are_kept(runs: dict[str, Path], name: str) -> None:
    record, path = json.loads((runs[name] / "run.json").read_text()), runs[name] / "routing" / "usage.json"
    assert 0 < record["routing_ns"] < record["traffic_ns"]
    if name == "batman-adv":
        assert not path.exists()
        return
    usage = json.loads(path.read_text())
    processes = 2 if name == "frr-babel" else 1  # with zebra
    for station in ("sta1", "sta2", "sta3"):
        start, end = (usage[when]["stations"][station] for when in ("start", "end"))
        assert (start["processes"], end["processes"]) == (processes, processes)
        assert 0 < start["cpu_s"] <= end["cpu_s"] < 10  # of some seconds
        assert 500 < end["rss_kb"] <= end["peak_rss_kb"] < 100_000
    assert record["routing_ns"] < usage["start"]["model_ns"] < usage["end"]["model_ns"]


def test_with_dsr_the_radio_carries_source_routes_and_no_arp(runs: dict[str, Path]) -> None:
    # the TUN's MTU of 1428 leaves room for a route of 15; one station between takes 4 fixed bytes, 4 and 4 of its route
    full = len(captured(runs["dsr"], "sta1", "ip proto 48 and src host 10.0.0.1 and ip[2:2] = 1428 + 12"))
    assert full > 100
    assert captured(runs["dsr"], "sta1", "ip proto 48 and ip[2:2] > 1440") == []
    assert captured(runs["dsr"], "sta1", "arp or ip proto 6") == []


def test_tora_sends_tcp_over_the_other_relay_when_the_one_in_use_is_cut(tmp_path: Path) -> None:
    diamond = [[0, 150], [200, 290], [200, 10], [400, 150]]  # m; 244 m to each relay, 280 m between them
    keys = {"topology": "positions", "positions": diamond, "warmup": 0.5, "duration": 9}
    cut = {"at": 3, "cut": "next-hop", "from": "sta1", "to": "sta4"}
    routing = {"protocol": "tora", "link": "feedback"}
    scenario = Scenario.model_validate({**keys, "routing": routing, "events": [cut], "tcp": "newreno", "window": 8})
    result = Background(scenario, tmp_path / "cut").result()
    assert result.status == "complete", result.error
    metrics = analyse_run(result.directory)
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    # two hops carry 620 kbit/s; the break, TCP's timer included, costs less than half of the time
    assert metrics["flows"]["flow1"]["acked_bps"] > 300e3
    notes = [json.loads(line) for line in (result.directory / "routing" / "sta1.jsonl").read_text().splitlines()]
    relays = [note["via"] for note in notes if note["event"] == "route" and note["about"] == "10.0.0.4"]
    assert {"10.0.0.2", "10.0.0.3"} == set(relays) and relays[0] != relays[-1]


def test_a_station_reaches_a_wired_host_through_aodvs_half_tunnel(tmp_path: Path) -> None:
    scenario = two_hops("aodv", wires=[WIRE], flows=[{"from": "sta1", "to": "host1"}])
    result = Background(scenario, tmp_path / "up").result()
    assert result.status == "complete", result.error
    metrics = analyse_run(result.directory)
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    assert metrics["flows"]["flow1"]["acked_bps"] > 450e3
    # data in RFC 2004's encapsulation up to the gateway; what comes back is routed plainly
    assert len(captured(result.directory, "sta1", "ip proto 55 and src host 10.0.0.1 and dst host 10.0.0.3")) > 100
    assert captured(result.directory, "sta1", "tcp and src host 10.0.0.1") == []
    assert len(captured(result.directory, "sta1", "tcp and src host 192.168.1.2 and dst host 10.0.0.1")) > 100


@pytest.mark.parametrize("name", [name for name in ("babeld", "bird-babel", "frr-babel") if name in HERE])
def test_a_station_reaches_the_wires_that_a_described_daemon_announces(tmp_path: Path, name: str) -> None:
    scenario = two_hops(name, wires=[WIRE], flows=[{"from": "sta1", "to": "host1"}])
    result = Background(scenario, tmp_path / "up").result()
    assert result.status == "complete", result.error
    metrics = analyse_run(result.directory)
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    assert metrics["flows"]["flow1"]["acked_bps"] > 450e3
    assert "192.168.1.0/30 via 10.0.0.2 dev wlan0" in (result.directory / "routes" / "sta1.txt").read_text()


def test_the_traffic_waits_no_longer_than_settle_and_names_unreachable_pairs(tmp_path: Path) -> None:
    apart = chain(hops=1, spacing=2000, routing={"protocol": "olsr", "settle": 1})
    result = Background(apart, tmp_path / "apart").result()
    assert result.status == "failed"
    assert result.error == (
        "olsr: sta1 has no route to sta2 after 1 s (and 1 more pairs); sta1 has no route onward. Place the stations within range "
        "of each other, or set routing.settle: a longer wait, or 0 to begin without routes"
    )
    with pytest.raises(UsageError, match=r"sta1\.status\.json: not there; the run ended before its traffic"):
        known_routes(tmp_path / "apart")


def test_routes_of_a_run_under_way_come_from_its_daemons(tmp_path: Path) -> None:
    run = Background(two_hops("aodv"), tmp_path / "now").at("traffic", 0.5)
    known = known_routes(tmp_path / "now")
    assert (known.when, list(known.stations)) == ("now", ["sta1", "sta2", "sta3"])
    assert "10.0.0.3" in [route["destination"] for route in known.stations["sta1"]["routes"] if route["state"] == "valid"]
    with pytest.raises(UsageError, match=r'there is no station "sta9" in .*; there are sta1, sta2, sta3'):
        known_routes(tmp_path / "now", "sta9")
    assert run.result().status == "complete"
    assert known_routes(tmp_path / "now").when == "end"


def test_the_prompt_shows_the_kernels_routes_and_the_daemons(tmp_path: Path) -> None:
    printed = prompt(two_hops("aodv"), tmp_path / "cli", "sta1 ping -n -c 2 -W 3 sta3", "routes sta1", "exit")
    assert "2 packets transmitted, 2 received" in printed
    assert "10.0.0.3 via 10.0.0.2 dev wlan0" in printed
    assert "sta1: aodv, 10.0.0.1, sequence number" in printed and "counters: " in printed


def test_the_routes_of_static_routing_are_the_kernels(tmp_path: Path) -> None:
    result = Background(chain(hops=2), tmp_path / "static").result()
    assert result.status == "complete", result.error
    known = known_routes(result.directory, "sta1")
    assert known.when == "end"
    routes = {route["destination"]: route["via"] for route in known.stations["sta1"]["routes"]}
    assert (routes["10.0.0.3"], known.stations["sta1"]["protocol"]) == ("10.0.0.2", "static")


@pytest.mark.parametrize("name", [name for name in HERE if name in SHIPPED])
def test_the_routes_of_a_described_daemon_are_shown_while_it_runs_and_afterwards(tmp_path: Path, name: str) -> None:
    run = Background(two_hops(name), tmp_path / name).at("traffic", 0.5)
    known = [known_routes(tmp_path / name, "sta1")]
    assert run.result().status == "complete"
    known.append(known_routes(tmp_path / name, "sta1"))
    assert [one.when for one in known] == ["now", "end"]
    for one in known:
        status = one.stations["sta1"]
        (to_the_end,) = [route for route in status["routes"] if route["destination"] == "10.0.0.3"]
        assert (to_the_end["via"], to_the_end["prefix"], to_the_end["hops"]) == ("10.0.0.2", 32, None)
        if SHIPPED[name].DESCRIPTION.status:  # what BIRD and FRR themselves say
            assert "10.0.0.3/32" in status["text"] and "ended with status" not in status["text"]
        shown = "\n".join(" ".join(line.split()) for line in lines("sta1", status))
        assert f"sta1: {name}, 10.0.0.1" in shown and "10.0.0.3 via 10.0.0.2 metric" in shown
