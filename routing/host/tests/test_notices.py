"""Reports of routes to a TCP source on this kernel (formats/routing.md): ICMP of type 253 from the node that holds its
packets, and the notes of its own station's daemon for followers."""

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from routing.host.tests.conftest import QUICK, Station, needs_daemons
from routing.host.tests.harness import DEADLINE_S, wait_for

pytestmark = needs_daemons

# sends 100 bytes every 50 ms and prints each ICMP of type 253 that arrives: code, sender, whether it is about this connection,
# its port there, and the listed ranges, counted from the quoted segment's first number
PRINT_NOTICES = """
import json, select, socket, struct, sys, time
icmp = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
tcp = socket.create_connection((sys.argv[1], 9000), 30)
tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
tcp.setblocking(False)
own = tcp.getsockname()[1]
sent = 0
end = time.monotonic() + 120
while time.monotonic() < end:
    try:
        tcp.send(bytes(100))
        sent += 1
        if sent == 10:  # from now on waiting packets are data, not the handshake's last acknowledgement
            print(json.dumps("connected"), flush=True)
    except BlockingIOError:
        pass
    if select.select([icmp], [], [], 0.05)[0]:
        packet = icmp.recv(2048)
        if packet[20] == 253:
            source, destination = struct.unpack_from(">HH", packet, 28 + 20)
            first = struct.unpack_from(">I", packet, 28 + 24)[0]
            listed = packet[28 + 4 * packet[25] + 8:] if packet[25] else b""
            ranges = [[(n - first + 2**31) % 2**32 - 2**31 for n in pair] for pair in struct.iter_unpack(">II", listed)]
            print(json.dumps([packet[21], socket.inet_ntoa(packet[12:16]), source == own, destination, ranges]), flush=True)
"""
SERVE = "import socket; s = socket.create_server(('', 9000)); c = s.accept()[0]\nwhile c.recv(65536): pass"


@contextmanager
def connection(source: Station, destination: Station) -> Iterator[subprocess.Popen]:
    """A TCP connection; yields the program at its source, which prints the notices."""
    server = destination.popen("python3", "-c", SERVE)
    wait_for("server", lambda: ":9000" in destination.sh("ss", "-ltn"))
    client = source.popen("python3", "-c", PRINT_NOTICES, destination.address)
    try:
        assert json.loads(client.stdout.readline()) == "connected"
        yield client
    finally:
        for process in (client, server):
            process.kill()
            process.communicate()


# a repair waits 2 * 1 s * (TTL 3 + 2) for a reply: longer than the break lasts
SLOW_REPAIR = {"node_traversal_time": 1.0, "expanding_ring": False}


@pytest.mark.parametrize(
    ("protocol", "options"),
    [
        ("aodv", SLOW_REPAIR),
        ("dsdv", {"link": "feedback", "period": 2}),
        ("olsr", {"link": "feedback", "hello_interval": 0.5, "tc_interval": 1}),
        ("adv", {}),
        ("dsr", {}),
        ("tora", {"link": "feedback"}),
    ],
)
def test_a_source_gets_notices_of_held_and_of_restored_packets(chain, ask_medium, protocol, options):
    first, middle, last = chain(3)
    for station in (first, middle, last):
        station.start(protocol, options, notices=True)
    wait_for("path", lambda: first.pings_answered(last.address, 1, "-W", "1"))
    with connection(first, last) as client:
        ask_medium("power", station="sta3", on=False)
        assert json.loads(client.stdout.readline()) == [0, middle.address, True, 9000, []]
        ask_medium("power", station="sta3", on=True)
        # AODV repairs with one request, which no node received; the reverse route of any request of sta3 restores the route
        last.pings_answered("10.0.0.77", 1, "-W", "1")
        *notice, restored_ranges = json.loads(client.stdout.readline())
        assert notice == [1, middle.address, True, 9000]
        assert any(first <= 0 < end for first, end in restored_ranges), restored_ranges
    restored = wait_for("note of restored packets", lambda: middle.notes("restored"))
    held = middle.notes("held")
    assert held[0]["about"] == restored[0]["about"] == last.address and held[0]["source"] == first.address
    assert held[0]["ports"][1] == 9000 and "seq" in held[0]
    status = middle.daemons[0].ask()
    counters = status["counters"] if protocol == "dsr" else status["host"]
    assert counters["held-sent"] >= counters["restored-sent"] >= 1


@pytest.mark.parametrize(
    ("protocol", "options"),
    [
        ("aodv", QUICK),
        ("dsdv", {"link": "feedback", "period": 2, "held_seconds": 1}),
        ("olsr", {"link": "feedback", "hello_interval": 0.5, "tc_interval": 1}),
        ("adv", {"buffer_udp": 1, "broken_lifetime": 0.5}),
        ("dsr", {"send_buffer_timeout": 1}),
        ("tora", {"link": "feedback", "held_seconds": 1}),
    ],
)
def test_a_follower_of_the_sources_daemon_gets_lost_and_restored_routes(chain, ask_medium, protocol, options):
    first, _, last = chain(3, protocol=protocol, options=options)
    with socket.socket(socket.AF_UNIX) as follower:
        follower.settimeout(DEADLINE_S)
        follower.connect(str(first.daemons[0].status_socket))
        follower.sendall(b'{"op":"follow"}\n')
        lines = follower.makefile()

        def next_note(event: str) -> dict:
            for line in lines:
                note = json.loads(line)
                if (note.get("event"), note.get("about")) == (event, last.address):
                    return note
            raise AssertionError(f"the daemon ended without {event}")

        pings = first.popen("ping", "-n", "-q", "-i", "0.2", last.address)
        try:
            assert next_note("route")["value"] == 2
            wait_for("pings", lambda: first.pings_answered(last.address, 1) == 1)
            ask_medium("power", station="sta3", on=False)
            next_note("lost")
            assert next_note("no-route")["value"] >= 1
            ask_medium("power", station="sta3", on=True)
            assert next_note("route")["value"] == 2
        finally:
            pings.kill()
            pings.communicate()


def test_without_the_option_there_are_no_notices(chain, ask_medium):
    first, middle, last = chain(3, protocol="aodv", options=SLOW_REPAIR)
    assert first.pings_answered(last.address, 5) == 5
    with connection(first, last):
        ask_medium("power", station="sta3", on=False)
        wait_for("repair", lambda: middle.daemons[0].ask()["held"] > 0)
    assert middle.notes("held") == [] and "held-sent" not in middle.daemons[0].ask()["host"]
