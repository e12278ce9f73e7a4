"""Broadcasts and multicasts of programs that name no device leave by the radio and reach the neighbours, with any routing."""

import sys

import pytest

from manet_testbed import Mesh
from manet_testbed.process import PIPE
from testbed.host.protocols import missing_requirement
from testbed.tests.running import needs_runs

pytestmark = [pytest.mark.root, needs_runs]

GROUPS = ["255.255.255.255", "225.1.20.1"]
PORT = 5007
RECEIVER = f"""
import socket, struct
group = socket.inet_aton("{GROUPS[1]}")
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, struct.pack("4s4x", group))
s.bind(("", {PORT}))
print("ready", flush=True)
while True:
    data, (source, _) = s.recvfrom(2000)
    print(data.decode(), "from", source, flush=True)
"""
SENDER = f"""
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
for group in sys.argv[1:]:
    s.sendto(("to " + group).encode(), (group, {PORT}))
"""


@pytest.mark.parametrize(
    "routing", ["none", "static", "aodv", "olsr", "dsdv", "adv", "tora", "babeld", "batmand", "bird-babel", "frr-babel", "olsrd"]
)
def test_a_neighbour_receives_broadcasts_and_multicasts_and_a_station_two_hops_away_does_not(routing: str) -> None:
    if missing := missing_requirement(routing):
        pytest.skip("; ".join(missing))
    with Mesh.chain(3, routing=routing) as mesh:
        receivers = [mesh[name].popen([sys.executable, "-c", RECEIVER], stdout=PIPE) for name in ("sta2", "sta3")]
        near, far = (receiver.stdout for receiver in receivers)
        assert near is not None and far is not None
        assert [stream.readline() for stream in (near, far)] == ["ready\n"] * 2
        mesh["sta1"].run([sys.executable, "-c", SENDER, *GROUPS])
        assert [near.readline() for _ in GROUPS] == [f"to {group} from {mesh['sta1'].address}\n" for group in GROUPS]
        # nothing of sta1 reached sta3 before what its neighbour sends now
        mesh["sta2"].run([sys.executable, "-c", SENDER, *GROUPS])
        assert [far.readline() for _ in GROUPS] == [f"to {group} from {mesh['sta2'].address}\n" for group in GROUPS]


def test_dsr_which_carries_unicast_only_refuses_them() -> None:
    with Mesh.chain(2, routing="dsr") as mesh:
        for group in GROUPS:
            done = mesh["sta1"].run([sys.executable, "-c", SENDER, group], check=False)
            assert "No route to host" in done.stderr, done.stderr
        assert mesh["sta1"].ping(mesh["sta2"]).received > 0


def test_multicasts_of_ipv6_leave_by_the_radio() -> None:
    receiver = """
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(socket.AF_INET6, "ff05::1:2:3") + bytes(4))
s.bind(("", 5007))
print("ready", flush=True)
print(s.recv(2000).decode(), flush=True)
"""
    sender = """
import socket
socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b"six", ("ff05::1:2:3", 5007))
"""
    with Mesh.chain(2, routing="none", ipv6=True) as mesh:
        process = mesh["sta2"].popen([sys.executable, "-c", receiver], stdout=PIPE)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        mesh["sta1"].run([sys.executable, "-c", sender])
        assert process.stdout.readline() == "six\n"
