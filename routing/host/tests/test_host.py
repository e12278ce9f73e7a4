"""The daemons' host on this kernel: routes, held packets, ICMP, link feedback, crashes, regular ends (design A with AODV and
OLSR, design B with DSR). The protocols themselves are tested without a kernel, beside their code."""

import errno
import json
import re
import resource
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

from routing.host.tests.conftest import DAEMONS, QUICK, Station, needs_daemons
from routing.host.tests.harness import wait_for

pytestmark = needs_daemons


def inputs(station, kind: str) -> list[dict]:
    lines = [line for line in station.path("events.jsonl").read_text().splitlines() if line]
    logged = [json.loads(line) for line in lines]
    return [
        {"at": line["at"], **line["input"][kind]}
        for line in logged
        if isinstance(line.get("input"), dict) and kind in line["input"]
    ]


def checksum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def transport_checksum(packet: bytes) -> int:
    """0 if the TCP or UDP checksum of an IPv4 packet without options is right."""
    payload = packet[20:]
    return checksum(packet[12:20] + struct.pack(">BBH", 0, packet[9], len(payload)) + payload)


def test_a_packet_without_a_route_waits_for_it_and_none_is_lost(chain):
    first, middle, last = chain(3, protocol="aodv")
    assert first.pings_answered(last.address, 10) == 10
    assert "icmp_seq=1 ttl=63" in first.sh("ping", "-n", "-c", "1", last.address)
    route = json.loads(first.sh("ip", "-j", "route", "show", last.address))[0]
    assert (route["gateway"], route["protocol"], route["metric"]) == (middle.address, "98", 100)
    assert (route["prefsrc"], route["flags"], route["metrics"]) == (first.address, ["onlink"], [{"quickack": 1, "mtu": 1500}])
    neighbour = json.loads(middle.sh("ip", "-j", "route", "show", last.address))[0]
    assert (neighbour["scope"], "gateway" in neighbour) == ("link", False)
    found = first.notes("route")[-1]
    assert (found["about"], found["via"], found["value"], found["prefix"]) == (last.address, middle.address, 2, 32)
    assert first.daemons[0].ask()["host"]["sent"] >= 1


def test_packets_of_the_local_stack_reach_the_machine_with_complete_checksums(chain):
    first, last = chain(2, protocol="aodv")
    server = last.popen("iperf3", "-s", "-1")
    wait_for("server", lambda: "5201" in last.sh("ss", "-ltn"))
    first.sh("iperf3", "-c", last.address, "-n", "100K")
    server.communicate()
    first.daemons[0].stop()
    packets = [bytes.fromhex(p["bytes"]) for p in inputs(first, "packet")]
    assert packets and {p[9] for p in packets} == {socket.IPPROTO_TCP}
    assert [transport_checksum(p) for p in packets] == [0] * len(packets)
    assert [checksum(p[:20]) for p in packets] == [0] * len(packets)


def test_a_regular_end_restores_the_kernel_state(chain):
    first, last = chain(2)
    # an address with its connected route, and another program's route over the radio
    first.sh("ip", "address", "flush", "dev", "wlan0")
    first.sh("ip", "address", "add", f"{first.address}/8", "dev", "wlan0")
    first.sh("ip", "route", "add", "172.16.0.0/12", "via", last.address, "dev", "wlan0")
    before = first.kernel_state()
    for protocol in ("aodv", "dsdv", "olsr", "dsr", "adv", "tora"):
        daemon = first.start(protocol)
        assert "10.0.0.0/8 dev wlan0" not in first.sh("ip", "route"), protocol
        assert first.path("sock.before").exists() and first.kernel_state() != before
        assert daemon.stop() == (0, ""), protocol
        assert first.kernel_state() == before, protocol
        assert not first.path("sock").exists() and not first.path("sock.before").exists()


