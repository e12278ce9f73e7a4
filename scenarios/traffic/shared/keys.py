"""Keys of flows that several kinds take: a name means the same in each of them, with one unit and one range."""

from typing import Annotated

from pydantic import Field

from scenarios.quantities import BitsPerSecond, Whole

IP_UDP_BYTES = 28  # headers: IPv4 without options, UDP
MAX_PACKET_BYTES = 1500

Rate = Annotated[BitsPerSecond, Field(ge=1, le=1e10, examples=[100_000])]
"""bit/s of IP packets."""

PacketBytes = Annotated[Whole, Field(ge=IP_UDP_BYTES + 1, le=MAX_PACKET_BYTES, examples=[512])]
"""Of the IP packet: the headers and at least one byte of data; at most the scenario's `mtu`, which is checked with it."""
