"""Keys of flows that several kinds take: a name means the same in each of them, with one unit and one range."""

from typing import Annotated

from pydantic import Field

from keys.quantities import BitsPerSecond, Whole
from traffic.programs.datagrams import HEADERS_BYTES

MIN_PACKET_BYTES, MAX_PACKET_BYTES = HEADERS_BYTES[4] + 1, 1500

Rate = Annotated[BitsPerSecond, Field(ge=1, le=1e10, examples=[100_000])]
"""bit/s of IP packets."""

PacketBytes = Annotated[Whole, Field(ge=MIN_PACKET_BYTES, le=MAX_PACKET_BYTES, examples=[512])]
"""Of the IP packet: the headers and at least one byte of data; at most the scenario's `mtu`, which is checked with it."""
