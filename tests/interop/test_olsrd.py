"""olsrd, without its link-quality extension, on the same air as our OLSR (docs/interop.md has the figures).

olsrd is in no package registry: MANET_OLSRD names a binary that the user has built.

One fault of olsrd's must not be ours: a change of the topology within a second of its last route calculation is forgotten until
the next change, and a quiet network has none. Where a test waits for olsrd's routes it therefore *nudges*: a station at
the end leaves for longer than the neighbour hold time and comes back. How often that was needed is noted. Ours get none.
"""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.mixed import INTERFACE, NETWORK_BITS, PROGRAMS, SPACING_M, Chain, Ours, Pings, Station, ip, wait_for

OLSRD = os.environ.get("MANET_OLSRD", "")
# olsrd ignores an edge that is not stated from both sides, so all must state all of theirs
REDUNDANT = {"tc_redundancy": 2}
# Three HELLOs of 2 s until a relay is chosen, a TC after 5 s, half a second a hop; twice that before olsrd is nudged
KNOWN_S = 30.0
AWAY_S = 8.0
MOST_NUDGES = 4
# 6 s of silence, then a TC within 5 s; at worst the 15 s for which topology is kept
LOST_S = 6.0 + 15.0 + 5.0
FAR_M = 5000.0

pytestmark = pytest.mark.skipif(not OLSRD, reason="MANET_OLSRD does not name an olsrd binary (olsrd is in no package registry)")


class Olsrd:
    """olsrd on a station, set to be RFC 3626 on the wire; everything that daemons share by name is its own."""

    def __init__(self, station: Station, *more: str) -> None:
        self.station = station
        station.sh("ip", "address", "add", f"{ip(station.number)}/{NETWORK_BITS}", "dev", INTERFACE)
        for setting in ("ip_forward=1", "conf.all.rp_filter=0", f"conf.{INTERFACE}.rp_filter=0"):
            station.sh("sysctl", "-qw", f"net.ipv4.{setting}")
        for which in ("all", INTERFACE):
            station.sh("sysctl", "-qw", f"net.ipv4.conf.{which}.send_redirects=0")
        config = station.folder / f"{station.name}.olsrd.conf"
        lines = [
            "DebugLevel 0",
            "IpVersion 4",
            f'LockFile "{station.folder / f"{station.name}.olsrd.lock"}"',
            'FIBMetric "correct"',
            "LinkQualityLevel 0",
            "LinkQualityFishEye 0",
            "UseHysteresis no",
            "TcRedundancy 2",
            "MprCoverage 1",
            "Willingness 3",
            "UseNiit no",
            "SmartGateway no",
            *more,
            f'Interface "{INTERFACE}"',
            "{",
            "Ip4Broadcast 255.255.255.255",
            "HelloInterval 2.0",
            "HelloValidityTime 6.0",
            *(f"{kind}Interval 5.0\n{kind}ValidityTime 15.0" for kind in ("Tc", "Mid", "Hna")),
            "}",
        ]
        config.write_text("\n".join(lines) + "\n")
        self.program = station.start(OLSRD, "-f", config, "-nofork", name="olsrd")

    def routes(self) -> dict[str, str]:
        """Next hops as the kernel has them, without the network of the interface itself."""
        lines = json.loads(self.station.sh("ip", "-j", "route", "show", "dev", INTERFACE))
        own = f"10.0.0.0/{NETWORK_BITS}"
        return {line["dst"]: line.get("gateway", line["dst"]) for line in lines if line["dst"] != own}


def ours(station: Station, **options) -> Ours:
    return Ours(station, "olsr", {"link": "feedback"} | REDUNDANT | options)


@pytest.fixture
def chain(tmp_path: Path):
    """A chain of "ours" and "olsrd", or a function (station) -> peer."""
    if not (PROGRAMS / "manet-olsr").exists():
        pytest.skip("manet-olsr is not built (./setup.sh)")
    chains: list[Chain] = []
    kinds = {"ours": ours, "olsrd": Olsrd}

    def make(*names: str, **more) -> Chain:
        chains.append(Chain(tmp_path, [more.get(name) or kinds[name] for name in names]))
        return chains[-1]

    yield make
    for made in chains:
        made.__exit__()


def note(what: str) -> None:
    """A figure for docs/interop.md: shown by pytest -s, and with a failure."""
    print(f"interop: olsrd: {what}")


def move(mixed: Chain, number: int, away: bool) -> None:
    """Out of everybody's range, or back to its place."""
    position = [SPACING_M * (number - 1), FAR_M * number if away else 0.0, 0.0]
    request = {"op": "move", "station": f"sta{number}", "position": position}
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10.0)
        s.connect(str(mixed.folder / "medium.sock"))
        s.sendall(json.dumps(request).encode() + b"\n")
        answer = json.loads(s.makefile().readline())
    assert answer["ok"], answer


