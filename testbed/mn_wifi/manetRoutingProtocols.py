"""Names for scripts that prepare a routing protocol themselves; `proto` of addLink starts it, with whatever it needs."""

from testbed.mn_wifi.arguments import refuse_others


class aodv:
    """Mininet-WiFi's class for AODV-UU."""

    @classmethod
    def load_module(cls, ifaces: str) -> None:
        """Do nothing: the run loads what AODV-UU needs, and our own AODV needs no module."""


__getattr__ = refuse_others("mn_wifi.manetRoutingProtocols", {}, "is not supported; give addLink(..., proto='...')")
