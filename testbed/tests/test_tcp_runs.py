"""Flows with TCPs of their own in a real run: the kernel's view of their sockets, and the run's files."""

import csv
import itertools
import json
import re
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from scenarios.scenario import Scenario
from testbed.host.algorithms import missing_struct_ops
from testbed.stages.kernel_tcp import station_entry
from testbed.tests.running import Background, calls, captured, chain, needs_runs, process_of, prompt, run_json, wait_until

FLOWS = [
    {"from": "sta1", "to": "sta2", "tcp": "tahoe"},
    {"from": "sta2", "to": "sta1"},
    {"from": "sta1", "to": "sta3", "tcp": "kernel-reno"},
]


class Host:
    def __init__(self, name: str) -> None:
        self.name, self.netns = name, Path("/proc/1/ns/net")


def entry(scenario: Scenario, name: str) -> dict:
    return station_entry(scenario, Host(name))


def scenario_of(*flows: dict, **keys: object) -> Scenario:
    return Scenario.model_validate({"hops": 2, "flows": list(flows), **keys})


def test_only_ends_of_a_flow_get_the_settings_of_its_port(as_root):
    scenario = scenario_of(*FLOWS, tcp="cubic")
    ports = {name: entry(scenario, name).get("ports", {}) for name in scenario.station_names()}
    assert {name: sorted(of) for name, of in ports.items()} == {"sta1": ["5201", "5203"], "sta2": ["5201"], "sta3": ["5203"]}
    assert [ports["sta1"][port]["algorithm"] for port in ("5201", "5203")] == ["tahoe", "newreno"]
    assert ports["sta1"]["5201"]["window_segments"] == 8  # whole: they take the place of the others
    assert entry(scenario, "sta1")["settings"]["algorithm"] == "cubic"


def test_without_root_a_station_has_the_settings_of_its_flows_tcp_alone(as_user):
    scenario = scenario_of(FLOWS[2], tcp="cubic")
    algorithms = [entry(scenario, name)["settings"]["algorithm"] for name in ("sta1", "sta2", "sta3")]
    assert algorithms == ["newreno", "cubic", "newreno"]
    assert set(entry(scenario, "sta1")) == {"name", "netns", "settings"}


def test_without_tcps_of_their_own_flows_need_no_ports(rights):
    plain = scenario_of({"from": "sta1", "to": "sta3"})
    assert set(entry(plain, "sta1")) == {"name", "netns", "settings"}
    assert set(entry(plain, "sta1")["settings"]) & {"parameters", "layers"} == set()


@pytest.mark.parametrize(
    ("tcp", "routing", "asking"),
    [("elfn", "aodv", ["sta1", "sta3"]), ("tcpap", "dsr", ["sta1", "sta3"]), ("newreno", "aodv", []), ("elfn", "static", [])],
)
def test_the_daemons_socket_is_given_at_the_ends_of_flows_that_may_query_it(as_root, tcp, routing, asking):
    scenario = scenario_of({"from": "sta1", "to": "sta3"}, tcp=tcp, routing=routing)
    sockets = {name: entry(scenario, name).get("status") for name in scenario.station_names()}
    assert [name for name, socket in sockets.items() if socket] == asking
    assert all(socket.endswith(f"/routing/{name}.sock") for name, socket in sockets.items() if socket)


@pytest.mark.parametrize(("tcp", "given"), [("tcpap", True), ("elfn(tcpap)", True), ("tcpap(hops=3)", False), ("newreno", False)])
def test_routes_that_never_change_tell_the_hops_to_a_tcp_that_asks(as_root, tcp, given):
    """Static routes have no daemon: without `hops` TCP-AP would be NewReno."""
    scenario = scenario_of({"from": "sta1", "to": "sta3"}, tcp=tcp, routing="static")
    hops = {"10.0.0.2": 1, "10.0.0.3": 2}
    assert station_entry(scenario, Host("sta1"), hops).get("hops") == (hops if given else None)


