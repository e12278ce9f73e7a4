"""rtnetlink(7) messages of <linux/rtnetlink.h>: the kernel's routes and neighbours, which `ip monitor file` prints as text, and
the settings that every station gets.

Dumps are strict (NETLINK_GET_STRICT_CHK), as those of ip(8): the kernel leaves out cached exceptions of routes.
"""

import errno
import os
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass

RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK, RTM_NEWADDR, RTM_DELADDR, RTM_NEWROUTE, RTM_DELROUTE = 16, 17, 18, 20, 21, 24, 25
RTM_GETROUTE, RTM_NEWNEIGH, RTM_GETNEIGH = 26, 28, 30
NLMSG_ERROR, NLMSG_DONE, NLMSGERR_ATTR_MSG = 2, 3, 1  # <linux/netlink.h>
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP, NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x1, 0x4, 0x300, 0x100, 0x200, 0x400
SOL_NETLINK, NETLINK_CAP_ACK, NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK = 270, 10, 11, 12
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_QDISC, IFLA_MASTER = 1, 3, 4, 6, 10  # <linux/if_link.h>
IFLA_GSO_MAX_SEGS, IFLA_XDP = 40, 43
IFLA_XDP_ATTACHED = 2
IFF_UP, IFF_NOARP, IFF_MULTICAST = 0x1, 0x80, 0x1000  # <linux/if.h>
IFA_ADDRESS, IFA_LOCAL, IFA_FLAGS, IFA_F_NODAD, IFA_F_NOPREFIXROUTE = 1, 2, 8, 0x02, 0x200  # <linux/if_addr.h>
RTA_DST, RTA_OIF, RTA_GATEWAY, RTA_METRICS, RTAX_QUICKACK = 1, 4, 5, 8, 15  # <linux/rtnetlink.h>
NLA_F_NESTED, RTNH_F_ONLINK = 0x8000, 0x4
RT_TABLE_MAIN, RT_TABLE_LOCAL, RTPROT_BOOT, RT_SCOPE_UNIVERSE, RT_SCOPE_LINK = 254, 255, 3, 0, 253
ROUTE_TYPES = {"unicast": 1, "broadcast": 3, "multicast": 5, "unreachable": 7}  # RTN_*
ARPHRD_ETHER = 1  # <linux/if_arp.h>
NDA_DST, NDA_LLADDR, NUD_PERMANENT = 1, 2, 0x80  # <linux/neighbour.h>
NUD_NOARP, NTF_PROXY, NTF_EXT_LEARNED = 0x40, 0x08, 0x10
NLM_F_DUMP_INTR = 0x10
DUMPS = 5
BODY_BYTES, LINK_BODY_BYTES = 12, 16  # struct rtmsg, struct ndmsg; struct ifinfomsg
READ_BYTES = 1 << 16
_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr


def routes() -> bytes:
    """All routes of the calling thread's namespace. Raises OSError."""
    return b"".join(_dump(RTM_GETROUTE))


def neighbours() -> bytes:
    """The neighbours that `ip neighbour show` prints, of the calling thread's namespace: without those that need no ARP. Raises
    OSError."""
    return b"".join(message for message in _dump(RTM_GETNEIGH) if _is_shown(message))


@dataclass(frozen=True)
class LinkSettings:
    """The settings of a device that decide what it sends. `master`: the index of its bridge, 0 without one."""

    name: str
    up: bool
    mtu: int
    mac: bytes
    qdisc: str
    master: int
    arp: bool
    multicast: bool
    xdp: bool

    def differences(self, after: "LinkSettings") -> list[str]:
        """Describe each setting that `after` has changed."""
        words = []
        if after.name != self.name:
            words.append(f"renamed to {after.name}")
        if after.up != self.up:
            words.append("set up" if after.up else "set down")
        if after.mtu != self.mtu:
            words.append(f"MTU {self.mtu} -> {after.mtu}")
        if after.mac != self.mac:
            words.append(f"MAC address {self.mac.hex(':')} -> {after.mac.hex(':')}")
        if after.qdisc != self.qdisc:
            words.append(f"queueing discipline {self.qdisc} -> {after.qdisc}")
        if after.master != self.master:
            words.append("bridge left" if not after.master else "bridge joined")
        for name, before, now in (("ARP", self.arp, after.arp), ("multicast", self.multicast, after.multicast)):
            if before != now:
                words.append(f"{name} switched {'on' if now else 'off'}")
        if after.xdp != self.xdp:
            words.append("XDP program attached" if after.xdp else "XDP program detached")
        return words


def links() -> dict[int, LinkSettings]:
    """The devices of the calling thread's namespace, by index. Raises OSError."""
    return dict(link_settings(message) for message in _dump(RTM_GETLINK, LINK_BODY_BYTES))


