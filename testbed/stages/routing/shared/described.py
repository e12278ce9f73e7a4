"""Daemons that a description names (docs/extend.md): one of routing/third-party, or the user's own.

Order of a run: kernel module, state of the radio, files, helpers, daemon. A run keeps in `routing/` the description as
description.json, the rendered files <station>.<name>, the `status` commands as status-commands.json, and what they printed as
<station>.status.txt.
"""

import json
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path, PurePosixPath
from typing import Any

from scenarios import placeholders
from scenarios.daemon_description import Command, Description, Module, Ready
from testbed.errors import RunError
from testbed.host import namespace
from testbed.stages import iproute
from testbed.stages.addresses import routes_of_groups
from testbed.stages.routing import Network, RunningProtocol, Say
from testbed.stages.routing.shared.quickack import metrics_kept
from testbed.stages.routing.shared.settle import wait_until_settled
from testbed.stages.routing.shared.station_processes import StationDaemons, StationProcesses
from testbed.stages.routing.shared.third_party import Sign, processes_running
from testbed.stages.site import SOCKETS
from testbed.stages.station import Station, ipv6_sysctls
from topologies.addresses import (
    NETWORK,
    NETWORK6,
    PREFIX6_BITS,
    PREFIX_BITS,
    eui_64,
    ip6_address,
    link_local_address,
)

PREFIX = f"{NETWORK}/{PREFIX_BITS}"
STATUS_COMMANDS = "status-commands.json"
PREFIX6 = f"{NETWORK6}/{PREFIX6_BITS}"
STATUS_DEADLINE_S = 5.0
AFTER_START_DEADLINE_S = 30.0


@dataclass(frozen=True)
class Rendering:
    """A description's templates, filled in for the stations of a network."""

    network: Network
    description: Description

    def files(self, station: Station) -> dict[str, str]:
        """The content of each file, by its name."""
        return {file.name: placeholders.lines_filled(file.content, self._values(station)) for file in self.description.files}

    def words(self, station: Station, command: Command) -> list[str]:
        """The words of a command, without the programs around it."""
        return placeholders.words_filled(command, self._values(station))

    def text(self, station: Station, template: str) -> str:
        """Any other text."""
        values = self._values(station)
        return placeholders.filled(template, values.station, values.files)

    def argv(self, station: Station, command: Command, *, apart: bool = False) -> list[str]:
        """The words to start: in a mount namespace with folders of its own, and after a wait, if the description says so."""
        words, folders, start = self.words(station, command), self.description.private_folders, self.description.start_apart
        steps = [f"mount -t tmpfs {shlex.quote(PurePosixPath(path).name)} {shlex.quote(path)} && " for path in folders]
        if apart and start is not None:
            steps.append(f"sleep {start.seconds * ((station.number - 1) % start.groups):g}; ")
        if not steps:
            return words
        own_mounts = ["unshare", "--mount", "--propagation", "private"] if folders else []
        return [*own_mounts, "sh", "-c", f"{''.join(steps)}exec {shlex.join(words)}"]

    def status_commands(self, station: Station) -> list[list[str]]:
        """The words of the description's `status` commands."""
        return [self.words(station, command) for command in self.description.status]

    def sign(self, ready: Ready | None, station: Station) -> Sign:
        """The sign that a process of the station works."""
        if ready is None:
            return Sign()
        file = None if ready.file is None else self.text(station, ready.file)
        return Sign(ready.udp, ready.tcp, file, ready.text)

    def radio_lines(self, station: Station) -> list[str]:
        """The lines of ip(8) that bring the radio into the described state; empty for the default."""
        radio, address, device = self.description.radio, f"{station.IP()}/{PREFIX_BITS}", station.radio.name
        lines = []
        if radio.address == "host":
            lines += [f"address delete {address} dev {device}", f"address add {station.IP()}/32 dev {device}"]
        if radio.broadcast:  # `address change` leaves the broadcast address as it is
            lines += [
                f"address delete {address} dev {device}",
                f"address add {address} broadcast + dev {device} noprefixroute",
            ]
        if lines:  # the routes went with the address
            lines += routes_of_groups(device)
        if radio.prefix_route:
            lines.append(f"route add {PREFIX} dev {device} scope link src {station.IP()}")
        routes = placeholders.lines_filled("\n".join(radio.routes), self._values(station)).splitlines()
        return lines + [f"route add {line}" for line in routes]

    def sysctls(self, station: Station) -> dict[str, object]:
        """The sysctls of the station's namespace."""
        radio = self.description.radio
        return (ipv6_sysctls(station.radio.name) if radio.link_local else {}) | {
            self.text(station, key): self.text(station, value) if isinstance(value, str) else int(value)
            for key, value in radio.sysctls.items()
        }

    def _values(self, station: Station) -> placeholders.Values:
        site, paths = self.network.site, self._paths(station)
        own = {
            **site.scenario.routing.options(),
            "station": station.name,
            "number": station.number,
            "stations": len(self.network.stations),
            "interface": station.radio.name,
            "address": station.IP(),
            "network": PREFIX,
            "prefix_bits": PREFIX_BITS,
            "ipv6": "",
            "address6": ip6_address(station.number),
            "network6": PREFIX6,
            "prefix6_bits": PREFIX6_BITS,
            "link_local": link_local_address(station.MAC()),
            "mac": station.MAC(),
            "router_id": eui_64(station.MAC()),
            "mtu": site.scenario.mtu,
            "seed": site.seed,
            "config": next(iter(paths.values()), ""),
            "state": state_folder(station),
        }
        networks = [IPv4Network(wire) for wire in self.network.wires_of(station)]
        wires = [
            {"wire": str(net), "wire_address": net.network_address, "wire_netmask": net.netmask, "wire_bits": net.prefixlen}
            for net in networks
        ]
        networks6 = [IPv6Network(wire) for wire in self.network.wires6_of(station)]
        wires6 = [{"wire6": str(net), "wire6_address": net.network_address, "wire6_bits": net.prefixlen} for net in networks6]
        return placeholders.Values(own, paths, wires, wires6, site.scenario.ipv6)

    def _paths(self, station: Station) -> dict[str, str]:
        folder = self.network.site.directory / "routing"
        return {file.name: str(folder / f"{station.name}.{file.name}") for file in self.description.files}


