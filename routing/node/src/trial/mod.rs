//! Surroundings for tests of a protocol in virtual time: [`One`] machine, or several on an ideal channel ([`Air`]).

mod air;
mod one;

pub use air::{is_dull, Air, End, Station};
pub use one::One;

use crate::packet::ipv4;
use crate::{Bytes, Mac, Node, Output, Routes};
use manet_engine::{Duration, Instant};
use std::net::Ipv4Addr;

/// Length of an IPv4 header and a UDP header.
const IP_UDP_LEN: usize = ipv4::HEADER_LEN + 8;

/// A host of the Internet (RFC 5737, section 3: for documentation).
pub const INTERNET: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

/// The address of node `n`.
pub const fn ip(n: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, (n >> 8) as u8, n as u8)
}

/// The link address of node `n`.
pub const fn mac(n: usize) -> Mac {
    [2, 0, 0, 0, (n >> 8) as u8, n as u8]
}

/// Node `n` without wires.
pub fn node(n: usize) -> Node {
    Node::new(n as u64, ip(n), (ip(0), 8), mac(n))
}

/// Node `n` with a wire.
pub fn gateway(n: usize) -> Node {
    Node { wires: vec![(Ipv4Addr::new(192, 168, 1, 0), 30)], ..node(n) }
}

/// `s` seconds after the start.
pub fn at(s: impl Into<f64>) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(s.into())
}

/// `ms` milliseconds after the start.
pub fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// An IPv4 packet of the IP protocol `protocol`.
pub fn packet_of(protocol: u8, source: Ipv4Addr, destination: Ipv4Addr, identification: u16, payload: &[u8]) -> Bytes {
    let header = ipv4::Repr { tos: 0, identification, dont_fragment: true, ttl: 64, protocol, source, destination };
    Bytes(header.packet(payload))
}

/// A UDP packet from port 1000 to port 2000, without checksum (RFC 768).
pub fn udp(source: Ipv4Addr, destination: Ipv4Addr, identification: u16, payload: &[u8]) -> Bytes {
    let len = (payload.len() as u16 + 8).to_be_bytes();
    let datagram = [[3, 232, 7, 208].as_slice(), &len, &[0, 0], payload].concat();
    packet_of(ipv4::protocol::UDP, source, destination, identification, &datagram)
}

/// A UDP packet.
pub fn packet(source: Ipv4Addr, destination: Ipv4Addr) -> Bytes {
    udp(source, destination, 1, b"data")
}

/// Whether a control datagram or a frame fits the radio.
pub fn fits(output: &Output, mtu: u16) -> bool {
    let len = match output {
        Output::Control { bytes, .. } => bytes.len() + IP_UDP_LEN,
        Output::Frame { bytes, .. } => bytes.len(),
        _ => 0,
    };
    len <= usize::from(mtu)
}

/// Applies an output to the routes that a kernel would have. True: it sets a route that is there already.
///
/// # Panics
/// If a route is cleared that is not there.
pub fn follow(routes: &mut Routes, output: &Output) -> bool {
    match output {
        Output::SetRoute(route) => {
            let again = routes.iter().any(|known| known == route);
            routes.set(*route);
            return again;
        }
        Output::ClearRoute { destination, prefix } => {
            routes.clear(*destination, *prefix).expect("only a route that is there is cleared");
        }
        _ => {}
    }
    false
}
