"""The container of one station: the commands that start inside it, and the limits that its programs hit."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from scenarios.containers import Container
from testbed.host import namespace
from testbed.host.images import Image
from testbed.host.limits import Counts, LimitedGroup
from testbed.host.processes import Child

ENTER_GROUPS = 'while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs" || exit 125; shift; done; shift; exec "$@"'
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
}
NOTHING: Mapping[str, str] = {}


@dataclass
class RunningContainer:
    """The container of one station. `pids` and `users` are descriptors of its pid namespace and of the user namespace of its
    programs (None without `sandbox`), `netns` is the path of the station's network namespace, `group` None in an ordinary user's
    run."""

    keys: Container
    netns: Path
    image: Image
    group: LimitedGroup | None
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
        groups = ["sh", "-c", ENTER_GROUPS, "sh", *map(str, self.group.folders if self.group else ()), "--"]
        values = [f"{name}={value}" for name, value in environment.items()]
        return [*groups, "env", "-i", *values, "nsenter", *enter, "--", *map(str, words)]

    def popen(self, words: Sequence[object], **options: Any) -> subprocess.Popen[bytes]:
        """Start a command, as subprocess.Popen; `environment` is added to the container's, `cwd` is a folder in it."""
        line = self.words(words, folder=options.pop("cwd", None), environment=options.pop("environment", NOTHING))
        process = namespace.within(self.netns, lambda: subprocess.Popen(line, **options), pids=self.pids)
        self.started = [*(each for each in self.started if each.returncode is None), process]
        return process

    def report(self) -> dict[str, Any]:
        """The container's entry of containers.json."""
        return {
            "rootfs": self.keys.rootfs,
            "image": self.keys.image,
            "digest": self.image.digest,
            "sandbox": self.keys.sandbox,
            "limits": self.keys.limits,
            **asdict(self._counts()),
            "remarks": self.remarks(),
        }

    def _counts(self) -> Counts:
        return Counts() if self.group is None else self.group.counts()

    def remarks(self) -> list[str]:
        """A line for each limit that its programs hit."""
        counts, remarks = self._counts(), []
        if counts.oom_kills:
            what = "one of its processes" if counts.oom_kills == 1 else f"{counts.oom_kills} of its processes"
            remarks.append(f"out of memory: the kernel killed {what} (memory = {self.keys.memory} bytes)")
        if counts.refused_forks:
            times = "one fork" if counts.refused_forks == 1 else f"{counts.refused_forks} forks"
            remarks.append(f"too many processes: the kernel refused {times} (pids = {self.keys.pids})")
        return remarks

    def explain(self) -> str | None:
        """The limits that its programs hit, for the failure of one of them."""
        return "; ".join(self.remarks()) or None
