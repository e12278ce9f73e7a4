"""Stations: Mininet hosts in network namespaces whose radio (`wlan0`, or `<station>-wlan0`) is a TAP device of the medium; plain
hosts on its wires.

Mininet starts the shell of each host and waits for it in turn, and configures the host with one shell command per setting. With
fifty stations that takes most of a run's time. Here all shells are started first and awaited afterwards; this process does
everything else by `testbed.host.namespace`, and only the prompt uses the shells.
"""

import os
import pty
import select
import shutil
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mininet.link import Intf
from mininet.log import output
from mininet.net import Mininet
from mininet.node import Host
from mininet.util import getincrementaldecoder, numCores

from scenarios.scenario import Scenario
from scenarios.wires import Wire
from testbed.errors import RunError
from testbed.host import descriptors, namespace, station_pids
from testbed.host.processes import SLOWER, STARTS_AT_ONCE, exit_text, limit_s
from testbed.stages.running_container import RunningContainer
from topologies.addresses import (
    GATEWAY_END,
    HOST_END,
    INTERFACE,
    PREFIX_BITS,
    WIRE_PREFIX_BITS,
    ip6_address,
    ip_address,
    mac_address,
    radio_interface,
    wire_interfaces,
    wire_ip,
    wire_ip6,
    wire_mac,
)

PROMPT = chr(127)  # Mininet's sentinel, by which node.monitor() recognises the end of a command
SHELL_DEADLINE_S = 30.0 * SLOWER
NO_HOMES: Mapping[str, int] = {}


def shell_environment() -> dict[str, str]:
    """The environment of shells. Programs read their output although it is a terminal's, so ip(8) must not colour it."""
    return {**os.environ, "NO_COLOR": "1"}


def is_program(name: str, folder: object = None) -> bool:
    """Whether a shell in `folder` (None: this process's) would find a program."""
    place = str(Path(str(folder or "."), name).absolute()) if "/" in name else name
    return shutil.which(place, path=shell_environment().get("PATH")) is not None


class MediumInterface(Intf):
    """Mininet's view of a radio or a wire's end. The medium owns the device, so nothing is created or moved here."""

    def __init__(self, node: "NamespaceHost", name: str, mac: str, ip: str, prefix_bits: int, ip6: str) -> None:
        # Intf.__init__ would configure the device by shell commands, before it exists
        self.node, self.name = node, name
        self.link: WiredLink | None = None
        self.mac, self.ip, self.prefixLen, self.ip6 = mac, ip, str(prefix_bits), ip6
        self.params: dict[str, object] = {}
        node.addIntf(self, moveIntfFn=lambda *_args: None)

    def updateIP(self) -> str:
        """The address."""
        return self.ip

    def updateMAC(self) -> str:
        """The MAC address."""
        return self.mac

    def delete(self) -> None:
        """No effect: the TAP ends with the medium."""