def test_tcpap_over_a_wire_has_the_gateways_and_their_daemon(as_root):
    """Two gateways of h1: sta1 is sent over the nearer one; h1 sends over its first wire."""
    gateways = [SimpleNamespace(name=f"sta{i}", IP=lambda i=i: f"10.0.0.{i}") for i in (2, 3)]
    host = SimpleNamespace(name="h1", netns=Path("/proc/1/ns/net"), IP=lambda: "192.168.1.2")
    wires = [SimpleNamespace(gateway=gateway, host=host) for gateway in gateways]
    scenario = scenario_of(
        {"from": "sta1", "to": "h1"}, {"from": "h1", "to": "sta1"}, tcp="tcpap", routing="aodv",
        wires=[{"station": name, "host": "h1"} for name in ("sta2", "sta3")],
    )  # fmt: skip
    assert station_entry(scenario, Host("sta1"), wires=wires)["gateways"] == {"192.168.1.2": ["10.0.0.2", "10.0.0.3"]}
    of_host = station_entry(scenario, host, wires=wires)
    assert of_host["gateway_status"].endswith("/routing/sta2.sock")
    assert of_host["hops"] == {"10.0.0.2": 1}


def test_a_wired_host_has_no_daemon_to_ask(as_root):
    wire = {"station": "sta3", "host": "h1"}
    scenario = scenario_of({"from": "sta1", "to": "h1"}, tcp="elfn", routing="aodv", wires=[wire])
    assert "status" in entry(scenario, "sta1") and "status" not in entry(scenario, "h1")


