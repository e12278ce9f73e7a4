"""pid 1 of a container: makes its namespaces and its root file system, says `ready`, and waits for orphans.

    container_init.py NAME ROOT sandbox|root

It is a process of the host's root, also in a sandbox: nothing there has its user id or may look into it. When it ends, so do all
processes of the container (pid_namespaces(7)). It starts in the container's control groups, and in new pid and the station's
network namespace.
"""

import os
import signal
import sys
from pathlib import Path

from testbed.errors import RunError
from testbed.host import mounts, namespace

NAMESPACES = namespace.CLONE_NEWNS | namespace.CLONE_NEWUTS | namespace.CLONE_NEWIPC | namespace.CLONE_NEWCGROUP
SIGNALS = {signal.SIGCHLD, signal.SIGTERM}


def main() -> int:
    """Make the container, and keep it until SIGTERM."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # SIGTERM without a handler would not reach a pid 1
    name, root, kind = sys.argv[1:]
    try:
        namespace.unshare(NAMESPACES)
        mounts.private()
        Path("/proc/sys/kernel/hostname").write_text(name)
        mounts.system_folders(Path(root), sandbox=kind == "sandbox")
        mounts.change_root(Path(root))
    except (RunError, OSError) as problem:
        sys.exit(str(problem))
    print("ready", flush=True)
    while signal.sigwait(SIGNALS) != signal.SIGTERM:
        _reap()
    return 0


def _reap() -> None:
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


if __name__ == "__main__":
    sys.exit(main())