class NamespaceHost(Host):
    """A shell in its own network namespace. The namespace lasts as long as the host: if the shell ends earlier, the next
    command gets a new one."""

    isSetup = True  # else Mininet looks for mnexec and ifconfig by which(1); testbed/host/requirements.py has looked
    container: RunningContainer | None = None  # the root file system that the user's programs see; None: the machine's
    _shell_is_inside = False
    on_command: Callable[[str, list[str]], None] | None = None  # called with its name and the words of each command of a user's
    home: int | None = None  # a process whose network namespace the host uses instead of its own
    cabled = False  # whether a host has the first of its cables (testbed/stages/access_points.py)
    _starting: Future[None] | None = None  # of its first shell
    _namespace: int | None = None  # a descriptor that keeps it open
    _pidfd: int  # of the shell

    def __init__(self, name: str, *, pids: int | None = None, starter: Executor | None = None, **params: object) -> None:
        """`pids`: a descriptor of the pid namespace of its programs (testbed/host/station_pids.py); None: this process's.
        `starter`: starts its shell meanwhile."""
        self.pids, self._starter = pids, starter
        super().__init__(name, **params)

    @property
    def netns(self) -> Path:
        """A path of the host's network namespace."""
        if self._namespace is None:
            return Path(f"/proc/{self.pid}/ns/net")
        return Path(f"/proc/{os.getpid()}/fd/{self._namespace}")

    def IP6(self) -> str:
        """The IPv6 address of its first interface, which it has if the scenario has `ipv6`; as Mininet's `IP`."""
        first: MediumInterface = self.defaultIntf()
        return first.ip6

    def address(self, ip: int) -> str:
        """Its address of IP version 4 or 6."""
        return self.IP6() if ip == 6 else self.IP()

    def startShell(self, mnopts: str | None = None) -> None:
        """Start the shell and return at once; `wait_for_shell` waits for it."""
        if mnopts is not None:
            self._start(["mnexec", mnopts])
            return
        if self._starter is None:
            self._start_first()
        else:
            self._starting = self._starter.submit(self._start_first)

    def _start_first(self) -> None:
        try:
            self._start_in_namespaces(None if self.home is None else f"/proc/{self.home}/ns/net")
        except RunError as problem:
            raise RunError(f"{self.name}: {problem}") from None

    def _start_in_namespaces(self, netns: str | Path | None) -> None:
        """Start a shell as by `mnexec -dn`, without its process; in the network namespace `netns` if given."""
        prepare = (lambda: None) if self.pids is None else partial(station_pids.enter, self.pids)
        namespace.within_new(lambda: self._start([], start_new_session=True), netns=netns, prepare=prepare)

    def _start(self, place: list[str], *, start_new_session: bool = False) -> None:
        """Start a shell; `place` is the command prefix that enters its namespaces."""
        words = [*place, "bash", "--norc", "--noediting", "-is", f"mininet:{self.name}"]
        environment = {**shell_environment(), "PS1": PROMPT}

        def start(end: int) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                words, env=environment, stdin=end, stdout=end, stderr=end, start_new_session=start_new_session
            )

        self._start_on_terminal(start)

    def _start_on_terminal(self, start: Callable[[int], subprocess.Popen[bytes]]) -> None:
        """Start a shell by `start`, which is given the shell's end of a terminal."""
        self.master, self.slave = pty.openpty()
        attributes = termios.tcgetattr(self.slave)
        attributes[3] &= ~termios.ECHO  # as `stty -echo`, without a process
        termios.tcsetattr(self.slave, termios.TCSANOW, attributes)
        self.shell = start(self.slave)
        descriptors.restore_limit(self.shell.pid)
        os.write(self.master, b"unset HISTFILE; set +m\n")  # as Mininet does; answered by a second prompt
        self.stdin = self.stdout = os.fdopen(self.master, "r")
        self.pid, self._pidfd = self.shell.pid, os.pidfd_open(self.shell.pid)
        self.pollOut = select.poll()
        self.pollOut.register(self.stdout, select.POLLIN)
        self.pollOut.register(self._pidfd, select.POLLIN)  # this process holds the terminal's other end, so it never hangs up
        self.outToNode[self.stdout.fileno()] = self
        self.inToNode[self.stdin.fileno()] = self
        self.execed, self.lastCmd, self.lastPid, self.readbuf, self.waiting = False, None, None, "", False
        self.decoder = getincrementaldecoder()

    def wait_for_shell(self, deadline: float) -> None:
        """Wait until the shell has answered and takes commands. Raises RunError after the monotonic instant `deadline`."""
        if self._starting is not None:
            self._starting.result()
        seen = ""
        while seen.count(PROMPT) < 2:
            left_s = deadline - time.monotonic()
            ready = self.pollOut.poll(left_s * 1000) if left_s > 0 else []
            if not ready:
                raise RunError(f"{self.name}: its shell did not answer in time; the host is overloaded")
            if not self._is_readable(ready):
                raise RunError(f"{self.name}: its shell {exit_text(self.shell.wait())}: {seen.strip()[:200]}; run as root")
            seen += os.read(self.master, 4096).decode(errors="replace")
        if self._namespace is None:
            self._namespace = os.open(f"/proc/{self.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    def _is_readable(self, ready: list[tuple[int, int]]) -> bool:
        return any(descriptor == self.master and event & select.POLLIN for descriptor, event in ready)

    def wait_for_input(self, other: int) -> list[int]:
        """Wait for output of the shell, its end, or input on the descriptor `other`; returns the descriptors that are ready."""
        poller = select.poll()
        for descriptor in (other, self.master, self._pidfd):
            poller.register(descriptor, select.POLLIN)
        return [descriptor for descriptor, _event in poller.poll()]

    def waitReadable(self, timeoutms: float | None = None) -> object:
        """Like Mininet's, except that the end of the shell ends the command and starts a new shell (Mininet would wait for
        ever)."""
        ready = super().waitReadable(timeoutms)
        if ready and not self._is_readable(ready):
            self._renew_shell()
            return []
        return ready

    def sendCmd(self, *args: Any, **kwargs: object) -> None:
        """Like Mininet's, with a new shell if the last one has ended. The first command of a container moves the shell into
        it."""
        if self.shell and self.shell.poll() is not None:
            self._renew_shell()
        elif self.container is not None and not self._shell_is_inside:
            self._move_shell()
        self._note_command(self._in_shell(args[0] if len(args) == 1 else args))
        super().sendCmd(*args, **({**kwargs, "printPid": False} if self.container else kwargs))  # mnexec(1) would print it

    def popen(self, *args: Any, shell: bool = False, **kwargs: Any) -> subprocess.Popen[Any]:
        """Like Mininet's, and also works below a chroot, where mnexec(1) would look for the program outside."""
        words = args[0] if len(args) == 1 else list(args)
        if shell:
            words = self._in_shell(words)
        words = words.split() if isinstance(words, str) else words
        if self.container is not None:
            process = self._popen_inside(words, **kwargs)
        else:
            place = {"mncmd": self.words([], kwargs.get("cwd")), "start_new_session": True, "env": shell_environment()}
            start = partial(super().popen, words, **{**place, **kwargs})
            process = namespace.within(self.netns, start, pids=self.pids)
        if self.container is not None or is_program(str(words[0]), kwargs.get("cwd")):  # else nothing has started
            self._note_command([*map(str, words)])
        return process

    def _in_shell(self, words: str | Sequence[object]) -> list[str]:
        """The command line that has the host's shell execute words."""
        text = words if isinstance(words, str) else " ".join(map(str, words))
        return ["bash" if self.container is None else "sh", "-c", text]

    def _note_command(self, words: list[str]) -> None:
        if self.on_command is not None:
            self.on_command(self.name, words)

    def words(
        self, words: Sequence[object], folder: object = None, environment: Mapping[str, str] = MappingProxyType({})
    ) -> list[str]:
        """The command line that runs a program of the user's at the host, in a process that is in `pids_of_programs` already: in
        its container, which has an environment of its own and gets `environment` too, or where its shell is."""
        if self.container is not None:
            return self.container.words(words, environment=environment)
        enter = ["nsenter", f"--target={self.pid}", "--net", "--mount", "--root", f"--wdns={folder or Path.cwd()}", "--"]
        return [*enter, *map(str, words)]

    @property
    def pids_of_programs(self) -> int | None:
        """A descriptor of the pid namespace of the user's programs at the host."""
        return self.pids if self.container is None else self.container.pids

    def parent(self, words: Sequence[object]) -> list[str]:
        """The command line of a program of the testbed whose children are in `pids_of_programs`."""
        enter = ["nsenter", f"--pid=/proc/{os.getpid()}/fd/{self.pids_of_programs}", "--no-fork", "--"]
        return [*enter, *map(str, words)]

    def _popen_inside(self, words: Sequence[object], **options: Any) -> subprocess.Popen[Any]:
        """Start a program in the station's container, which has an environment of its own."""
        assert self.container is not None
        defaults = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True}
        of_mininet = ("mncmd", "env")
        return self.container.popen(words, **defaults | {key: options[key] for key in options if key not in of_mininet})

    def _renew_shell(self) -> None:
        """Start another shell in the same network namespace. Mounts of the old shell are gone."""
        how = exit_text(self.shell.wait())
        if self.container is not None:
            self._move_shell()
        else:
            self._close_shell()
            self._start_in_namespaces(self.netns)
            self.wait_for_shell(time.monotonic() + SHELL_DEADLINE_S)
        output(f"*** {self.name}: its shell {how}; it has a new one\n")

    def _move_shell(self) -> None:
        """End the shell, and start one in the container, /bin/sh."""
        self.hang_up()
        self.shell.wait()
        self._close_shell()
        words = ["sh", "-is", f"mininet:{self.name}"]
        start = partial(self._popen_inside, words, environment={"PS1": PROMPT})
        self._start_on_terminal(lambda end: start(stdin=end, stdout=end, stderr=end))
        self._shell_is_inside = True
        self.wait_for_shell(time.monotonic() + SHELL_DEADLINE_S)

    def hang_up(self) -> None:
        """Send SIGHUP to the shell; `terminate` waits for its end."""
        if self.shell and self.shell.poll() is None:
            os.killpg(self.shell.pid, signal.SIGHUP)

    def terminate(self) -> None:
        """End the shell and release the namespace."""
        if not self.shell:
            return
        self.hang_up()
        try:
            self.shell.wait(5)
        except subprocess.TimeoutExpired:
            self.shell.kill()
        self._close_shell()
        if self._namespace is not None:
            os.close(self._namespace)
            self._namespace = None

    def _close_shell(self) -> None:
        """Release the descriptors of a shell that has ended."""
        self.outToNode.pop(self.master, None)
        self.inToNode.pop(self.master, None)
        os.close(self._pidfd)
        self.cleanup()

    def config(self, **_params: object) -> dict[str, object]:
        """No effect: addresses are set once the medium has made the device (testbed.stages.network)."""
        return {}


