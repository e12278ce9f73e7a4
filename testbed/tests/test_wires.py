"""Wired links of a scenario on this kernel: a gateway at the end of a chain, a host of the fixed network behind it.

A packet of 1500 bytes is 1514 on the wire, as the TAP carries it: its time there follows from the wire's rate.
"""

import csv
import json
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from analysis.metrics.analyse import analyse_run
from record.events_file import read_events
from scenarios.scenario import Scenario
from testbed.tests.running import (
    Background,
    Traces,
    captured,
    chain,
    ipv6_frames,
    needs_runs,
    nothing_left,
    prompt,
    run_json,
    wait_until,
)

pytestmark = [pytest.mark.root, pytest.mark.slow, needs_runs]

WIRE = {"station": "sta3", "host": "host1"}
SLOW_BPS = 200_000


def two_hops_and_a_wire(source: str, target: str, **keys: object) -> Scenario:
    return chain(hops=2, wires=[WIRE], flows=[{"from": source, "to": target}], warmup=1, duration=6, **keys)


@pytest.fixture(scope="module")
def side_by_side(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same two hops without a wire, up to the host behind them, and down from it; nothing is left behind."""
    folder = tmp_path_factory.mktemp("wires")
    scenarios = {
        "air": chain(hops=2, warmup=1, duration=6),
        "up": two_hops_and_a_wire("sta1", "host1"),
        "down": two_hops_and_a_wire("host1", "sta1"),
    }
    runs = {name: Background(scenario, folder / name) for name, scenario in scenarios.items()}
    runs["up"].at("traffic", 0.1)
    traces = Traces.of(folder / "up")
    assert len([namespace for namespace in traces.namespaces if namespace.startswith("net")]) == 5  # run, stations, host
    for run in runs.values():
        result = run.result()
        assert result.status == "complete", result.error
    wait_until(lambda: not traces.remaining(), "gone")
    assert nothing_left(folder / "up")
    return {name: folder / name for name in runs}


def test_a_fast_wire_costs_two_hops_nothing_in_either_direction(side_by_side: dict[str, Path]) -> None:
    metrics = {name: analyse_run(directory) for name, directory in side_by_side.items()}
    for name in metrics:
        assert [check for check in metrics[name]["checks"] if not check["ok"]] == [], name
    acked = {name: metrics[name]["flows"]["flow1"]["acked_bps"] for name in metrics}
    assert acked["up"] == pytest.approx(acked["air"], rel=0.05)
    assert acked["down"] == pytest.approx(acked["air"], rel=0.05)
    for name, check in (("up", "sta3: "), ("down", "sta1: ")):  # where the packets leave the air
        detail = next(check for check in metrics[name]["checks"] if check["name"] == "flow1 air-capture")["detail"]
        assert detail.startswith(check)
        assert metrics[name]["flows"]["flow1"]["air_bps"] == pytest.approx(acked[name], rel=0.05)


def test_both_ends_of_the_wire_are_captured(side_by_side: dict[str, Path]) -> None:
    data = "tcp and dst host 192.168.1.2 and ip[2:2] = 1500"
    at_radio, at_wire, at_host = (len(captured(side_by_side["up"], name, data)) for name in ("sta3", "sta3.eth0", "host1"))
    assert at_host == at_wire == at_radio > 200
    counted = json.loads((side_by_side["up"] / "counters.json").read_text())["wires"]
    assert [(wire["from"], wire["to"], wire["queue_full"]) for wire in counted] == [("sta3", "host1", 0), ("host1", "sta3", 0)]
    assert counted[0]["delivered"] >= at_host


def test_the_profile_and_the_window_hold_for_hosts(side_by_side: dict[str, Path]) -> None:
    directory = side_by_side["down"]
    assert run_json(directory)["sysctls"]["host1"]["net.ipv4.tcp_sack"] == "0"
    syns = captured(directory, "host1", "tcp[tcpflags] & tcp-syn != 0")
    assert len(syns) == 4 and not any("sackOK" in syn or "TS val" in syn for syn in syns)
    with (directory / "tcp.csv").open() as file:
        windows = [int(row["snd_cwnd"]) for row in csv.DictReader(file) if row["station"] == "host1" and not row["event"]]
    assert max(windows) == 8
    acks = len(captured(directory, "sta1", "src host 10.0.0.1 and tcp and ip[2:2] < 60"))
    assert acks / len(captured(directory, "sta1", "dst host 10.0.0.1 and tcp and ip[2:2] = 1500")) > 0.95


@pytest.fixture(scope="module")
def slow_wire(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wire far slower than the radio, with a short queue, under Linux as shipped, with IPv6 and without ARP."""
    directory = tmp_path_factory.mktemp("slow-wire") / "run"
    wire = {"station": "sta2", "host": "host1", "rate": SLOW_BPS, "queue": 5}
    flows = [{"from": "host1", "to": "sta1", "ip": 4}]
    how = {"profile": "modern", "tcp": "sack", "ipv6": True, "arp": "static", "radio": "dot11b-11m"}
    result = Background(chain(wires=[wire], flows=flows, warmup=1, duration=5, spacing=50, **how), directory).result()
    assert result.status == "complete", result.error
    return directory


def test_a_slow_wire_sets_the_rate_and_its_queue_drops(slow_wire: Path) -> None:
    passed = captured(slow_wire, "sta2.eth0", "tcp and src host 192.168.1.2 and ip[2:2] = 1500", "-tt")
    gap_s = (float(passed[-1].split()[0]) - float(passed[0].split()[0])) / (len(passed) - 1)
    assert len(passed) > 50
    assert 0.999 < gap_s / (1514 * 8 / SLOW_BPS) < 1.2  # never faster than the wire, and the wire is busy most of the time
    up, down = json.loads((slow_wire / "counters.json").read_text())["wires"]
    assert down["from"] == "host1"
    assert down["queue_full"] > 3  # an initial window of ten segments alone is four too many
    assert up["queue_full"] == 0
    from_host = "ether src 02:00:00:01:01:02"  # IPv6's frames too
    at_host, at_gateway = (len(captured(slow_wire, name, from_host)) for name in ("host1", "sta2.eth0"))
    assert at_host - at_gateway == down["queue_full"]


def test_the_modern_profile_is_linux_as_shipped(slow_wire: Path) -> None:
    syns = captured(slow_wire, "host1", "tcp[tcpflags] & tcp-syn != 0")
    assert syns and all("sackOK" in syn and "TS val" in syn and "wscale" in syn for syn in syns)
    data = captured(slow_wire, "host1", "tcp and src host 192.168.1.2 and ip[2:2] = 1500", "-tt")
    assert float(data[9].split()[0]) - float(data[0].split()[0]) < 0.3  # ten at once; one takes 61 ms on this wire


def test_ipv6_is_on_the_air_if_enabled_and_static_arp_keeps_arp_off(slow_wire: Path) -> None:
    assert ipv6_frames(slow_wire)
    assert [captured(slow_wire, name, "arp") for name in ("sta1", "sta2", "sta2.eth0", "host1")] == [[]] * 4


def test_the_prompt_reaches_hosts_and_a_ping_has_the_wires_delay(tmp_path: Path) -> None:
    wires = [{**WIRE, "delay": 0.05}, {"station": "sta3", "host": "host2", "delay": 0, "rate": SLOW_BPS, "queue": 1}]
    answers = prompt(
        chain(hops=2, wires=wires),
        tmp_path / "run",
        "nodes",
        "links",
        "routes host1",
        "sta1 ping -n -c 3 -i 0.3 -W 5 host1",
        "host1 ping -n -c 1 -W 5 sta2",
        "host1 ping -n -c 1 -W 5 host2",
        "sta3 ping -n -c 9 -l 9 -s 1000 -W 1 host2",
        "drops",
        "move host1 0 0",
        "exit",
    )
    assert "host1 host2 sta1 sta2 sta3" in answers
    assert "sta3 -- host1 (wire, 1e+08 bit/s, 0.05 s)" in answers
    assert "default via 192.168.1.1 dev eth0" in answers
    assert "3 packets transmitted, 3 received" in answers
    assert answers.count("1 packets transmitted, 1 received") == 2
    fastest_ms = float(answers.split("min/avg/max/mdev = ")[1].split("/")[0])
    assert 100 < fastest_ms < 149  # twice 50 ms, and some 10 ms for two hops there and back
    thrown_out = int(re.search(r"sta3 -> host2: (\d) queue-full \(wire\)", answers)[1])
    assert 5 <= thrown_out <= 7  # of nine at once one is sent and one waits; a host that stutters lets another one through
    assert "status complete None" in answers


def test_a_host_on_two_wires_continues_over_the_second_if_the_first_gateway_fails(tmp_path: Path) -> None:
    wires = [{"station": "sta2", "host": "host1"}, {"station": "sta3", "host": "host1", "delay": 0.03}]
    scenario = chain(hops=2, spacing=100, wires=wires)  # all hear all
    ping = "ping -n -c 2 -i 0.2 -W 2"
    answers = prompt(
        scenario,
        tmp_path / "run",
        "host1 ip route get 10.0.0.1",
        f"host1 {ping} sta1",
        "power sta2 off",
        "host1 sleep 1.5",  # the kernel looks at carriers once a second (net/core/link_watch.c)
        "host1 ip route get 10.0.0.1",
        f"host1 {ping} sta1",
        f"sta3 {ping} host1",
        "power sta2 on",
        "host1 sleep 1.5",
        "host1 ip route get 10.0.0.1",
        f"host1 {ping} sta1",
        "exit",
    )
    ways = re.findall(r"10\.0\.0\.1 via 192\.168\.(\d)\.1 dev (eth\d)", answers)
    assert ways == [("1", "eth0"), ("2", "eth1"), ("1", "eth0")], answers
    # the third is to the host's first address, over the wire of the second gateway
    assert answers.count("2 packets transmitted, 2 received") == 4, answers
    fastest_ms = [float(line.split("/")[0]) for line in re.findall(r"min/avg/max/mdev = (.*)", answers)]
    assert [ms > 60 for ms in fastest_ms] == [False, True, True, False]
    assert len(captured(tmp_path / "run", "host1.eth1", "icmp")) == 8
    assert len(captured(tmp_path / "run", "sta3.eth0", "icmp and host 192.168.1.2")) == 4


def test_a_flow_outlasts_a_stalled_uplink_and_its_packets_wait_in_the_queue(tmp_path: Path) -> None:
    """Stalled from 2 to 4 s: nothing arrives at the host in between, and nothing is lost but what the queue cannot hold."""
    events = [
        {"at": 2, "wire": ["sta2", "host1"], "stalled": True},
        {"at": 4, "wire": ["host1", "sta2"], "stalled": False},
    ]
    wire, flow = {"station": "sta2", "host": "host1", "queue": 50}, {"from": "sta1", "to": "host1"}
    run = tmp_path / "run"
    result = Background(chain(hops=1, wires=[wire], flows=[flow], warmup=0, duration=8, events=events), run).result()
    assert (result.status, result.error) == ("complete", None)
    begun, ended = (float(row["t_s"]) for row in read_events(run))
    metrics = analyse_run(run)
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    by_second = metrics["flows"]["flow1"]["acked_bps_by_second"]
    assert by_second[0] > 5e5 and by_second[6] > 5e5
    epoch_s = run_json(run)["epoch_ns"] / 1e9
    times = [float(line.split()[0]) - epoch_s for line in captured(run, "host1", "tcp and dst host 192.168.1.2", "-tt")]
    assert not [at for at in times if begun + 0.1 < at < ended]  # what was on the wire arrives 2 ms later
    counted = json.loads((run / "counters.json").read_text())["wires"]
    assert [wire["off"] for wire in counted] == [0, 0]


def test_an_event_of_a_wire_that_does_not_exist_is_refused() -> None:
    event = {"at": 2, "wire": ["sta1", "host1"], "stalled": True}
    with pytest.raises(ValidationError, match='there is no wire between "sta1" and "host1"; name a station and a host'):
        chain(hops=1, wires=[{"station": "sta2", "host": "host1"}], events=[event])
