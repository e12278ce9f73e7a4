"""The names and addresses of station number i, counted from 1 (formats/scenario.md, last paragraph).

They depend on the number alone, so that a capture can be read without looking anything up.
"""

INTERFACE = "wlan0"
PREFIX_BITS = 8
LAST_NUMBER = 0xFFFF


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


def _check(number: int) -> None:
    if not 1 <= number < LAST_NUMBER:  # 10.0.255.255 is left alone
        raise ValueError(f"station number {number} is outside 1 to {LAST_NUMBER - 1}; number stations from 1")
