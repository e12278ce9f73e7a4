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
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from record.files import write_atomic
from scenarios import containers
from testbed.host import mounts, namespace, user_namespace
from testbed.host.images import Image, unpacked
from testbed.host.limits import LimitedGroup
from testbed.host.processes import Child, Processes
from testbed.programs import ROOT
from testbed.stages.site import SOCKETS, Site
from testbed.stages.station import NamespaceHost, StationNet

FILE = "containers.json"
FORMAT = "manet-containers/1"
READY_DEADLINE_S = 20.0
INIT_REMEDY = "the container is gone with all its programs; what was captured is kept"
COMMAND_REMEDY = "log/ has what it printed; what was captured is kept"
ENTER_GROUPS = 'while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs" || exit 125; shift; done; shift; exec "$@"'
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
}
NOTHING: Mapping[str, str] = {}
# Privileges over a network namespace are those of the user namespace that owns it. Sandboxes have none over theirs, and need
# these to listen on ports below 1024 and to ping (ip-sysctl.rst).
SANDBOX_SYSCTLS = {"net.ipv4.ip_unprivileged_port_start": 0, "net.ipv4.ping_group_range": "0 2147483647"}


@dataclass
class RunningContainer:
    """The container of one station. `pids` and `users` are descriptors of its pid namespace and of the user namespace of its
    programs (None without `sandbox`)."""

    keys: containers.Container
    host: NamespaceHost
    image: Image
    group: LimitedGroup
    init: Child
    pids: int
    users: int | None
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def words(self, words: Sequence[object], *, folder: str | None = None, environment: Mapping[str, str] = NOTHING) -> list[str]:
        """The command line that runs a command in the container, in a process that is in its pid namespace already."""
        environment = {**ENVIRONMENT, **self.image.environment, **environment}
        enter = [f"--target={self.init.pid}", "--mount", "--uts", "--ipc", "--cgroup", f"--wdns={folder or self.image.folder}"]
        if self.users is not None:
            enter.append(f"--user=/proc/{os.getpid()}/fd/{self.users}")
        groups = ["sh", "-c", ENTER_GROUPS, "sh", *map(str, self.group.folders), "--"]
        values = [f"{name}={value}" for name, value in environment.items()]
        return [*groups, "env", "-i", *values, "nsenter", *enter, "--", *map(str, words)]

    def popen(self, words: Sequence[object], **options: Any) -> subprocess.Popen[bytes]:
        """Start a command, as subprocess.Popen; `environment` is added to the container's, `cwd` is a folder in it."""
        line = self.words(words, folder=options.pop("cwd", None), environment=options.pop("environment", NOTHING))
        process = namespace.within(self.host.netns, lambda: subprocess.Popen(line, **options), pids=self.pids)
        self.started = [one for one in self.started if one.returncode is None] + [process]
        return process

    def report(self) -> dict[str, Any]:
        """The container's entry of containers.json."""
        return {
            "rootfs": self.keys.rootfs,
            "image": self.keys.image,
            "digest": self.image.digest,
            "sandbox": self.keys.sandbox,
            "limits": self.keys.limits,
            **asdict(self.group.counts()),
            "remarks": self.remarks(),
        }

    def remarks(self) -> list[str]:
        """A line for each limit that its programs hit."""
        counts, found = self.group.counts(), []
        if counts.oom_kills:
            what = "one of its processes" if counts.oom_kills == 1 else f"{counts.oom_kills} of its processes"
            found.append(f"out of memory: the kernel killed {what} (memory = {self.keys.memory} bytes)")
        if counts.refused_forks:
            times = "one fork" if counts.refused_forks == 1 else f"{counts.refused_forks} forks"
            found.append(f"too many processes: the kernel refused {times} (pids = {self.keys.pids})")
        return found

    def explain(self) -> str | None:
        """The limits that its programs hit, for the failure of one of them."""
        return "; ".join(self.remarks()) or None


@contextlib.contextmanager
def containers_up(site: Site, net: StationNet, children: Processes) -> Iterator[None]:
    """Make the containers of the scenario; `container` of their stations is set in the block. Writes containers.json at its
    end. Raises RunError."""
    made: list[RunningContainer] = []
    try:
        for keys in site.scenario.containers:
            net[keys.name].container = _made(site, keys, net[keys.name], children)
            made.append(net[keys.name].container)
        children.wait_for_text([one.init for one in made], "ready\n", within_s=READY_DEADLINE_S)
        yield
    finally:
        _end(made, children)
        if made:
            content = {"format": FORMAT, "stations": {one.keys.name: one.report() for one in made}}
            write_atomic(site.directory / FILE, json.dumps(content, indent=1) + "\n")


def _made(site: Site, keys: containers.Container, host: NamespaceHost, children: Processes) -> RunningContainer:
    image = Image(Path(keys.rootfs)) if keys.rootfs is not None else unpacked(str(keys.image))
    group = LimitedGroup.create(site.cgroup, keys.name, keys.limits)
    users = None
    if keys.sandbox:
        first = user_namespace.first_id(site.scenario.station_names().index(keys.name) + 1)
        users = user_namespace.make(first)
        namespace.within(host.netns, lambda: namespace.write_sysctls(SANDBOX_SYSCTLS))
    root = mounts.overlay(image.rootfs, SOCKETS / "containers" / keys.name, None if users is None else (users, first))
    init = [sys.executable, "-P", "-m", "testbed.host.container_init", keys.name, root, "sandbox" if keys.sandbox else "root"]
    # the environment of a pid 1 is visible to its container's root
    line = ["env", "-i", f"PATH={os.environ.get('PATH', os.defpath)}", f"PYTHONPATH={ROOT}", *init]
    child = children.start(
        f"{keys.name}-container", line, netns=host.netns, new_pids=True, program="the container", remedy=INIT_REMEDY
    )
    pids = os.open(f"/proc/{child.pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    return RunningContainer(keys, host, image, group, child, pids, users)


def _end(made: Sequence[RunningContainer], children: Processes) -> None:
    for one in made:
        one.host.container = None
        if one.init.running():
            one.init.stopped = True
            one.init.popen.terminate()
    for process in [process for one in made for process in one.started]:
        process.wait()  # the kernel has killed it; a pid 1 ends after all of its namespace have been waited for
    children.stop([one.init for one in made])
    for one in made:
        os.close(one.pids)
        if one.users is not None:
            os.close(one.users)


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