def until(mixed: Chain, what: str, known: Callable[[int], bool]) -> None:
    """`known` of every station: of ours within the time that messages need; for the others olsrd's fault is granted nudges,
    each of which may meet the same fault."""
    start = time.monotonic()
    numbers = range(1, len(mixed.peers) + 1)
    ours_s = wait_for(f"ours: {what}", lambda: all(known(n) for n in numbers if isinstance(mixed.peer(n), Ours)), KNOWN_S)
    nudges = 0
    while not becomes(lambda: all(map(known, numbers)), KNOWN_S - ours_s if nudges == 0 else KNOWN_S):
        nudges += 1
        missing = [n for n in numbers if not known(n)]
        assert nudges <= MOST_NUDGES and not any(isinstance(mixed.peer(n), Ours) for n in missing), f"{what}: not {missing}"
        move(mixed, len(mixed.peers), away=True)
        time.sleep(AWAY_S)
        move(mixed, len(mixed.peers), away=False)
        # what somebody knows right now may be from before; a TC interval later it is not
        time.sleep(5.0)
    note(f"{what}: ours after {ours_s:.1f} s, all after {time.monotonic() - start:.1f} s and {nudges} nudges")


def becomes(condition: Callable[[], bool], within_s: float) -> bool:
    end = time.monotonic() + within_s
    while not (holds := condition()) and time.monotonic() < end:
        time.sleep(0.1)
    return holds


def assert_answered(pings: Pings, ttl: int) -> None:
    # a broadcast's collision may cost one
    assert pings.answered >= pings.sent - 1 and pings.ttl == ttl, str(pings)


def test_a_mixed_chain_routes_and_forwards_both_ways(chain):
    mixed = chain("ours", "olsrd", "ours", "olsrd")
    until(mixed, "all four know all", mixed.knows)
    for number in (1, 2, 3, 4):
        others = [n for n in (1, 2, 3, 4) if n != number]
        ways = {ip(n): ip(number + 1 if n > number else number - 1) for n in others}
        assert mixed.peer(number).routes().items() >= ways.items()
    # 64 at the answering end, one less at each of the two between
    for a, b in [(1, 4), (4, 1)]:
        pings = mixed.stations[a - 1].ping(ip(b))
        note(f"{a} to {b}, over olsrd and ours: {pings}")
        assert_answered(pings, 62)


def test_a_cut_is_noticed_on_either_side_of_the_other_kind_and_so_is_the_return(chain):
    mixed = chain("ours", "olsrd", "ours", "olsrd")
    until(mixed, "all four know all", mixed.knows)
    for gone, teller, far in [(4, 3, 1), (1, 2, 4)]:
        move(mixed, gone, away=True)
        start = time.monotonic()
        noticed_s = wait_for(f"{teller} gives up {gone}", lambda: ip(gone) not in mixed.peer(teller).routes(), LOST_S)  # noqa: B023
        wait_for(f"{far} gives up {gone}", lambda: ip(gone) not in mixed.peer(far).routes(), LOST_S)  # noqa: B023
        kind = type(mixed.peer(teller)).__name__
        note(f"{gone} leaves; {teller} ({kind}) notices after {noticed_s:.1f} s, {far} after {time.monotonic() - start:.1f} s")
        move(mixed, gone, away=False)
        until(mixed, f"all know {gone} again", mixed.knows)


def test_an_olsrd_that_ends_is_gone_at_once_and_so_is_ours(chain):
    mixed = chain("olsrd", "ours", "olsrd")
    until(mixed, "all three know all", mixed.knows)
    mixed.peer(3).program.stop()
    left_s = wait_for("2 gives up 3", lambda: ip(3) not in mixed.peer(2).routes(), LOST_S)
    # within a second of that change olsrd would forget the next
    time.sleep(2.0)
    mixed.peer(2).program.stop()
    ended_s = wait_for("1 gives up 2", lambda: ip(2) not in mixed.peer(1).routes(), LOST_S)
    note(f"olsrd ends: ours drops it after {left_s:.1f} s; ours ends: olsrd drops it after {ended_s:.1f} s")
    assert left_s < 3.0 and ended_s < 3.0


def test_networks_and_further_addresses_are_announced_both_ways(chain):
    mixed = chain(
        "gateway", "ours", "olsrd_gateway",
        gateway=lambda station: ours(station, hna=[["192.168.8.0", 24]], mid=["10.99.0.1"]),
        olsrd_gateway=lambda station: Olsrd(station, "Hna4 { 192.168.7.0 255.255.255.0 }"),
    )  # fmt: skip
    expected = {1: {"192.168.7.0/24": ip(2)}, 3: {"192.168.8.0/24": ip(2), "10.99.0.1": ip(2)}}
    until(mixed, "HNA and MID", lambda n: mixed.peer(n).routes().items() >= expected.get(n, {}).items())


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_what_both_say_without_complaint(chain):
    mixed = chain("ours", "olsrd", "ours")
    until(mixed, "all three know all", mixed.knows)
    time.sleep(6.0)
    mixed.medium.stop()

    def frames(show: str) -> int:
        command = ["tshark", "-r", str(mixed.folder / "air.pcapng"), "-Y", show, "-T", "fields", "-e", "frame.number"]
        command += ["-o", "udp.check_checksum:TRUE"]
        return len(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines())

    for number in (1, 2, 3):
        # HELLOs and TCs of each
        for kind in (1, 2):
            assert frames(f"ip.src == {ip(number)} && olsr.message_type == {kind}") >= 1
    assert frames("_ws.malformed || _ws.expert.severity == error || udp.checksum.status == bad") == 0
