"""Checks before anything is started: by the medium (radio profile and its overrides, propagation, trace), by our routing daemons
(their options), of the kernel (the flows' TCPs), and of the programs that flows name.

`check` is for one run; a campaign checks all of its cells before the first run starts."""

import csv
import json
import math
import re
import resource
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from analysis.metrics.radio_range import kernel_rates_of, range_of, reach
from mobility import measured
from scenarios.radios import overridden
from scenarios.routing import OWN_DAEMONS
from scenarios.scenario import Scenario
from scenarios.tcp import Tcp
from scenarios.tcp_names import table
from testbed.errors import KeyRefused, UsageError, shortened
from testbed.host.algorithms import require_algorithm, require_struct_ops
from testbed.host.images import unpacked
from testbed.host.mininet_wifi import require_net
from testbed.host.protocols import require_protocol
from testbed.host.requirements import IPV6, IPV6_REMEDY, require_capture, require_radios, require_uplink
from testbed.host.run_queue import MAX_KEPT
from testbed.programs import BUILT, Programs
from testbed.stages import kernel_tcp
from testbed.stages.daemon import daemon_config
from testbed.stages.measured import write_links
from testbed.stages.medium import medium_config, planned_config
from testbed.stages.movement import write_trace
from testbed.stages.routing import static
from testbed.stages.site import Site
from topologies.connectivity import both_ways, hop_counts

# Open files of a run, as counted in /proc for chains of 20 and 40 stations. The medium is a process with its own limit; it needs
# three for each station.
BASE_FILES = 64  # standard streams, pipes, logs, sockets to the medium, files that a library opens briefly
FILES_PER_NODE = 8  # network namespace; two pidfds and both ends of the terminal of the shell; three sockets (host/changes.py)
FILES_OF_WAIT = 2  # of a routing daemon, up to MAX_KEPT of them (host/run_queue.py)
FILES_PER_CONTAINER = 4  # a pidfd each of its pid 1 and its command, its pid and user namespaces
FILES_PER_FLOW = 12  # pidfds of sender and receiver, their files; two files of the waits of each and of its child

# Of medium.json, the keys that decide who is in range: not the links' error rates and fading, nor interference, since no two send
# at once.
LINK_KEYS = ("format", "seed", "radio", "radio_overrides", "propagation", "walls", "stations", "hwsim")
SLOT_S = 1.0  # for the broadcast of each station; the slowest profile takes a hundredth of it
IP_BYTES = 29  # the smallest packet that the medium takes
LOADED = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
ROUNDED_DB = 0.05  # of a power in the air log

# The medium's refusal of a key that the scenario sets in its profile
OVERRIDE = re.compile(r'key "radio_overrides\.([\w.]+)": (.*)')

_checked_routing: set[object] = set()  # inputs that daemons have accepted in this process
# The key that places the stations of a layout.
PLACED_BY = {
    "chain": "spacing", "grid": "spacing", "cross": "spacing", "random": "area", "positions": "positions", "unplaced": "nodes",
}  # fmt: skip


def check(scenario: Scenario, seed: int, programs: Programs, place: str = "scenario", *, allow_internet: bool = False) -> None:
    """UsageError for the first thing that the scenario needs and this machine lacks, or that a program would refuse; `place` (an
    experiment, a script) is named where a TCP is."""
    check_machine([scenario], programs, place, allow_internet=allow_internet)
    check_programs({"scenario": scenario}, seed, programs)


def check_machine(scenarios: Sequence[Scenario], programs: Programs, place: str, *, allow_internet: bool = False) -> None:
    """UsageError for the first thing that a run of one of the scenarios needs and this machine lacks, or the user did not
    allow."""
    if kernel_tcp.by_routes():
        for scenario in scenarios:
            check_without_root(scenario, place)
    for scenario in scenarios:
        check_open_files(scenario)
    for scenario in scenarios:
        _check_uplink(scenario, place, allowed=allow_internet)
        _check_ipv6(scenario, place)
    check_protocols(scenarios, programs)
    check_tcps((tcp for scenario in scenarios for tcp in scenario.tcps()), place, programs)
    for scenario in scenarios:
        if not kernel_tcp.by_routes():  # a route takes any
            kernel_tcp.require_rto_min(scenario)
        kernel_tcp.require_sysctls(scenario)
    for program in sorted({scenario.capture_program for scenario in scenarios}):
        require_capture(program)
    for radios in sorted({scenario.radio_devices for scenario in scenarios}):
        require_radios(radios)
    for net in sorted({scenario.net for scenario in scenarios}):
        require_net(net)