class Station(NamespaceHost):
    """A node of the ad hoc network, number `number` counted from 1."""

    def __init__(self, name: str, *, number: int, home: int | None = None, naming: str = INTERFACE, **params: Any) -> None:
        self.number, self.home = number, home
        super().__init__(name, **params)
        device = radio_interface(name, naming)
        self.radio = MediumInterface(self, device, mac_address(number), ip_address(number), PREFIX_BITS, ip6_address(number))
        self.further_radios: list[FurtherRadio] = []

    @property
    def station(self) -> "Station":
        """Itself, the station of its first radio, as of FurtherRadio."""
        return self

    def add_radio(self, name: str, number: int) -> None:
        """Declare an additional radio, with the MAC address of the number `number`; it has no IP address."""
        interface = MediumInterface(self, name, mac_address(number), "", PREFIX_BITS, "")
        self.further_radios.append(FurtherRadio(name, self, interface))

    @property
    def wintfs(self) -> dict[int, MediumInterface]:
        """The interfaces of its radios by their numbers from 0, as Mininet-WiFi's."""
        return dict(enumerate([self.radio, *(further.radio for further in self.further_radios)]))


@dataclass(frozen=True)
class FurtherRadio:
    """A radio of a station beyond its first; `name` is its interface's."""

    name: str
    station: Station
    radio: MediumInterface

    @property
    def netns(self) -> Path:
        """A path of the station's network namespace."""
        return self.station.netns


