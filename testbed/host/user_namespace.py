"""A user namespace whose users are unprivileged users of the machine (user_namespaces(7)).

Made by unshare(1) from util-linux in a process that ends at once; the descriptor keeps it. Its ids 0 to 65535 are as many of
the machine, from `first_id` on.
"""

import os
import subprocess
import time
from pathlib import Path

from testbed.errors import RunError

IDS = 65_536
# Within the ids that systemd leaves to containers (its UIDS-GIDS page), 524288 to 1878982656, above those of /etc/subuid.
FIRST_IDS = 1_000_000_000
DEADLINE_S = 10.0


def first_id(number: int) -> int:
    """The machine's id of root in the container of station `number`, counted from 1; no two stations of a run share an id."""
    return FIRST_IDS + (number - 1) * IDS


def make(first: int) -> int:
    """A descriptor of a new user namespace. Raises RunError."""
    child = subprocess.Popen(["unshare", "--user", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        _wait_until_apart(child)
        for kind in ("uid", "gid"):
            Path(f"/proc/{child.pid}/{kind}_map").write_text(f"0 {first} {IDS}\n")
        return os.open(f"/proc/{child.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as problem:
        text = f"a user namespace for sandbox = true: {problem.strerror}; run as root, outside of a restricted container"
        raise RunError(text) from None
    finally:
        child.communicate()


def _wait_until_apart(child: subprocess.Popen[bytes]) -> None:
    own, deadline = Path("/proc/self/ns/user").readlink(), time.monotonic() + DEADLINE_S
    while Path(f"/proc/{child.pid}/ns/user").readlink() == own:
        if child.poll() is not None or time.monotonic() > deadline:
            raise RunError("unshare --user: made no namespace; this kernel refuses user namespaces (user.max_user_namespaces)")
        time.sleep(0.001)