def check_without_root(scenario: Scenario, place: str) -> None:
    """KeyRefused for the first key that needs root of the machine (docs/rootless.md)."""
    refused = _needing_root(scenario)
    if refused is not None:
        key, text = refused
        raise KeyRefused(place, scenario, key, f"{text} needs root; run it with sudo")
    loaded = LOADED.read_text().split()
    for path, tcp in ((("tcp",), scenario.tcp), *((("flows", i, "tcp"), flow.tcp) for i, flow in enumerate(scenario.flows))):
        if tcp is None:
            continue
        if tcp.kernel_algorithm is not None and tcp.kernel_algorithm not in loaded:
            require_algorithm(tcp.kernel_algorithm, place, list(table()))  # one that is not even a module, as for root
        if tcp.wants_struct_ops:
            what = "its layers are" if tcp.layers else "the algorithm is"
            text = f'"{tcp.spelled}": {what} eBPF, which needs root; run it with sudo, or take newreno'
            raise KeyRefused(place, scenario, path, text)
        if tcp.kernel_algorithm not in loaded:
            text = f'"{tcp.spelled}": not among the loaded algorithms ({", ".join(loaded)}), and loading one needs root'
            raise KeyRefused(place, scenario, path, f"{text}: sudo modprobe tcp_{tcp.kernel_algorithm}")
    kernel_tcp.require_one_tcp(scenario, place)


def _needing_root(scenario: Scenario) -> tuple[tuple[str | int, ...], str] | None:
    """The first key that needs root, and what it asks for; without those of TCP."""
    if scenario.radio_devices == "hwsim":
        return ("stations",), "a radio of mac80211_hwsim"
    if scenario.net == "mininet-wifi":
        return ("net",), "a network of Mininet-WiFi"
    for index, wire in enumerate(scenario.wires):
        if wire.nat:
            return ("wires", index, "nat"), "a wire to the real network"
    for index, container in enumerate(scenario.containers):
        for key in ("sandbox", *container.limits):
            if getattr(container, key):
                return ("stations", index, key), "a user id of its own" if key == "sandbox" else "a control group"
    if scenario.capture_program == "tcpdump":
        return ("capture_program",), "tcpdump, which changes its user,"
    if scenario.rto_initial is not None:
        return ("rto_initial",), "the first timeout, which eBPF sets,"
    return None


def check_protocols(scenarios: Iterable[Scenario], programs: Programs, *, own_kernel: bool = True) -> None:
    """UsageError for the first routing protocol that cannot run here; without `own_kernel` in guests of this machine."""
    daemons = {type(scenario.routing): scenario.routing for scenario in scenarios}.values()
    for routing in sorted(daemons, key=lambda each: each.protocol):
        require_protocol(routing.protocol, routing.DESCRIPTION, programs=programs, own_kernel=own_kernel)


def _check_ipv6(scenario: Scenario, place: str) -> None:
    if IPV6.exists() or not (scenario.ipv6 or scenario.routing.needs_ipv6):
        return
    key = ("ipv6",) if scenario.ipv6 else ("routing",)
    raise KeyRefused(place, scenario, key, f"this kernel has no IPv6; {IPV6_REMEDY}")


def _check_uplink(scenario: Scenario, place: str, *, allowed: bool) -> None:
    wire = next((index for index, wire in enumerate(scenario.wires) if wire.nat), None)
    if wire is None:
        return
    try:
        require_uplink(allowed=allowed)
    except UsageError as problem:
        raise KeyRefused(place, scenario, ("wires", wire, "nat"), str(problem)) from None


def check_programs(scenarios: Mapping[str, Scenario], seed: int, programs: Programs) -> None:
    """UsageError, which names the scenario, for the first one that the medium or its routing daemon would refuse. Equal
    parts of scenarios are checked once: by the medium here, since the movement depends on the seed; by a daemon in the
    whole process, since all runs of a campaign have the same options."""
    checked: set[object] = set()
    for name, scenario in scenarios.items():
        check_own_programs(scenario, name)
        _check_images(scenario, name)
        for key, done, check_part in (
            (_of_medium(scenario, seed), checked, check_medium),
            (_of_routing(scenario, programs), _checked_routing, check_routing),
        ):
            if key not in done:
                check_part(scenario, seed, programs, name)
                done.add(key)


