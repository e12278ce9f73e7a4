"""A device's settings by ioctl: its MTU, and its segmentation offloads, as `ethtool -K` does (SIOCETHTOOL, <linux/ethtool.h>).

With offloads on, a capture shows packets larger than those on the air, and queues count several packets as one.
"""

import ctypes
import errno
import fcntl
import socket
import struct

from testbed.errors import RunError

SIOCETHTOOL = 0x8946
SIOCGIFMTU = 0x8921  # <linux/sockios.h>
COMMANDS = {"tso": 0x1F, "gso": 0x24, "gro": 0x2C}  # ETHTOOL_STSO, _SGSO, _SGRO


def set_offloads(interface: str, wanted: dict[str, object]) -> None:
    """Switch `tso`, `gso` and `gro`, as far as `wanted` has them, of a device in the calling thread's namespace. Raises
    RunError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for name in COMMANDS.keys() & wanted.keys():
            value = ctypes.create_string_buffer(struct.pack("II", COMMANDS[name], int(bool(wanted[name]))))
            request = struct.pack("16sQ16x", interface.encode(), ctypes.addressof(value))  # struct ifreq
            try:
                fcntl.ioctl(sock, SIOCETHTOOL, request)
            except OSError as problem:
                if problem.errno == errno.EOPNOTSUPP and not wanted[name]:
                    continue  # a device without it has nothing to switch off (mac80211's)
                raise RunError(f"ethtool -K {interface} {name}: {problem.strerror}; the device refuses it") from None


def mtu(interface: str) -> int:
    """The MTU, in bytes, of a device in the calling thread's namespace. Raises RunError if the device is gone."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            answer = fcntl.ioctl(sock, SIOCGIFMTU, struct.pack("16si20x", interface.encode(), 0))  # struct ifreq
        except OSError as problem:
            raise RunError(f"{interface}: {problem.strerror}; the medium that made it has ended") from None
        return struct.unpack_from("i", answer, 16)[0]
