"""`telemetry(nodes=..., data_type=...)`: Mininet-WiFi's live graphs. A run has no window; its results have what they show.

`position` is the map of plotGraph(), redrawn in the results' folder. `rssi` before build() records the power of each frame at
each station that decoded it. Every other data type is a counter of an interface, which captures and the air log have packet by
packet.
"""

from collections.abc import Sequence

from testbed.errors import UsageError
from testbed.mn_wifi.arguments import Arguments, note, refuse_others
from testbed.mn_wifi.node import Node

LOOKS = ("single", "image", "icon", "icon_width", "icon_height", "icon_text_size", "tool", "title", "min_z", "max_z")
ARGUMENTS = Arguments(
    "telemetry",
    frozenset({"nodes", "data_type", "min_x", "min_y", "max_x", "max_y"}),
    noted={name: "is about a window, which a run does not open; it has no effect" for name in LOOKS},
)


def telemetry(nodes: Sequence[Node] = (), **given: object) -> None:
    """Like `net.telemetry`; the network is that of the nodes. Raises UsageError."""
    if not nodes:
        raise UsageError("telemetry: nodes: there are none; give net.stations")
    net = nodes[0].net
    options = ARGUMENTS.check(given, net.notes)
    kind = options.get("data_type", "tx_packets")
    if kind == "position":
        net.plotGraph(**{key: value for key, value in options.items() if key.startswith(("min_", "max_"))})
    elif kind == "rssi" and net.standing is None:
        net.options["rec_rssi"] = True
        note("telemetry: data_type='rssi': no window; heard_dbm in air.csv and monitor.pcapng have the powers", net.notes)
    else:
        note(f"telemetry: data_type={kind!r}: no window; captures and air.csv have every packet", net.notes)


__getattr__ = refuse_others("mn_wifi.telemetry", {}, "is not supported; telemetry is")
