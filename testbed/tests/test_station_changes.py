"""Settings of a station that change during the traffic are reported, unless an event of the scenario changed them."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from scenarios.scenario import Scenario
from testbed.host import namespace, rtnetlink
from testbed.host.changes import Changes, of_own_daemons, of_third_party
from testbed.runs.station_changes import ChangeSummary, StationChanges
from testbed.tests.running import Background, needs_runs, process_of

pytestmark = pytest.mark.root


@pytest.fixture
def station() -> Iterator[Path]:
    """A namespace with a radio, as a station's."""
    process = namespace.within_new(lambda: subprocess.Popen(["sleep", "120"]))
    netns = Path(f"/proc/{process.pid}/ns/net")
    for line in (
        "ip link set lo up",
        "ip tuntap add wlan0 mode tap",
        "ip link set wlan0 up",
        "ip address add 10.0.0.1/8 dev wlan0 noprefixroute",
    ):
        within(netns, line)
    yield netns
    process.kill()
    process.wait()


def within(netns: Path, line: str) -> None:
    namespace.within(netns, lambda: subprocess.run(line.split(), check=True, capture_output=True))


CHANGES = [
    ("ip address flush dev wlan0", ["address 10.0.0.1 removed"]),
    ("ip address add 10.0.0.9/32 dev wlan0", ["address 10.0.0.9 added"]),
    ("ip route add blackhole 10.0.0.4", ["route to 10.0.0.4 added"]),
    ("ip rule add from 10.0.0.1 table 5", ["rule added"]),
    ("ip neigh replace 10.0.0.3 lladdr 02:00:00:00:00:99 dev wlan0 nud permanent", ["permanent neighbour 10.0.0.3 set"]),
    ("ip xfrm policy add dir out dst 10.0.0.3/32 action block", ["IPsec changed"]),
    ("ip link set wlan0 mtu 900", ["wlan0: MTU 1500 -> 900"]),
    ("ip link set wlan0 down", ["wlan0: set down"]),
    ("ip link set wlan0 arp off", ["wlan0: ARP switched off"]),
    ("ip link set wlan0 multicast off", ["wlan0: multicast switched off"]),
    ("sysctl -qw net.ipv4.ip_forward=1", ["forwarding or rp_filter changed"]),
    ("tc qdisc add dev wlan0 root tbf rate 200kbit burst 3000 latency 50ms", ["queueing discipline changed"]),
    ("tc qdisc add dev wlan0 clsact", ["queueing discipline changed"]),
    ("ip link set wlan0 down name wlan9", ["wlan0: renamed to wlan9"]),
    ("ip link delete wlan0", ["wlan0 removed"]),
]


@pytest.mark.parametrize(("line", "changes"), CHANGES, ids=[line for line, _ in CHANGES])
def test_each_kind_of_change_is_named_beside_every_daemon(station: Path, line: str, changes: list[str]) -> None:
    watches = Changes(station, of_own_daemons()), Changes(station, of_third_party())
    within(station, line)
    for watch in watches:
        assert set(changes) <= set(watch.read())
        assert watch.read() == []
        watch.close()


def test_an_xdp_program_is_named(station: Path, tmp_path: Path) -> None:
    source, program = tmp_path / "pass.c", tmp_path / "pass.o"
    source.write_text('__attribute__((section("xdp"))) int pass(void *context) { return 2; }\n')  # XDP_PASS
    subprocess.run(["clang", "-O2", "-target", "bpf", "-c", source, "-o", program], check=True)
    watch = Changes(station, of_own_daemons())
    within(station, f"ip link set dev wlan0 xdpgeneric obj {program} sec xdp")
    assert watch.read() == ["wlan0: XDP program attached"]
    within(station, "ip link set dev wlan0 xdpgeneric off")
    assert watch.read() == ["wlan0: XDP program detached"]
    watch.close()


@pytest.mark.parametrize(
    ("route", "of_own", "of_others"),
    [
        ("10.0.0.2 dev wlan0 proto 98", 0, 0),  # our daemons'
        ("blackhole 10.0.0.2 proto 98", 1, 0),  # which our daemons never set
        ("10.0.0.2 dev wlan0 proto 42", 1, 0),  # babeld's
        ("unreachable 10.0.0.2 proto 42", 1, 0),
        ("10.0.0.2 dev wlan0", 1, 0),  # a person's, or that of a daemon which uses ioctl(2)
        ("blackhole 10.0.0.2", 1, 1),
        ("unreachable 10.0.0.2 proto static", 1, 1),
    ],
)
def test_routes_of_the_routing_protocol_are_no_surprise(station: Path, route: str, of_own: int, of_others: int) -> None:
    own, others = Changes(station, of_own_daemons()), Changes(station, of_third_party())
    within(station, f"ip route add {route}")
    within(station, f"ip route del {route}")
    words = ["route to 10.0.0.2 added", "route to 10.0.0.2 removed"]
    assert own.read() == words * of_own
    assert others.read() == words * of_others
    own.close()
    others.close()


def test_a_notification_without_a_change_of_the_settings_is_none(station: Path) -> None:
    """As that of a carrier, which the medium sets when a station is switched off."""
    watch = Changes(station, of_own_daemons())
    within(station, "ip link set wlan0 alias antenna")
    within(station, "ip link set wlan0 mtu 1500")
    within(station, "ip neigh replace 10.0.0.3 lladdr 02:00:00:00:00:99 dev wlan0 nud reachable")  # as ARP's
    assert watch.read() == []
    watch.close()


