"""AODV-UU's daemon, unchanged, on the same air as our AODV (docs/interop.md has the figures).

AODV-UU is in no package registry, and its kernel module builds for few kernels: MANET_AODV_UU names a daemon that the user has
built, and aodv_uu_standin.py with aodv_uu_shim.c does the module's part. test_aodv_uu_module.py has runs with the module.

AODV-UU knows of a broken link by hellos alone, so our own daemons send hellos here.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from routing.host.tests.harness import wait_for
from tests.interop.mixed import (
    ERRORS,
    INTERFACE,
    NETWORK_BITS,
    PROGRAMS,
    READY_S,
    Chain,
    OwnDaemon,
    Station,
    assert_answered,
    ip,
    seconds_until,
)

AODV_UU = os.environ.get("MANET_AODV_UU", "")
HERE = Path(__file__).resolve().parent
# a station knows its neighbours after a hello or two, one a second
GREETED_S = 10.0
# AODV-UU: 2 hellos of a second missed; then the error
LOST_S = 10.0
# RFC 3561: 2.8 s for the whole network, doubled twice, after a ring or two
GIVEN_UP_S = 40.0
STYLES = ("rfc", "uu")
HOST, AT_HOST = "192.168.9.2", ["192.168.9.0", 30]
UPLOAD = 200_000
UPLOAD_DEADLINE_S = 120.0
RECEIVE = """import socket
server = socket.create_server(("", 9))
print("ready", flush=True)
connection, _ = server.accept()
print(sum(iter(lambda: len(connection.recv(65536)), 0)), flush=True)"""
SEND = f"""import socket
connection = socket.create_connection(("{HOST}", 9), 20)
connection.sendall(bytes({UPLOAD}))
connection.shutdown(socket.SHUT_WR)
connection.recv(1)"""

pytestmark = pytest.mark.skipif(
    not AODV_UU, reason="MANET_AODV_UU does not name an aodvd (AODV-UU is in no package registry; tests/interop/README.md)"
)


class Uu:
    """AODV-UU on a station. Its logs have fixed names in /var/log, so that each gets one of its own."""

    def __init__(self, station: Station, shim: Path, *more: str) -> None:
        self.station = station
        station.sh("ip", "address", "add", f"{ip(station.number)}/{NETWORK_BITS}", "brd", "+", "dev", INTERFACE, "noprefixroute")
        # -D: no silence after the start; -r: a table a second
        aodvd = [AODV_UU, "-i", INTERFACE, "-D", "-r", "1", *more]
        standin = [sys.executable, str(HERE / "aodv_uu_standin.py"), INTERFACE, ip(station.number), str(shim), *aodvd]
        script = 'mount -t tmpfs log /var/log && exec "$0" "$@"'
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, *standin]
        self.program = station.start(*command, name="aodv-uu").wait_ready()

    def routes(self) -> dict[str, str]:
        """Next hops as the kernel has them."""
        lines = json.loads(self.station.sh("ip", "-j", "route", "show", "proto", 100))
        return {line["dst"]: line.get("gateway", line["dst"]) for line in lines}


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("gcc: not found; apt-get install gcc")
    library = tmp_path_factory.mktemp("aodv-uu") / "shim.so"
    argv = ["gcc", "-O1", "-Wall", "-shared", "-fPIC", "-o", library, HERE / "aodv_uu_shim.c"]
    built = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-2000:]
    return library


@pytest.fixture
def chain(tmp_path: Path, shim: Path):
    """`chain("own", "uu", style="rfc")`; a kind with "+" is a gateway: a wire leads from it to `chain.host`."""
    if not (PROGRAMS / "manet-aodv").exists():
        pytest.skip("manet-aodv is not built (./setup.sh)")
    ends = ExitStack()

    def make(*names: str, style: str = "rfc", **options) -> Chain:
        options = {"link": "hello", "style": style, **options}

        def own(station: Station) -> OwnDaemon:
            return OwnDaemon(station, "aodv", options)

        def own_gateway(station: Station) -> OwnDaemon:
            wire(station)
            return OwnDaemon(station, "aodv", options, wires=[AT_HOST])

        def uu_gateway(station: Station) -> Uu:
            wire(station)
            return Uu(station, shim, "-w")

        def wire(station: Station) -> None:
            host = Station(100, tmp_path)
            ends.callback(host.stop)
            make.host = host
            station.sh("ip", "link", "add", "eth1", "type", "veth", "peer", "name", "eth0", "netns", host.process.pid)
            station.sh("ip", "address", "add", "192.168.9.1/30", "dev", "eth1")
            station.sh("ip", "link", "set", "eth1", "up")
            # the daemons set that of the radio
            station.sh("sysctl", "-qw", "net.ipv4.conf.eth1.forwarding=1")
            host.sh("ip", "address", "add", f"{HOST}/30", "dev", "eth0")
            host.sh("ip", "link", "set", "eth0", "up")
            host.sh("ip", "route", "add", "default", "via", "192.168.9.1")

        kinds = {"own": own, "own+": own_gateway, "uu": lambda station: Uu(station, shim), "uu+": uu_gateway}
        return ends.enter_context(Chain(tmp_path, [kinds[name] for name in names]))

    with ends:
        yield make


def note(what: str) -> None:
    """A figure for docs/interop.md: shown by pytest -s, and with a failure."""
    print(f"interop: aodv-uu: {what}")


def greeted(mixed: Chain) -> None:
    """Every UU has its neighbours in the kernel; our own daemons wait for data."""

    def all_heard() -> bool:
        count = len(mixed.peers)
        for number, peer in enumerate(mixed.peers, 1):
            around = {ip(n) for n in (number - 1, number + 1) if 1 <= n <= count and isinstance(mixed.peer(n), Uu)}
            known = peer.routes().keys() if isinstance(peer, Uu) else {n["address"] for n in peer.status()["neighbours"]}
            if not around <= set(known):
                return False
        return True

    note(f"hellos of AODV-UU known to their neighbours after {seconds_until('hellos', all_heard, GREETED_S):.1f} s")


def counters(peer: OwnDaemon) -> dict[str, int]:
    return peer.status()["counters"]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("kinds", ["own uu own uu", "uu own own uu"])
def test_a_mixed_chain_discovers_and_forwards_both_ways(chain, kinds, style):
    mixed = chain(*kinds.split(), style=style)
    greeted(mixed)
    for a, b in [(1, 4), (4, 1)]:
        pings = mixed.stations[a - 1].ping(ip(b))
        note(f"{kinds}, {style}: {a} to {b}: {pings}")
        # 64 at the answering end, one less at each of the two between
        assert_answered(pings, 62)
        for number, via in [(1, 2), (2, 3), (3, 4)]:
            assert mixed.peer(number).routes()[ip(4)] == ip(via)
            assert mixed.peer(number + 1).routes()[ip(1)] == ip(number)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("kinds", ["own uu own uu", "uu own uu own"])
def test_a_cut_is_reported_by_a_route_error_of_either_kind_to_either_kind(chain, kinds, style):
    mixed = chain(*kinds.split(), style=style)
    greeted(mixed)
    assert_answered(mixed.stations[0].ping(ip(4), 8), 62)
    sending = mixed.stations[0].start("ping", "-n", "-i", 0.25, ip(4), name="ping")
    try:
        time.sleep(1.0)
        mixed.move(4, away=True)
        lost_s = seconds_until("1 gives up 4", lambda: ip(4) not in mixed.peer(1).routes(), LOST_S)
        note(f"{kinds}, {style}: 4 leaves: 1 gives it up after {lost_s:.1f} s")
        # after the last try of the discovery, the source gets an ICMP unreachable
        unreachable_s = seconds_until("ping prints the ICMP unreachable", lambda: "Unreachable" in sending.text(), GIVEN_UP_S)
        note(f"{kinds}, {style}: ping gets an ICMP unreachable after {unreachable_s:.1f} s more")
        mixed.move(4, away=False)
        back_s = seconds_until("4 answers", lambda: mixed.stations[0].ping(ip(4), 2).answered == 2, 30.0)
        note(f"{kinds}, {style}: 4 returns: answers 1 after {back_s:.1f} s")
    finally:
        sending.stop()
    for peer in mixed.peers:
        if isinstance(peer, OwnDaemon) and peer.station.number < 4:
            assert counters(peer)["rerr-sent" if peer.station.number == 3 else "rerr-received"] >= 1


def test_hellos_keep_a_link_and_their_absence_ends_it(chain):
    mixed = chain("uu", "own", "uu", style="uu")
    greeted(mixed)
    wait_for("AODV-UU hears our own", lambda: all(ip(2) in mixed.peer(n).routes() for n in (1, 3)), GREETED_S)
    own = mixed.peer(2)
    states = {n["address"]: n["state"] for n in own.status()["neighbours"]}
    assert states == {ip(1): "hello", ip(3): "hello"}
    time.sleep(5.0)
    assert ip(2) in mixed.peer(1).routes() and ip(2) in mixed.peer(3).routes()
    mixed.peer(3).program.stop()

    def gave_up() -> bool:
        return ip(3) not in {n["address"] for n in own.status()["neighbours"] if n["state"] == "hello"}

    silent_s = seconds_until("our own gives up 3", gave_up, LOST_S)
    own.program.stop()
    ended_s = seconds_until("AODV-UU gives up our own", lambda: ip(2) not in mixed.peer(1).routes(), LOST_S)
    note(f"AODV-UU killed: our own drops it after {silent_s:.1f} s; our own ends: AODV-UU drops it after {ended_s:.1f} s")


@pytest.mark.parametrize("kinds", ["own uu uu+", "uu own own+", "own own uu+", "uu uu own+"])
def test_a_gateway_of_either_kind_serves_either_kind(chain, kinds):
    mixed = chain(*kinds.split())
    greeted(mixed)
    pings = mixed.stations[0].ping(HOST)
    note(f"{kinds}: 1 to the host behind 3: {pings}")
    assert_answered(pings, 62)
    receiver = chain.host.start(sys.executable, "-c", RECEIVE, name="receiver").wait_ready()
    start = time.monotonic()
    mixed.stations[0].sh(sys.executable, "-c", SEND, timeout_s=UPLOAD_DEADLINE_S)
    note(f"{kinds}: an upload of {UPLOAD} bytes by TCP took {time.monotonic() - start:.1f} s")
    assert receiver.process.wait(READY_S) == 0 and receiver.text().split() == ["ready", str(UPLOAD)]
    if isinstance(mixed.peer(1), OwnDaemon):
        assert counters(mixed.peer(1))["tunnelled"] >= 19
        gateways = [r["via"] for r in mixed.peer(1).status()["routes"] if r["destination"] == HOST]
        assert gateways == [ip(3)]
    if isinstance(mixed.peer(3), OwnDaemon):
        counted = counters(mixed.peer(3))
        assert counted["rrep-gateway"] >= 1 and counted["decapsulated"] >= 19


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed (./setup.sh)")
def test_tshark_finds_no_error_in_the_messages_of_both(chain):
    mixed = chain("own", "uu", "own", "uu")
    greeted(mixed)
    assert_answered(mixed.stations[0].ping(ip(4), 8), 62)
    mixed.move(4, away=True)
    time.sleep(4.0)
    mixed.medium.stop()

    seen = {(n, kind): mixed.captured(f"ip.src == {ip(n)} && aodv.type == {kind}") for n in (1, 2, 3, 4) for kind in (1, 2)}
    note(f"requests and replies on the air, by station and type: {seen}")
    # 3 has heard 4's hellos and answers for it
    assert seen[1, 1] and seen[2, 1] and all(seen[n, 2] for n in (1, 2, 3, 4))
    assert mixed.captured(ERRORS) == 0


def test_the_daemon_has_the_version_of_the_figures():
    version = subprocess.run([AODV_UU, "-V"], capture_output=True, encoding="latin-1", timeout=10, check=False).stdout
    note(" ".join(re.findall(r"AODV-UU v\S+ \S+", version)))
    assert "AODV-UU v0.9" in version
