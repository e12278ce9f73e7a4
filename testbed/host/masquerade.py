"""Source NAT by the kernel's nf_tables, without nft(8) or iptables(8). The table is owned by a netlink socket.

A table with the flag `owner` (Linux 5.12, NFT_TABLE_F_OWNER) belongs to the socket that made it. No other process can change it,
and the kernel removes it when the socket is closed, also by `kill -9`. The messages are those of <linux/netfilter/nf_tables.h>:
attributes are in network byte order, netlink headers in the host's.
"""

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from testbed.errors import RunError
from testbed.host import namespace

NETLINK_NETFILTER = 12  # <linux/netlink.h>
REQUEST, ACK, CREATE, EXCLUSIVE, APPEND = 0x1, 0x4, 0x400, 0x200, 0x800
BATCH_BEGIN, BATCH_END, NLMSG_ERROR = 0x10, 0x11, 0x2
NFTABLES = 10  # the subsystem
NEW_TABLE, NEW_CHAIN, NEW_RULE = 0, 3, 6
IPV4 = 2
NESTED = 0x8000
OWNER = 0x2
POST_ROUTING, AFTER_ROUTING_NAT = 4, 100  # hook, priority (NF_IP_PRI_NAT_SRC)
REGISTER = 1
NETWORK_HEADER, SOURCE_OFFSET, ADDRESS_BYTES = 1, 12, 4
OUTPUT_DEVICE, EQUAL = 5, 0  # NFT_META_OIF, NFT_CMP_EQ
CHAIN = "postrouting"
REPLY_DEADLINE_S = 5.0


@contextlib.contextmanager
def masquerading(netns: str | Path, table: str, source: str | None = None, device: str | None = None) -> Iterator[None]:
    """Until the block ends, packets that leave `netns` from the address `source` or by `device` (default: any) get the address of
    the device that they leave by. RunError if the kernel refuses."""
    with namespace.within(netns, lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)) as netlink:
        netlink.settimeout(REPLY_DEADLINE_S)
        index = None if device is None else namespace.within(netns, lambda: socket.if_nametoindex(device))
        netlink.send(_batch(table, source, index))
        _await_answers(netlink, table)
        yield


def _batch(table: str, source: str | None, device: int | None) -> bytes:
    name, chain = table.encode() + b"\0", CHAIN.encode() + b"\0"
    hook = _number(1, POST_ROUTING) + _number(2, AFTER_ROUTING_NAT)
    matches = (b"" if source is None else _source_is(source)) + (b"" if device is None else _leaves_by(device))
    messages = [
        _message(NEW_TABLE, CREATE | EXCLUSIVE, _attribute(1, name) + _number(2, OWNER)),
        _message(NEW_CHAIN, CREATE, _attribute(1, name) + _attribute(3, chain) + _nest(4, hook) + _attribute(7, b"nat\0")),
        _message(
            NEW_RULE,
            CREATE | APPEND,
            _attribute(1, name) + _attribute(2, chain) + _nest(4, matches + _expression("masq", b"")),
        ),
    ]
    return _frame(BATCH_BEGIN, REQUEST, 0, NFTABLES) + b"".join(messages) + _frame(BATCH_END, REQUEST, 0, NFTABLES)


def _source_is(address: str) -> bytes:
    where = _number(2, NETWORK_HEADER) + _number(3, SOURCE_OFFSET) + _number(4, ADDRESS_BYTES)
    return _expression("payload", _number(1, REGISTER) + where) + _equals(socket.inet_aton(address))


def _leaves_by(device: int) -> bytes:
    return _expression("meta", _number(1, REGISTER) + _number(2, OUTPUT_DEVICE)) + _equals(struct.pack("=I", device))


def _equals(value: bytes) -> bytes:
    return _expression("cmp", _number(1, REGISTER) + _number(2, EQUAL) + _nest(3, _attribute(1, value)))


def _await_answers(netlink: socket.socket, table: str) -> None:
    """One answer for each of the three messages; the first error is raised."""
    answers = 0
    while answers < 3:
        data = netlink.recv(65536)
        while len(data) >= 16:
            length, kind = struct.unpack_from("=IH", data)
            if kind == NLMSG_ERROR:
                code = -struct.unpack_from("=i", data, 16)[0]
                if code:
                    raise RunError(_refusal(table, code))
                answers += 1
            data = data[(length + 3) & ~3 :]


def _refusal(table: str, code: int) -> str:
    if code in (errno.ENOENT, errno.EOPNOTSUPP, errno.EPROTONOSUPPORT):
        return f"nf_tables: {os.strerror(code)}; this kernel has no NAT: modprobe nft_masq, or take one with CONFIG_NFT_MASQ"
    return f"nf_tables: table {table}: {os.strerror(code)}; this kernel refuses NAT"


def _message(kind: int, flags: int, attributes: bytes) -> bytes:
    return _frame(NFTABLES << 8 | kind, REQUEST | ACK | flags, IPV4, 0, attributes)


def _frame(kind: int, flags: int, family: int, resource: int, attributes: bytes = b"") -> bytes:
    header = struct.pack("=IHHII", 20 + len(attributes), kind, flags, kind, 0)
    return header + struct.pack("=BB", family, 0) + struct.pack(">H", resource) + attributes


def _expression(name: str, data: bytes) -> bytes:
    return _nest(1, _attribute(1, name.encode() + b"\0") + _nest(2, data))


def _nest(kind: int, content: bytes) -> bytes:
    return _attribute(kind | NESTED, content)


def _number(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack(">I", value))


def _attribute(kind: int, content: bytes) -> bytes:
    padding = b"\0" * (-len(content) % 4)
    return struct.pack("=HH", 4 + len(content), kind) + content + padding