@pytest.mark.parametrize("protocol", ["aodv", "dsr"])
def test_the_successor_of_a_killed_daemon_restores_the_state_and_starts_as_restarted(chain, protocol):
    first, last = chain(2)
    before = first.kernel_state()
    options = {"reboot_wait": False} if protocol == "aodv" else {}
    first.start(protocol, options)
    last.start(protocol, options)
    assert first.pings_answered(last.address) == 5
    first.daemons[0].stop(signal.SIGKILL)
    assert first.kernel_state() != before
    # a daemon of another kind recovers as well
    again = first.start(protocol, options)
    assert [note["value"] for note in first.notes("started")] == [0, 1]
    assert first.pings_answered(last.address) == 5
    again.stop()
    assert first.kernel_state() == before
    first.start(protocol, options)
    assert [note["value"] for note in first.notes("started")] == [0, 1, 0]


def test_a_second_daemon_is_refused_and_does_not_disturb_the_first(chain):
    first, last = chain(2, protocol="aodv")
    assert first.pings_answered(last.address) == 5
    routes = first.sh("ip", "route")
    for more, expected in [
        ({}, "another daemon listens"),
        ({"status": None}, "another routing daemon runs on wlan0"),
        ({"status": None, "tun": "manet1"}, "another routing daemon runs on wlan0"),
    ]:
        for protocol in ("aodv", "dsr"):
            code, error = first.start(protocol, ready=False, **more).stop()
            assert code == 1 and expected in error and error.count("\n") == 1
    assert first.daemons[0].process.poll() is None and first.sh("ip", "route") == routes


def test_a_daemon_keeps_the_routes_of_another_radios_daemon(chain):
    first, last = chain(2)
    first.sh("ip", "link", "add", "wlan1", "type", "veth", "peer", "name", "far1")
    first.sh("ip", "address", "add", "10.9.0.1/32", "dev", "wlan1")
    first.sh("ip", "link", "set", "far1", "up")
    first.sh("ip", "link", "set", "wlan1", "up")
    # marked as that daemon's routes
    other = "10.9.0.2 dev wlan1 proto 98 scope link metric 100"
    first.sh("ip", "route", "add", *other.split())
    daemon = first.start("aodv", QUICK)
    last.start("aodv", QUICK)
    # and they are no sign of a killed predecessor
    assert [note["value"] for note in first.notes("started")] == [0]
    assert other in first.sh("ip", "route") and first.pings_answered(last.address) == 5
    assert daemon.stop() == (0, "")
    own_routes = [route for route in first.sh("ip", "route").splitlines() if "proto 98" in route]
    assert [route.strip() for route in own_routes] == [other]


def test_a_local_sender_gets_host_unreachable(chain):
    (first,) = chain(1, protocol="aodv", options=QUICK)
    output = first.sh("ping", "-n", "-c", "1", "-W", "5", "10.0.0.77", check=False)
    assert "From 10.0.0.1 icmp_seq=1 Destination Host Unreachable" in output
    connect = "import socket; s = socket.socket(); s.bind(('10.0.0.1', 4001)); print(s.connect_ex(('10.0.0.78', 80)))"
    assert first.sh("python3", "-c", connect) == f"{errno.EHOSTUNREACH}\n"
    wait_for("both notes", lambda: len(first.notes("unreachable")) >= 2)
    ping, tcp = first.notes("unreachable")
    assert (ping["about"], ping["source"], ping["value"]) == ("10.0.0.77", first.address, socket.IPPROTO_ICMP)
    assert (tcp["about"], tcp["ports"], tcp["value"]) == ("10.0.0.78", [4001, 80], socket.IPPROTO_TCP)
    assert tcp["seq"] > 0 and "ports" not in ping


def test_a_remote_sender_gets_host_unreachable(chain):
    first, router = chain(2)
    router.start("olsr")
    router.sh("ip", "route", "add", first.address, "dev", "wlan0")
    first.sh("ip", "route", "add", "10.0.0.77", "via", router.address, "dev", "wlan0", "onlink")
    output = first.sh("ping", "-n", "-c", "1", "-W", "5", "10.0.0.77", check=False)
    assert f"From {router.address} icmp_seq=1 Destination Host Unreachable" in output
    assert wait_for("the note", lambda: router.notes("unreachable"))[0]["source"] == first.address


