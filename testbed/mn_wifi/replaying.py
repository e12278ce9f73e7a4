"""Replay of recorded movement. Recorded bandwidth, loss and signal cannot be replayed: the medium computes them."""

from testbed.errors import UsageError
from testbed.mn_wifi.arguments import refuse_others
from testbed.mn_wifi.net import Mininet_wifi
from testbed.mn_wifi.node import Station


class ReplayingMobility:
    """Move every station that has places in `p` along them from now on: to each at its own `time` (s), or `speed` places a
    second."""

    def __init__(self, net: Mininet_wifi, nodes: list[Station] | None = None) -> None:
        chosen = [node for node in (net.stations if nodes is None else nodes) if hasattr(node, "p")]
        if not chosen:
            raise UsageError("ReplayingMobility: no station has places; set sta.p = [(x, y, z), ...] first")
        net.replay(chosen)


WHY = "here bandwidth, loss and signal follow from frames, not from a table; replay the movement (ReplayingMobility)"
__getattr__ = refuse_others(
    "mn_wifi.replaying", {f"Replaying{what}": WHY for what in ("Bandwidth", "NetworkConditions", "RSSI")}, "is not supported"
)
