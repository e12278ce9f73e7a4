"""The kernel's routes and neighbours as rtnetlink(7) messages of <linux/rtnetlink.h>, which `ip monitor file` prints as text.

Requests are strict (NETLINK_GET_STRICT_CHK), as those of ip(8): the kernel leaves out cached exceptions of routes.
"""

import os
import socket
import struct
from collections.abc import Iterator

RTM_NEWLINK, RTM_DELLINK, RTM_GETROUTE, RTM_GETNEIGH = 16, 17, 26, 30
NLMSG_ERROR, NLMSG_DONE = 2, 3  # <linux/netlink.h>
NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300
SOL_NETLINK, NETLINK_GET_STRICT_CHK = 270, 12
IFLA_IFNAME = 3  # <linux/if_link.h>
ARPHRD_ETHER = 1  # <linux/if_arp.h>
NUD_NOARP, NTF_PROXY, NTF_EXT_LEARNED = 0x40, 0x08, 0x10  # <linux/neighbour.h>
BODY_BYTES = 12  # struct rtmsg, struct ndmsg
READ_BYTES = 1 << 16
_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr


def routes() -> bytes:
    """All routes of the calling thread's namespace. Raises OSError."""
    return b"".join(_dump(RTM_GETROUTE))


def neighbours() -> bytes:
    """The neighbours that `ip neighbour show` prints, of the calling thread's namespace: without those that need no ARP. Raises
    OSError."""
    return b"".join(message for message in _dump(RTM_GETNEIGH) if _is_shown(message))


def link(index: int, name: str, *, deleted: bool = False) -> bytes:
    """The message of a device with this name, or of its end."""
    value = name.encode() + b"\0"
    attribute = struct.pack("=HH", 4 + len(value), IFLA_IFNAME) + value + bytes(-len(value) % 4)
    device = struct.pack("=BxHiII", socket.AF_UNSPEC, ARPHRD_ETHER, index, 0, 0)  # struct ifinfomsg
    return _message(RTM_DELLINK if deleted else RTM_NEWLINK, 0, device + attribute)


def _is_shown(neighbour: bytes) -> bool:
    """As print_neigh() of iproute2 decides."""
    state, flags = struct.unpack_from("=HB", neighbour, _HEADER.size + 8)
    return bool(state & 0xFF & ~NUD_NOARP or flags & (NTF_PROXY | NTF_EXT_LEARNED))


def _message(kind: int, flags: int, body: bytes) -> bytes:
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, 0, 0) + body


def _dump(kind: int) -> Iterator[bytes]:
    """The messages of the kernel's answer, each padded to four bytes."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.setsockopt(SOL_NETLINK, NETLINK_GET_STRICT_CHK, 1)
        kernel.send(_message(kind, NLM_F_REQUEST | NLM_F_DUMP, bytes(BODY_BYTES)))
        while True:
            answer, at = kernel.recv(READ_BYTES), 0
            while at < len(answer):
                length, of_message, *_ = _HEADER.unpack_from(answer, at)
                if of_message == NLMSG_DONE:
                    return
                if of_message == NLMSG_ERROR:
                    code = -struct.unpack_from("=i", answer, at + _HEADER.size)[0]
                    raise OSError(code, os.strerror(code), "rtnetlink")
                padded = length + -length % 4
                yield answer[at : at + padded]
                at += padded
