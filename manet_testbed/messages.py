"""Messages between the test process and its network: a JSON object and open files, over a Unix socket of type SOCK_SEQPACKET.

The object is in a memory file (memfd_create(2)), which is passed with the other descriptors (unix(7), SCM_RIGHTS): an environment
may exceed a datagram. Both halves use this module; it needs the standard library alone.
"""

import json
import os
import select
import socket
from collections.abc import Sequence
from typing import Any

MAX_DESCRIPTORS = 8  # of a message
MAX_WAIT_MS = (1 << 31) - 1  # of poll(2), 24 days
MARK = b"m"


def send(connection: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send one message; the other end judges numbers that are not finite. Raises OSError if it has closed, ValueError or
    TypeError for values that JSON cannot express."""
    with os.fdopen(os.memfd_create("message", os.MFD_CLOEXEC), "wb") as file:
        file.write(json.dumps(message).encode())
        file.flush()
        socket.send_fds(connection, [MARK], [file.fileno(), *descriptors], socket.MSG_NOSIGNAL)


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next message and its descriptors, which the caller closes; None if the other end has closed."""
    try:
        mark, descriptors, _flags, _address = socket.recv_fds(connection, len(MARK), MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        return None
    if not mark:
        return None
    with os.fdopen(descriptors[0], "rb") as file:
        file.seek(0)
        return json.load(file), descriptors[1:]


def is_readable(*descriptors: int, timeout_s: float | None = None) -> bool:
    """Whether one of them has input or its end within `timeout_s`; waits without a limit if that is None."""
    poll = select.poll()  # select(2) refuses descriptors from 1024 on
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if timeout_s is None else min(1000 * max(0.0, timeout_s), MAX_WAIT_MS)))
