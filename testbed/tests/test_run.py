"""A run from a scenario to a filled directory, on this kernel."""

import csv
import json
import re
from pathlib import Path

import pytest

from testbed.host.clean import clean
from testbed.runs.run import run_scenario
from testbed.tests.running import (
    Background,
    Traces,
    air_rows,
    captured,
    chain,
    ipv6_frames,
    links,
    needs_runs,
    nothing_left,
    prompt,
    run_json,
    sysctls,
    wait_until,
)

pytestmark = [pytest.mark.root, needs_runs]


@pytest.fixture(scope="module")
def two_hops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One short run that several tests look at."""
    directory = tmp_path_factory.mktemp("two-hops") / "run"
    result = run_scenario(chain(hops=2, duration=3), 7, directory, experiment="test", cell="hops=2", axes={"hops": 2})
    assert result.status == "complete", result.error
    return directory


def test_the_directory_explains_itself(two_hops: Path) -> None:
    names = "scenario.json run.json medium.json trace.csv air.csv air.pcapng counters.json verdict.json"
    names += " tcp-settings.json tcp.csv traffic/flow1.json routes/sta1.txt captures/sta3.pcap log/medium.log"
    assert [name for name in names.split() if not (two_hops / name).stat().st_size] == []
    record = run_json(two_hops)
    assert record["format"] == "manet-run/1"
    assert (record["status"], record["error"], record["seed"]) == ("complete", None, 7)
    assert (record["experiment"], record["cell"], record["axes"]) == ("test", "hops=2", {"hops": 2})
    assert record["sysctls"]["sta2"]["net.ipv4.ip_forward"] == "1"
    assert record["sysctls"]["sta1"]["net.ipv4.tcp_sack"] == "0"
    assert record["versions"]["iperf3"].startswith("iperf")
    assert record["capture_drops"] == 0


def test_the_epoch_joins_the_air_log_to_the_captures(two_hops: Path) -> None:
    """Packets of sta1 are captured microseconds before the medium takes them; on a loaded host some are later, not all."""
    epoch_s = run_json(two_hops)["epoch_ns"] / 1e9
    with (two_hops / "air.csv").open() as file:
        taken = [row for row in csv.DictReader(file) if (row["station"], row["event"]) == ("sta1", "enqueue")]
    sent = captured(two_hops, "sta1", "ether src 02:00:00:00:00:01", "-tt", "--nano")
    assert len(taken) == len(sent) > 100
    late_s = [epoch_s + int(row["t_ns"]) / 1e9 - float(line.split()[0]) for row, line in zip(taken, sent, strict=True)]
    assert min(abs(late) for late in late_s) < 0.005


def test_the_relay_forwards_and_full_packets_are_1500_bytes(two_hops: Path) -> None:
    data = captured(two_hops, "sta2", "tcp and ip[2:2] > 1000")
    assert len(data) > 100
    assert len(captured(two_hops, "sta2", "tcp and ip[2:2] = 1500")) / len(data) > 0.95
    assert captured(two_hops, "sta2", "ip[2:2] > 1500") == []


def test_nothing_but_ipv4_and_arp_is_on_the_air(two_hops: Path) -> None:
    for station in ("sta1", "sta2", "sta3"):
        assert captured(two_hops, station, "not ip and not arp") == []
    assert ipv6_frames(two_hops) == []
    assert captured(two_hops, "sta1", "not tcp and not arp") == []


def test_without_delayed_acks_every_segment_is_acknowledged(two_hops: Path) -> None:
    """The `period` profile's setting; the last window may be cut off."""
    data = len(captured(two_hops, "sta3", "dst host 10.0.0.3 and tcp and ip[2:2] = 1500"))
    acks = len(captured(two_hops, "sta3", "src host 10.0.0.3 and tcp and ip[2:2] < 60"))
    assert acks / data > 0.95


def test_delayed_acks_static_arp_and_the_arp_queue_are_as_configured(tmp_path: Path) -> None:
    result = run_scenario(chain(delayed_ack=True, arp="static", unres_qlen=5), 1, tmp_path / "run")
    assert result.status == "complete", result.error
    assert run_json(tmp_path / "run")["sysctls"]["sta2"]["net.ipv4.neigh.wlan0.unres_qlen"] == "5"
    data = len(captured(tmp_path / "run", "sta2", "dst host 10.0.0.2 and tcp and ip[2:2] = 1500"))
    acks = len(captured(tmp_path / "run", "sta2", "src host 10.0.0.2 and tcp and ip[2:2] < 60"))
    assert data > 100
    assert acks / data < 0.75
    assert captured(tmp_path / "run", "sta1", "arp") == []


