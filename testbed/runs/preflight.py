"""What only the programs can judge, asked before anything is started: the medium (radio profile and its overrides,
propagation, trace) and our routing daemons (their options); and the kernel's part, whether it has the flows' TCPs."""

import json
import resource
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from scenarios.routing import OUR_DAEMONS
from scenarios.scenario import Scenario
from scenarios.tcp import Tcp
from scenarios.tcp_names import table
from testbed.errors import UsageError
from testbed.host.algorithms import require_algorithm, require_struct_ops
from testbed.host.mininet_wifi import require_net
from testbed.host.protocols import require_protocol
from testbed.host.radios import require_radios
from testbed.programs import BUILT, Programs
from testbed.stages.daemon import daemon_config
from testbed.stages.medium import medium_config, write_trace
from testbed.stages.site import Site

# What a run holds open at once; the medium, which has a process and a limit of its own, needs three for a station.
BASE_FILES = 64  # standard streams, pipes, logs, sockets to the medium, what a library opens for a moment
FILES_PER_NODE = 4  # both ends of the shell's terminal, a pidfd each of the shell and of its tcpdump
FILES_PER_ROUTING_DAEMON = 2  # a pidfd each of the daemon and of the tcpdump of its packets
FILES_PER_WIRE = 1  # a pidfd of the tcpdump at the gateway's end
FILES_PER_FLOW = 4  # pidfds of sender and receiver, their files


def check(scenario: Scenario, seed: int, programs: Programs, place: str = "scenario") -> None:
    """UsageError for the first thing that the scenario needs and this machine lacks, or that a program would refuse; `place` (an
    experiment, a script) is named where a TCP is."""
    check_open_files(scenario)
    require_protocol(scenario.routing.protocol, programs=programs)
    check_tcps(scenario.tcps(), place, programs)
    require_radios(scenario.stations)
    require_net(scenario.net)
    check_medium(scenario, seed, programs)
    check_routing(scenario, seed, programs)


def check_open_files(scenario: Scenario, hard: int | None = None) -> None:
    """UsageError if the stations do not fit into the hard limit of open files (default: this process's)."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1] if hard is None else hard
    wanted = open_files(scenario)
    if limit != resource.RLIM_INFINITY and wanted > limit:
        raise UsageError(
            f"{len(scenario.station_names())} stations need up to {wanted} open files, and the hard limit is {limit}; "
            f"raise it (ulimit -Hn {wanted}, as root) and run again from that shell, or use fewer stations"
        )


def open_files(scenario: Scenario) -> int:
    """How many files a run of the scenario may have open at once."""
    stations, hosts = len(scenario.station_names()), len(scenario.host_names())
    daemons = 0 if scenario.routing.protocol in ("static", "none") else stations
    per_nodes = FILES_PER_NODE * (stations + hosts) + FILES_PER_ROUTING_DAEMON * daemons
    return BASE_FILES + per_nodes + FILES_PER_WIRE * len(scenario.wires) + FILES_PER_FLOW * len(scenario.flows)


def check_tcps(tcps: Iterable[Tcp], place: str, programs: Programs = BUILT) -> None:
    """UsageError, which names `place` (an experiment or its file), if this kernel cannot give a connection one of them."""
    asked = dict.fromkeys(tcps)
    for algorithm in dict.fromkeys(tcp.kernel_algorithm for tcp in asked):
        if algorithm is not None:
            require_algorithm(algorithm, place, list(table()))
    ours = next((tcp for tcp in asked if tcp.wants_struct_ops), None)
    if ours is not None:
        require_struct_ops(ours.spelled, place, programs)


def check_medium(scenario: Scenario, seed: int, programs: Programs) -> None:
    """UsageError with the medium's own words (`manet-medium check`) if it would refuse the scenario."""
    with tempfile.TemporaryDirectory(prefix="manet-check-") as folder:
        site = Site(scenario, seed, Path(folder), cgroup=Path("/"), programs=programs)
        write_trace(site)
        config = {**medium_config(site, {}), "duration_s": scenario.traffic_seconds()}
        path = site.directory / "medium.json"
        path.write_text(json.dumps(config))
        done = subprocess.run([programs.medium, "check", path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UsageError(f"scenario: {_words(done, 'manet-medium', path)}")


def check_routing(scenario: Scenario, seed: int, programs: Programs) -> None:
    """UsageError with the words of the protocol's daemon, if it is one of ours and would refuse its options."""
    protocol = scenario.routing.protocol
    if protocol not in OUR_DAEMONS:
        return
    with tempfile.TemporaryDirectory(prefix="manet-check-") as folder:
        site = Site(scenario, seed, Path(folder), cgroup=Path("/"), programs=programs)
        path = site.directory / "config.json"
        path.write_text(json.dumps(daemon_config(site, "sta1", 1, wires=[], mtu=scenario.mtu, epoch_ns=0)))
        done = subprocess.run([programs.daemon(protocol), "check", path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UsageError(f'scenario: key "routing": {_words(done, f"manet-{protocol}", path)}')


def _words(done: subprocess.CompletedProcess, name: str, path: Path) -> str:
    """The program's error, without the names of what was there for the question only."""
    lines = (done.stderr or done.stdout).strip().splitlines() or ["refused without a word"]
    return lines[-1].removeprefix(f"{name}: ").replace(f"{path}: ", "").replace(f"{path.parent}/", "")