def check_paths(scenarios: Mapping[str, Scenario], seeds: Sequence[int], programs: Programs) -> None:
    """UsageError, which names scenario and flow, if static routes can never carry a flow. If stations move, or the links
    differ between several seeds or over time, the run itself checks (testbed/stages/routing/static.py)."""
    links: dict[str, list[tuple[str, str]]] = {}
    for name, scenario in scenarios.items():
        if scenario.routing.protocol != "static" or scenario.mobility.moving or (len(seeds) > 1 and _by_seed(scenario)):
            continue
        if scenario.propagation.file is not None:  # its links are those of the moment
            _check_measured(name, scenario, scenario.propagation.file)
            continue
        config = _broadcasts_config(scenario, seeds[0] if _by_seed(scenario) else 1)
        if config not in links:
            links[config] = _start_links(config, programs)
        _check_paths(name, scenario, config, links[config])


def links_at_start(scenario: Scenario, seed: int, programs: Programs) -> list[tuple[str, str]]:
    """The directed links between the places at the start, as `check_paths` has them; none of measured links, which change over
    time. Raises UsageError."""
    return [] if scenario.propagation.model == "trace" else _start_links(_broadcasts_config(scenario, seed), programs)


def links_key(scenario: Scenario, seed: int) -> str:
    """A text that is equal for scenarios and seeds with the same links at the start."""
    return _broadcasts_config(scenario, seed)


def _check_measured(name: str, scenario: Scenario, file: str) -> None:
    """Refuse a flow whose ends no measured links ever join; the links of one moment are the run's to check."""
    content = measured.read(Path(file), list(scenario.radio_numbers()))
    nothing = (None, 0.0) if content.column == "delivery" else (None,)
    cut_off = _cut_off(scenario, {(row.source, row.target) for row in content.rows if row.value not in nothing})
    if cut_off is not None:
        flow = scenario.flows[cut_off]
        text = f"no links of {file} lead from {flow.source} to {flow.target} and back, at any time; add them, or change the flow"
        raise KeyRefused(name, scenario, ("flows", cut_off), text)


def _by_seed(scenario: Scenario) -> bool:
    """Whether the links at the start depend on the seed."""
    return scenario.topology == "random" or scenario.propagation.model == "shadowing"


def _broadcasts_config(scenario: Scenario, seed: int) -> str:
    """The medium.json of a simulation in which each station sends one broadcast; equal for scenarios with the same links."""
    config = planned_config(scenario, seed)
    begins = [(station["name"], index * SLOT_S) for index, station in enumerate(config["stations"])]
    traffic = [
        {"from": name, "to": "*", "kind": "cbr", "bytes": IP_BYTES, "rate_bps": 8 * IP_BYTES / SLOT_S, "start_s": begin_s,
         "stop_s": begin_s + SLOT_S / 2}
        for name, begin_s in begins
    ]  # fmt: skip
    about_links = {key: config[key] for key in LINK_KEYS if key in config} | {
        "traffic": traffic,
        "outputs": {"air_log": "air.csv"},
    }
    return json.dumps(about_links | {"duration_s": len(begins) * SLOT_S})


def _start_links(config: str, programs: Programs) -> list[tuple[str, str]]:
    """Links between the initial positions, computed by the medium in virtual time. Directed pairs: the second receives what the
    first sends, data too: at the profile's rate, or at the lowest that its sender may choose."""
    medium = json.loads(config)
    profile = overridden(tomllib.loads(Path(medium["radio"]).read_text()), medium["radio_overrides"])
    needed_w = reach(profile, medium["propagation"], kernel_rates=kernel_rates_of(medium))["neighbour_w"]
    needed_dbm = 10 * math.log10(needed_w * 1000) - ROUNDED_DB
    with tempfile.TemporaryDirectory(prefix="manet-links-") as folder:
        path = Path(folder) / "medium.json"
        path.write_text(config)
        message = refusal(programs.medium, "sim", path)
        if message is not None:
            raise UsageError(f"scenario: {message}")
        with (Path(folder) / "air.csv").open(newline="") as file:
            delivered = (row for row in csv.DictReader(file) if row["event"] == "deliver")
            return [(row["peer"], row["station"]) for row in delivered if float(row["power_dbm"]) >= needed_dbm]


def _check_paths(name: str, scenario: Scenario, config: str, links: Sequence[tuple[str, str]]) -> None:
    cut_off = _cut_off(scenario, set(links))
    if cut_off is not None:
        key = "propagation.matrix" if scenario.propagation.matrix else PLACED_BY[scenario.topology]
        has_own_flows = "flows" in scenario.model_fields_set
        blamed, remedy = (f"flows.{cut_off}", ", or remove the flow") if has_own_flows else (key, "")
        flow = scenario.flows[cut_off]
        range_, more = _range(json.loads(config))
        text = f'key "{blamed}": {static.no_path(flow.source, flow.target)}; place the stations within range of each other'
        raise UsageError(f'{name}: {text}{range_} (key "{key}"){more}{remedy}')