def test_a_failed_frame_breaks_the_link_at_once(chain, ask_medium):
    first, middle, last = chain(3, protocol="aodv")
    assert first.pings_answered(last.address) == 5
    assert ask_medium("power", station="sta3", on=False)["ok"]
    start = time.monotonic()
    first.sh("ping", "-n", "-c", "1", "-W", "1", last.address, check=False)
    broken = wait_for("broken link", lambda: middle.notes("link-broken"), 5)[0]
    # seven attempts of a radio of 2 Mbit/s take about 0.1 s; hellos would take two seconds
    assert (broken["about"], broken["value"]) == (last.address, 1) and time.monotonic() - start < 2
    wait_for("route withdrawn", lambda: middle.sh("ip", "route", "show", last.address) == "", 5)
    wait_for("source informed", lambda: first.sh("ip", "route", "show", last.address) == "", 5)
    wait_for("lost", lambda: last.address in [note["about"] for note in middle.notes("lost")])
    middle.daemons[0].stop()
    assert any(failed["bytes"] for failed in inputs(middle, "link-failed"))


def test_route_use_is_reported_in_blocks_and_completely(chain):
    first, middle, last = chain(3, protocol="aodv")
    assert first.pings_answered(last.address) == 5
    first.sh("ping", "-n", "-c", "200", "-i", "0.01", "-W", "5", last.address)
    time.sleep(0.1)
    status = middle.daemons[0].ask()
    middle.daemons[0].stop()
    used = inputs(middle, "used")
    flows = [(flow["source"], flow["destination"], flow["packets"]) for report in used for flow in report["flows"]]
    for direction in ((first.address, last.address), (last.address, first.address)):
        assert sum(packets for source, destination, packets in flows if (source, destination) == direction) == 205
    assert {flow[:2] for flow in flows} == {(first.address, last.address), (last.address, first.address)}
    assert status["host"]["usage-lost"] == 0
    # at most one block per 40 ms: 2 s of pings give about 50 reports of 400 packets
    assert len(used) < 100


def test_status_follow_and_stop(chain):
    first, last = chain(2, protocol="aodv")
    daemon = first.daemons[0]
    with socket.socket(socket.AF_UNIX) as follower:
        follower.settimeout(20)
        follower.connect(str(daemon.status_socket))
        follower.sendall(b'{"op":"follow"}\n')
        lines = follower.makefile()
        assert json.loads(lines.readline()) == {"ok": True}
        assert first.pings_answered(last.address) == 5
        events = [json.loads(lines.readline())["event"] for _ in range(2)]
        assert events == ["discovery", "route"]
        status = daemon.ask()
        assert (status["protocol"], status["address"], status["held"]) == ("aodv", first.address, 0)
        assert {route["destination"] for route in status["routes"]} == {last.address}
        assert status["host"]["routes-set"] >= 1 and status["host"]["control-sent"] >= 1
        assert "ask {" in daemon.ask("nonsense")["error"]
        status_verb = subprocess.run([daemon.program, "status", daemon.status_socket], capture_output=True, text=True, check=True)
        assert json.loads(status_verb.stdout)["sequence"] == status["sequence"]
        assert daemon.ask("stop") == {"ok": True}
        assert daemon.process.wait(20) == 0


def test_notes_count_from_the_epoch(chain):
    (first,) = chain(1)
    first.start("aodv", epoch_ns=time.time_ns() - 5_000_000_000)
    assert 5.0 < first.notes("started")[0]["t_ns"] / 1e9 < 8.0


@pytest.mark.parametrize("protocol", ["aodv", "dsdv", "olsr", "dsr", "adv", "tora"])
def test_the_event_log_replays_the_same_outputs_at_the_same_instants(chain, ask_medium, protocol):
    stations = first, _, last = chain(3, protocol=protocol, options={"period": 2} if protocol == "dsdv" else {})
    first.pings_answered(last.address, 20)
    ask_medium("power", station="sta3", on=False)
    first.pings_answered(last.address, 5, "-W", "1")
    for station in stations:
        assert station.daemons[0].stop() == (0, "")
        program, config, log = station.daemons[0].program, station.path("json"), station.path("events.jsonl")
        printed = subprocess.run([program, "replay", config, log], capture_output=True, text=True, check=True).stdout
        outputs = [json.loads(line) for line in printed.splitlines()]
        assert as_noted(outputs) == noted(station), station.number
        assert outputs


