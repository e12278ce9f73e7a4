"""The stages from nothing to a network one can use: stations, medium, addresses, routes."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from testbed.host.processes import Processes
from testbed.stages import addresses, iproute, kernel_tcp, routing
from testbed.stages.medium import medium_running
from testbed.stages.routing import Network
from testbed.stages.site import Site
from testbed.stages.station import host_sysctls, stations_up

SHELL_REMEDY = "its namespace is lost; what was captured is kept; run it again"


@contextmanager
def network_up(site: Site, children: Processes, say: Callable[..., None]) -> Iterator[Network]:
    """All stations reachable as the scenario's routing has it; undone in the opposite order."""
    with ExitStack() as stages:
        say("stations")
        net = stages.enter_context(stations_up(site.scenario.station_names(), site.scenario.wires))
        shells = [children.adopt(host.name, host.shell, SHELL_REMEDY) for host in net.hosts]
        stages.callback(children.release, shells)
        kernel_tcp.set_sysctls(net, {**host_sysctls(site.scenario), **kernel_tcp.sysctls(site.scenario)})
        say("medium")
        medium = stages.enter_context(medium_running(site, net, children))
        addresses.assign(site, net)
        say("routing")
        network = Network(site, net, medium, children)
        stages.enter_context(routing.running(network))
        yield network


def write_routes(network: Network, when: str) -> None:
    """Append each station's and wired host's routes and neighbours to routes/<name>.txt."""
    folder = network.site.folder("routes")
    for station in network.net.hosts:
        text = f"# {when}\n{iproute.ask(station, 'route', 'show', 'table', 'all')}"
        text += f"# neighbours\n{iproute.ask(station, 'neighbour', 'show')}"
        with (folder / f"{station.name}.txt").open("a") as file:
            file.write(text)