class DescribedDaemons(StationDaemons):
    """The daemons of all stations; stations are reached over the radio and the description's further devices."""

    def __init__(
        self, network: Network, rendering: Rendering, helpers: list[StationProcesses], daemons: StationProcesses
    ) -> None:
        super().__init__(network, daemons)
        self.rendering, self.helpers = rendering, helpers

    def before_traffic(self, say: Say) -> None:
        """Wait for routes between the ends of all flows, at most `routing.settle` seconds, if the daemon is proactive."""
        description = self.rendering.description
        if description.settle is None:
            return
        radios = (station.radio.name for station in self.network.stations)
        devices, ignored = (*radios, *description.devices), PREFIX if description.radio.prefix_route else None
        wait_until_settled(self.network, say, devices=devices, ignored_route=ignored)

    def processes(self) -> dict[str, list[int]]:
        """See `RunningProtocol`."""
        kinds = [*self.helpers, self.daemons]
        return {
            station.name: [kind.running[station].pid for kind in kinds if station in kind.running]
            for station in self.network.stations
        }

    def status_texts(self) -> dict[str, str]:
        """The output of the description's `status` commands."""
        texts = {}
        for station in self.network.stations if self.rendering.description.status else []:
            printed = [output_of(words, station.netns) for words in self.rendering.status_commands(station)]
            texts[station.name] = "".join(printed)
        return texts


@contextmanager
def running(network: Network) -> Iterator[RunningProtocol]:
    """See `testbed.stages.routing`; every process has shown the sign of the description on entry."""
    routing = network.site.scenario.routing
    assert routing.DESCRIPTION is not None
    rendering, description = Rendering(network, routing.DESCRIPTION), routing.DESCRIPTION
    with ExitStack() as stages:
        stages.enter_context(_module_loaded(description.module, rendering))
        _prepare(rendering)
        helpers = []
        for helper in description.helpers:
            argv = partial(rendering.argv, command=helper.command)
            sign = partial(rendering.sign, helper.ready)
            name = f"{routing.protocol}-{helper.name}"
            running_helpers = processes_running(network, name, argv, sign, stop=description.stop_signal())
            helpers.append(stages.enter_context(running_helpers))
        known: set[Station] = set()

        def argv_of_daemon(station: Station) -> list[str]:
            apart = station not in known  # a daemon that an event starts again does not wait
            known.add(station)
            return rendering.argv(station, description.command, apart=apart)

        sign, ready = partial(rendering.sign, description.ready_sign()), partial(_after_start, rendering)
        daemons = stages.enter_context(
            processes_running(network, routing.protocol, argv_of_daemon, sign, stop=description.stop_signal(), ready=ready)
        )
        stages.enter_context(metrics_kept(network))
        yield DescribedDaemons(network, rendering, helpers, daemons)


