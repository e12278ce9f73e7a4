"""Parts of the routing stage that need no run: paths through tables, configurations of third-party daemons, output."""

import json
import subprocess
from types import SimpleNamespace

import pytest

from scenarios.scenario import Scenario
from testbed import __main__ as manet
from testbed.errors import RunError, UsageError
from testbed.host.processes import Processes
from testbed.programs import ROOT
from testbed.runs import routes, under_way
from testbed.stages import status
from testbed.stages.routing import Network
from testbed.stages.routing.shared.quickack import lines_to_change
from testbed.stages.routing.shared.settle import Pair, pairs_of_flows, unreachable, wait_until_settled
from testbed.stages.routing.shared.station_processes import StationProcesses
from testbed.stages.site import Site


class Host(SimpleNamespace):
    """A node by name and address, as Mininet's: equal only to itself."""

    __hash__ = object.__hash__

    def IP(self) -> str:
        return self.ip

    def IP6(self) -> str:
        return self.ip6

    def address(self, ip: int) -> str:
        return self.ip6 if ip == 6 else self.ip

    def MAC(self) -> str:
        return f"02:00:00:00:00:{self.number:02x}"


class Net(SimpleNamespace):
    def __getitem__(self, name: str) -> Host:
        return next(host for host in self.hosts if host.name == name)


@pytest.fixture
def network(tmp_path) -> Network:
    """sta1 to sta3, and host1 on a wire of sta3."""
    flow = {"from": "sta1", "to": "host1"}
    scenario = Scenario.model_validate(
        {"hops": 2, "routing": "olsrd", "wires": [{"station": "sta3", "host": "host1"}], "flows": [flow, {**flow, "start": 1}]}
    )
    stations = [Host(name=f"sta{n}", ip=f"10.0.0.{n}", ip6=f"fd6d:616e:6574::{n}", number=n) for n in (1, 2, 3)]
    host = Host(name="host1", ip="192.168.1.2", ip6="fd6d:616e:6574:1::2", number=0)
    ends = {"gateway": stations[2], "interface": "eth0", "host": host, "host_interface": "eth0"}
    wire = SimpleNamespace(number=1, settings=scenario.wires[0], **ends)
    net = Net(stations=stations, hosts=[*stations, host], wires=[wire])
    return Network(Site(scenario, 1, tmp_path, cgroup=tmp_path), net, None, Processes(tmp_path))


def test_both_ends_of_every_flow_must_reach_each_other_and_each_pair_is_checked_once(network):
    assert pairs_of_flows(network) == [("sta1", "host1", 4), ("host1", "sta1", 4)]


@pytest.mark.parametrize(
    ("hops", "missing"),
    [
        # each node's next hop to host1 (192.168.1.2) and to sta1
        ({"sta1": "10.0.0.2", "sta2": "10.0.0.3", "sta3": "192.168.1.2", "host1": "192.168.1.1"}, []),
        ({"sta1": "10.0.0.2", "sta2": None, "sta3": "192.168.1.2", "host1": None}, ["sta2", "host1"]),
        ({"sta1": "10.0.0.2", "sta2": "10.0.0.1", "sta3": None, "host1": None}, ["sta2", "host1"]),  # in a circle
        ({"sta1": "10.0.0.99", "sta2": None, "sta3": None, "host1": None}, ["sta1", "host1"]),  # nobody's address
    ],
)
def test_a_path_is_followed_hop_by_hop_to_its_end(network, hops, missing):
    back = {"host1": "192.168.1.1", "sta3": "10.0.0.2", "sta2": "10.0.0.1"}

    def hop(host, to):
        return hops[host.name] if to == "192.168.1.2" or hops["host1"] is None else back[host.name]

    assert [at for _, at in unreachable(network, pairs_of_flows(network), hop)] == missing


