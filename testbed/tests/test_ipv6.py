"""IPv6: addresses, routes, flows of every kind, wires, daemons and the prompt, over real stations."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from analysis.metrics.analyse import analyse_run
from analysis.story import story_text
from analysis.story.story import flow_named, read_story
from scenarios.definition import load_scenario
from scenarios.scenario import Scenario
from testbed.host.protocols import missing_requirement
from testbed.tests.running import Background, captured, chain, needs_runs, prompt

pytestmark = [pytest.mark.root, pytest.mark.slow, needs_runs]

NEIGHBOURS, LISTENERS = {"135", "136"}, "143"  # RFC 4861, 4.3 and 4.4; RFC 3810, 5.2
DAEMONS = [name for name in ("babeld", "bird-babel", "frr-babel") if missing_requirement(name) is None]
WIRE = {"station": "sta3", "host": "host1"}


def completed(scenario: Scenario, directory: Path) -> Path:
    result = Background(scenario, directory).result()
    assert result.status == "complete", result.error
    return result.directory


def flows_of(directory: Path) -> dict[str, dict]:
    """The figures of each flow, after all cross-checks have agreed."""
    metrics = analyse_run(directory)
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    return metrics["flows"]


@pytest.fixture(scope="module")
def two_hops(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """The same chain, by IP version."""
    folder = tmp_path_factory.mktemp("ipv6")
    return {ip: completed(chain(hops=2, warmup=1, duration=6, ipv6=ip == 6), folder / f"ip{ip}") for ip in (4, 6)}


def test_two_hops_carry_as_much_as_over_ipv4_but_for_the_header(two_hops: dict[int, Path]) -> None:
    rates = {ip: flows_of(directory)["flow1"]["acked_bps"] for ip, directory in two_hops.items()}
    # Full packets of 1500 bytes take equally long, with 1440 bytes of payload instead of 1460; an ACK of 60 bytes instead of 40
    # takes 80 us more of the 9307 us that a segment and its ACK have at 1255 kbit/s: 1440/1460 * 9307/9387.
    assert rates[6] / rates[4] == pytest.approx(0.978, abs=0.03)


def test_segments_and_acks_are_those_of_ipv6(two_hops: dict[int, Path]) -> None:
    run = two_hops[6]
    (syn,) = captured(run, "sta1", "ip6 and ip6[53] = 0x02 and src host fd6d:616e:6574::1 and dst port 5201", "-c", "1")
    assert "fd6d:616e:6574::3.5201" in syn and "mss 1440" in syn
    full = captured(run, "sta1", "ip6 src fd6d:616e:6574::1 and tcp and ip6[4:2] = 1460")  # RFC 8200, 3: without the header
    acks = captured(run, "sta1", "ip6 dst fd6d:616e:6574::1 and tcp and ip6[4:2] = 20")
    assert len(full) > 100 and len(acks) > 0.9 * len(full)
    assert captured(run, "sta1", "ip6 and tcp and ip6[4:2] > 1460") == []
    assert captured(run, "sta1", "ip and tcp") == []


def test_no_address_is_checked_for_duplicates_and_nobody_advertises_solicits_or_redirects(two_hops: dict[int, Path]) -> None:
    argv = ["tshark", "-n", "-r", str(two_hops[6] / "air.pcapng"), "-Y", "icmpv6", "-T", "fields"]
    fields = ["-e", "icmpv6.type", "-e", "ipv6.src"]
    rows = [line.split("\t") for line in subprocess.run([*argv, *fields], capture_output=True, text=True).stdout.splitlines()]
    assert {*NEIGHBOURS} <= {kind for kind, _ in rows} <= {*NEIGHBOURS, LISTENERS}
    assert not [kind for kind, source in rows if source == "::" and kind in NEIGHBOURS]  # RFC 4862, 5.4.2


def test_routes_lead_over_link_local_next_hops(two_hops: dict[int, Path]) -> None:
    table = (two_hops[6] / "routes" / "sta1.txt").read_text()
    for station in (2, 3):
        assert f"fd6d:616e:6574::{station} via fe80::ff:fe00:2 dev wlan0 metric 1024 quickack 1" in table
    assert "local fd6d:616e:6574::1 dev wlan0" in table
    assert "fd6d" not in (two_hops[4] / "routes" / "sta1.txt").read_text()


def test_the_story_follows_every_segment_over_both_hops(two_hops: dict[int, Path]) -> None:
    run = RunDirectory(two_hops[6])
    story = read_story(run, flow_named(run, 1))
    assert "([fd6d:616e:6574::1]:" in story_text.title(story)
    fates = [sent.journey.fate for sent in story.transmissions]
    assert fates.count("no record") == 0 and fates.count("received") > 0.95 * len(fates)
    received = [sent.journey for sent in story.data if sent.journey.received]
    assert all({step.node for step in journey.steps} == {"sta1", "sta2", "sta3"} for journey in received)
    assert len(story.samples) > 100  # of tcp.csv


def test_every_kind_of_traffic_goes_over_ipv6_and_a_flow_may_stay_with_ipv4(tmp_path: Path) -> None:
    ends = {"from": "sta1", "to": "sta2"}
    flows = [
        {**ends, "traffic": "cbr", "rate": 20_000, "bytes": 500},
        {**ends, "traffic": "vbr", "interval": 0.2},
        {**ends, "traffic": "transfer", "size": 20_000},
        {**ends, "traffic": "web", "cycles": 2, "scale": 0.1},
        {**ends, "traffic": "command", "command": ["ping", "-n", "-c", "2", "-W", "2", "{target}"]},
        {**ends, "traffic": "cbr", "rate": 20_000, "bytes": 500, "ip": 4},
    ]
    run = completed(chain(ipv6=True, duration=6, flows=flows), tmp_path / "run")
    cbr, vbr, transfer, web, ping, cbr4 = flows_of(run).values()
    assert (cbr["loss"], vbr["loss"], cbr4["loss"]) == (0, 0, 0) and cbr["sent"] == cbr4["sent"] == 30  # 6 s * 20000 / (500 * 8)
    assert (transfer["finished"], ping["exit_status"]) == (True, 0) and web["requests_finished"] > 0
    assert "from fd6d:616e:6574::2: icmp_seq=1" in (run / "log" / "flow5-sender.log").read_text()
    # 500 bytes of IP packet: 452 of payload after 40 and 8 bytes, over IPv4 472
    assert len(captured(run, "sta2", "ip6 and udp dst port 5201 and ip6[4:2] = 500 - 40")) == 30
    assert len(captured(run, "sta2", "ip and udp dst port 5206 and ip[2:2] = 500")) == 30
    assert captured(run, "sta2", "ip and (tcp or icmp)") == []


@pytest.mark.parametrize("arp", ["real", "static"])
def test_a_wired_host_is_reached_over_its_gateway(tmp_path: Path, arp: str) -> None:
    flows = [{"from": "sta1", "to": "host1"}, {"from": "host1", "to": "sta2", "start": 2}]
    run = completed(chain(hops=2, ipv6=True, arp=arp, duration=3, wires=[WIRE], flows=flows), tmp_path / "run")
    up, down = flows_of(run).values()
    assert up["acked_bps"] > 100e3 and down["acked_bps"] > 100e3
    assert len(captured(run, "host1", "ip6 src fd6d:616e:6574::1 and dst host fd6d:616e:6574:1::2 and tcp")) > 30
    assert "fd6d:616e:6574:1::/64 via fe80::ff:fe00:2 dev wlan0" in (run / "routes" / "sta1.txt").read_text()
    # RFC 4861, 7.3: static entries are of ARP and of neighbour discovery
    solicited = captured(run, "sta1", "icmp6 and ip6[40] = 135")
    assert (solicited == []) == (arp == "static")


@pytest.mark.parametrize("name", DAEMONS)
def test_babel_routes_both_versions_to_stations_and_wires(tmp_path: Path, name: str) -> None:
    flows = [{"from": "sta1", "to": "host1"}, {"from": "sta3", "to": "sta1", "ip": 4}]
    routing = {"protocol": name, "hello_interval": 0.5, "update_interval": 2}
    run = completed(chain(hops=2, ipv6=True, duration=4, wires=[WIRE], flows=flows, routing=routing), tmp_path / "run")
    assert all(flow["acked_bps"] > 100e3 for flow in flows_of(run).values())
    table = (run / "routes" / "sta1.txt").read_text().split("# at the end")[1]
    for to in ("fd6d:616e:6574::2", "fd6d:616e:6574::3", "fd6d:616e:6574:1::/64"):
        assert f"{to} via fe80::ff:fe00:2 dev wlan0" in table
    assert "10.0.0.3 via 10.0.0.2 dev wlan0" in table and "192.168.1.0/30 via 10.0.0.2 dev wlan0" in table
    if name != "bird-babel":  # BIRD sets a route again, without the metric, whenever its cost has changed
        assert re.search(r"^fd6d:616e:6574::3 via .* quickack 1", table, re.MULTILINE)


OWN = """
about = "Babel by BIRD, for IPv6 alone"
command = ["bird", "-f", "-c", "{config}", "-s", "{state}/bird.ctl", "-P", "{state}/bird.pid"]
udp_port = 6696
ipv6 = "only"
settle = { once = 20, per_hop = 4 }
[[files]]
name = "bird.conf"
content = \"\"\"
router id {address};
protocol device { }
protocol direct { ipv6; interface "{interface}"; }
protocol kernel { ipv6 { import none; export where source = RTS_BABEL; }; }
protocol babel {
  ipv6 { import all; export where source ~ [ RTS_DEVICE, RTS_BABEL ]; };
  interface "{interface}" { type wireless; hello interval 500 ms; update interval 2 s; };
}
\"\"\"
"""


@pytest.mark.skipif(missing_requirement("bird-babel") is not None, reason="bird: not found; apt-get install bird2")
def test_a_description_of_a_daemon_of_ipv6_alone_runs(tmp_path: Path) -> None:
    (tmp_path / "ripng.toml").write_text(OWN)
    (tmp_path / "x.toml").write_text('hops = 2\nwarmup = 0\nduration = 2\nipv6 = true\nrouting = "./ripng.toml"\n')
    run = completed(load_scenario(tmp_path / "x.toml", []), tmp_path / "run")
    assert flows_of(run)["flow1"]["acked_bps"] > 100e3
    assert (run / "captures" / "sta1.routing.pcap").stat().st_size > 500


def test_the_prompt_measures_pings_and_shows_routes_over_ipv6(tmp_path: Path) -> None:
    lines = ["iperf sta1 sta3", "sta1 ping -n -c 1 -W 2 fd6d:616e:6574::3", "map sta1 sta3", "routes sta1", "exit"]
    printed = prompt(chain(hops=2, ipv6=True), tmp_path / "cli", *lines)
    assert "(TCP over IPv6, 5 s)" in printed and "1 packets transmitted, 1 received" in printed
    assert "path1  sta1 > sta2 > sta3   2 hops" in printed
    assert "fd6d:616e:6574::3 via fe80::ff:fe00:2 dev wlan0" in printed and "10.0.0.3 via 10.0.0.2" in printed


def test_a_station_that_is_switched_off_ends_a_path_of_ipv6_and_its_retransmissions_are_told_apart(tmp_path: Path) -> None:
    events = [{"at": 1, "power": "sta3", "on": False}, {"at": 3, "power": "sta3", "on": True}]
    run = completed(chain(hops=2, ipv6=True, duration=6, events=events), tmp_path / "run")
    folder = RunDirectory(run)
    story = read_story(folder, flow_named(folder, 1))
    lost = [sent for sent in story.data if sent.journey.fate == "retry-short"]
    assert {sent.journey.node for sent in lost} == {"sta2"}
    assert all(len(sent.journey.fates_of_attempts) <= 3 * 7 for sent in story.data)  # of one transmission, not of several
    assert json.loads((run / "scenario.json").read_text())["flows"][0]["ip"] == 6
