"""What only the programs can judge, asked before anything is started: the medium (radio profile and its overrides,
propagation, trace) and our routing daemons (their options); and the kernel's part, whether it has the flows' TCPs."""

import json
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from testbed.errors import UsageError
from testbed.host.algorithms import require_algorithm, require_struct_ops
from testbed.host.mininet_wifi import require_net
from testbed.host.protocols import require_protocol
from testbed.host.radios import require_radios
from testbed.programs import BUILT, Programs
from testbed.scenarios.routing import OUR_DAEMONS
from testbed.scenarios.scenario import Scenario
from testbed.scenarios.tcp import Tcp
from testbed.scenarios.tcp_names import table
from testbed.stages.daemon import daemon_config
from testbed.stages.medium import medium_config, write_trace
from testbed.stages.site import Site


def check(scenario: Scenario, seed: int, programs: Programs, place: str = "scenario") -> None:
    """UsageError for the first thing that the scenario needs and this machine lacks, or that a program would refuse; `place` (an
    experiment, a script) is named where a TCP is."""
    require_protocol(scenario.routing.protocol, programs=programs)
    check_tcps(scenario.tcps(), place, programs)
    require_radios(scenario.stations)
    require_net(scenario.net)
    check_medium(scenario, seed, programs)
    check_routing(scenario, seed, programs)


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
