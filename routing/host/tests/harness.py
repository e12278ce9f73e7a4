"""Network namespaces, daemons in them and their sockets, for the tests that run our daemons on this kernel.

All processes are ended by their handles.
"""

import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

DEADLINE_S = 60.0


def wait_for(what: str, condition: Callable[[], object], within_s: float = DEADLINE_S, every_s: float = 0.02):
    """Polls `condition` until it is true and returns its value. `what` names it in the failure."""
    end = time.monotonic() + within_s
    while True:
        if value := condition():
            return value
        assert time.monotonic() < end, f"{what}: not within {within_s} s"
        time.sleep(every_s)


def request(path: Path, op: str, **arguments: object) -> dict:
    """The answer of a control or status socket (formats/sockets.md, formats/routing.md)."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(DEADLINE_S)
        s.connect(str(path))
        s.sendall(json.dumps({"op": op, **arguments}).encode() + b"\n")
        return json.loads(s.makefile().readline())


class Namespace:
    """A network namespace without IPv6, kept alive by a sleeping process in it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            ["unshare", "--net", "sleep", "infinity"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        initial = Path("/proc/self/ns/net").readlink()
        comm = Path(f"/proc/{self.process.pid}/comm")
        wait_for("namespace", lambda: self.netns.readlink() != initial and comm.read_text() == "sleep\n")
        self.sh("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")

    @property
    def netns(self) -> Path:
        return Path(f"/proc/{self.process.pid}/ns/net")

    def inside(self, *command: object) -> list[str]:
        """The command line that runs `command` in the namespace."""
        return ["nsenter", f"--net={self.netns}", *map(str, command)]

    def sh(self, *command: object, check: bool = True, timeout_s: float = DEADLINE_S) -> str:
        """Runs `command` in the namespace and returns its stdout; asserts that it succeeds, unless `check` is false."""
        done = subprocess.run(self.inside(*command), capture_output=True, text=True, timeout=timeout_s, check=False)
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def interfaces(self) -> list[str]:
        return [link["ifname"] for link in json.loads(self.sh("ip", "-j", "link"))]

    def pings_answered(self, to: str, count: int, *options: object) -> int:
        """Sends `count` pings and returns the number of answers. The last of contradicting options of ping(8) is in force."""
        out = self.sh("ping", "-n", "-c", count, *options, to, check=False)
        return int(out.split(" received")[0].split()[-1])

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class Daemon:
    """A child. `ready`: whether its first line was that; else it has ended with an error."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.ready = self.process.stdout.readline() == "ready\n"

    def stop(self, how: int = signal.SIGTERM) -> tuple[int, str]:
        """Sends the signal and waits. Returns exit status and stderr."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        _out, errors = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, errors