def state_folder(station: Station) -> Path:
    """The station's scratch folder, in the run's own folder in memory."""
    return SOCKETS / "routing" / station.name


def _prepare(rendering: Rendering) -> None:
    network, description = rendering.network, rendering.description
    folder = network.site.folder("routing")
    (folder / "description.json").write_text(description.model_dump_json(indent=1, exclude_unset=True) + "\n")
    commands = {station.name: rendering.status_commands(station) for station in network.stations}
    (folder / STATUS_COMMANDS).write_text(json.dumps(commands, indent=1) + "\n")
    for station in network.stations:
        state_folder(station).mkdir(parents=True, exist_ok=True)
        for name, content in rendering.files(station).items():
            (folder / f"{station.name}.{name}").write_text(content)
        if sysctls := rendering.sysctls(station):
            namespace.within(station.netns, partial(namespace.write_sysctls, sysctls))
    iproute.batches({station: rendering.radio_lines(station) for station in network.stations}, "radio", network.site.log)


def _after_start(rendering: Rendering, stations: list[Station]) -> None:
    """Run the commands that follow the start, at all these stations in parallel; RunError for one that fails."""
    for command in rendering.description.after_start:
        running_now = []
        for station in stations:
            argv = rendering.words(station, command)
            running_now.append((station, argv, namespace.within(station.netns, partial(_started, argv))))
        for station, argv, process in running_now:
            try:
                output, _ = process.communicate(timeout=AFTER_START_DEADLINE_S)
                problem = f"ended with status {process.returncode}" if process.returncode else ""
            except subprocess.TimeoutExpired:
                process.kill()
                output, problem = process.communicate()[0], f"no end within {AFTER_START_DEADLINE_S:g} s"
            if problem:
                last = (output.strip().splitlines() or ["no output"])[-1]
                raise RunError(f'{station.name}: {shlex.join(argv)}: {problem}: "{last[:300]}"; correct after_start')


def _started(argv: list[str]) -> subprocess.Popen[str]:
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        return subprocess.Popen(argv, text=True, errors="replace", **pipes)
    except OSError as problem:
        raise RunError(f"{argv[0]}: {problem.strerror}; `manet doctor` says how to get it") from None


@contextmanager
def _module_loaded(module: Module | None, rendering: Rendering) -> Iterator[None]:
    """Load a module anew when the radios exist; one that is loaded before there are stations is preflight's."""
    if module is None or module.load == "before":
        yield
        return
    _modprobe("-r", module.name)
    first = rendering.network.stations[0]
    _modprobe(module.name, *(rendering.text(first, word) for word in module.parameters))
    try:
        yield
    finally:
        _modprobe("-r", module.name)


def _modprobe(*words: str) -> None:
    done = subprocess.run(["modprobe", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunError(f"modprobe {' '.join(words)}: {done.stderr.strip()}; see `manet doctor`")


def output_of(argv: list[str], netns: Path) -> str:
    """A `status` command and its output. A daemon that does not answer is no failure of the run: the text says so."""
    options: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace", "timeout": STATUS_DEADLINE_S}
    try:
        done = namespace.within(netns, lambda: subprocess.run(argv, stdin=subprocess.DEVNULL, check=False, **options))
    except (OSError, subprocess.TimeoutExpired) as problem:
        return f"# {shlex.join(argv)}\n# {problem}\n"
    failed = f"# ended with status {done.returncode}\n" if done.returncode else ""
    return f"# {shlex.join(argv)}\n{done.stdout}{done.stderr}{failed}"