def sockets(pid: int) -> dict[int, str]:
    """The congestion control of the sending connections in a process's name space, by their server's port."""
    argv = ["nsenter", "--target", str(pid), "--net", "ss", "--tcp", "--info", "--no-header", "--numeric", "--oneline"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = {}
    for line in done.stdout.splitlines():
        words = line.split()
        port, name = int(words[4].rpartition(":")[2]), re.search(r"\s(tahoe\S*|reno|cubic)\s", line)
        if port < 6000 and name:
            found[port] = name[1]
    return found


@pytest.mark.root
@needs_runs
@pytest.mark.skipif(missing_struct_ops() != "", reason=missing_struct_ops())
def test_each_flow_of_a_run_has_its_own_congestion_control(tmp_path):
    flows = [*FLOWS[:2], {"from": "sta1", "to": "sta2", "tcp": "cubic"}]
    seen_enough = threading.Event()
    run = Background(chain(flows=flows, duration=40), tmp_path / "run", cancel=seen_enough).at("traffic")
    first, second = (process_of(tmp_path / "run", f"mininet:{name}") for name in ("sta1", "sta2"))
    wait_until(lambda: set(sockets(first)) >= {5201, 5203} and 5202 in sockets(second), "all flows connected", within_s=30)
    seen = {**sockets(first), **sockets(second)}
    seen_enough.set()
    assert run.result().status == "interrupted"
    assert seen[5201].startswith("tahoe.") and (seen[5202], seen[5203]) == ("reno", "cubic")
    assert run_json(tmp_path / "run")["tcp"] == {"flow1": "tahoe", "flow2": "newreno", "flow3": "cubic"}
    settings = json.loads((tmp_path / "run" / "tcp-settings.json").read_text())
    assert settings["stations"][0]["ports"]["5203"]["algorithm"] == "cubic"


@pytest.mark.root
@needs_runs
def test_sack_is_set_on_stations_whose_flows_need_it(tmp_path):
    flows = [{"from": "sta1", "to": "sta2", "tcp": "sack"}, {"from": "sta3", "to": "sta4"}]
    result = Background(chain(hops=3, flows=flows, spacing=300, propagation="free-space"), tmp_path / "run").result()
    assert result.status == "complete"
    with_, without = (
        "".join(captured(tmp_path / "run", name, "tcp[tcpflags] & tcp-syn != 0", "-v")) for name in ("sta2", "sta4")
    )
    assert with_.count("sackOK") >= 2 and "sackOK" not in without
    sysctls = run_json(tmp_path / "run")["sysctls"]
    assert [sysctls[f"sta{n}"]["net.ipv4.tcp_sack"] for n in (1, 2, 3, 4)] == ["1", "1", "0", "0"]


@pytest.mark.root
@needs_runs
def test_an_iperf_at_the_prompt_has_the_scenarios_tcp(tmp_path):
    printed = prompt(chain(tcp="sack"), tmp_path / "cli", "sta1 sysctl net.ipv4.tcp_sack", "exit")
    assert "net.ipv4.tcp_sack = 1" in printed and "status complete" in printed


@pytest.mark.root
@needs_runs
@pytest.mark.skipif(missing_struct_ops() != "", reason=missing_struct_ops())
def test_a_layer_of_one_flow_acts_on_that_flow(tmp_path):
    """The relay next to the receiver dies: the one before it says so to the source."""
    flows = [{"from": "sta1", "to": "sta4", "tcp": "elfn(newreno, probe=300ms)"}]
    off = {"at": 3, "power": "sta3", "on": False}
    seen_enough = threading.Event()  # the flows would not end by themselves
    scenario = chain(hops=3, routing="aodv", flows=flows, events=[off], duration=30)
    run = Background(scenario, tmp_path / "run", cancel=seen_enough).at("traffic", 0.3)
    seen_enough.set()
    assert run.result().status == "interrupted"
    with (tmp_path / "run" / "tcp.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["event"] and row["station"] == "sta1"]
    seen = [row["event"] for row in rows if row["dport"] == "5201"]
    assert {"notice", "stand-by"} <= set(seen) and seen.count("probe") > 3, rows
    parameters = "probe=300ms, repair=unchanged, packet=first, leave=any-ack, restore=at-notice, notice=icmp"
    assert run_json(tmp_path / "run")["tcp"]["flow1"] == f"elfn(newreno, {parameters})"


def events_of(run: Path, station: str, port: int) -> list[dict]:
    with (run / "tcp.csv").open() as file:
        return [row for row in csv.DictReader(file) if row["event"] and (row["station"], row["dport"]) == (station, str(port))]


@pytest.mark.root
@pytest.mark.slow
@needs_runs
@pytest.mark.skipif(missing_struct_ops() != "", reason=missing_struct_ops())
def test_elfn_answers_the_route_error_of_a_salvaged_packet_with_a_probe(tmp_path):
    """sta2 has two ways to sta5, over sta3 and over sta4, and each is cut while the other is there: whichever carries the data,
    one cut meets it, and sta2 salvages. The acknowledgement of the salvaged segment does not end the stand-by (probe-ack)."""
    positions = [[0, 150], [200, 150], [400, 250], [400, 50], [600, 150]]  # m; 224 m to and from the two relays
    cuts = [(3, "sta3", False), (5, "sta3", True), (7, "sta4", False)]
    keys = {
        "hops": None, "topology": "positions", "positions": positions, "routing": "dsr", "duration": 12,
        "flows": [{"from": "sta1", "to": "sta5", "tcp": "elfn(newreno, notice=route-error, probe=100ms, leave=probe-ack)"}],
        "events": [{"at": at, "power": station, "on": on} for at, station, on in cuts],
    }  # fmt: skip
    result = Background(chain(**keys), tmp_path / "run").result()
    assert result.status == "complete", result.error
    run = tmp_path / "run"
    notes = [json.loads(line) for line in (run / "routing" / "sta2.jsonl").read_text().splitlines()]
    about_salvaged = [
        note for note, after in itertools.pairwise(notes) if (note["event"], after["event"]) == ("route-error", "salvage")
    ]
    assert about_salvaged, [note["event"] for note in notes]
    seen = events_of(run, "sta1", 5201)
    notices = [row["detail"] for row in seen if row["event"] == "notice"]
    assert f"route-error seq={about_salvaged[0]['seq']}" in notices and not any("unreachable" in notice for notice in notices)
    names = [row["event"] for row in seen if row["event"] != "window"]
    begin = names.index("stand-by", names.index("notice"))
    assert "probe" in names[begin : names.index("repair", begin)], names
    # on the air: DSR (48), its next header ICMP (1), from sta2 to the source
    assert captured(run, "sta1", "ip proto 48 and src host 10.0.0.2 and dst host 10.0.0.1 and ip[20] = 1")


def test_reading_a_scenario_and_its_tcp_settings_grow_as_its_stations_do(rights):
    """More than linear work made a thousand stations take a minute of CPU before their start."""

    def work(nodes):
        walk = {"mobility": "random-waypoint", "speed": 5, "area": [9000, 900]}
        scenario = Scenario.model_validate({"topology": "random", "nodes": nodes, "routing": "aodv", **walk})
        for name in scenario.station_names():
            station_entry(scenario, Host(name))

    work(2)  # what is read once is read now
    few, many = (calls(lambda nodes=nodes: work(nodes)) for nodes in (300, 1000))
    assert many < 4 * few