def _range(medium: dict[str, Any]) -> tuple[str, str]:
    """For the refusal of a scenario without a path: the range of the mode or modes in use, and how to have a longer one. Both
    are empty if no single range exists, the second also without a longer one."""
    metres = range_of(medium)
    if metres is None:
        return "", ""
    adapting = medium | {"radio_overrides": medium["radio_overrides"] | {"rate_control": "minstrel-ht"}}
    if range_of(adapting) == metres or kernel_rates_of(medium):
        return f", {metres:.0f} m", ""
    at_a_fixed_rate = f", {metres:.0f} m at its fixed rate"
    if "hwsim" in medium:  # rate_control is for TAP radios
        by_kernel = medium | {"hwsim": medium["hwsim"] | {"rates": "kernel"}}
        return at_a_fixed_rate, f', or set hwsim.rates = "kernel", with which it is {range_of(by_kernel):.0f} m'
    return at_a_fixed_rate, f', or set rate_control = "minstrel-ht", with which it is {range_of(adapting):.0f} m'


def _cut_off(scenario: Scenario, links: set[tuple[str, str]]) -> int | None:
    """The number, from 0, of the first flow between whose ends no path of links in both directions leads."""
    neighbours = both_ways(scenario.station_names(), links)
    names = scenario.flow_names()
    flows = {flow: (ends.source, ends.target) for flow, ends in zip(names, scenario.flows, strict=True)}
    cut_off = static.without_path(flows, scenario.gateways(), cache(lambda source: hop_counts(neighbours, source)))
    return None if cut_off is None else list(names).index(cut_off)


def _of_medium(scenario: Scenario, seed: int) -> object:
    """The input of `check_medium`, without the movement, which follows from these values."""
    config = planned_config(scenario, seed)
    movement = scenario.mobility.model_dump_json()
    return json.dumps(
        [config, scenario.propagation.file, movement, scenario.area, scenario.traffic_at, scenario.traffic_seconds()]
    )


def _of_routing(scenario: Scenario, programs: Programs) -> object:
    """The input of `check_routing`, without the seed and the metrics of the routes, which no daemon refuses."""
    notices = (scenario.tcp_wants_notices, scenario.tcp_wants_error_notices, scenario.tcp_hears_unreachable)
    return (programs, scenario.routing.model_dump_json(), scenario.mtu, notices)


def check_open_files(scenario: Scenario, hard: int | None = None) -> None:
    """UsageError if the stations do not fit into the hard limit of open files (default: this process's)."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1] if hard is None else hard
    needed = open_files(scenario)
    if limit != resource.RLIM_INFINITY and needed > limit:
        raise UsageError(
            f"{len(scenario.station_names())} stations need up to {needed} open files, and the hard limit is {limit}; "
            f"raise it (ulimit -Hn {needed}, as root) and run again from that shell, or use fewer stations"
        )


def open_files(scenario: Scenario) -> int:
    """How many files a run of the scenario may have open at once."""
    stations, hosts = len(scenario.station_names()), len(scenario.host_names())
    daemons = 0 if scenario.routing.protocol in ("static", "none") else stations
    helpers = len(scenario.routing.DESCRIPTION.helpers) if scenario.routing.DESCRIPTION else 0
    per_nodes = FILES_PER_NODE * (stations + hosts) + (1 + helpers) * daemons + FILES_OF_WAIT * min(daemons, MAX_KEPT)
    per_container = FILES_PER_CONTAINER * len(scenario.containers)
    return BASE_FILES + per_nodes + per_container + _capturing_processes(scenario) + FILES_PER_FLOW * len(scenario.flows)


def _capturing_processes(scenario: Scenario) -> int:
    """The processes of testbed/stages/capture.py, each with a pidfd: one, or a tcpdump for each file."""
    if scenario.capture_program != "tcpdump":
        return 1
    of_routing = 0 if scenario.routing.udp_port is None else len(scenario.station_names())
    return len(scenario.radio_numbers()) + 2 * len(scenario.wires) + of_routing


def check_tcps(tcps: Iterable[Tcp], place: str, programs: Programs = BUILT) -> None:
    """UsageError, which names `place` (an experiment or its file), if this kernel cannot give a connection one of them."""
    distinct = dict.fromkeys(tcps)
    for algorithm in dict.fromkeys(tcp.kernel_algorithm for tcp in distinct):
        if algorithm is not None:
            require_algorithm(algorithm, place, list(table()))
    loaded = next((tcp for tcp in distinct if tcp.wants_struct_ops), None)
    if loaded is not None:
        require_struct_ops(loaded.spelled, place, programs)


def _check_images(scenario: Scenario, name: str) -> None:
    """UsageError, which names the key, for an image that cannot be unpacked; an image is unpacked here, before the first run."""
    for index, container in enumerate(scenario.containers):
        if container.image is None:
            continue
        try:
            unpacked(container.image)
        except UsageError as problem:
            raise KeyRefused(name, scenario, ("stations", index, "image"), str(problem)) from None


def check_own_programs(scenario: Scenario, name: str = "scenario") -> None:
    """UsageError, which names the key, if a program that a flow or an event names is neither a path of a program nor in PATH, or
    the program of a flow's kind is missing."""
    for index, flow in enumerate(scenario.flows):
        for program, package in flow.kind.programs.items():
            if shutil.which(program) is None:
                text = f'"{flow.traffic}" needs {program}, not found; apt-get install {package}'
                raise KeyRefused(name, scenario, ("flows", index, "traffic"), text)
    inside = {container.name for container in scenario.containers}  # a container's programs are its own
    named: list[tuple[tuple[str | int, ...], str]] = [
        (("flows", index, key), program)
        for index, flow in enumerate(scenario.flows)
        for key, program in flow.kind.own_programs(flow.own_keys()).items()
        if (flow.target if key == "server" else flow.source) not in inside
    ]
    named += [
        (("events", index, "command"), event.words[0])
        for index, event in enumerate(scenario.events)
        if event.words and event.station not in inside
    ]
    for path, program in named:
        if shutil.which(program) is None:
            reason = "no program at this path" if "/" in program else "not in PATH"
            text = f'"{shortened(program)}" is {reason}; install it, or write its full path'
            raise KeyRefused(name, scenario, path, text)


