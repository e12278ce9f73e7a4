"""olsrd, without its link-quality extension, on the same air as our OLSR (docs/interop.md has the figures).

olsrd is in no package registry: MANET_OLSRD names a binary that the user has built.

One fault of olsrd must not fail a test: it forgets a change of the topology within a second of its last route calculation until
the next change, and a network without changes has none. A test that waits for olsrd's routes therefore forces a recalculation: a
station at the end leaves for longer than the neighbour hold time and comes back. The test notes how often that was needed. Our
own daemons get none.
"""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from routing.host.tests.harness import wait_for
from tests.interop.mixed import (
    ERRORS,
    INTERFACE,
    NETWORK_BITS,
    PROGRAMS,
    Chain,
    OwnDaemon,
    Station,
    assert_answered,
    chains,
    ip,
    seconds_until,
)

OLSRD = os.environ.get("MANET_OLSRD", "")
# olsrd ignores an edge that is not stated from both sides, so all must state all of theirs
REDUNDANT = {"tc_redundancy": 2}
# Three HELLOs of 2 s until a relay is chosen, a TC after 5 s, half a second a hop; twice that before olsrd is made to recalculate
KNOWN_S = 30.0
AWAY_S = 8.0
MAX_RECALCULATIONS = 4
# 6 s of silence, then a TC within 5 s; at worst the 15 s for which topology is kept
LOST_S = 6.0 + 15.0 + 5.0

pytestmark = pytest.mark.skipif(
    not OLSRD, reason="MANET_OLSRD does not name an olsrd binary (olsrd is in no package registry; tests/interop/README.md)"
)


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


def own_daemon(station: Station, **options) -> OwnDaemon:
    return OwnDaemon(station, "olsr", {"link": "feedback"} | REDUNDANT | options)


@pytest.fixture
def chain(tmp_path: Path):
    """A chain of "own" and "olsrd", or a function (station) -> peer."""
    if not (PROGRAMS / "manet-olsr").exists():
        pytest.skip("manet-olsr is not built (./setup.sh)")
    kinds = {"own": own_daemon, "olsrd": Olsrd}
    with chains(tmp_path, kinds) as make:
        yield make


def note(what: str) -> None:
    """A figure for docs/interop.md: shown by pytest -s, and with a failure."""
    print(f"interop: olsrd: {what}")


def until(mixed: Chain, what: str, known: Callable[[int], bool]) -> None:
    """Waits until `known` of every station: of our own within the time that messages need; of olsrd after forced recalculations,
    each of which may meet the same fault."""
    start = time.monotonic()
    numbers = range(1, len(mixed.peers) + 1)
    own = [n for n in numbers if isinstance(mixed.peer(n), OwnDaemon)]
    own_s = seconds_until(f"own: {what}", lambda: all(map(known, own)), KNOWN_S)
    recalculations = 0
    while not becomes(lambda: all(map(known, numbers)), KNOWN_S - own_s if recalculations == 0 else KNOWN_S):
        recalculations += 1
        missing = [n for n in numbers if not known(n)]
        assert recalculations <= MAX_RECALCULATIONS and not set(own) & set(missing), f"{what}: not {missing}"
        mixed.move(len(mixed.peers), away=True)
        time.sleep(AWAY_S)
        mixed.move(len(mixed.peers), away=False)
        # routes may still be those from before; a TC interval later they are not
        time.sleep(5.0)
    note(f"{what}: our own after {own_s:.1f} s, all after {time.monotonic() - start:.1f} s and {recalculations} recalculations")


def becomes(condition: Callable[[], bool], within_s: float) -> bool:
    end = time.monotonic() + within_s
    while not (holds := condition()) and time.monotonic() < end:
        time.sleep(0.1)
    return holds


def test_a_mixed_chain_routes_and_forwards_both_ways(chain):
    mixed = chain("own", "olsrd", "own", "olsrd")
    until(mixed, "all four know all", mixed.knows)
    for number in (1, 2, 3, 4):
        others = [n for n in (1, 2, 3, 4) if n != number]
        ways = {ip(n): ip(number + 1 if n > number else number - 1) for n in others}
        assert mixed.peer(number).routes().items() >= ways.items()
    # 64 at the answering end, one less at each of the two between
    for a, b in [(1, 4), (4, 1)]:
        pings = mixed.stations[a - 1].ping(ip(b))
        note(f"{a} to {b}, over olsrd and our own: {pings}")
        assert_answered(pings, 62)


def test_a_cut_and_the_return_are_noticed_through_the_other_kind(chain):
    mixed = chain("own", "olsrd", "own", "olsrd")
    until(mixed, "all four know all", mixed.knows)
    for gone, neighbour, far in [(4, 3, 1), (1, 2, 4)]:
        mixed.move(gone, away=True)
        start = time.monotonic()
        noticed_s = seconds_until(f"{neighbour} gives up {gone}", lambda: ip(gone) not in mixed.peer(neighbour).routes(), LOST_S)  # noqa: B023
        wait_for(f"{far} gives up {gone}", lambda: ip(gone) not in mixed.peer(far).routes(), LOST_S)  # noqa: B023
        kind = type(mixed.peer(neighbour)).__name__
        note(f"{gone} leaves; {neighbour} ({kind}) notices after {noticed_s:.1f} s, {far} after {time.monotonic() - start:.1f} s")
        mixed.move(gone, away=False)
        until(mixed, f"all know {gone} again", mixed.knows)


def test_the_end_of_a_daemon_of_either_kind_is_noticed_at_once(chain):
    mixed = chain("olsrd", "own", "olsrd")
    until(mixed, "all three know all", mixed.knows)
    mixed.peer(3).program.stop()
    left_s = seconds_until("2 gives up 3", lambda: ip(3) not in mixed.peer(2).routes(), LOST_S)
    # within a second of that change olsrd would forget the next
    time.sleep(2.0)
    mixed.peer(2).program.stop()
    ended_s = seconds_until("1 gives up 2", lambda: ip(2) not in mixed.peer(1).routes(), LOST_S)
    note(f"olsrd ends: our own drops it after {left_s:.1f} s; our own ends: olsrd drops it after {ended_s:.1f} s")
    assert left_s < 3.0 and ended_s < 3.0


def test_networks_and_further_addresses_are_announced_both_ways(chain):
    mixed = chain(
        "gateway", "own", "olsrd_gateway",
        gateway=lambda station: own_daemon(station, hna=[["192.168.8.0", 24]], mid=["10.99.0.1"]),
        olsrd_gateway=lambda station: Olsrd(station, "Hna4 { 192.168.7.0 255.255.255.0 }"),
    )  # fmt: skip
    expected = {1: {"192.168.7.0/24": ip(2)}, 3: {"192.168.8.0/24": ip(2), "10.99.0.1": ip(2)}}
    until(mixed, "HNA and MID", lambda n: mixed.peer(n).routes().items() >= expected.get(n, {}).items())


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed (./setup.sh)")
def test_tshark_finds_no_error_in_the_messages_of_both(chain):
    mixed = chain("own", "olsrd", "own")
    until(mixed, "all three know all", mixed.knows)
    time.sleep(6.0)
    mixed.medium.stop()

    for number in (1, 2, 3):
        # HELLOs and TCs of each
        for kind in (1, 2):
            assert mixed.captured(f"ip.src == {ip(number)} && olsr.message_type == {kind}") >= 1
    assert mixed.captured(ERRORS) == 0