@pytest.mark.slow
def test_staggered_bulk_and_cbr_flows_over_a_lossy_link_end_together_and_are_reported(tmp_path: Path) -> None:
    flows = [
        {"from": "sta1", "to": "sta2"},
        {"from": "sta2", "to": "sta1", "start": 1},
        {"from": "sta1", "to": "sta2", "traffic": "cbr", "rate": 80_000, "bytes": 500, "start": 1},
    ]
    links = [{"from": "sta1", "to": "sta2", "error_rate": 0.2}]
    result = run_scenario(chain(flows=flows, links=links, duration=2), 1, tmp_path / "run")
    assert result.status == "complete", result.error
    reports = [json.loads((tmp_path / "run" / "traffic" / f"flow{i}.json").read_text()) for i in (1, 2, 3)]
    assert [report["start"]["test_start"]["duration"] for report in reports] == [3, 2, 2]
    # not from iperf3's reports: since 3.18 its server counts whole blocks of 128 KiB, and this is about one
    for receiver, port in (("sta2", 5201), ("sta1", 5202)):
        assert len(captured(tmp_path / "run", receiver, f"tcp dst port {port} and ip[2:2] > 1400")) > 35
    assert reports[2]["end"]["sum_sent"]["packets"] == 2 * 80_000 / (500 * 8)
    assert len(captured(tmp_path / "run", "sta1", "udp and ip[2:2] = 500")) == 40
    assert reports[2]["end"]["sum_received"]["packets"] > 30
    first, second = (float(captured(tmp_path / "run", "sta1", f"port {port}", "-tt")[0].split()[0]) for port in (5201, 5202))
    assert 0.5 < second - first < 3  # one second, and what two programs take to start
    fates = {station: [row["fate"] for row in air_rows(tmp_path / "run", station, "tx", "data")] for station in ("sta1", "sta2")}
    assert fates["sta1"].count("error") / len(fates["sta1"]) == pytest.approx(
        0.2, abs=4 * (0.2 * 0.8 / len(fates["sta1"])) ** 0.5
    )
    assert "error" not in fates["sta2"]


def test_runs_side_by_side_do_not_see_each_other(tmp_path: Path) -> None:
    runs = [Background(chain(duration=2), tmp_path / str(number)) for number in range(3)]
    assert [run.result().status for run in runs] == ["complete"] * 3
    for number in range(3):
        assert len(captured(tmp_path / str(number), "sta1", "tcp[tcpflags] & tcp-syn != 0 and dst host 10.0.0.2")) == 2
        assert nothing_left(tmp_path / str(number))


@pytest.mark.alone("compares all sysctls and devices of the machine")
def test_a_run_leaves_the_machine_as_it_was(tmp_path: Path) -> None:
    sysctls_before, links_before = sysctls(), links()
    run = Background(chain(duration=2), tmp_path / "run").at("traffic", 0.1)
    traces = Traces.of(tmp_path / "run")
    assert len(traces.processes) > 8
    assert len(traces.namespaces) > 4
    assert {"BPF link", "BPF prog"} == {" ".join(thing.split()[:2]) for thing in traces.bpf_objects}
    assert traces.remaining()  # the test would notice
    assert run.result().status == "complete"
    wait_until(lambda: not traces.remaining(), f"gone: {traces.remaining()}")
    assert nothing_left(tmp_path / "run")
    assert links() == links_before
    assert sysctls() == sysctls_before
    assert not any(str(tmp_path) in line for lines in vars(clean()).values() for line in lines)


def test_the_prompt_takes_commands_from_a_pipe(tmp_path: Path) -> None:
    answers = prompt(
        chain(hops=2),
        tmp_path / "run",
        "links",
        "routes sta1",
        "sta1 ping -c 1 -W 5 sta3",
        "air 3",
        "drops",
        "move sta2 400 400",
        "links",
        "move sta9 0 0",
        "move sta1 nowhere",
        "nodes",
        "exit",
    )
    assert "sta2 -> sta1 sta3\n" in answers
    assert "10.0.0.3 via 10.0.0.2 dev wlan0" in answers
    assert "1 received" in answers
    assert answers.count(",tx,") >= 1
    assert "sta2 -> (none)" in answers
    assert "there is no station sta9" in answers
    assert "usage: move" in answers
    assert answers.index("sta2 -> sta1 sta3") < answers.index("1 received") < answers.index("sta2 -> (none)")
    assert "status complete None" in answers
    assert nothing_left(tmp_path / "run")


def test_the_prompt_ends_with_its_input(tmp_path: Path) -> None:
    assert "status complete None" in prompt(chain(), tmp_path / "run", "nodes")


@pytest.mark.slow
def test_without_routing_neighbours_are_reached_and_the_arp_queue_is_as_configured(tmp_path: Path) -> None:
    # The kernel turns the setting into memory (neigh_proc: unres_qlen full frames' worth), of which a ping takes some more.
    burst = "sta1 ping -n -c 9 -l 9 -s 1400 -W 1 sta2"
    # on a busy host ARP may be answered within a burst: the shortest of several counts
    bursts = [burst, *(("sta1 ip neigh flush all", burst) * 3)]
    shortened = prompt(
        chain(hops=2, routing="none", unres_qlen=3), tmp_path / "3", *bursts, "sta1 ping -n -c 1 -W 1 sta3", "routes sta1", "exit"
    )
    assert "10.0.0.0/8 dev wlan0 scope link" in shortened
    answered = min(map(int, re.findall(r"9 packets transmitted, (\d) received", shortened)))
    assert 1 <= answered <= 3  # the others were thrown out while ARP asked
    assert "1 packets transmitted, 0 received" in shortened  # two hops: nobody relays
    assert "9 packets transmitted, 9 received" in prompt(chain(hops=2), tmp_path / "kernel's", burst, "exit")
