"""One process of ip(8) for the tables of several stations."""

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from testbed.errors import RunError
from testbed.stages import iproute

# Devices with other indices than in the other namespace, routes with the attributes that daemons set, neighbours in all states.
FULL = """
ip link set lo up; ip tuntap add unused mode tap; ip tuntap add d0 mode tap; ip address add 10.0.0.1/8 dev d0; ip link set d0 up
ip address add fd00::1/64 dev d0
ip neighbour add 10.0.0.9 lladdr 02:00:00:00:00:09 dev d0 nud permanent
ip neighbour add 10.0.0.10 lladdr 02:00:00:00:00:10 dev d0 nud noarp
ip neighbour add 10.0.0.11 lladdr 02:00:00:00:00:11 dev d0 nud stale
ip neighbour add 10.0.0.12 dev d0 nud failed
ip neighbour add 10.0.0.13 lladdr 02:00:00:00:00:13 dev d0 nud permanent extern_learn router
ip neighbour add fd00::9 lladdr 02:00:00:00:00:09 dev d0 nud permanent
ip neighbour add proxy 10.0.0.14 dev d0
ip route add default via 10.0.0.9 dev d0 proto 98 src 10.0.0.1 metric 4096 mtu 1428 quickack 1 advmss 1388
ip route add 10.9.0.0/16 proto babel nexthop via 10.0.0.9 dev d0 weight 2 nexthop via 10.0.0.8 dev d0 onlink
ip route add 10.8.0.8 via 10.0.0.9 table 77 window 8 rto_min 1s
ip route add unreachable 10.7.0.0/16; ip route add throw 10.6.0.0/16
ip route add fd01::/64 via fd00::9; ip route add fd02::/64 via fd00::9 expires 600; ip route add blackhole fd03::/64
echo ready; exec sleep 60
"""
DEAD = """
ip tuntap add d0 mode tap; ip address add 10.0.0.2/8 dev d0; ip link set d0 up; ip link set d0 arp off
ip address add fd00::2/64 dev d0 nodad; ip route add 10.5.0.0/16 via 10.0.0.3
echo ready; exec sleep 60
"""
EMPTY = "echo ready; exec sleep 60"


class Station(NamedTuple):
    name: str
    netns: Path