def noted(station) -> list[tuple]:
    """Notes as time since the daemon's start (ns), event, about and value; without `unreachable`."""
    started, *notes = station.notes()
    notes = [note for note in notes if note["event"] != "unreachable"]
    return [(note["t_ns"] - started["t_ns"], note["event"], note["about"], note["value"]) for note in notes]


def as_noted(outputs: list[dict]) -> list[tuple]:
    """The host's notes of these outputs: changed routes, cleared routes, and the machine's own notes. Without `unreachable`,
    which is a note of the host in design A and of the machine in design B."""
    notes, table = [], {}
    for at, output in ((line["at"], line["output"]) for line in outputs):
        if route := output.get("set-route"):
            key = (route["destination"], route["prefix"])
            if table.get(key) != route:
                notes.append((at, "route", route["destination"], route["hops"]))
            table[key] = route
        elif cleared := output.get("clear-route"):
            if table.pop((cleared["destination"], cleared["prefix"]), None):
                notes.append((at, "lost", cleared["destination"], 0))
        elif (note := output.get("note")) and note["event"] != "unreachable":
            notes.append((at, note["event"], note["about"], note["value"]))
    return notes


def test_routes_are_restored_after_the_radio_was_down(chain):
    first, last = chain(2, protocol="aodv")
    assert first.pings_answered(last.address) == 5
    route = first.sh("ip", "route", "show", last.address)
    assert "proto 98" in route
    first.sh("ip", "link", "set", "wlan0", "down")
    assert first.sh("ip", "route", "show", last.address) == ""
    first.sh("ip", "link", "set", "wlan0", "up")
    wait_for("route", lambda: first.sh("ip", "route", "show", last.address) == route, 5)
    assert first.pings_answered(last.address) == 5
    # no event of the interface is reported without end
    assert cpu_ticks(first.daemons[0], 1) <= 5


def test_a_deleted_tun_device_ends_the_daemon_with_a_remedy(chain):
    (first,) = chain(1)
    before = first.kernel_state()
    daemon = first.start("aodv")
    first.sh("ip", "link", "delete", "manet0")
    code, error = daemon.process.wait(20), daemon.stop()[1]
    assert code == 1 and "the TUN device was deleted" in error and first.kernel_state() == before


def test_the_daemon_detects_and_survives_the_end_of_the_medium(chain, ask_medium):
    first, last = chain(2, protocol="aodv")
    assert first.pings_answered(last.address) == 5
    ask_medium("stop")
    wait_for("feedback lost", lambda: first.daemons[0].ask()["host"].get("feedback-lost") == 1, 10)
    assert first.daemons[0].stop() == (0, "")


def cpu_ticks(daemon, seconds: float) -> int:
    """Processor time of the daemon in the next `seconds`, in ticks of 10 ms."""
    stat = Path(f"/proc/{daemon.process.pid}/stat")
    ticks = [sum(map(int, stat.read_text().rpartition(")")[2].split()[11:13])) for _ in range(2) if not time.sleep(seconds)]
    return ticks[1] - ticks[0]


@pytest.mark.parametrize("protocol", ["aodv", "dsr"])
def test_a_client_that_cannot_be_accepted_does_not_keep_the_daemon_awake(chain, protocol):
    (first,) = chain(1, protocol=protocol)
    daemon = first.daemons[0]
    descriptors = Path(f"/proc/{daemon.process.pid}/fd")
    before = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
    limit = max(int(fd.name) for fd in descriptors.iterdir()) + 2
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (limit, before[1]))
    clients = [socket.socket(socket.AF_UNIX) for _ in range(4)]
    try:
        for client in clients:
            client.connect(str(daemon.status_socket))
        # an idle daemon uses none; one that is woken without end uses all that is available
        assert cpu_ticks(daemon, 1.5) <= 2
    finally:
        for client in clients:
            client.close()
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, before)
    assert daemon.ask()["ok"]


