//! The TCP packet of the tests of the host.

use manet_routing::packet::ipv4::{self, protocol};
use std::net::Ipv4Addr;

pub const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const DESTINATION: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 6);
/// The start of a TCP header: ports 0x1389 = 5001 and 0x0050 = 80, sequence number 0x0102 = 258.
pub const TCP: [u8; 8] = [0x13, 0x89, 0, 0x50, 0, 0, 1, 2];

/// An IPv4 packet with this payload, [`TCP`] or part of it.
pub fn packet(payload: &[u8]) -> Vec<u8> {
    let header = ipv4::Repr {
        tos: 0,
        identification: 1,
        dont_fragment: true,
        ttl: 64,
        protocol: protocol::TCP,
        source: SOURCE,
        destination: DESTINATION,
    };
    header.packet(payload)
}
