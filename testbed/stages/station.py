"""Stations: Mininet hosts in network namespaces whose radio `wlan0` is a TAP device of the medium; plain hosts on its wires.

Mininet starts a host by starting its shell and waiting for each answer in turn, and sets it up with one shell command
per setting. With fifty stations that is most of a run's time. Here all shells are started first and waited for
afterwards; everything else is done from this process by `testbed.host.namespace`, and shells are left to the prompt.
"""

import os
import pty
import select
import signal
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mininet.link import Intf
from mininet.log import output
from mininet.net import Mininet
from mininet.node import Host
from mininet.util import getincrementaldecoder

from scenarios.scenario import Scenario, Wire
from testbed.errors import RunError
from testbed.host import descriptors, namespace
from testbed.host.processes import exit_text
from topologies.addresses import (
    GATEWAY_END,
    HOST_END,
    INTERFACE,
    PREFIX_BITS,
    WIRE_PREFIX_BITS,
    ip_address,
    mac_address,
    wire_interfaces,
    wire_ip,
    wire_mac,
)

PROMPT = chr(127)  # Mininet's sentinel: node.monitor() takes it for the end of a command
SHELL_DEADLINE_S = 30.0
NOWHERE: Mapping[str, int] = {}
# As `mnexec -n` does: /sys shows the devices of the network namespace that mounted it.
WITH_SYS_OF_NAMESPACE = ["unshare", "--mount", "sh", "-c", 'mount -t sysfs sysfs /sys; exec "$@"', "sh"]


def _inside(pid: int, folder: str | None = None) -> list[str]:
    """Runs a program in the namespaces of a process, below the same root (so that a chroot is none of its concern)."""
    return ["nsenter", "--target", str(pid), "--net", "--mount", "--root", f"--wdns={folder or Path.cwd()}", "--"]


def _environment() -> dict[str, str]:
    """A station's output is read by programs, though it comes by a terminal: ip(8) of Debian 13 would colour it."""
    return {**os.environ, "NO_COLOR": "1"}


class MediumInterface(Intf):
    """Mininet's view of a radio or a wire's end. The device itself is the medium's, so nothing is created or moved here."""

    def __init__(self, node: "NamespaceHost", name: str, mac: str, ip: str, prefix_bits: int) -> None:
        # Intf.__init__ would configure the device by shell commands, before it exists
        self.node, self.name, self.link = node, name, None
        self.mac, self.ip, self.prefixLen = mac, ip, str(prefix_bits)
        self.params: dict = {}
        node.addIntf(self, moveIntfFn=lambda *_args: None)

    def updateIP(self) -> str:
        return self.ip

    def updateMAC(self) -> str:
        return self.mac

    def delete(self) -> None:
        """The medium's TAP goes when the medium goes."""


