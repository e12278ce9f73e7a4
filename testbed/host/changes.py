"""Changes of a network namespace's settings that the testbed did not make, from netlink(7)'s notifications.

Addresses, links (up or down, MTU, MAC address, ARP, multicast, XDP, queueing discipline, master), queueing disciplines, filters,
rules, forwarding, permanent neighbours, IPsec policies, nftables, and routes. Routing daemons change routes all the time, and ARP
neighbours: the kernel drops these notifications by a socket filter (BPF), before they take memory or wake anybody. A notification
without a change of these settings (a carrier, a counter) is none.

Not seen: sysctls other than forwarding, rules of the older iptables, neighbours that are not permanent.
"""

import ctypes
import socket
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from testbed.host import namespace, rtnetlink
from testbed.host.rtnetlink import (
    READ_BYTES,
    RTA_DST,
    RTM_DELADDR,
    RTM_DELROUTE,
    RTM_NEWADDR,
    RTM_NEWROUTE,
    RTPROT_BOOT,
)

# <linux/rtnetlink.h>: RTNLGRP_LINK, NEIGH, TC, IPV4_IFADDR, IPV4_ROUTE, IPV4_RULE, IPV6_IFADDR, IPV6_ROUTE, IPV6_RULE,
# IPV4_NETCONF, IPV6_NETCONF
GROUPS = (1, 3, 4, 5, 7, 8, 9, 11, 19, 24, 25)
ADDRESS_BODY_BYTES, ROUTE_BODY_BYTES = 8, 12  # struct ifaddrmsg, struct rtmsg
RTM_NEWNEIGH, NUD_PERMANENT, NDA_DST = 28, 0x80, 1  # <linux/neighbour.h>
KINDS = {
    RTM_NEWADDR: "address {} added", RTM_DELADDR: "address {} removed", RTM_NEWROUTE: "route to {} added",
    RTM_DELROUTE: "route to {} removed", 32: "rule added", 33: "rule removed", 36: "queueing discipline changed",
    37: "queueing discipline changed", 40: "traffic class changed", 41: "traffic class changed", 44: "traffic filter changed",
    45: "traffic filter changed", 80: "forwarding or rp_filter changed", RTM_NEWNEIGH: "permanent neighbour {} set",
}  # fmt: skip
RTPROT_KERNEL, RTPROT_STATIC, RTN_UNICAST, RTN_BLACKHOLE = 2, 4, 1, 6  # <linux/rtnetlink.h>
# Other families of netlink(7), with their groups: XFRMNLGRP_SA, POLICY (<linux/xfrm.h>); NETLINK_NETFILTER with
# NFNLGRP_NFTABLES (<linux/netfilter/nfnetlink.h>)
OTHERS = {6: ((3, 4), "IPsec changed"), 12: ((7,), "nftables changed")}
OWN_PROTOCOL = 98  # of our daemons' routes (routing/host/src/rtnetlink.rs)
SO_ATTACH_FILTER = 26  # <asm-generic/socket.h>
# <linux/bpf_common.h>: BPF_LD|BPF_B|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, JGE, JSET, BPF_RET|BPF_K
LD_B, JEQ, JGE, JSET, RET = 0x30, 0x15, 0x35, 0x45, 0x06
ACCEPT, DROP = 0xFFFF_FFFF, 0
# offsets in a notification: the low byte of nlmsg_type, and behind the header of 16 bytes rtm_protocol, rtm_type, and the low
# byte of ndm_state
LOW_BYTE = 0 if sys.byteorder == "little" else 1
TYPE_AT, PROTOCOL_AT, ROUTE_TYPE_AT, NEIGHBOUR_STATE_AT = 4 + LOW_BYTE, 21, 23, 24 + LOW_BYTE
_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr

Instruction = tuple[int, int, int, int]


def of_own_daemons() -> list[Instruction]:
    """The filter beside our daemons, static routes or none: a route counts that is neither theirs nor the kernel's, and any that
    forwards nothing (blackhole, unreachable, prohibit): our daemons set none."""
    own = [(LD_B, 0, 0, PROTOCOL_AT), (JEQ, 2, 0, OWN_PROTOCOL), (JEQ, 1, 0, RTPROT_KERNEL), (RET, 0, 0, ACCEPT)]
    return _of_routes([(LD_B, 0, 0, ROUTE_TYPE_AT), (JGE, 0, 1, RTN_BLACKHOLE), (RET, 0, 0, ACCEPT), *own])


def of_third_party() -> list[Instruction]:
    """The filter beside third-party daemons, whose routes may have any protocol: a route counts if a person or a script set it
    (the protocols of ip(8) and of configured routes) and if it forwards nothing."""
    by_hand = [(LD_B, 0, 0, PROTOCOL_AT), (JEQ, 1, 0, RTPROT_BOOT), (JEQ, 0, 3, RTPROT_STATIC)]
    return _of_routes([*by_hand, (LD_B, 0, 0, ROUTE_TYPE_AT), (JEQ, 1, 0, RTN_UNICAST), (RET, 0, 0, ACCEPT)])