class WiredHost(NamespaceHost):
    """A host without a radio at the far end of one wire or several; the first gives it its address."""


@dataclass(frozen=True, repr=False)
class WiredLink:
    """Wire number `number`, with the interfaces at its two ends; a link as Mininet has them."""

    number: int
    settings: Wire
    gateway: Station
    interface: str
    host: WiredHost
    host_interface: str

    @property
    def intf1(self) -> MediumInterface:
        """The gateway's interface."""
        return self.gateway.nameToIntf[self.interface]

    @property
    def intf2(self) -> MediumInterface:
        """The host's interface."""
        return self.host.nameToIntf[self.host_interface]

    def __str__(self) -> str:
        return f"{self.gateway.name}-{self.interface}<->{self.host.name}-{self.host_interface}"

    __repr__ = __str__


class StationNet(Mininet):
    """A Mininet network of stations and wired hosts (`hosts` is both): what the prompt and scripts work on."""

    def __init__(self, naming: str = INTERFACE, pids: int | None = None, starter: Executor | None = None) -> None:
        # Mininet's own initialisation would raise limits of the whole system (fs.file-max, kernel.pid_max,
        # net.core.*, ...) and never restore them
        Mininet.inited = True
        numCores.ncores = os.cpu_count()  # else grep(1) counts them
        super().__init__(topo=None, build=False, controller=None)
        self.naming, self.pids, self.starter = naming, pids, starter
        self.wires: list[WiredLink] = []

    def radio(self, name: str) -> Station | FurtherRadio:
        """The station of this name, for its first radio, or the further radio."""
        further = (radio for station in self.stations for radio in station.further_radios if radio.name == name)
        return next(further, None) or self[name]

    def addHost(self, name: str, cls: type[NamespaceHost], **params: object) -> Any:
        """Declare and start one host; its shell may still be starting."""
        return super().addHost(name, cls=cls, pids=self.pids, starter=self.starter, **params)

    def addStation(self, name: str, number: int | None = None, home: int | None = None) -> Station:
        """Declare and start one station; its shell may still be starting. `home`: a process whose namespaces it uses."""
        return self.addHost(name, cls=Station, number=number or len(self.stations) + 1, home=home, naming=self.naming)

    def addWire(self, settings: Wire) -> WiredLink:
        """Declare a wire, and start its host if this is its first wire. The medium makes both ends."""
        number, gateway = len(self.wires) + 1, self[settings.station]
        interface = wire_interfaces([*(wire.gateway.name for wire in self.wires), gateway.name])[-1]
        self._addWireEnd(gateway, interface, number, GATEWAY_END)
        host = self[settings.host] if settings.host in self else self.addHost(settings.host, cls=WiredHost)
        host_interface = wire_interfaces([*(wire.host.name for wire in self.wires), host.name])[-1]
        self._addWireEnd(host, host_interface, number, HOST_END)
        wire = WiredLink(number, settings, gateway, interface, host, host_interface)
        wire.intf1.link = wire.intf2.link = wire
        self.wires.append(wire)
        self.links.append(wire)
        return wire

    @staticmethod
    def _addWireEnd(host: NamespaceHost, interface: str, number: int, end: int) -> None:
        MediumInterface(host, interface, wire_mac(number, end), wire_ip(number, end), WIRE_PREFIX_BITS, wire_ip6(number, end))

    @property
    def stations(self) -> list[Station]:
        """The nodes that have a radio, in the order of their numbers."""
        return [host for host in self.hosts if isinstance(host, Station)]


