"""The stage that gives stations a root file system of their own: containers, their limits, and their commands.

A container has mount, pid, UTS, IPC and cgroup namespaces of its own and the station's network namespace, which stays the run's,
so that medium, captures, kernel-tcp and routing daemons work as at any station. testbed/host/container_init.py is its pid 1. The
user's programs enter by nsenter(1): the station's `command`, `command` flows, commands of events, at the prompt and of meshes.
The testbed's own programs at the station stay outside.

With `sandbox`, programs also enter a user namespace that owns no other namespace of the container: its root may neither mount,
nor configure the network, nor open raw sockets, and is an unprivileged user of the machine.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from record.files import write_atomic
from scenarios.containers import Container
from testbed.host import mounts, namespace, user_namespace
from testbed.host.images import Image, unpacked
from testbed.host.limits import LimitedGroup
from testbed.host.processes import Processes
from testbed.programs import ROOT
from testbed.stages.running_container import RunningContainer
from testbed.stages.site import SOCKETS, Site
from testbed.stages.station import NamespaceHost, StationNet

FILE = "containers.json"
FORMAT = "manet-containers/1"
READY_DEADLINE_S = 20.0
INIT_REMEDY = "the container is gone with all its programs; what was captured is kept"
COMMAND_REMEDY = "log/ has what it printed; what was captured is kept"
# Privileges over a network namespace are those of the user namespace that owns it. Sandboxes have none over theirs, and need
# these to listen on ports below 1024 and to ping (ip-sysctl.rst).
SANDBOX_SYSCTLS = {"net.ipv4.ip_unprivileged_port_start": 0, "net.ipv4.ping_group_range": "0 2147483647"}


@contextlib.contextmanager
def containers_up(site: Site, net: StationNet, children: Processes) -> Iterator[None]:
    """Make the containers of the scenario; `container` of their stations is set in the block. Writes containers.json at its
    end. Raises RunError."""
    running: list[RunningContainer] = []
    try:
        for keys in site.scenario.containers:
            running.append(_start(site, keys, net[keys.name], children))
            net[keys.name].container = running[-1]
        children.wait_for_text([container.init for container in running], "ready\n", within_s=READY_DEADLINE_S)
        yield
    finally:
        _end(net, running, children)
        if running:
            content = {"format": FORMAT, "stations": {container.keys.name: container.report() for container in running}}
            write_atomic(site.directory / FILE, json.dumps(content, indent=1) + "\n")


def _start(site: Site, keys: Container, host: NamespaceHost, children: Processes) -> RunningContainer:
    image = Image(Path(keys.rootfs)) if keys.rootfs is not None else unpacked(str(keys.image))
    group = None if site.cgroup is None else LimitedGroup.create(site.cgroup, keys.name, keys.limits)
    users = None
    if keys.sandbox:
        first = user_namespace.first_id(site.scenario.station_names().index(keys.name) + 1)
        users = user_namespace.make(first)
        namespace.within(host.netns, lambda: namespace.write_sysctls(SANDBOX_SYSCTLS))
    root = mounts.overlay(image.rootfs, SOCKETS / "containers" / keys.name, None if users is None else (users, first))
    # the environment of a pid 1 is visible to its container's root
    line: list[str | Path] = ["env", "-i", f"PATH={os.environ.get('PATH', os.defpath)}", f"PYTHONPATH={ROOT}"]
    line += [sys.executable, "-P", "-m", "testbed.host.container_init", keys.name, root, "sandbox" if keys.sandbox else "root"]
    child = children.start(
        f"{keys.name}-container", line, netns=host.netns, new_pids=True, program="the container", remedy=INIT_REMEDY
    )
    pids = os.open(f"/proc/{child.pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    return RunningContainer(keys, host.netns, image, group, child, pids, users)


def _end(net: StationNet, running: Sequence[RunningContainer], children: Processes) -> None:
    for container in running:
        net[container.keys.name].container = None
        if container.init.running():
            container.init.stopped = True
            container.init.popen.terminate()
    for process in [process for container in running for process in container.started]:
        process.wait()  # the kernel has killed it; a pid 1 ends after all of its namespace have been waited for
    children.stop([container.init for container in running])
    for container in running:
        os.close(container.pids)
        if container.users is not None:
            os.close(container.users)


@contextlib.contextmanager
def commands_running(net: StationNet, children: Processes) -> Iterator[None]:
    """Run the `command` of each container until the end of the block. One that ends before is a failure of the run."""
    started = []
    for host in net.hosts:
        inside = host.container
        if inside is not None and inside.keys.command is not None:
            started.append(
                children.start(
                    f"{host.name}-command", inside.words(inside.keys.command), netns=host.netns, pids=inside.pids,
                    program=Path(inside.keys.command[0]).name, remedy=COMMAND_REMEDY, explain=inside.explain,
                )
            )  # fmt: skip
    try:
        yield
    finally:
        children.stop(started)
