"""manet-capture and tcpdump, its referee: both see the same packets of an interface at the same times, and count those lost."""

import json
import os
import re
import shutil
import signal
import struct
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.captures.pcap import read_capture
from routing.host.tests.harness import Namespace, wait_for
from testbed.programs import BUILT
from testbed.runs.run import run_scenario
from testbed.tests.running import chain, needs_runs, run_json

pytestmark = [pytest.mark.root, needs_runs]
PORT = 698
SNAP_BYTES = 128
FLOOD = 30_000
# The kernel's shortest buffer of a socket, which has room for a few packets; libpcap's is one block of 256 KiB.
SHORT = ({"buffer_bytes": 1}, ("-B", "1"))
# Of each packet of FLOOD at most 1,280 bytes (the kernel's records included) wait in a socket, and 512 in tcpdump's ring.
LONG = ({"buffer_bytes": 1280 * FLOOD}, ("-B", str(FLOOD // 2)))
# Sends COUNT datagrams of SIZE bytes to a port of an address: their numbers, and zeros.
SEND = """import socket, sys
port, first, count, size = map(int, sys.argv[2:])
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(first, first + count):
    out.sendto(number.to_bytes(4, "big") + bytes(size - 4), (sys.argv[1], port))
"""
# A TAP that takes all packets.
DEVICE = """import fcntl, os, struct
tap = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", b"d0", 0x1002))
print("ready", flush=True)
while True:
    os.read(tap, 2048)
"""
FRAME_BYTES = 14 + 20 + 8  # Ethernet, IPv4, UDP


class Both:
    """An interface that both programs capture; `stop` ends them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.host = folder, Namespace()
        self.buffers: tuple[dict[str, int], tuple[str, ...]] = ({}, ())
        self.programs: list[subprocess.Popen] = []
        self.device = subprocess.Popen(self.host.inside("python3", "-c", DEVICE), stdout=subprocess.PIPE)

    def start(self) -> None:
        assert self.device.stdout.readline() == b"ready\n"
        self.host.sh("ip", "address", "add", "10.9.0.1/24", "dev", "d0")
        self.host.sh("ip", "link", "set", "d0", "up")
        self.host.sh("ip", "neighbour", "add", "10.9.0.2", "lladdr", "02:00:00:00:00:02", "dev", "d0", "nud", "permanent")
        self._tcpdump("tcpdump", SNAP_BYTES)
        self._tcpdump("tcpdump.routing", 0, f"udp port {PORT}")
        options = {"folder": self.folder, "snap_bytes": SNAP_BYTES, **self.buffers[0]}
        words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        self._start("ours", str(BUILT.capture), *words, f"ours:{self.host.netns}:d0:{PORT}")

    def _tcpdump(self, name: str, snap_bytes: int, *expression: str) -> None:
        words = ["-U", "-i", "d0", "-s", snap_bytes, "-n", "--time-stamp-precision=nano", "-Z", "root", *self.buffers[1]]
        self._start(name, *self.host.inside("tcpdump", *words, "-w", self.folder / f"{name}.pcap", *expression))

    def _start(self, name: str, *words: str) -> None:
        log = self.folder / f"{name}.log"
        with log.open("wb") as file:
            self.programs.append(subprocess.Popen(words, stdout=file, stderr=file))
        wait_for("its socket", lambda: "listening on" in log.read_text())

    def send(self, port: int, first: int, count: int, size: int, address: str = "10.9.0.2") -> None:
        self.host.sh("python3", "-c", SEND, address, port, first, count, size)

    def packets(self, name: str) -> list[tuple[int, int, bytes]]:
        """Time (ns), length and kept bytes of each packet of a file."""
        return records(self.folder / f"{name}.pcap")

    def wait_for_last(self, number: int, *names: str) -> None:
        """Until the files end with the datagram of this number: they can be read while they grow. tcpdump drops its last block at
        its end."""
        for name in names:
            wait_for("the last packet", lambda name=name: numbers(self.packets(name))[-1:] == [number])

    def stop(self) -> None:
        for program in self.programs:
            program.send_signal(signal.SIGTERM)
        assert [program.wait(timeout=60) for program in self.programs] == [0] * len(self.programs)

    def close(self) -> None:
        for program in (*self.programs, self.device):
            program.kill()
            program.wait()
        self.host.stop()


def records(path: Path) -> list[tuple[int, int, bytes]]:
    """The whole records of a pcap file with times in nanoseconds (pcap-savefile(5))."""
    data, at, found = path.read_bytes(), 24, []
    while at + 16 <= len(data):
        seconds, ns, kept, length = struct.unpack_from("<IIII", data, at)
        if at + 16 + kept > len(data):
            break
        found.append((seconds * 10**9 + ns, length, data[at + 16 : at + 16 + kept]))
        at += 16 + kept
    return found


def numbers(packets: list[tuple[int, int, bytes]]) -> list[int]:
    return [int.from_bytes(kept[FRAME_BYTES : FRAME_BYTES + 4], "big") for _, _, kept in packets]


@pytest.fixture
def both(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Both]:
    """With buffers of the parameter, if there is one."""
    running = Both(tmp_path)
    running.buffers = getattr(request, "param", running.buffers)
    try:
        running.start()
        yield running
    finally:
        running.close()


def test_both_programs_capture_the_same_packets_at_the_same_times(both: Both) -> None:
    both.send(9, first=0, count=200, size=400)
    both.send(PORT, first=200, count=50, size=400)
    both.wait_for_last(249, "ours", "tcpdump", "tcpdump.routing")
    both.stop()
    assert numbers(both.packets("ours")) == list(range(250))
    assert both.packets("ours") == both.packets("tcpdump")  # times too: the kernel's, of one clone of the packet for both
    assert {(length, len(kept)) for _, length, kept in both.packets("ours")} == {(FRAME_BYTES + 400, SNAP_BYTES)}
    assert numbers(both.packets("ours.routing")) == list(range(200, 250))
    assert both.packets("ours.routing") == both.packets("tcpdump.routing")
    assert {(length, len(kept)) for _, length, kept in both.packets("ours.routing")} == {(FRAME_BYTES + 400,) * 2}
    headers = [(both.folder / f"{name}.pcap").read_bytes()[:24] for name in ("ours", "tcpdump")]
    assert headers[0] == headers[1]


def test_a_vlan_tag_that_the_kernel_took_from_a_frame_is_put_back(both: Both) -> None:
    """The kernel keeps the tag of a frame to send beside it, where the device can insert it, as a TAP can."""
    if subprocess.run(both.host.inside("ip", "link", "add", "link", "d0", "name", "d0.5", "type", "vlan", "id", "5")).returncode:
        pytest.skip("this kernel has no VLAN devices (CONFIG_VLAN_8021Q)")
    both.host.sh("ip", "address", "add", "10.8.0.1/24", "dev", "d0.5")
    both.host.sh("ip", "link", "set", "d0.5", "up")
    both.host.sh("ip", "neighbour", "add", "10.8.0.2", "lladdr", "02:00:00:00:00:02", "dev", "d0.5", "nud", "permanent")
    both.send(PORT, first=0, count=3, size=400, address="10.8.0.2")
    both.send(PORT, first=3, count=1, size=400)
    both.wait_for_last(3, "ours", "tcpdump", "ours.routing", "tcpdump.routing")
    both.stop()
    tagged = [kept for _, length, kept in both.packets("ours") if length == FRAME_BYTES + 400 + 4]
    assert [kept[12:18] for kept in tagged] == [bytes.fromhex("810000050800")] * 3  # 802.1Q, VLAN 5, IPv4
    assert both.packets("ours") == both.packets("tcpdump") and both.packets("ours.routing") == both.packets("tcpdump.routing")


def packets_by(*argv: str | Path) -> int:
    """How many packets a program lists."""
    return len(subprocess.run(argv, capture_output=True, text=True, check=False).stdout.splitlines())


READERS: dict[str, Callable[[Path], int]] = {
    "tcpdump": lambda path: packets_by("tcpdump", "-n", "-r", path, "udp port 9"),
    "tshark": lambda path: packets_by("tshark", "-n", "-r", path, "udp.port == 9"),
    "analysis": lambda path: read_capture(path).filter(destination_port=9).height,
}


@pytest.mark.parametrize("reader", READERS)
def test_a_packet_is_in_the_file_while_the_capture_goes_on_and_no_other_packet_comes(both: Both, reader: str) -> None:
    """A round follows each packet (`PAUSE` of capture.rs, which the compiler compares with a second): no next packet, no full
    block and no end is needed."""
    if reader in ("tcpdump", "tshark") and shutil.which(reader) is None:
        pytest.skip(f"{reader}: not found; apt-get install {reader}")
    for number in range(3):
        both.send(9, first=number, count=1, size=100)
        wait_for("the packet", lambda number=number: READERS[reader](both.folder / "ours.pcap") == number + 1)
    assert [program.poll() for program in both.programs] == [None] * 3
    both.stop()


@pytest.mark.parametrize("both", [LONG], indirect=True, ids=["buffers-for-all-of-it"])
def test_of_a_flood_for_which_there_is_room_both_have_every_packet(both: Both) -> None:
    both.send(9, first=0, count=FLOOD, size=100)
    both.wait_for_last(FLOOD - 1, "ours", "tcpdump")
    both.stop()
    assert numbers(both.packets("ours")) == list(range(FLOOD)) and both.packets("ours") == both.packets("tcpdump")
    assert "dropped" not in (both.folder / "ours.log").read_text()
    assert "0 packets dropped by kernel" in (both.folder / "tcpdump.log").read_text()


@pytest.mark.parametrize("both", [SHORT], indirect=True, ids=["short-buffers"])
def test_packets_lost_in_a_flood_are_counted_by_both(both: Both) -> None:
    """Both stand still meanwhile, so that either's buffer overflows."""
    for program in both.programs:
        program.send_signal(signal.SIGSTOP)
    both.send(9, first=0, count=FLOOD, size=100)
    for program in both.programs:
        program.send_signal(signal.SIGCONT)
    wait_for("room", lambda: len(both.packets("ours")) > 0 and len(both.packets("tcpdump")) > 0)
    both.send(9, first=FLOOD, count=1, size=100)
    both.wait_for_last(FLOOD, "ours", "tcpdump")
    both.stop()
    for name, line in (("ours", r"^ours: (\d+) packets dropped by kernel$"), ("tcpdump", r"^(\d+) packets dropped by kernel$")):
        lost = int(re.findall(line, (both.folder / f"{name}.log").read_text(), re.MULTILINE)[0])
        assert lost > 0 and len(both.packets(name)) + lost == FLOOD + 1, name


@pytest.mark.slow
@pytest.mark.parametrize("program", ["manet-capture", "tcpdump"])
def test_a_run_whose_capture_lost_packets_of_a_flood_says_so_in_the_same_place_and_is_not_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """Either program with its shortest buffer. Of 30,000 packets a second some hundred come while manet-capture sleeps, and
    tcpdump's only block is full after a thousand of them."""
    real, options = (BUILT.capture, "--buffer-bytes 1") if program == "manet-capture" else (shutil.which("tcpdump"), "-B 1")
    stand_in = tmp_path / program
    stand_in.write_text(f'#!/bin/sh\nexec {real} {options} "$@"\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    programs = replace(BUILT, capture=stand_in) if program == "manet-capture" else BUILT
    flow = {"from": "sta1", "to": "sta2", "traffic": "cbr", "rate": 8 * 64 * 30_000, "bytes": 64}
    keys = {"hops": 1, "flows": [flow], "duration": 2, "capture_program": program}
    result = run_scenario(chain(**keys), 1, tmp_path / "run", programs=programs)
    assert result.status == "complete", result.error
    verdict = json.loads((tmp_path / "run" / "verdict.json").read_text())
    assert verdict["verdict"] != "valid" and verdict["capture_drops"]["sta1"] > 0
    assert run_json(tmp_path / "run")["capture_drops"] == sum(verdict["capture_drops"].values())
    assert any("are missing in the captures of sta1" in reason for reason in verdict["reasons"]), verdict["reasons"]
