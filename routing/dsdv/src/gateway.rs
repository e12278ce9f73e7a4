//! Names of gateways: "the wired network behind this station" as a destination (ns-2's base stations had hierarchical
//! addresses instead).
//!
//! The wired network behind a gateway is a destination like any other, so that sequence numbers, settling and broken
//! marks hold for it without exception. Its name is the gateway's address with all network bits zero: `{0, host number}`,
//! "host on this network" (RFC 1122, 3.2.1.3 (b)). No station has such an address, and no packet is sent to it. It has
//! the gateway's own sequence number: both entries have one source, which makes both newer at once.

use manet_routing::Node;
use std::net::Ipv4Addr;

/// The destination of the default route, under which packets for the Internet wait.
pub const INTERNET: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

/// The gateway in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Address of the gateway as a station.
    pub gateway: Ipv4Addr,
    /// The next hop.
    pub via: Ipv4Addr,
}

/// The destination that stands for the wired network behind `station`; none if the network's prefix leaves no room.
pub fn behind(node: &Node, station: Ipv4Addr) -> Option<Ipv4Addr> {
    let alias = Ipv4Addr::from(u32::from(station) & node.host_mask());
    (!node.in_network(alias) && alias != INTERNET).then_some(alias)
}

/// The inverse of [`behind`]: the station of which `destination` is the wired network.
pub fn station_before(node: &Node, destination: Ipv4Addr) -> Option<Ipv4Addr> {
    let network = u32::from(node.network.0) & !node.host_mask();
    let station = Ipv4Addr::from(network | u32::from(destination));
    (behind(node, station) == Some(destination)).then_some(station)
}

/// Whether `address` is that of a host of the Internet.
pub fn is_outside(node: &Node, address: Ipv4Addr) -> bool {
    !node.in_network(address) && u32::from(address) & !node.host_mask() != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(network: [u8; 4], prefix: u8) -> Node {
        let (mac, wires) = ([2, 0, 0, 0, 0, 1], Vec::new());
        let (feedback, restarted, notices) = (false, false, false);
        let (address, network) = (network.into(), (network.into(), prefix));
        Node { wires, feedback, restarted, notices, ..Node::new(1, address, network, mac) }
    }

    #[test]
    fn the_network_behind_a_station_has_its_host_number() {
        let of = |node: &Node, station: [u8; 4]| behind(node, station.into());
        assert_eq!(of(&node([10, 0, 0, 0], 8), [10, 1, 2, 3]), Some([0, 1, 2, 3].into()));
        assert_eq!(of(&node([192, 168, 4, 0], 22), [192, 168, 5, 9]), Some([0, 0, 1, 9].into()));
        // no host number, and no network bits that could be zero
        assert_eq!(of(&node([10, 0, 0, 1], 32), [10, 0, 0, 1]), None);
        assert_eq!(of(&node([10, 0, 0, 0], 0), [10, 0, 0, 1]), None);
    }

    #[test]
    fn the_name_leads_back_to_the_station_and_other_addresses_to_none() {
        let of = |address: [u8; 4]| station_before(&node([192, 168, 4, 0], 22), address.into());
        assert_eq!(of([0, 0, 1, 9]), Some([192, 168, 5, 9].into()));
        // a host number of this network has ten bits
        assert_eq!(
            (of([0, 0, 4, 9]), of([192, 168, 5, 9]), of([192, 0, 2, 1]), of([0, 0, 0, 0])),
            (None, None, None, None)
        );
    }

    #[test]
    fn an_address_outside_the_network_is_the_internet_s_unless_it_is_such_a_name() {
        let of = |address: [u8; 4]| is_outside(&node([10, 0, 0, 0], 8), address.into());
        assert_eq!(
            [of([192, 0, 2, 1]), of([10, 0, 0, 9]), of([0, 0, 0, 9]), of([0, 0, 0, 0])],
            [true, false, false, false]
        );
    }
}
