"""Names and addresses of station number i and of wire number k, both counted from 1 (formats/scenario.md, at its end).

They depend on the number alone, so a capture can be read without a table.
"""

from collections.abc import Sequence

INTERFACE = "wlan0"  # of a radio; also the end of its name where radios have their stations' names
NETWORK = "10.0.0.0"
PREFIX_BITS = 8
LAST_NUMBER = 0xFFFF

WIRE_PREFIX_BITS = 30
HOST_INTERFACE = "eth0"
MAX_WIRES = 250
WIRES_NETWORK = "192.168.0.0/16"
EVERYTHING = "0.0.0.0/0"
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