class NamespaceHost(Host):
    """A shell in a network namespace of its own. The namespace lasts as long as the host, also if its shell ends before: the
    next command has a new one."""

    home: int | None = None  # the process whose network namespace it is, where that is not its own
    _namespace: int | None = None  # holds it open
    _pidfd: int | None = None

    @property
    def netns(self) -> Path:
        if self._namespace is None:
            return Path(f"/proc/{self.pid}/ns/net")
        return Path(f"/proc/{os.getpid()}/fd/{self._namespace}")

    def startShell(self, mnopts: str | None = None) -> None:
        """Start the shell and return at once; `wait_for_shell` collects it."""
        if mnopts is None and self.home is not None:
            self._start(_inside(self.home), start_new_session=True)
        else:
            self._start(["mnexec", mnopts or "-dn"])

    def _start(self, place: list[str], **options: bool) -> None:
        """A shell behind the program that puts it into its namespaces."""
        self.master, self.slave = pty.openpty()
        attributes = termios.tcgetattr(self.slave)
        attributes[3] &= ~termios.ECHO  # what `stty -echo` would do, without a process
        termios.tcsetattr(self.slave, termios.TCSANOW, attributes)
        self.shell = subprocess.Popen(
            [*place, "bash", "--norc", "--noediting", "-is", f"mininet:{self.name}"],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env={**_environment(), "PS1": PROMPT},
            **options,
        )
        descriptors.restore_limit(self.shell.pid)
        os.write(self.master, b"unset HISTFILE; set +m\n")  # as Mininet does; answered by a second prompt
        self.stdin = self.stdout = os.fdopen(self.master, "r")
        self.pid, self._pidfd = self.shell.pid, os.pidfd_open(self.shell.pid)
        self.pollOut = select.poll()
        self.pollOut.register(self.stdout, select.POLLIN)
        self.pollOut.register(self._pidfd, select.POLLIN)  # this process holds the terminal's other end: it never hangs up
        self.outToNode[self.stdout.fileno()] = self
        self.inToNode[self.stdin.fileno()] = self
        self.execed, self.lastCmd, self.lastPid, self.readbuf, self.waiting = False, None, None, "", False
        self.decoder = getincrementaldecoder()

    def wait_for_shell(self, deadline: float) -> None:
        """Until the shell has answered; then it is in its namespace and takes commands."""
        seen = ""
        while seen.count(PROMPT) < 2:
            left_s = deadline - time.monotonic()
            ready = self.pollOut.poll(left_s * 1000) if left_s > 0 else []
            if not ready:
                raise RunError(f"{self.name}: its shell did not answer within {SHELL_DEADLINE_S:g} s; the host is overloaded")
            if not self._has_output(ready):
                raise RunError(f"{self.name}: mnexec could not make a namespace: {seen.strip()[:200]}; run as root")
            seen += os.read(self.master, 4096).decode(errors="replace")
        if self._namespace is None:
            self._namespace = os.open(f"/proc/{self.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    def _has_output(self, ready: list[tuple[int, int]]) -> bool:
        return any(descriptor == self.master and event & select.POLLIN for descriptor, event in ready)

    def readable_or(self, other: int) -> list[int]:
        """Waits for output of the shell, its end, or the descriptor `other`; the descriptors that it was."""
        poller = select.poll()
        for descriptor in (other, self.master, self._pidfd):
            poller.register(descriptor, select.POLLIN)
        return [descriptor for descriptor, _event in poller.poll()]

    def waitReadable(self, timeoutms: float | None = None) -> object:
        """As Mininet's, which waits for a shell that has ended for ever: here it ends the command, and there is a new shell."""
        ready = super().waitReadable(timeoutms)
        if ready and not self._has_output(ready):
            self._renew_shell()
            return []
        return ready

    def sendCmd(self, *args: object, **kwargs: object) -> None:
        if self.shell and self.shell.poll() is not None:
            self._renew_shell()
        super().sendCmd(*args, **kwargs)

    def popen(self, *args: object, shell: bool = False, **kwargs: object) -> subprocess.Popen:
        """As Mininet's, also below a chroot, where mnexec(1) looks for the program outside of it."""
        words = args[0] if len(args) == 1 else list(args)
        if shell:
            words = ["bash", "-c", words if isinstance(words, str) else " ".join(map(str, words))]
        place = _inside(self.pid, str(kwargs.get("cwd") or Path.cwd()))
        return super().popen(words, **{"mncmd": place, "start_new_session": True, "env": _environment(), **kwargs})

    def _renew_shell(self) -> None:
        """Another shell in the same network namespace; what was mounted for the one before went with it."""
        how = exit_text(self.shell.wait())
        self._drop_shell()
        namespace.within(self.netns, lambda: self._start(WITH_SYS_OF_NAMESPACE, start_new_session=True))
        self.wait_for_shell(time.monotonic() + SHELL_DEADLINE_S)
        output(f"*** {self.name}: its shell {how}; it has a new one\n")

    def hang_up(self) -> None:
        """Ask the shell to end; `terminate` waits for it."""
        if self.shell and self.shell.poll() is None:
            os.killpg(self.shell.pid, signal.SIGHUP)

    def terminate(self) -> None:
        if not self.shell:
            return
        self.hang_up()
        try:
            self.shell.wait(5)
        except subprocess.TimeoutExpired:
            self.shell.kill()
        self._drop_shell()
        if self._namespace is not None:
            os.close(self._namespace)
            self._namespace = None

    def _drop_shell(self) -> None:
        """What was held of a shell that has ended."""
        self.outToNode.pop(self.master, None)
        self.inToNode.pop(self.master, None)
        os.close(self._pidfd)
        self.cleanup()

    def config(self, **_params: object) -> dict:
        """Nothing: addresses are set once the medium has made the device (testbed.stages.network)."""
        return {}


class Station(NamespaceHost):
    """A node of the ad hoc network, number `number` counted from 1."""

    def __init__(self, name: str, *, number: int, home: int | None = None, **params: object) -> None:
        self.number, self.home = number, home
        super().__init__(name, **params)
        self.radio = MediumInterface(self, INTERFACE, mac_address(number), ip_address(number), PREFIX_BITS)


class WiredHost(NamespaceHost):
    """A host without a radio at the far end of one wire or several; the first gives it its address."""


@dataclass(frozen=True)
class WiredLink:
    """Wire number `number`, with the interfaces at its two ends."""

    number: int
    settings: Wire
    gateway: Station
    interface: str
    host: WiredHost
    host_interface: str


class StationNet(Mininet):
    """A Mininet network of stations and wired hosts (`hosts` is both): what the prompt and scripts work on."""

    def __init__(self) -> None:
        # Mininet's own initialisation would raise limits of the whole system (fs.file-max, kernel.pid_max,
        # net.core.*, ...) and never restore them
        Mininet.inited = True
        super().__init__(topo=None, build=False, controller=None)
        self.wires: list[WiredLink] = []

    def addStation(self, name: str, number: int | None = None, home: int | None = None) -> Station:
        """Declare and start one station; its shell may still be starting. `home`: it has the namespaces of this process."""
        return self.addHost(name, cls=Station, number=number or len(self.stations) + 1, home=home)

    def addWire(self, settings: Wire) -> WiredLink:
        """Declare a wire and start its host, if it is the host's first; the medium makes both ends."""
        number, gateway = len(self.wires) + 1, self[settings.station]
        interface = wire_interfaces([*(wire.gateway.name for wire in self.wires), gateway.name])[-1]
        MediumInterface(gateway, interface, wire_mac(number, GATEWAY_END), wire_ip(number, GATEWAY_END), WIRE_PREFIX_BITS)
        host = self[settings.host] if settings.host in self else self.addHost(settings.host, cls=WiredHost)
        host_interface = wire_interfaces([*(wire.host.name for wire in self.wires), host.name])[-1]
        MediumInterface(host, host_interface, wire_mac(number, HOST_END), wire_ip(number, HOST_END), WIRE_PREFIX_BITS)
        self.wires.append(WiredLink(number, settings, gateway, interface, host, host_interface))
        return self.wires[-1]

    @property
    def stations(self) -> list[Station]:
        """The nodes that have a radio, in the order of their numbers."""
        return [host for host in self.hosts if isinstance(host, Station)]


@contextmanager
def stations_up(names: list[str], wires: Sequence[Wire] = (), homes: Mapping[str, int] = NOWHERE) -> Iterator[StationNet]:
    """Start one station per name, numbered from 1, and a host per wire; the block's end ends their shells, and so their
    namespaces. `homes`: processes whose namespaces they have instead, by name."""
    net = StationNet()
    try:
        for name in names:
            net.addStation(name, home=homes.get(name))
        for wire in wires:
            net.addWire(wire)
        deadline = time.monotonic() + SHELL_DEADLINE_S
        for host in net.hosts:
            host.wait_for_shell(deadline)
        yield net
    finally:
        for host in net.hosts:
            host.hang_up()  # all at once, so that they end side by side
        for host in net.hosts:
            host.terminate()


def host_sysctls(scenario: Scenario) -> dict[str, object]:
    """What makes a namespace a node of an ad hoc network; set before its radio exists, so that nothing else goes on air."""
    sysctls: dict[str, object] = {
        "net.ipv4.ip_forward": 1,
        "net.ipv4.ip_default_ttl": 255,  # the default, 64, would end a chain of 65 hops
        # a station answers and accepts whatever reaches its only radio, whichever way it came
        "net.ipv4.conf.all.rp_filter": 0,
        "net.ipv4.conf.default.rp_filter": 0,
        # every relayed packet leaves by the interface it came in by, which would raise an ICMP redirect each time
        "net.ipv4.conf.all.send_redirects": 0,
        "net.ipv4.conf.default.send_redirects": 0,
        "net.ipv4.conf.all.accept_redirects": 0,
        "net.ipv4.conf.default.accept_redirects": 0,
    }
    if not scenario.ipv6:
        # router solicitations, multicast listener reports and duplicate address detection would take air time
        sysctls |= {"net.ipv6.conf.all.disable_ipv6": 1, "net.ipv6.conf.default.disable_ipv6": 1}
    else:
        sysctls |= {"net.ipv6.conf.all.forwarding": 1}
    return sysctls
