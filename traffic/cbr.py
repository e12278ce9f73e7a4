"""A constant bit rate over UDP: one datagram each `bytes` * 8 / `rate` seconds, and nothing else on the air."""

from collections.abc import Mapping
from typing import Any

from keys.models import Strict
from traffic.shared.datagrams import DatagramKind, Train
from traffic.shared.keys import MIN_PACKET_BYTES, PacketBytes, Rate


class CbrKeys(Strict):
    """`rate` bit/s of IP packets of `bytes` bytes."""

    rate: Rate
    bytes: PacketBytes


class Cbr(DatagramKind[CbrKeys]):
    """See the head of this file."""

    keys = CbrKeys
    min_packet_bytes = MIN_PACKET_BYTES

    def train(self, keys: CbrKeys) -> Train:
        """Trains of one datagram."""
        return Train(every_s=self.interval_s(keys.model_dump()), packets=1, packet_bytes=keys.bytes)

    def interval_s(self, keys: Mapping[str, Any]) -> float:
        """`bytes` at `rate`."""
        return float(keys["bytes"] * 8 / keys["rate"])

    def offered_bps(self, keys: Mapping[str, Any]) -> float | None:
        """The key `rate`, bit/s."""
        return float(keys["rate"]) if keys.get("rate") else None


KIND = Cbr()