def test_a_path_of_ipv6_leads_over_link_local_addresses(network):
    hops = {"sta1": "fe80::ff:fe00:2", "sta2": "fe80::ff:fe00:3", "sta3": "fd6d:616e:6574:1::2", "host1": "fd6d:616e:6574:1::1"}
    pairs = [Pair("sta1", "host1", 6), Pair("host1", "sta3", 6)]
    assert unreachable(network, pairs, lambda host, _to: hops[host.name]) == []
    hops["sta2"] = "fe80::ff:fe00:1"  # back
    assert unreachable(network, pairs, lambda host, _to: hops[host.name]) == [(pairs[0], "sta2")]


@pytest.mark.parametrize("model_s", [28.0, 31.0])
def test_moving_stations_are_not_waited_for_beyond_the_traffics_time(tmp_path, model_s):
    """Ends that are apart at the start are the experiment's matter; a run that began late would be rerun for nothing."""
    keys = {"topology": "random", "nodes": 2, "area": [9000, 9000], "mobility": "random-waypoint", "speed": 1, "traffic_at": 30}
    scenario = Scenario.model_validate({**keys, "routing": {"protocol": "dsdv", "settle": 60}})
    medium = SimpleNamespace(ask=lambda op: {"model_ns": int(model_s * 1e9)})
    network = Network(Site(scenario, 1, tmp_path, cgroup=tmp_path), Net(hosts=[], wires=[]), medium, Processes(tmp_path))
    wait_until_settled(network, pytest.fail)


def test_a_gateway_reaches_the_networks_of_its_hosts_wires_and_others_none(network):
    assert network.wires_of(network.stations[2]) == ["192.168.1.0/30"]
    assert network.wires_of(network.stations[0]) == []


def test_routes_over_the_radio_get_the_metric_once():
    shown = """10.0.0.2 via 10.0.0.2 dev wlan0 proto babel onlink
10.0.0.3 via 10.0.0.2 dev wlan0 table 66 proto static src 10.0.0.1 quickack 1
192.168.1.0/30 dev eth0 scope link
unreachable default table 67 proto static
"""
    assert lines_to_change(shown, "wlan0", " quickack 1") == [
        "route change 10.0.0.2 via 10.0.0.2 dev wlan0 proto babel onlink quickack 1"
    ]


def test_of_ipv6_the_routes_of_daemons_get_the_metric_and_not_the_link_local_one():
    shown = """fd6d:616e:6574::2 via fe80::ff:fe00:2 dev wlan0 proto bird metric 32 pref medium
fe80::/64 dev wlan0 proto kernel metric 256 pref medium
"""
    route = "route change fd6d:616e:6574::2 via fe80::ff:fe00:2 dev wlan0 proto bird metric 32 pref medium"
    assert lines_to_change(shown, "wlan0", " quickack 1") == [f"{route} quickack 1"]


STATUS = {
    "ok": True, "protocol": "aodv", "address": "10.0.0.1", "t_ns": 5, "sequence": 3, "held": 2,
    "routes": [
        {"destination": "10.0.0.2", "prefix": 32, "via": "10.0.0.2", "hops": 1, "state": "valid", "sequence": 7,
         "expires_s": 9.96, "precursors": ["10.0.0.5"]},
        {"destination": "0.0.0.0", "prefix": 0, "via": "10.0.0.22", "hops": 12, "state": "internet", "sequence": None,
         "expires_s": None},
    ],
    "neighbours": [{"address": "10.0.0.2", "state": "heard", "expires_s": 1.25}],
    "counters": {"rreq-sent": 2, "malformed": 0}, "host": {"sent": 0}, "details": {},
}  # fmt: skip


def test_a_status_is_printed_in_columns_without_zeros():
    assert status.lines("sta1", STATUS) == [
        "sta1: aodv, 10.0.0.1, sequence number 3, 2 packets held",
        "  10.0.0.2   via 10.0.0.2   1 hop    valid     seq 7  10.0 s  precursors 10.0.0.5",
        "  0.0.0.0/0  via 10.0.0.22  12 hops  internet",
        "  10.0.0.2  neighbour  heard  1.2 s",
        "  counters: rreq-sent 2",
    ]


