"""A flow to a host on two wires, of which the first gateway is cut off: from the files of a crafted run."""

import json
import struct
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from analysis.metrics.analyse import analyse_run
from analysis.metrics.gateways import NAMED, Passage, gateways_remark, gateways_used
from analysis.tests.craft import MS, T0_NS, Frame, RunFolder, capture_bytes, udp
from analysis.tests.make_fixtures import EPOCH_NS

HOST = "192.168.1.2"
PORTS = (50000, 5201)
CUT_S = (T0_NS + 3_470 * MS - EPOCH_NS) / 1e9
LOST = range(60, 70)


def datagram(t_ns: int, gateway: int, number: int) -> Frame:
    """From sta1 to the host, in a frame to this gateway."""
    frame = udp(t_ns, 1, gateway, PORTS, struct.pack("<QI", T0_NS, number), 500)
    return replace(frame, data=frame.data[:30] + IPv4Address(HOST).packed + frame.data[34:])


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Datagram k leaves at 500 + 50 k ms, over sta2 until the cut, over sta3 ten datagrams later; 5 ms on the air, 1 ms at the
    gateway, 2 ms on the wire."""
    folder = RunFolder(3, warmup_s=1.0, duration_s=4.0)
    wired: dict[str, list[Frame]] = {"sta2.eth0": [], "sta3.eth0": [], "host1": [], "host1.eth1": []}
    for number in range(120):
        at, gateway = (500 + 50 * number) * MS, 2 if number < LOST.stop else 3
        folder.captures[1].append(datagram(at, gateway, number))
        if number not in LOST:
            folder.captures[gateway].append(datagram(at + 5 * MS, gateway, number))
            folder.deliver(folder.captures[gateway][-1], "sta1", f"sta{gateway}", EPOCH_NS)
            wired[f"sta{gateway}.eth0"].append(datagram(at + 6 * MS, gateway, number))
            wired["host1" if gateway == 2 else "host1.eth1"].append(datagram(at + 8 * MS, gateway, number))
    folder.scenario["flows"] = [{"from": "sta1", "to": "host1", "traffic": "cbr", "start": 0.0, "bytes": 500}]
    folder.scenario["wires"] = [{"station": "sta2", "host": "host1"}, {"station": "sta3", "host": "host1"}]
    ends = {"local_host": "10.0.0.1", "local_port": PORTS[0], "remote_host": HOST, "remote_port": PORTS[1]}
    start = {"connected": [ends], "test_start": {"protocol": "UDP", "blksize": 500, "duration": 6.0}}
    end = {"sum_sent": {"bytes": 60_000}, "sum_received": {"bytes": 55_000, "seconds": 6.0}}
    folder.reports.append({"format": "manet-cbr/1", "start": start, "end": end})
    run_dir = folder.write(tmp_path / "seed-1", EPOCH_NS, traffic_ns=T0_NS - EPOCH_NS)
    for name, frames in wired.items():
        (run_dir / "captures" / f"{name}.pcap").write_bytes(capture_bytes(frames))
    (run_dir / "events.csv").write_text(f"t_s,at_s,event,station,detail\n{CUT_S},3.47,cut,sta2,off\n")
    return run_dir


def test_all_metrics_follow_the_flow_to_the_other_gateway(run_dir: Path) -> None:
    """The window has datagrams 20 to 99, of which ten were lost."""
    metrics = analyse_run(run_dir)
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    flow = metrics["flows"]["flow1"]
    assert flow["air_bps"] == flow["delivered_bps"] == 70 * 500 * 8 / 4
    assert flow["reaction_s"] == pytest.approx(11 * 0.05)
    assert "flow1 from sta1 to host1 went over sta2, from 4.01 s on over sta3" in metrics["remarks"]


def test_a_handover_is_a_change_of_route_even_if_the_daemon_saw_none(run_dir: Path) -> None:
    """As under DSDV: both gateways have the same distance over the same neighbour, and that one chooses."""
    note = {"t_ns": 1, "event": "route", "prefix": 32, "value": 2, "via": "10.0.0.9"}
    (run_dir / "routing").mkdir()
    lines = [json.dumps({**note, "about": about}) + "\n" for about in ("10.0.0.3", "10.0.0.2")]
    (run_dir / "routing" / "sta1.jsonl").write_text("".join(lines))
    flow = analyse_run(run_dir)["flows"]["flow1"]
    assert (flow["hop_changes"], flow["route_changes"]) == (0, 1)


def test_a_remark_names_only_the_first_of_many_handovers(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunDirectory(run_dir)
    begin_ns = run.traffic_ns
    many = [Passage(begin_ns + round(k * 1e9), f"sta{2 + k % 2}") for k in range(NAMED + 3)]
    monkeypatch.setattr("analysis.metrics.gateways.gateways_used", lambda _run, _flow: many)
    remark = gateways_remark(run, run.flows[0]) or ""
    assert remark.startswith("flow1 from sta1 to host1 went over sta2, from 1.00 s on over sta3, from 2.00 s on over sta2")
    assert remark.endswith("from 5.00 s on over sta3, and 2 more handovers")


def test_without_a_choice_there_is_nothing_to_say(run_dir: Path) -> None:
    scenario = json.loads((run_dir / "scenario.json").read_text())
    (run_dir / "scenario.json").write_text(json.dumps({**scenario, "wires": scenario["wires"][:1]}))
    run = RunDirectory(run_dir)
    assert (gateways_used(run, run.flows[0]), gateways_remark(run, run.flows[0])) == ([], None)
    assert analyse_run(run_dir)["remarks"] == ["events: cut: sta2 off at 3.47 s"]
