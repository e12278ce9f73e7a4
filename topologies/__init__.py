"""Initial positions of stations: pure functions from a few numbers to named points."""

from topologies.addresses import ip_address, mac_address, station_name
from topologies.layouts import LayoutError, Placed, chain, circle, cross, explicit, grid, names_of, random_uniform

__all__ = [
    "LayoutError",
    "Placed",
    "chain",
    "circle",
    "cross",
    "explicit",
    "grid",
    "ip_address",
    "mac_address",
    "names_of",
    "random_uniform",
    "station_name",
]
