"""Captures: how much of each packet they keep, and that none may end unnoticed."""

import os
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.errors import RunError
from testbed.host.processes import Processes
from testbed.programs import BUILT
from testbed.runs.run import run_scenario
from testbed.runs.verdict import CaptureDrops
from testbed.stages.capture import Captures, captures_running
from testbed.stages.site import Site
from testbed.tests.running import chain, needs_runs

TCPDUMP = """#!/bin/sh
echo "$@" >>{log}
trap 'printf "{said}"; exit {status}' TERM
echo listening on
while :; do sleep 0.01; done
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A tcpdump that writes its arguments down and ends with `status`; gives those of each that was started."""
    monkeypatch.setattr("testbed.stages.capture.BLOCK_S", 0.0)
    monkeypatch.setattr("testbed.stages.capture.SOCKETS", tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def run(
        status: int = 0, meanwhile: Callable[[Captures], object] = lambda _: None, said: str = "", **keys: object
    ) -> list[str]:
        text = TCPDUMP.format(log=tmp_path / "argv", status=status, said=said.replace("\n", "\\n"))
        (tmp_path / "tcpdump").write_text(text)
        (tmp_path / "tcpdump").chmod(0o755)
        site = Site(chain(capture_program="tcpdump", **keys), 1, tmp_path, Path("/"))
        station = SimpleNamespace(name="sta1", netns=None, radio=SimpleNamespace(name="wlan0"), further_radios=[])
        net = SimpleNamespace(stations=[station], wires=[])
        with Processes(tmp_path / "log") as children, captures_running(site, net, children) as captures:
            meanwhile(captures)
        return sorted((tmp_path / "argv").read_text().splitlines())

    return run


def test_every_capture_keeps_the_bytes_that_the_scenario_says(stand_in) -> None:
    (radio,) = stand_in(snaplen=300)
    assert "-i wlan0 -s 300 " in radio and radio.endswith("sta1.pcap")


def test_the_packets_of_a_routing_protocol_are_captured_whole_in_a_file_of_their_own(stand_in) -> None:
    routing, radio = stand_in(routing="olsr")  # by their arguments: -s 0, -s 128
    assert "-s 128 " in radio and radio.endswith("captures/sta1.pcap")
    assert "-s 0 " in routing and routing.endswith("captures/sta1.routing.pcap udp port 698")


def test_dsr_has_no_port_and_room_for_its_headers(stand_in) -> None:
    (radio,) = stand_in(routing="dsr")
    assert "-s 200 " in radio


def test_a_capture_that_ended_badly_after_the_last_look_at_it_fails_the_run(stand_in) -> None:
    with pytest.raises(RunError, match=r"tcpdump-sta1: tcpdump ended with status 3.*run it again"):
        stand_in(status=3)


def test_a_capture_that_somebody_else_ended_in_order_fails_the_run(stand_in) -> None:
    """As `killall`: tcpdump ends with status 0 at SIGTERM. In a session nobody looks before the end."""

    def end(captures: Captures) -> None:
        captures.children["sta1"].popen.terminate()
        captures.children["sta1"].popen.wait()

    with pytest.raises(RunError, match=r"tcpdump-sta1: tcpdump ended with status 0.*run it again"):
        stand_in(meanwhile=end)


def test_packets_that_a_tcpdump_lost_count_by_its_file_and_those_that_the_interface_lost_do_not(stand_in) -> None:
    """Those of the interface are frames that the medium or the station had no room for: the medium's verdict has them."""
    seen: list[Captures] = []
    stand_in(meanwhile=seen.append, said="7 packets captured\n9 packets received by filter\n2 packets dropped by kernel\n")
    assert seen[0].dropped() == {"sta1": 2}
    stand_in(meanwhile=seen.append, said="1 packet captured\n0 packets dropped by kernel\n3 packets dropped by interface\n")
    assert seen[1].dropped() == {}


@pytest.mark.parametrize(("drops", "judged"), [({}, "valid"), ({"sta1": 1}, "suspect"), ({"sta1": 2, "sta2": 40}, "suspect")])
def test_a_lost_packet_of_a_capture_makes_a_run_suspect_and_the_capture_is_named(drops: dict[str, int], judged: str) -> None:
    verdict, reasons = CaptureDrops(drops).judgement()
    assert verdict == judged and len(reasons) == min(1, len(drops))
    assert all("in the captures of sta1" in reason and str(sum(drops.values())) in reason for reason in reasons)


def test_one_process_captures_all_stations_and_says_what_each_lost(tmp_path) -> None:
    """A program in the place of manet-capture, whose losses of both stations count."""
    program = tmp_path / "one"
    lost = "sta1: 2 packets dropped by kernel\\nsta2: 40 packets dropped by kernel"
    program.write_text(TCPDUMP.format(log=tmp_path / "argv", status=0, said=f"{lost}\\n"))
    program.chmod(0o755)
    scenario = chain(routing="olsr", capture_program="manet-capture")
    site = Site(scenario, 1, tmp_path, Path("/"), programs=replace(BUILT, capture=program))
    radio = SimpleNamespace(name="wlan0")
    stations = [SimpleNamespace(name=f"sta{i}", netns=f"/proc/{i}/ns/net", radio=radio, further_radios=[]) for i in (1, 2)]
    net = SimpleNamespace(stations=stations, wires=[])
    with Processes(tmp_path / "log") as children, captures_running(site, net, children) as captures:
        pass
    assert captures.dropped() == {"sta1": 2, "sta2": 40}
    (words,) = (tmp_path / "argv").read_text().splitlines()
    expected = f"--folder {tmp_path}/captures --snap-bytes 128 sta1:/proc/1/ns/net:wlan0:698 sta2:/proc/2/ns/net:wlan0:698"
    assert words == expected


def lengths(path: Path) -> list[tuple[int, int]]:
    """Bytes kept and bytes there were of each packet of OLSR in a pcap file (pcap-savefile(5)), in its order."""
    data, at, found = path.read_bytes(), 24, []
    while at < len(data):
        kept, whole = struct.unpack_from("<II", data, at + 8)
        port = data[at + 16 + 36 : at + 16 + 38]  # behind Ethernet's 14 bytes and IPv4's 20: the destination port
        found += [(kept, whole)] if int.from_bytes(port, "big") == 698 else []
        at += 16 + kept
    return found


@pytest.mark.root
@needs_runs
def test_olsr_messages_are_whole_in_the_capture_of_routing(tmp_path: Path) -> None:
    """A HELLO of a station with nineteen neighbours is longer than 128 bytes (RFC 3626, 6.1: 4 for each at least)."""
    result = run_scenario(chain(hops=19, spacing=10, routing="olsr", duration=2), 1, tmp_path / "run")
    assert result.status == "complete", result.error
    folder = tmp_path / "run" / "captures"
    short, whole = lengths(folder / "sta1.pcap"), lengths(folder / "sta1.routing.pcap")
    assert max(kept for kept, _ in short) == 128 < max(there for _, there in short)
    assert all(kept == there for kept, there in whole)
    # the two are not opened and closed at the same instant
    assert max(there for _, there in whole) > 128 and abs(len(whole) - len(short)) < len(short) / 2