def link_settings(message: bytes) -> tuple[int, LinkSettings]:
    """Index and settings of a device, from an RTM_NEWLINK or RTM_DELLINK message."""
    index, flags = struct.unpack_from("=iI", message, _HEADER.size + 4)  # struct ifinfomsg
    values = attributes(message, _HEADER.size + LINK_BODY_BYTES)

    def number(kind: int) -> int:
        return int.from_bytes(values.get(kind, b""), sys.byteorder)

    def text(kind: int) -> str:
        return values.get(kind, b"").rstrip(b"\0").decode(errors="replace")

    settings = LinkSettings(
        text(IFLA_IFNAME), bool(flags & IFF_UP), number(IFLA_MTU), values.get(IFLA_ADDRESS, b""), text(IFLA_QDISC),
        number(IFLA_MASTER), not flags & IFF_NOARP, bool(flags & IFF_MULTICAST), _has_xdp(values),
    )  # fmt: skip
    return index, settings


def _has_xdp(of_link: dict[int, bytes]) -> bool:
    nested = of_link.get(IFLA_XDP, b"")
    return any(attributes(nested, 0).get(IFLA_XDP_ATTACHED, b"\0"))


def link(index: int, name: str, *, deleted: bool = False) -> bytes:
    """The message of a device with this name, or of its end."""
    device = struct.pack("=BxHiII", socket.AF_UNSPEC, ARPHRD_ETHER, index, 0, 0)  # struct ifinfomsg
    body = device + _attribute(IFLA_IFNAME, name.encode() + b"\0")
    return _message(RTM_DELLINK if deleted else RTM_NEWLINK, 0, body)


def set_up(device: str) -> None:
    """Set a device of the calling thread's namespace up. Raises OSError, as the functions below."""
    _set_link(device, b"", IFF_UP)


def set_mtu(device: str, mtu: str) -> None:
    """Set the MTU of a device, bytes."""
    _set_link(device, _attribute(IFLA_MTU, struct.pack("=I", int(mtu))))


def set_gso_max_segs(device: str, segments: str) -> None:
    """Set the most segments that a packet of a device may stand for."""
    _set_link(device, _attribute(IFLA_GSO_MAX_SEGS, struct.pack("=I", int(segments))))


def add_address(ip: str, prefix_bits: str, device: str) -> None:
    """Add an address to a device, without a route to its network; an IPv6 address without duplicate address detection."""
    family, more = (socket.AF_INET6, IFA_F_NODAD) if ":" in ip else (socket.AF_INET, 0)
    address, flags = socket.inet_pton(family, ip), struct.pack("=I", IFA_F_NOPREFIXROUTE | more)
    body = struct.pack("=BBBBi", family, int(prefix_bits), 0, 0, _index(device))  # struct ifaddrmsg
    body += _attribute(IFA_LOCAL, address) + _attribute(IFA_ADDRESS, address) + _attribute(IFA_FLAGS, flags)
    _request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, body)


def replace_group_route(kind: str, ip: str, prefix_bits: str, device: str) -> None:
    """Set an IPv4 route of one of ROUTE_TYPES over a device, in the table `local`."""
    _replace_local(kind, ip, prefix_bits, RT_SCOPE_LINK, _over(device))


def refuse_group(kind: str, ip: str, prefix_bits: str) -> None:
    """Set an IPv4 route of one of ROUTE_TYPES that leads nowhere, in the table `local`."""
    _replace_local(kind, ip, prefix_bits, RT_SCOPE_UNIVERSE, b"")


def add_link_route(ip: str, prefix_bits: str, device: str, quickack: str | None) -> None:
    """Add an IPv4 route to what a device reaches at once; `quickack`: its metric of that name."""
    _add_route(ip, prefix_bits, RT_SCOPE_LINK, 0, _over(device) + _metrics(quickack))


def add_route(ip: str, prefix_bits: str, gateway: str, device: str, quickack: str | None) -> None:
    """Add an IPv4 route over a neighbour that no other route need cover (`onlink`)."""
    more = _attribute(RTA_GATEWAY, socket.inet_aton(gateway)) + _over(device) + _metrics(quickack)
    _add_route(ip, prefix_bits, RT_SCOPE_UNIVERSE, RTNH_F_ONLINK, more)


def replace_neighbour(ip: str, mac: str, device: str) -> None:
    """Set the permanent entry of a neighbour, IPv4 or IPv6."""
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    body = struct.pack("=BxHiHBB", family, 0, _index(device), NUD_PERMANENT, 0, 0)  # struct ndmsg
    body += _attribute(NDA_DST, socket.inet_pton(family, ip)) + _attribute(NDA_LLADDR, bytes.fromhex(mac.replace(":", "")))
    _request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, body)


