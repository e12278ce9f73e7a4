"""Keeps the clock of a guest in virtual time from running ahead of file reads: `companion.py`, until it is killed.

Standard library only. The guest's clock jumps to the next timer whenever nothing in the guest computes. A program that
starts waits for the host's files for a tenth of a millisecond of the host's time, in which the guest's clock could advance
by seconds. So this program computes for AFTER_S after each program start (the kernel reports them: the process connector,
cn_proc.h). It runs in the idle class and takes time from no other process; the clock counts its instructions. Files that
were read stay in memory, so that a started program waits no more.
"""

import os
import select
import socket
import struct
import time

AFTER_S = 0.5
LOOPS = 10_000  # between two checks for messages: about a millisecond
NETLINK_CONNECTOR, CN_IDX_PROC, CN_VAL_PROC = 11, 1, 1  # linux/netlink.h, linux/connector.h
PROC_CN_MCAST_LISTEN = 1  # linux/cn_proc.h
PROC_EVENT_EXEC = 2
HEADER_BYTES, CN_BYTES = 16, 20  # struct nlmsghdr, struct cn_msg
NLMSG_DONE = 3


def open_connector() -> socket.socket:
    """A socket that receives a message for every process that forks, executes or ends."""
    news = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_CONNECTOR)
    news.bind((0, CN_IDX_PROC))
    wanted = struct.pack("=IIIIHHI", CN_IDX_PROC, CN_VAL_PROC, 0, 0, 4, 0, PROC_CN_MCAST_LISTEN)
    news.send(struct.pack("=IHHII", HEADER_BYTES + len(wanted), NLMSG_DONE, 0, 0, os.getpid()) + wanted)
    news.setblocking(False)
    return news


def is_exec(message: bytes) -> bool:
    """Whether a message reports the start of a program."""
    at = HEADER_BYTES + CN_BYTES
    return len(message) >= at + 4 and struct.unpack_from("=I", message, at)[0] == PROC_EVENT_EXEC


def any_exec(news: socket.socket) -> bool:
    """Whether a program has started since the last call."""
    any_started = False
    while True:
        try:
            any_started |= is_exec(news.recv(4096))
        except BlockingIOError:
            return any_started
        except OSError:  # ENOBUFS: messages were lost
            any_started = True


def main() -> None:
    """Compute for AFTER_S after each program start, and sleep otherwise. Does not return."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    news = open_connector()
    until = time.monotonic() + AFTER_S
    while True:
        while time.monotonic() < until:
            for _ in range(LOOPS):
                pass
            if any_exec(news):
                until = time.monotonic() + AFTER_S
        select.select([news], [], [])
        if any_exec(news):
            until = time.monotonic() + AFTER_S


if __name__ == "__main__":
    main()
