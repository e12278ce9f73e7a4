"""ns-3's DSDV and OLSR, in real time on the same air as our daemons (docs/interop.md has the figures).

ns-3 3.37 as Debian 12 ships it (libns3-dev); ns3_station.cc is its program.
"""

import re
import shutil
import time
from pathlib import Path

import pytest

from routing.host.tests.harness import wait_for
from tests.interop.mixed import ERRORS, PROGRAMS, Ns3, OwnDaemon, assert_answered, chains, ip, seconds_until

# Five stations. DSDV: settling of 12 to 16 s at each of two of our own daemons on the way, ns-3's 5 s at the others, updates
# every 15 s. OLSR: two hellos to know a neighbour, TCs every 5 s.
KNOWN_S = {"dsdv": 150.0, "olsr": 60.0}
PORT = {"dsdv": 269, "olsr": 698}
# tshark takes port 269, which is DSDV's, for PacketBB's
NO_PACKETBB = ("--disable-protocol", "packetbb")

pytestmark = pytest.mark.parametrize("protocol", ["dsdv", "olsr"])


@pytest.fixture
def chain(tmp_path: Path, ns3_station: Path, protocol: str):
    """A chain of "own" and "ns3", or a function (station) -> peer."""
    if not (PROGRAMS / f"manet-{protocol}").exists():
        pytest.skip(f"manet-{protocol} is not built (./setup.sh)")
    kinds = {
        "own": lambda station: OwnDaemon(station, protocol, {"link": "feedback"}),
        "ns3": lambda station: Ns3(station, protocol, ns3_station),
    }

    with chains(tmp_path, kinds) as make:
        yield make


def note(what: str) -> None:
    """A figure for docs/interop.md: shown by pytest -s, and with a failure."""
    print(f"interop: {what}")


def test_a_mixed_chain_routes_and_forwards_both_ways(chain, protocol):
    mixed = chain("own", "ns3", "own", "ns3", "own")
    note(f"{protocol}: all five know all after {seconds_until('routes', mixed.all_know, KNOWN_S[protocol]):.1f} s")
    for number in (1, 2, 3, 4, 5):
        others = [n for n in (1, 2, 3, 4, 5) if n != number]
        ways = {ip(n): ip(number + 1 if n > number else number - 1) for n in others}
        assert mixed.peer(number).routes().items() >= ways.items()
    # 64 at the answering end, one less at each of the three between
    for a, b in [(1, 5), (5, 1)]:
        pings = mixed.stations[a - 1].ping(ip(b))
        note(f"{protocol}: {a} to {b}, over ns-3, our own, ns-3: {pings}")
        assert_answered(pings, 61)
    # and ns-3 itself answers
    assert_answered(mixed.stations[0].ping(ip(4)), 62)


def test_two_ns_3_nodes_reach_each_other_over_our_own_daemon(chain, protocol, ns3_station):
    def pinging(station) -> Ns3:
        return Ns3(station, protocol, ns3_station, f"--ping={ip(3)}")

    mixed = chain("pinging", "own", "ns3", pinging=pinging)
    answer = re.compile(rf"^\d+ bytes from {ip(3)}: icmp_seq=\d+ ttl=(\d+) ", re.M)
    ping = mixed.peer(1).program
    answered_s = seconds_until("ten answers", lambda: len(answer.findall(ping.text())) >= 10, KNOWN_S[protocol])
    note(f"{protocol}: ns-3 over our own to ns-3: ten answers after {answered_s:.1f} s")
    assert set(answer.findall(ping.text())) == {"63"}


def test_the_loss_of_a_route_is_forwarded_by_ns_3(chain, protocol):
    mixed = chain("own", "ns3", "own", "ns3", "own")
    wait_for("routes", mixed.all_know, KNOWN_S[protocol])
    # by then 3 knows the hardware address of 4: ARP requests are broadcasts, of which no radio says that they failed
    assert_answered(mixed.stations[2].ping(ip(5)), 63)
    mixed.ask("power", station="sta4", on=False)
    pinging = mixed.stations[2].start("ping", "-n", "-i", "0.2", "-w", "60", ip(5), name="ping")
    noticed_s = seconds_until("3 gives up 5", lambda: ip(5) not in mixed.peer(3).routes(), 5.0)
    forwarded_s = seconds_until("1 gives up 5", lambda: ip(5) not in mixed.peer(1).routes(), 30.0)
    note(f"{protocol}: 4 falls silent; 3 gives up 5 after {noticed_s:.1f} s, 1, behind an ns-3, {forwarded_s:.1f} s later")
    assert {ip(2), ip(3)} <= mixed.peer(1).routes().keys()
    pinging.stop()


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed (./setup.sh)")
def test_tshark_finds_no_error_in_the_messages_of_both(chain, protocol):
    mixed = chain("own", "ns3")
    wait_for("routes", mixed.all_know, KNOWN_S[protocol])
    time.sleep(16.0)  # longer than DSDV's period
    mixed.medium.stop()

    for number in (1, 2):
        assert mixed.captured(f"ip.src == {ip(number)} && udp.port == {PORT[protocol]}", *NO_PACKETBB) >= 2
    assert mixed.captured(ERRORS, *NO_PACKETBB) == 0
