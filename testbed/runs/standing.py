"""The network of a scenario without its traffic: what the prompt, scripts and meshes work on."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from record.run_file import RunFile
from testbed.host.processes import Processes
from testbed.runs import metadata
from testbed.runs.outputs import outputs_kept
from testbed.stages import addresses, kernel_tcp
from testbed.stages.actions import Actions, actions_served
from testbed.stages.capture import captures_running
from testbed.stages.containers import commands_running
from testbed.stages.event_log import EventLog
from testbed.stages.network import network_up
from testbed.stages.routing import Network, Protocol
from testbed.stages.site import Site


@contextmanager
def standing(site: Site, say: Callable[..., None]) -> Iterator[tuple[Network, Protocol]]:
    """Start stations, medium, routing, TCP settings and captures, and serve the actions of a view; stop them in order when the
    block ends. `say` reports stages."""
    record = RunFile.open(site.directory / "run.json")
    with ExitStack() as stages:
        stages.enter_context(outputs_kept(site))
        children = stages.enter_context(Processes(site.log))
        network, protocol = stages.enter_context(network_up(site, children, say, shells_are_users=True))
        stages.enter_context(kernel_tcp.kernel_tcp_running(site, network.net, children, protocol.hops()))
        stages.enter_context(captures_running(site, network.net, children))
        stages.enter_context(commands_running(network.net, children))
        record.update(
            epoch_ns=network.medium.ask("status")["epoch_ns"],
            routing_ns=protocol.began_ns,
            mtu=addresses.mtus(network.net),
            sysctls=kernel_tcp.read_sysctls(network.net, metadata.SYSCTLS),
        )
        stages.enter_context(actions_served(Actions(site, EventLog(site.directory))))
        yield network, protocol