def test_errors_are_one_line_and_name_the_remedy(chain):
    (first,) = chain(1)
    good = json.loads(first.write_config({}).read_text())

    def run_verb(verb: str, config: object, text: str | None = None) -> tuple[int, str]:
        first.path("json").write_text(json.dumps(config) if text is None else text)
        command = ["nsenter", f"--net={first.netns}", DAEMONS / "manet-aodv", verb, first.path("json")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        assert done.stderr.count("\n") == 1 and done.stderr.startswith("manet-aodv: ") and not done.stdout, done
        return done.returncode, done.stderr

    error = f'manet-aodv: {first.path("json")}: key "interface": "w/0" is no interface name of 1 to 15 characters\n'
    assert run_verb("check", {**good, "interface": "w/0"}) == (2, error)
    for text in ("", json.dumps(good)[:200], "[" * 100_000, "x" * 2_000_000, "\0"):
        assert run_verb("check", None, text)[0] == 2
    for change, word in [
        ({"interface": "wlan9"}, "there is no interface wlan9"),
        ({"node": {**good["node"], "address": "10.0.0.9"}}, "ip address add 10.0.0.9/8 dev wlan0 noprefixroute"),
        ({"feedback": {"medium": "/proc/nonexistent"}}, "is the medium running?"),
        ({"feedback": "nl80211"}, "by nl80211" if Path("/sys/class/ieee80211").exists() else "this kernel has no nl80211"),
        ({"notes": "/proc/nonexistent/notes"}, "does the folder exist?"),
        ({"status": "/proc/nonexistent/socket"}, "is there the folder?"),
    ]:
        code, error = run_verb("run", {**good, **change})
        assert (code, word in error) == (1, True), error
    # and none of these runs left state behind
    assert re.findall("manet0|proto 98", first.kernel_state()) == []


def test_dsr_carries_tcp_without_interference_of_the_kernel(chain):
    first, middle, last = chain(3, protocol="dsr")
    assert first.pings_answered(last.address, 5) == 5
    assert first.pings_answered(last.address, 3, "-s", "1400") == 3
    server = last.popen("iperf3", "-s", "-1")
    wait_for("server", lambda: "5201" in last.sh("ss", "-ltn"))
    first.sh("iperf3", "-c", last.address, "-n", "200K")
    server.communicate()
    # no kernel answers protocol 48 or forwards, and no packet is received twice
    for station in (first, middle, last):
        counters = station.sh("nstat", "-asz", "IcmpOutDestUnreachs", "IpForwDatagrams", "TcpExtTCPDSACKOfoSent")
        assert {line.split()[1] for line in counters.splitlines()[1:]} == {"0"}, counters
    host = middle.daemons[0].ask()["host"]
    assert host["frames-sent"] > 200 and host.get("frames-failed", 0) == 0


def test_a_gateway_forwards_tunnelled_packets_to_its_wire_and_answers_return(chain, tmp_path):
    first, middle, gateway = chain(3)
    host = Station(200, tmp_path)
    try:
        gateway.sh("ip", "link", "add", "wire0", "type", "veth", "peer", "name", "wire0", "netns", str(host.process.pid))
        for end, address in ((gateway, "192.168.1.1"), (host, "192.168.1.2")):
            end.sh("ip", "link", "set", "wire0", "up")
            end.sh("ip", "address", "add", f"{address}/30", "dev", "wire0")
        host.sh("ip", "route", "add", "default", "via", "192.168.1.1")
        gateway.sh("sysctl", "-qw", "net.ipv4.ip_forward=1")
        first.start("aodv")
        middle.start("aodv")
        gateway.start("aodv", node={"wires": [["192.168.1.0", 30]]})
        assert first.pings_answered("192.168.1.2", 5) == 5
        server = host.popen("iperf3", "-s", "-1")
        wait_for("server", lambda: "5201" in host.sh("ss", "-ltn"))
        first.sh("iperf3", "-c", "192.168.1.2", "-n", "200K")
        server.communicate()
        # the middle sees protocol 55 in one direction and plain packets in the other; no kernel answers protocol 55
        counters = gateway.sh("nstat", "-asz", "IcmpOutDestUnreachs").splitlines()[1].split()
        assert counters[1] == "0"
        gateway.daemons[0].stop()
        assert len(inputs(gateway, "tunnelled")) > 100
        assert {bytes.fromhex(packet["bytes"])[9] for packet in inputs(gateway, "tunnelled")} == {55}
        used = {flow["destination"] for report in inputs(gateway, "used") for flow in report["flows"]}
        assert used == {first.address, gateway.address}
    finally:
        host.stop()


def test_a_route_of_the_machine_leads_into_the_tun_with_its_own_mtu(chain):
    first, gateway = chain(2)
    first.start("aodv")
    gateway.start("aodv", node={"wires": [["192.168.1.0", 30]]})
    first.sh("ping", "-n", "-c", "1", "-W", "2", "192.168.1.1", check=False)
    routes = json.loads(first.sh("ip", "-j", "route", "show", "metric", "100"))
    into_tun = [route for route in routes if route["dev"] == "manet0"]
    # minimal encapsulation at the source adds 8 bytes (RFC 2004, 3.1)
    assert [(route["dst"], route["metrics"]) for route in into_tun] == [("192.168.1.1", [{"mtu": 1500 - 8, "quickack": 1}])]


# the radio's MTU, and that of the TUN device: DSR adds at most 8 + 4 * 15 + 4 bytes (15 hops)
@pytest.mark.parametrize(
    ("protocol", "into_tun"),
    [("aodv", 1400), ("dsdv", 1400), ("olsr", 1400), ("adv", 1400), ("dsr", 1400 - 72), ("tora", 1400)],
)
def test_every_route_has_its_mtu(chain, protocol, into_tun):
    first, last = chain(2)
    options = {"period": 1} if protocol == "dsdv" else {}
    for station in (first, last):
        station.start(protocol, options, node={"mtu": 1400})
    assert wait_for("answer", lambda: first.pings_answered(last.address, 1), 30) == 1
    routes = json.loads(first.sh("ip", "-j", "route", "show", "proto", "98"))
    mtu = {(route["dst"], route["dev"]): route["metrics"][0].get("mtu") for route in routes}
    tun = {(destination, "manet0"): into_tun for destination in ("default", "10.0.0.0/8")}
    radio = {} if protocol == "dsr" else {(last.address, "wlan0"): 1400}
    assert mtu == tun | radio


FLOOD = """
import random, socket, time
rng, s = random.Random(1), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"wlan0")
s.bind(("", 654))
for i in range(20_000):
    rreq = bytes([1, 0, 0, rng.randrange(30)]) + rng.randbytes(4) + b"\\x0a" + rng.randbytes(15)
    kinds = [rreq, rreq[: rng.randrange(24)], rng.randbytes(rng.randrange(1400)), bytes([3, 0, 0, 255]) + rng.randbytes(24)]
    s.sendto(kinds[i % 4], ("255.255.255.255", 654))
    if i % 100 == 0:
        time.sleep(0.005)
time.sleep(2)
for _ in range(10):
    s.sendto(bytes(20_000), ("255.255.255.255", 654))
    time.sleep(0.1)
"""


@pytest.mark.parametrize("protocol", ["aodv", "dsr"])
def test_a_flood_of_forged_packets_is_counted_and_memory_stays_bounded(tmp_path, protocol):
    first, enemy = Station(1, tmp_path), Station(2, tmp_path)
    try:
        peer = ("type", "veth", "peer", "name", "wlan0", "netns", str(enemy.process.pid))
        first.sh("ip", "link", "add", "wlan0", *peer)
        for station in (first, enemy):
            station.sh("ip", "link", "set", "wlan0", "up")
            station.sh("ip", "address", "add", f"{station.address}/8", "dev", "wlan0", "noprefixroute")
        daemon = first.start(protocol, feedback="none")
        enemy.sh("python3", "-c", FLOOD)
        if protocol == "aodv":
            wait_for("too long ones", lambda: daemon.ask()["host"].get("truncated") == 10, 20)
        status = daemon.ask()
        memory = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{daemon.process.pid}/status").read_text())
        assert int(memory.group(1)) < (8 if "release" in str(DAEMONS) else 16) * 1024
        if protocol == "aodv":
            # our own broadcasts return and may be lost as well
            received_or_lost = status["host"]["control-received"] + status["host"]["overrun"]
            assert received_or_lost >= 20_000 and status["host"]["control-received"] > 1_000
            assert sum(count for name, count in status["counters"].items() if name.startswith("malformed")) > 500
        else:
            # frames without a DSR header are counted as well
            assert sum(status["counters"].values()) + status["host"]["overrun"] >= 20_000
        assert daemon.stop() == (0, "")
    finally:
        first.stop()
        enemy.stop()
