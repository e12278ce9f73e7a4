"""Names and addresses of station number i and of wire number k, both counted from 1 (formats/scenario.md, at its end).

They depend on the number alone, so a capture can be read without a table.

IPv6 addresses are of a unique local prefix (RFC 4193): fd, then the five bytes of "manet" in ASCII in place of its random global
identifier (section 3.2.1), so that they are the same in every run and can be read. They never leave the testbed's namespaces.
Subnet 0 is the radio's, subnet k that of wire k.
"""

from collections.abc import Sequence
from ipaddress import IPv6Address

INTERFACE = "wlan0"  # of a radio; also the end of its name where radios have their stations' names
NETWORK = "10.0.0.0"
PREFIX_BITS = 8
LAST_NUMBER = 0xFFFF

WIRE_PREFIX_BITS = 30
HOST_INTERFACE = "eth0"
MAX_WIRES = 250
WIRES_NETWORK = "192.168.0.0/16"
EVERYTHING = "0.0.0.0/0"
SITE6 = "fd6d:616e:6574"
NETWORK6 = f"{SITE6}::"
PREFIX6_BITS = 64
GATEWAY_END, HOST_END = 1, 2  # the station's end of a wire and the plain host's


def station_name(number: int) -> str:
    """`sta<i>`."""
    _check(number)
    return f"sta{number}"


def mac_address(number: int) -> str:
    """02:00:00:00 (locally administered, unicast) and the number in the two low bytes."""
    _check(number)
    return f"02:00:00:00:{number >> 8:02x}:{number & 0xFF:02x}"


def ip_address(number: int) -> str:
    """10.0.<i/256>.<i%256>, without the prefix length (which is 8, and gives no prefix route)."""
    _check(number)
    return f"10.0.{number // 256}.{number % 256}"


def ip6_address(number: int) -> str:
    """fd6d:616e:6574::<i in hexadecimal>, without the prefix length."""
    _check(number)
    return f"{NETWORK6}{number:x}"


def eui_64(mac: str) -> str:
    """The modified EUI-64 of the MAC (RFC 4291, appendix A), eight bytes separated by colons."""
    first, *rest = mac.split(":")
    return ":".join([f"{int(first, 16) ^ 2:02x}", *rest[:2], "ff", "fe", *rest[2:]])


def link_local_address(mac: str) -> str:
    """The link-local address that the kernel gives a device with this MAC (RFC 4291, 2.5.6)."""
    bytes_ = eui_64(mac).replace(":", "")
    return str(IPv6Address(f"fe80::{':'.join(bytes_[at : at + 4] for at in range(0, 16, 4))}"))


def radio_interface(station: str, naming: str = INTERFACE) -> str:
    """The name of a station's radio: `wlan0`, or with the naming `station-wlan0` as in Mininet-WiFi `<station>-wlan0`."""
    return INTERFACE if naming == INTERFACE else f"{station}-{INTERFACE}"


def wire_interfaces(ends: Sequence[str]) -> list[str]:
    """The interface of each wire's station, or of each wire's host, by name in the order of the wires: the first is `eth0`,
    the second `eth1`."""
    return [f"eth{ends[:index].count(name)}" for index, name in enumerate(ends)]


def wire_network(wire: int) -> str:
    """192.168.<k>.0/30."""
    return f"{_wire(wire)}.0/{WIRE_PREFIX_BITS}"


def wire_ip(wire: int, end: int) -> str:
    """192.168.<k>.1 at the station, 192.168.<k>.2 at the host."""
    return f"{_wire(wire)}.{end}"


def wire_network6(wire: int) -> str:
    """fd6d:616e:6574:<k in hexadecimal>::/64."""
    _wire(wire)
    return f"{SITE6}:{wire:x}::/{PREFIX6_BITS}"


def wire_ip6(wire: int, end: int) -> str:
    """fd6d:616e:6574:<k>::1 at the station, fd6d:616e:6574:<k>::2 at the host."""
    _wire(wire)
    return f"{SITE6}:{wire:x}::{end}"


def wire_mac(wire: int, end: int) -> str:
    """02:00:00:01:<k>:<end>: no station has a 1 in the fourth byte."""
    _wire(wire)
    return f"02:00:00:01:{wire:02x}:{end:02x}"


def _wire(wire: int) -> str:
    if not 1 <= wire <= MAX_WIRES:
        raise ValueError(f"wire number {wire} is outside 1 to {MAX_WIRES}; number wires from 1")
    return f"192.168.{wire}"


def _check(number: int) -> None:
    if not 1 <= number < LAST_NUMBER:  # 10.0.255.255 is not used
        raise ValueError(f"station number {number} is outside 1 to {LAST_NUMBER - 1}; number stations from 1")
