"""Requirements of `nat = true` of a wire: the user's permission, and a machine that forwards packets."""

from pathlib import Path

from testbed.errors import UsageError

FORWARDS = Path("/proc/sys/net/ipv4/ip_forward")


def require_uplink(*, allowed: bool) -> None:
    """UsageError if the user did not allow the real network (`allowed`), or this machine does not forward. The testbed does not
    switch forwarding on: it concerns the whole machine, and nothing would switch it off after `kill -9`."""
    if not allowed:
        text = "processes of the run would reach this machine's networks and the Internet; "
        raise UsageError(text + "add --allow-internet if that is wanted (docs/internet.md), or leave the key out")
    if FORWARDS.read_text().strip() != "1":
        raise UsageError("this machine does not forward packets; sysctl -w net.ipv4.ip_forward=1")
