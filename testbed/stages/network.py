"""The stages up to a usable network: stations, medium, addresses, routes."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from record.files import read_json
from testbed.host import station_pids
from testbed.host.processes import Processes
from testbed.stages import addresses, iproute, kernel_tcp, routing
from testbed.stages.containers import containers_up
from testbed.stages.medium import medium_running
from testbed.stages.mininet_wifi import stations_of_mininet_wifi
from testbed.stages.process_usage import FORMAT as USAGE_FORMAT
from testbed.stages.process_usage import usage_of
from testbed.stages.routing import Network, RunningProtocol
from testbed.stages.site import Site
from testbed.stages.station import host_sysctls, stations_up
from testbed.stages.uplink import uplinks_up

STATUS_FORMAT = "manet-routing-status/1"
SHELL_REMEDY = "somebody else ended it; what was captured is kept; run it again"


@contextmanager
def network_up(
    site: Site, children: Processes, say: Callable[..., None], *, shells_are_users: bool = False
) -> Iterator[tuple[Network, RunningProtocol]]:
    """All stations up with the scenario's routing at work; undone in the opposite order. `shells_are_users`: at a prompt and in
    a script a user may end a station's shell and gets another (station.py); in a run its end is a failure."""
    with ExitStack() as stages:
        say("stations")
        by_mininet_wifi = site.scenario.net == "mininet-wifi"
        homes = stages.enter_context(stations_of_mininet_wifi(site, children)) if by_mininet_wifi else {}
        kernel_tcp.prepare_namespaces()
        pids, names = stages.enter_context(station_pids.opened()), site.scenario.station_names()
        net = stages.enter_context(stations_up(names, site.scenario.wires, homes, site.scenario.interface, pids))
        for number, radio in site.scenario.further_radios().items():
            net[radio.station].add_radio(radio.name, number)
        if not shells_are_users:
            shells = [children.adopt(host.name, host.shell, SHELL_REMEDY) for host in net.hosts]
            stages.callback(children.release, shells)
        stages.enter_context(containers_up(site, net, children))
        kernel_tcp.set_sysctls(site.scenario, net, host_sysctls(site.scenario))
        kernel_tcp.prepare_windows(site.scenario, net)
        say("medium")
        medium = stages.enter_context(medium_running(site, net, children))
        addresses.assign(site, net)
        stages.enter_context(uplinks_up(site, net))
        say("routing")
        network = Network(site, net, medium, children)
        began_ns = medium.ask("status")["model_ns"]
        protocol = stages.enter_context(routing.running(network))
        protocol.began_ns = began_ns
        yield network, protocol


def write_routes(network: Network, protocol: RunningProtocol, when: str) -> None:
    """At the `start` or `end` of the traffic: each host's kernel tables, appended to routes/<name>.txt, and the status of
    its routing daemon, into routing/<name>.status.json or, of a third-party one, appended to routing/<name>.status.txt. Before
    them what the daemons have used, into routing/usage.json."""
    _write_usage(network, protocol, when)
    network.site.folder("routes")
    hosts = network.net.hosts
    for station, (table, neighbours) in zip(hosts, iproute.tables(hosts), strict=True):
        text = f"# at the {when} of the traffic\n{table}# neighbours\n{neighbours}"
        network.site.write(f"routes/{station.name}.txt", text, append=True)
    for name, status in protocol.status().items():
        path = network.site.folder("routing") / f"{name}.status.json"
        before = read_json(path) if path.exists() else {"format": STATUS_FORMAT}
        # in one line: with indents the table of one of 300 stations takes 64 ms of CPU, nine times as much
        network.site.write(f"routing/{path.name}", json.dumps({**before, when: status}) + "\n")
    for name, text in protocol.status_texts().items():
        with (network.site.folder("routing") / f"{name}.status.txt").open("a") as file:
            file.write(f"# at the {when} of the traffic\n{text}")


def _write_usage(network: Network, protocol: RunningProtocol, when: str) -> None:
    """Add what the daemons have used until now to routing/usage.json; no file without daemons."""
    used = {name: usage_of(pids) for name, pids in protocol.processes().items()}
    if not used:
        return
    path = network.site.folder("routing") / "usage.json"
    before = read_json(path) if path.exists() else {"format": USAGE_FORMAT}
    model_ns = network.medium.ask("status")["model_ns"]
    content = {**before, when: {"model_ns": model_ns, "stations": used}}
    network.site.write(f"routing/{path.name}", json.dumps(content, indent=1) + "\n")