def test_a_flood_of_changes_is_reported_as_one(station: Path) -> None:
    watch = Changes(station, of_own_daemons())
    batch = "".join(f"route add blackhole 10.1.{n >> 8}.{n & 255}\n" for n in range(5000))
    namespace.within(station, lambda: subprocess.run(["ip", "-batch", "-"], input=batch, text=True, check=True))
    assert "more changes than could be read" in watch.read()
    watch.close()


def test_the_devices_of_a_namespace_are_read(station: Path) -> None:
    links = namespace.within(station, rtnetlink.links)
    radio = next(link for link in links.values() if link.name == "wlan0")
    assert (radio.up, radio.mtu, radio.master, len(radio.mac)) == (True, 1500, 0, 6)


class Follow:
    """StationChanges on one station with a clock, sysctls and events that a test sets."""

    def __init__(self, netns: Path) -> None:
        self.now_s, self.sysctls, self.acted_s = 0.0, {"sta1": {"net.ipv4.tcp_sack": "1"}}, -1.0
        self.changes = StationChanges(
            {"sta1": netns}, of_own_daemons(), self.sysctls, lambda: self.sysctls, lambda _name, since: self.acted_s >= since,
            clock=lambda: self.now_s,
        )  # fmt: skip
        self.now_s = 10.0
        self.changes.begin()

    def tick(self) -> None:
        self.now_s += 0.5
        self.changes.tick()


def test_a_change_that_an_event_made_is_no_surprise(station: Path) -> None:
    follow = Follow(station)
    follow.acted_s = 10.2
    within(station, "ip link set wlan0 mtu 900")
    follow.tick()
    assert follow.changes.end().judgement() == ("valid", [])


def test_a_change_long_after_an_event_is_one(station: Path) -> None:
    follow = Follow(station)
    follow.acted_s = 10.2
    follow.tick()
    follow.tick()
    follow.tick()
    within(station, "ip link set wlan0 mtu 900")
    follow.tick()
    verdict, reasons = follow.changes.end().judgement()
    assert verdict == "suspect"
    assert "sta1" in reasons[0] and "MTU 1500 -> 900" in reasons[0]


def test_a_sysctl_that_differs_at_the_end_is_reported(station: Path) -> None:
    follow = Follow(station)
    follow.sysctls = {"sta1": {"net.ipv4.tcp_sack": "0"}}
    assert follow.changes.end().report() == {"sta1": ["sysctl net.ipv4.tcp_sack 1 -> 0"]}


def test_many_changes_give_few_reasons() -> None:
    summary = ChangeSummary()
    for number in range(50):
        summary.add(f"sta{number}", ["forwarding changed", "forwarding changed"])
    assert len(summary.judgement()[1]) == 5
    assert summary.report()["sta49"] == ["forwarding changed"]


# --- in a run -----------------------------------------------------------------------------------------------------------

TWO_HOPS = {"hops": 2, "routing": "aodv", "warmup": 0, "duration": 5}
FAULTS: dict[str, tuple[str, str]] = {
    "addresses": ("sta2", "ip address flush dev wlan0"),
    "blackhole": ("sta1", "ip route add blackhole 10.0.0.3"),
    "forwarding": ("sta2", "sysctl -qw net.ipv4.ip_forward=0"),
    "shaper": ("sta1", "tc qdisc add dev wlan0 root tbf rate 200kbit burst 3000 latency 50ms"),
    "link-down-and-up": ("sta2", "ip link set wlan0 down; sleep 1; ip link set wlan0 up"),
    "sack": ("sta1", "sysctl -qw net.ipv4.tcp_sack=1"),
    "ttl": ("sta1", "sysctl -qw net.ipv4.ip_default_ttl=1"),
}


@needs_runs
@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_change_from_outside_makes_the_run_suspect(tmp_path: Path, fault: str) -> None:
    run = Background(Scenario.model_validate(TWO_HOPS), tmp_path / "run").at("traffic", 0.1)
    station, line = FAULTS[fault]
    shell = process_of(tmp_path / "run", f"mininet:{station}")
    argv = ["nsenter", f"--net=/proc/{shell}/ns/net", "unshare", "--mount", "sh", "-c", f"mount -t proc proc /proc; {line}"]
    subprocess.run(argv, check=True)
    result = run.result()
    verdict = json.loads((tmp_path / "run" / "verdict.json").read_text())
    assert result.status == "complete"
    assert verdict["verdict"] == "suspect"
    assert list(verdict["changed"]) == [station]
    assert any(station in reason and "no event of the scenario" in reason for reason in verdict["reasons"])


EVENTS: dict[str, list[dict[str, object]]] = {
    "power": [{"at": 1, "power": "sta2", "on": False}, {"at": 2, "power": "sta2", "on": True}],
    "daemon": [{"at": 1, "daemon": "restart", "station": "sta2"}, {"at": 3, "daemon": "kill", "station": "sta2"}],
    "command": [
        {"at": 1, "command": ["sh", "-c", "ip link set wlan0 mtu 1000; sysctl -qw net.ipv4.tcp_sack=1"], "station": "sta1"}
    ],
    "link and move": [{"at": 1, "link": ["sta1", "sta2"], "error_rate": 0.1}, {"at": 2, "move": "sta3", "to": [410, 0]}],
}


@needs_runs
@pytest.mark.slow
@pytest.mark.parametrize("events", EVENTS)
def test_an_event_of_the_scenario_is_no_surprise(tmp_path: Path, events: str) -> None:
    scenario = Scenario.model_validate({**TWO_HOPS, "events": EVENTS[events]})
    result = Background(scenario, tmp_path / "run").result()
    verdict = json.loads((tmp_path / "run" / "verdict.json").read_text())
    assert (result.status, verdict["changed"], verdict["stopped"]) == ("complete", {}, {})