def test_routes_of_nothing_are_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(under_way, "recorded_runs", list)
    assert manet.main(["routes"]) == 2
    assert "no run is under way; name the directory of one that has ended" in capsys.readouterr().err
    assert manet.main(["routes", str(tmp_path)]) == 1  # as `story` and `plot` of the same
    assert f"{tmp_path}: no run in it (no run.json); name the directory of a run" in capsys.readouterr().err
    assert manet.main(["routes", str(tmp_path), "sta1", "sta2"]) == 2
    assert '"sta2" is one word too many' in capsys.readouterr().err


def test_a_folder_with_one_run_stands_for_it_as_it_does_for_story_and_plot(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(under_way, "recorded_runs", list)
    seeds = [tmp_path / "all" / f"seed-{number}" for number in (1, 2)]
    for run in seeds:
        (run / "routing").mkdir(parents=True)
        (run / "scenario.json").write_text('{"routing": "aodv"}')
        (run / "medium.json").write_text('{"stations": [{"name": "sta1"}]}')
        (run / "routing" / "sta1.status.json").write_text(json.dumps({"end": STATUS}))
    (seeds[0] / "run.json").write_text("{}")
    assert manet.main(["routes", str(tmp_path), "sta1"]) == 0
    assert capsys.readouterr().out.startswith(f"{seeds[0]}: at the end of the traffic\nsta1: aodv")
    (seeds[1] / "run.json").write_text("{}")
    assert manet.main(["routes", str(tmp_path)]) == 1
    assert "2 runs are in it; name one of them" in capsys.readouterr().err


def test_a_dead_daemon_does_not_hide_the_others(tmp_path, monkeypatch, capsys):
    def ask(path, _op):
        if path.name == "sta1.sock":
            raise RunError("Connection refused")
        return STATUS

    monkeypatch.setattr(routes, "under_way", lambda _: SimpleNamespace(directory=str(tmp_path)))
    monkeypatch.setattr(routes, "_stations", lambda *_: ["sta1", "sta2"])
    monkeypatch.setattr(routes, "_protocol", lambda _: "aodv")
    monkeypatch.setattr(routes, "_require_sockets", lambda _: tmp_path)
    monkeypatch.setattr(routes, "ask", ask)
    assert manet.main(["routes"]) == 1
    printed = capsys.readouterr()
    assert printed.err == "manet routes: sta1: Connection refused\n"
    assert printed.out.startswith("sta2: aodv")


def test_of_several_runs_under_way_one_must_be_named(monkeypatch):
    both = [SimpleNamespace(directory=f"/r/{n}", owner_alive=lambda: True) for n in (1, 2)]
    monkeypatch.setattr(under_way, "recorded_runs", lambda: both)
    with pytest.raises(UsageError, match="2 runs are under way; name one first: /r/1, /r/2"):
        routes.known_routes()


def test_interoperation_is_tested_only_on_request():
    argv = [manet.sys.executable, "-P", "-m", "pytest", "-q", "--collect-only", "tests/interop"]
    for interop, words in (({}, "deselected"), ({"MANET_INTEROP": "1"}, "tests collected")):
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": ".", **interop}
        printed = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)
        assert words in printed.stdout.splitlines()[-1]


def test_a_process_that_works_is_known_although_the_start_of_another_one_fails(tmp_path):
    """It would otherwise live on without anybody to end it, beside a second one that an event starts."""
    stations = [Host(name=name) for name in ("sta1", "sta2", "sta3")]

    with Processes(tmp_path) as children:

        def start(station):
            if station.name == "sta2":
                raise RunError("sta2: no such program")
            return children.start(station.name, ["sleep", "infinity"], remedy="-")

        processes = StationProcesses(children, start, lambda _started: None)
        with pytest.raises(RunError, match="sta2"):
            processes.start(stations)
        assert {station.name for station in processes.running} >= {"sta1"}
        ended = processes.end_all()
        assert ended and not any(child.running() for child in ended) and not processes.running