def check_medium(scenario: Scenario, seed: int, programs: Programs, name: str = "scenario") -> None:
    """UsageError with the medium's message (`manet-medium check`) if it would refuse the scenario."""
    with tempfile.TemporaryDirectory(prefix="manet-check-") as folder:
        site = Site(scenario, seed, Path(folder), cgroup=Path("/"), programs=programs)
        write_trace(site)
        write_links(site)
        config = {**medium_config(site, {}), "duration_s": scenario.traffic_seconds()}
        path = site.directory / "medium.json"
        path.write_text(json.dumps(config))
        message = refusal(programs.medium, "check", path)
    if message is not None:
        raise _refused(message, scenario, name)


def _refused(message: str, scenario: Scenario, name: str) -> UsageError:
    """The medium's refusal, of a key of the radio as that of the scenario, whose line then is named."""
    found = OVERRIDE.match(message)
    if found is None:
        return UsageError(f"{name}: {message}")
    return KeyRefused(name, scenario, scenario.place_of_radio_key(tuple(found[1].split("."))), found[2])


def check_routing(scenario: Scenario, seed: int, programs: Programs, name: str = "scenario") -> None:
    """UsageError with the daemon's message, if the protocol has our own daemon and it would refuse its options."""
    protocol = scenario.routing.protocol
    if protocol not in OWN_DAEMONS:
        return
    with tempfile.TemporaryDirectory(prefix="manet-check-") as folder:
        site = Site(scenario, seed, Path(folder), cgroup=Path("/"), programs=programs)
        config = site.directory / "config.json"
        config.write_text(json.dumps(daemon_config(site, "sta1", 1, wires=[], mtu=scenario.mtu, epoch_ns=0)))
        message = refusal(programs.daemon(protocol), "check", config)
    if message is None:
        return
    message = message.removeprefix('key "options": ')
    option, _, rest = message.partition(": ")
    is_option = option in type(scenario.routing).model_fields
    path, text = (("routing", option), rest) if is_option else (("routing",), message)
    raise KeyRefused(name, scenario, path, text if ";" in text else f"{text}; correct it")


def refusal(program: Path, verb: str, path: Path) -> str | None:
    """The message with which `program verb path` refuses the file, without temporary names; None if it accepts the file."""
    try:
        done = subprocess.run([program, verb, path], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise UsageError(f"{program}: not built; run ./setup.sh") from None
    if done.returncode == 0:
        return None
    lines = (done.stderr or done.stdout).strip().splitlines() or ["refused without a word"]
    return lines[-1].removeprefix(f"{program.name}: ").replace(f"{path}: ", "").replace(f"{path.parent}/", "")