def _add_route(ip: str, prefix_bits: str, scope: int, flags: int, more: bytes) -> None:
    body = _route(ip, prefix_bits, (RT_TABLE_MAIN, RTPROT_BOOT, scope, ROUTE_TYPES["unicast"]), flags)
    _request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, body + more)


def _replace_local(kind: str, ip: str, prefix_bits: str, scope: int, more: bytes) -> None:
    body = _route(ip, prefix_bits, (RT_TABLE_LOCAL, RTPROT_BOOT, scope, ROUTE_TYPES[kind]), 0)
    _request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, body + more)


def _route(ip: str, prefix_bits: str, place: tuple[int, int, int, int], flags: int) -> bytes:
    return struct.pack("=8BI", socket.AF_INET, int(prefix_bits), 0, 0, *place, flags) + _attribute(RTA_DST, socket.inet_aton(ip))


def _over(device: str) -> bytes:
    return _attribute(RTA_OIF, struct.pack("=i", _index(device)))


def _metrics(quickack: str | None) -> bytes:
    if quickack is None:
        return b""
    return _attribute(RTA_METRICS | NLA_F_NESTED, _attribute(RTAX_QUICKACK, struct.pack("=I", int(quickack))))


def _set_link(device: str, attributes: bytes, flags: int = 0) -> None:
    body = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, _index(device), flags, flags)  # struct ifinfomsg
    _request(RTM_NEWLINK, 0, body + attributes)


def _index(device: str) -> int:
    try:
        return socket.if_nametoindex(device)
    except OSError:  # without a number
        raise OSError(errno.ENODEV, f'Cannot find device "{device}"') from None


def _request(kind: int, flags: int, body: bytes) -> None:
    """Send a request and read the kernel's answer. The OSError of a refusal has the kernel's words, if it has any."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        for option in (NETLINK_EXT_ACK, NETLINK_CAP_ACK):
            kernel.setsockopt(SOL_NETLINK, option, 1)
        kernel.send(_message(kind, NLM_F_REQUEST | NLM_F_ACK | flags, body))
        answer = kernel.recv(READ_BYTES)
    code, words = -struct.unpack_from("=i", answer, _HEADER.size)[0], answer[_HEADER.size * 2 + 4 :]  # struct nlmsgerr
    if code:
        length, of_attribute = struct.unpack_from("=HH", words) if words else (0, 0)
        text = words[4:length].rstrip(b"\0").decode() if of_attribute == NLMSGERR_ATTR_MSG else os.strerror(code)
        raise OSError(code, text)


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def attributes(message: bytes, at: int) -> dict[int, bytes]:
    """The attributes of a message from an offset on."""
    values: dict[int, bytes] = {}
    while at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        if length < 4:
            break
        values[kind] = message[at + 4 : at + length]
        at += length + -length % 4
    return values


def _is_shown(neighbour: bytes) -> bool:
    """Whether ip(8) shows the entry, by the rule of print_neigh() of iproute2."""
    state, flags = struct.unpack_from("=HB", neighbour, _HEADER.size + 8)
    return bool(state & 0xFF & ~NUD_NOARP or flags & (NTF_PROXY | NTF_EXT_LEARNED))


def _message(kind: int, flags: int, body: bytes) -> bytes:
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, 0, 0) + body


def _dump(kind: int, body_bytes: int = BODY_BYTES) -> list[bytes]:
    """The messages of the kernel's answer, each padded to four bytes. A table that changed during a dump is dumped again, DUMPS
    times at most: the last one is as good as that of ip(8), which only warns."""
    messages: list[bytes] = []
    for _ in range(DUMPS):
        messages = list(_dump_once(kind, body_bytes))
        if not any(_HEADER.unpack_from(message)[2] & NLM_F_DUMP_INTR for message in messages):
            break
    return messages


def _dump_once(kind: int, body_bytes: int) -> Iterator[bytes]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.setsockopt(SOL_NETLINK, NETLINK_GET_STRICT_CHK, 1)
        kernel.send(_message(kind, NLM_F_REQUEST | NLM_F_DUMP, bytes(body_bytes)))
        while True:
            answer, at = kernel.recv(READ_BYTES), 0
            while at < len(answer):
                length, of_message, *_ = _HEADER.unpack_from(answer, at)
                if of_message in (NLMSG_DONE, NLMSG_ERROR):
                    code = -struct.unpack_from("=i", answer, at + _HEADER.size)[0]
                    if code > 0 or of_message == NLMSG_ERROR:
                        raise OSError(code, os.strerror(code), "rtnetlink")
                    return
                padded = length + -length % 4
                yield answer[at : at + padded]
                at += padded