def _of_routes(of_route: list[Instruction]) -> list[Instruction]:
    """A filter that accepts all but routes, which `of_route` decides (its last jump leads to the drop that follows it), and
    neighbours that are not permanent, as those of ARP."""
    kind = [
        (LD_B, 0, 0, TYPE_AT), (JEQ, 6, 0, RTM_NEWROUTE), (JEQ, 5, 0, RTM_DELROUTE), (JEQ, 0, 3, RTM_NEWNEIGH),
        (LD_B, 0, 0, NEIGHBOUR_STATE_AT), (JSET, 1, 0, NUD_PERMANENT), (RET, 0, 0, DROP), (RET, 0, 0, ACCEPT),
    ]  # fmt: skip
    return [*kind, *of_route, (RET, 0, 0, DROP)]


class Changes:
    """The changes in one network namespace since the last `read`."""

    def __init__(self, netns: str | Path, of_routes: list[Instruction]) -> None:
        """`of_routes`: one of the filters above. Raises OSError, RunError."""
        self._socket, self._others, self._links = namespace.within(
            netns, lambda: (_listening(of_routes), _listening_to_others(), rtnetlink.links())
        )

    def descriptors(self) -> list[int]:
        """The descriptors of which one is readable after a notification."""
        return [each.fileno() for each in (self._socket, *self._others)]

    def read(self) -> list[str]:
        """Changes so far, each kind once, in the order of time; does not block."""
        changes = [text for other, text in self._others.items() if _has_input(other)]
        while True:
            try:
                message = self._socket.recv(READ_BYTES)
            except BlockingIOError:
                return list(dict.fromkeys(changes))
            except OSError:  # ENOBUFS: the kernel had more notifications than the socket holds
                changes.append("more changes than could be read")
                continue
            changes += self._changes_of(message)

    def close(self) -> None:
        """Close the sockets."""
        for each in (self._socket, *self._others):
            each.close()

    def _changes_of(self, notification: bytes) -> Iterable[str]:
        kind = _HEADER.unpack_from(notification)[1]
        if kind not in (rtnetlink.RTM_NEWLINK, rtnetlink.RTM_DELLINK):
            return [KINDS[kind].format(_address(notification, kind))] if kind in KINDS else []
        index, after = rtnetlink.link_settings(notification)
        before = self._links.get(index)
        if kind == rtnetlink.RTM_DELLINK:
            return [f"{before.name} removed"] if self._links.pop(index, None) and before else []
        self._links[index] = after
        if before is None:
            return [f"{after.name} added"]
        return [f"{before.name}: {name}" for name in before.differences(after)]


def _address(notification: bytes, kind: int) -> str:
    """The address or the destination of a notification about an address or a route; empty for others."""
    if kind in (RTM_NEWADDR, RTM_DELADDR):
        values = rtnetlink.attributes(notification, _HEADER.size + ADDRESS_BODY_BYTES)
        address = values.get(rtnetlink.IFA_LOCAL) or values.get(rtnetlink.IFA_ADDRESS)
    elif kind == RTM_NEWNEIGH:
        address = rtnetlink.attributes(notification, _HEADER.size + ROUTE_BODY_BYTES).get(NDA_DST)
    elif kind in (RTM_NEWROUTE, RTM_DELROUTE):
        address = rtnetlink.attributes(notification, _HEADER.size + ROUTE_BODY_BYTES).get(RTA_DST)
        if address is None:
            return "everything"
    else:
        return ""
    return socket.inet_ntop(socket.AF_INET if len(address) == 4 else socket.AF_INET6, address) if address else ""


def _listening(of_routes: list[Instruction]) -> socket.socket:
    """A netlink socket of the caller's namespace."""
    listening = _netlink(socket.NETLINK_ROUTE)
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *instruction) for instruction in of_routes))
    listening.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", len(of_routes), ctypes.addressof(code)))
    _subscribe(listening, GROUPS)
    return listening


def _listening_to_others() -> dict[socket.socket, str]:
    """Sockets of the caller's namespace for OTHERS, as far as the kernel has them, and what their messages say."""
    listening: dict[socket.socket, str] = {}
    for family, (groups, text) in OTHERS.items():
        with suppress(OSError):  # the kernel lacks the family
            other = _netlink(family)
            listening[other] = text
            _subscribe(other, groups)
    return listening


def _netlink(family: int) -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, family)


def _subscribe(listening: socket.socket, groups: Iterable[int]) -> None:
    listening.bind((0, sum(1 << (group - 1) for group in groups)))


def _has_input(listening: socket.socket) -> bool:
    """Whether there are notifications, which are read and dropped."""
    has_input = False
    while True:
        try:
            listening.recv(READ_BYTES)
        except BlockingIOError:
            return has_input
        except OSError:  # ENOBUFS
            pass
        has_input = True
