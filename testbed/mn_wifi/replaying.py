"""Replaying what was recorded: movement. Shaped bandwidth, loss and signal have no place in a medium that makes them."""

from testbed.errors import UsageError
from testbed.mn_wifi.arguments import refusing
from testbed.mn_wifi.net import Mininet_wifi
from testbed.mn_wifi.node import Station


class ReplayingMobility:
    """Every station that has places in `p` goes along them from now on: to each at its own `time` (s), or `speed` places a
    second."""

    def __init__(self, net: Mininet_wifi, nodes: list[Station] | None = None) -> None:
        chosen = [node for node in (net.stations if nodes is None else nodes) if hasattr(node, "p")]
        if not chosen:
            raise UsageError("ReplayingMobility: no station has places; set sta.p = [(x, y, z), ...] first")
        net.replay(chosen)


WHY = "here bandwidth, loss and signal come of frames, not of a table; replay the movement (ReplayingMobility)"
__getattr__ = refusing(
    "mn_wifi.replaying", {f"Replaying{what}": WHY for what in ("Bandwidth", "NetworkConditions", "RSSI")}, "is not here"
)