@contextmanager
def stations_up(
    names: list[str],
    wires: Sequence[Wire] = (),
    homes: Mapping[str, int] = NO_HOMES,
    naming: str = INTERFACE,
    pids: int | None = None,
) -> Iterator[StationNet]:
    """Start one station per name, numbered from 1, and the hosts of the wires. The end of the block ends their shells and
    namespaces. `homes`: by name, processes whose namespaces stations use instead of their own. `naming`: of the radios
    (`topologies.addresses.radio_interface`). `pids`: as of NamespaceHost. Raises RunError."""
    starter = ThreadPoolExecutor(STARTS_AT_ONCE)
    net = StationNet(naming, pids, starter)
    try:
        for number, name in enumerate(names, start=1):
            net.addStation(name, number, home=homes.get(name))
        for wire in wires:
            net.addWire(wire)
        deadline = time.monotonic() + limit_s(SHELL_DEADLINE_S, len(net.hosts))
        for host in net.hosts:
            host.wait_for_shell(deadline)
        starter.shutdown()
        net.starter = None
        yield net
    finally:
        starter.shutdown(cancel_futures=True)
        for host in net.hosts:
            host.hang_up()  # all at once, so that they end in parallel
        for host in net.hosts:
            host.terminate()


def host_sysctls(scenario: Scenario) -> dict[str, object]:
    """The sysctls of a node of an ad hoc network; set before its radio exists, so that the kernel sends nothing else."""
    sysctls: dict[str, object] = {
        "net.ipv4.ip_forward": 1,
        "net.ipv4.ip_default_ttl": 255,  # the default, 64, would end a chain of 65 hops
        # a station accepts every packet that reaches its only radio, whatever its route
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
        # before `default` is set: the kernel sets some of a device's when it begins to forward
        sysctls |= {"net.ipv6.conf.all.forwarding": 1, **ipv6_sysctls("default")}
    return sysctls


def ipv6_sysctls(device: str) -> dict[str, object]:
    """The sysctls of a device that uses IPv6.

    Without duplicate address detection (RFC 4862, 5.4) addresses are valid at once instead of after a second: they follow from
    the station's number and cannot be duplicates. No station is an advertising router (RFC 4861, 6.2), so nobody solicits or
    accepts router advertisements; addresses are set, not formed from prefixes. Redirects are not accepted, as for IPv4. The hop
    limit is IPv4's above.

    `disable_ipv6` comes last: a device that is up gets its link-local address by it, with the detection as it is then."""
    values = {
        "accept_dad": 0, "dad_transmits": 0, "accept_ra": 0, "autoconf": 0, "router_solicitations": 0, "accept_redirects": 0,
        "hop_limit": 255, "disable_ipv6": 0,
    }  # fmt: skip
    return {f"net.ipv6.conf.{device}.{name}": value for name, value in values.items()}
