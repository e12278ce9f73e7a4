"""Addresses of stations and wires."""

from ipaddress import IPv6Address, IPv6Network

import pytest

from topologies.addresses import (
    LAST_NUMBER,
    NETWORK6,
    PREFIX6_BITS,
    SITE6,
    eui_64,
    ip6_address,
    link_local_address,
    mac_address,
    wire_ip6,
    wire_network6,
)

RADIO = IPv6Network(f"{NETWORK6}/{PREFIX6_BITS}")


def test_babels_router_id_is_the_modified_eui_64():
    assert eui_64("02:00:00:00:00:07") == "00:00:00:ff:fe:00:00:07"  # RFC 4291, appendix A: the U/L bit inverted


@pytest.mark.parametrize(("number", "link_local"), [(1, "fe80::ff:fe00:1"), (300, "fe80::ff:fe00:12c")])
def test_the_link_local_address_is_the_kernels(number, link_local):
    assert link_local_address(mac_address(number)) == link_local


def test_addresses_are_of_a_unique_local_prefix_that_spells_manet():
    assert IPv6Network(f"{SITE6}::/48").subnet_of(IPv6Network("fd00::/8"))  # RFC 4193, 3.1
    assert IPv6Address(f"{SITE6}::").packed[1:6] == b"manet"


@pytest.mark.parametrize("number", [1, 10, 255, 256, LAST_NUMBER - 1])
def test_a_stations_address_is_its_number_and_in_canonical_form(number):
    address = IPv6Address(ip6_address(number))
    assert address in RADIO and int(address) & 0xFFFF == number
    assert str(address) == ip6_address(number)  # RFC 5952: as captures, iperf3 and ip(8) write it


@pytest.mark.parametrize("wire", [1, 16, 250])
def test_a_wire_is_a_subnet_of_its_own(wire):
    network = IPv6Network(wire_network6(wire))
    ends = [IPv6Address(wire_ip6(wire, end)) for end in (1, 2)]
    assert all(end in network for end in ends) and not network.overlaps(RADIO)
    assert [str(end) for end in ends] == [wire_ip6(wire, end) for end in (1, 2)]
    assert str(network) == wire_network6(wire)
