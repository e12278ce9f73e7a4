"""Keeps the clock of a guest in virtual time from running ahead of its files: `companion.py`, until it is killed.

Standard library only. Where nothing in the guest computes, its clock goes on to the next timer at once; a program that is being
started waits for this machine's files for a tenth of a millisecond of that machine's time, in which the guest's could go on by
seconds. So for AFTER_S from the start of a program on (the kernel tells of each: the process connector, cn_proc.h) this
one computes, in the idle class: it takes nothing from anybody, and the clock counts its instructions. Files that were read
stay in memory, so that a program that has started does not wait any more.
"""

import os
import select
import socket
import struct
import time

AFTER_S = 0.5
LOOPS = 10_000  # between two looks for news: about a millisecond
NETLINK_CONNECTOR, CN_IDX_PROC, CN_VAL_PROC = 11, 1, 1  # linux/netlink.h, linux/connector.h
PROC_CN_MCAST_LISTEN = 1  # linux/cn_proc.h
PROC_EVENT_EXEC = 2
HEADER_BYTES, CN_BYTES = 16, 20  # struct nlmsghdr, struct cn_msg
NLMSG_DONE = 3


def connected() -> socket.socket:
    """A socket that tells of every process that forks, executes or ends."""
    news = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_CONNECTOR)
    news.bind((0, CN_IDX_PROC))
    wanted = struct.pack("=IIIIHHI", CN_IDX_PROC, CN_VAL_PROC, 0, 0, 4, 0, PROC_CN_MCAST_LISTEN)
    news.send(struct.pack("=IHHII", HEADER_BYTES + len(wanted), NLMSG_DONE, 0, 0, os.getpid()) + wanted)
    news.setblocking(False)
    return news


def execs(message: bytes) -> bool:
    """Whether a message tells of a program's start."""
    at = HEADER_BYTES + CN_BYTES
    return len(message) >= at + 4 and struct.unpack_from("=I", message, at)[0] == PROC_EVENT_EXEC


def started(news: socket.socket) -> bool:
    """Whether a program has been started since the last look."""
    found = False
    while True:
        try:
            found |= execs(news.recv(4096))
        except BlockingIOError:
            return found
        except OSError:  # ENOBUFS: more than the socket could keep
            found = True


def main() -> None:
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    news = connected()
    until = time.monotonic() + AFTER_S
    while True:
        while time.monotonic() < until:
            for _ in range(LOOPS):
                pass
            if started(news):
                until = time.monotonic() + AFTER_S
        select.select([news], [], [])
        if started(news):
            until = time.monotonic() + AFTER_S


if __name__ == "__main__":
    main()
