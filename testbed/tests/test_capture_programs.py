"""manet-capture and tcpdump, its referee: both see the same packets of an interface at the same times, and count those lost."""

import re
import signal
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from routing.host.tests.harness import Namespace, wait_for
from testbed.programs import BUILT
from testbed.tests.running import needs_runs

pytestmark = [pytest.mark.root, needs_runs]
PORT = 698
SNAP_BYTES = 128
# Sends COUNT datagrams of SIZE bytes to a port: their numbers, and zeros.
SEND = """import socket, sys
port, first, count, size = map(int, sys.argv[1:])
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(first, first + count):
    out.sendto(number.to_bytes(4, "big") + bytes(size - 4), ("10.9.0.2", port))
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
        self.programs: list[subprocess.Popen] = []
        self.device = subprocess.Popen(self.host.inside("python3", "-c", DEVICE), stdout=subprocess.PIPE)

    def start(self) -> None:
        assert self.device.stdout.readline() == b"ready\n"
        self.host.sh("ip", "address", "add", "10.9.0.1/24", "dev", "d0")
        self.host.sh("ip", "link", "set", "d0", "up")
        self.host.sh("ip", "neighbour", "add", "10.9.0.2", "lladdr", "02:00:00:00:00:02", "dev", "d0", "nud", "permanent")
        self._tcpdump("tcpdump", SNAP_BYTES)
        self._tcpdump("tcpdump.routing", 0, f"udp port {PORT}")
        interface = f"ours:{self.host.netns}:d0:{PORT}"
        self._start("ours", str(BUILT.capture), "--folder", str(self.folder), "--snap-bytes", str(SNAP_BYTES), interface)

    def _tcpdump(self, name: str, snap_bytes: int, *expression: str) -> None:
        words = ["-U", "-i", "d0", "-s", snap_bytes, "-n", "--time-stamp-precision=nano", "-Z", "root"]
        self._start(name, *self.host.inside("tcpdump", *words, "-w", self.folder / f"{name}.pcap", *expression))

    def _start(self, name: str, *words: str) -> None:
        log = self.folder / f"{name}.log"
        with log.open("wb") as file:
            self.programs.append(subprocess.Popen(words, stdout=file, stderr=file))
        wait_for("its socket", lambda: "listening on" in log.read_text())

    def send(self, port: int, first: int, count: int, size: int) -> None:
        self.host.sh("python3", "-c", SEND, port, first, count, size)

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
def both(tmp_path: Path) -> Iterator[Both]:
    running = Both(tmp_path)
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


def test_packets_lost_in_a_flood_are_counted_by_both(both: Both) -> None:
    """Both stand still meanwhile, so that either's buffer overflows."""
    sent = 30_000
    for program in both.programs:
        program.send_signal(signal.SIGSTOP)
    both.send(9, first=0, count=sent, size=100)
    for program in both.programs:
        program.send_signal(signal.SIGCONT)
    wait_for("room", lambda: len(both.packets("ours")) > 0 and len(both.packets("tcpdump")) > 0)
    both.send(9, first=sent, count=1, size=100)
    both.wait_for_last(sent, "ours", "tcpdump")
    both.stop()
    for name, line in (("ours", r"^ours: (\d+) packets dropped by kernel$"), ("tcpdump", r"^(\d+) packets dropped by kernel$")):
        lost = int(re.findall(line, (both.folder / f"{name}.log").read_text(), re.MULTILINE)[0])
        assert lost > 0 and len(both.packets(name)) + lost == sent + 1, name