@contextmanager
def station(setup: str) -> Iterator[Station]:
    """A namespace with these settings."""
    with subprocess.Popen(["unshare", "--net", "sh", "-c", setup], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield Station("sta", Path(f"/proc/{process.pid}/ns/net"))
        finally:
            process.kill()


@pytest.mark.root
def test_the_tables_of_several_stations_are_those_that_ip_shows_in_each():
    with ExitStack() as stack:
        stations = [stack.enter_context(station(setup)) for setup in (EMPTY, FULL, EMPTY, DEAD)]
        deadline = time.monotonic() + 10
        while True:  # the kernel adds its own routes of IPv6 and its multicast neighbours a moment later
            before = [_shown(each) for each in stations]
            tables = iproute.tables(stations)
            if before == [_shown(each) for each in stations] or time.monotonic() > deadline:
                break
        assert tables == before
        assert "proto 98" in tables[1][0] and "nexthop via" in tables[1][0] and "fd02::/64" in tables[1][0]
        assert "10.0.0.11" in tables[1][1] and "10.0.0.10 " not in tables[1][1]
        assert tables[0] == tables[2] == ("", "")


def _shown(each: Station) -> tuple[str, str]:
    return iproute.ask(each, "route", "show", "table", "all"), iproute.ask(each, "neighbour", "show")


LINES = [
    "link set lo up",
    "link set d0 gso_max_segs 1",
    "link set d0 mtu 1400",
    "link set d0 up",
    "address add 10.0.0.1/8 dev d0 noprefixroute",
    "address add 192.168.1.1/30 dev d0 noprefixroute",
    "route replace broadcast 255.255.255.255/32 dev d0 table local scope link",
    "route replace unreachable 224.0.0.0/4 table local",
    "route add 10.0.0.2/32 dev d0 scope link",
    "route add 10.0.0.3/32 dev d0 scope link quickack 1",
    "route add 10.0.0.4/32 via 10.0.0.3 dev d0 onlink quickack 1",
    "route add 10.0.0.5/32 via 10.0.0.9 dev d0 onlink",
    "neighbour replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev d0 nud permanent",
    "neighbour replace fd00::2 lladdr 02:00:00:00:00:02 dev d0 nud permanent",
]
TAP = "ip tuntap add d0 mode tap; echo ready; exec sleep 60"


@pytest.mark.root
def test_a_batch_without_a_process_has_the_effect_of_ip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with station(TAP) as direct, station(TAP) as by_ip:
        monkeypatch.setattr(iproute, "_start", None)
        iproute.batches({direct: LINES}, "addresses", tmp_path)
        assert (tmp_path / "addresses-sta.ip").read_text().splitlines() == LINES
        iproute.ask_within(by_ip.netns, "ip", "-batch", str(tmp_path / "addresses-sta.ip"))
        deadline = time.monotonic() + 10
        while True:  # the kernel tells the carrier of a new device a moment later
            settings = [_settings(each) for each in (direct, by_ip)]
            if settings[0] == settings[1] or time.monotonic() > deadline:
                break
        assert settings[0] == settings[1]
        assert "gso_max_segs 1 " in settings[0] and "192.168.1.1/30" in settings[0]
        assert "unreachable 224.0.0.0/4" in settings[0] and "broadcast 255.255.255.255" in settings[0]
        assert re.search(r"10.0.0.4 via 10.0.0.3 dev d0 .*onlink.*quickack 1", settings[0])
        assert "10.0.0.2 dev d0 lladdr 02:00:00:00:00:02 PERMANENT" in settings[0]


@pytest.mark.root
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("link set d1 up", 'Cannot find device "d1"'),
        ("link set d0 mtu 1", "mtu less than device minimum"),
        ("address add 10.0.0.1/8 dev d0 noprefixroute", "ipv4: Address already assigned"),
        ("route add 10.0.0.0/8 dev d1", 'Cannot find device "d1"'),
        ("route add 10.0.0.0/8 dev d1 scope link", 'Cannot find device "d1"'),
        ("route add 10.0.0.2/32 via 10.0.0.1 dev d0 onlink", "Nexthop device is not up"),
        ("neighbour replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev d1 nud permanent", 'Cannot find device "d1"'),
    ],
)
def test_a_line_that_the_kernel_refuses_is_an_error_with_its_words(tmp_path: Path, line: str, words: str):
    with station(TAP) as each, pytest.raises(RunError, match=rf"^addresses of sta: .*addresses-sta.ip: (Error: )?{words}"):
        iproute.batches({each: [LINES[4], line]}, "addresses", tmp_path)


def _settings(each: Station) -> str:
    """Devices and addresses without the random MAC address."""
    found = iproute.ask(each, "-details", "address", "show") + "".join(iproute.tables([each])[0])
    return re.sub(r"link/ether \S+", "", found)


@pytest.mark.root
def test_a_large_batch_is_the_work_of_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    started = []
    monkeypatch.setattr(iproute, "_start", lambda batch, start=iproute._start: started.append(batch) or start(batch))
    lines = [f"route add 10.0.1.{number}/32 dev d0 scope link" for number in range(1, iproute.MANY + 1)]
    with station(TAP) as each:
        iproute.batches({each: ["link set d0 up", *lines[:-2]]}, "few", tmp_path)
        assert not started
        iproute.batches({each: [line.replace("10.0.1.", "10.0.2.") for line in lines]}, "many", tmp_path)
        assert len(started) == 1
        assert iproute.ask(each, "route", "show").count("scope link") == 2 * iproute.MANY - 2
