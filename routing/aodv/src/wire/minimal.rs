//! Minimal encapsulation within IP (RFC 2004, section 3.1): the packet keeps its header with another destination (and
//! source), and a forwarding header after it has the replaced fields.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+-+-------------+-------------------------------+
//! |   protocol    |S|  reserved   |        header checksum        |
//! +---------------+-+-------------+-------------------------------+
//! |                 original destination address                  |
//! |             original source address, only if S                |
//! +---------------------------------------------------------------+
//! ```
//! Fragments may not be encapsulated (section 3.3.1). The outer header carries the TTL, which decapsulation keeps.

use super::{address, Malformed, Result, TRUNCATED};
use manet_routing::packet::{checksum, ipv4};
use std::net::Ipv4Addr;

/// Length of the forwarding header without source address, in bytes.
pub const LEN: usize = 8;
/// Length of the forwarding header with source address, in bytes.
pub const LEN_WITH_SOURCE: usize = 12;
const SOURCE: u8 = 0x80;

/// Encapsulates `packet` for a tunnel from `entry` to `exit`. `None` for a fragment or a result too long for IPv4.
pub fn encapsulate(packet: &ipv4::Packet, entry: Ipv4Addr, exit: Ipv4Addr) -> Option<Vec<u8>> {
    if packet.fragment_offset() != 0 || packet.more_fragments() {
        return None;
    }
    let with_source = packet.source() != entry;
    let mut header = vec![packet.protocol(), if with_source { SOURCE } else { 0 }, 0, 0];
    header.extend(packet.destination().octets());
    if with_source {
        header.extend(packet.source().octets());
    }
    let sum = checksum(&header);
    header[2..4].copy_from_slice(&sum.to_be_bytes());
    if packet.bytes().len() + header.len() > usize::from(u16::MAX) {
        return None;
    }
    let mut out = packet.bytes()[..packet.header_len()].to_vec();
    out[9] = ipv4::protocol::MINIMAL;
    out[12..16].copy_from_slice(&entry.octets());
    out[16..20].copy_from_slice(&exit.octets());
    out.extend(header);
    out.extend(packet.payload());
    ipv4::repair(&mut out);
    Some(out)
}

/// The packet inside `packet`, which has protocol 55. Fails if it is truncated, a fragment, or has a wrong checksum.
pub fn decapsulate(packet: &ipv4::Packet) -> Result<Vec<u8>> {
    let payload = packet.payload();
    let with_source = payload.get(1).ok_or(TRUNCATED)? & SOURCE != 0;
    let len = if with_source { LEN_WITH_SOURCE } else { LEN };
    let header = payload.get(..len).ok_or(TRUNCATED)?;
    if packet.protocol() != ipv4::protocol::MINIMAL || packet.fragment_offset() != 0 || packet.more_fragments() {
        return Err(Malformed("malformed-tunnel"));
    }
    if checksum(header) != 0 {
        return Err(Malformed("malformed-tunnel-checksum"));
    }
    let mut out = packet.bytes()[..packet.header_len()].to_vec();
    out[9] = header[0];
    out[16..20].copy_from_slice(&address(header, 4).octets());
    if with_source {
        out[12..16].copy_from_slice(&address(header, 8).octets());
    }
    out.extend(&payload[len..]);
    ipv4::repair(&mut out);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NODE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
    const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

    fn packet(source: Ipv4Addr, payload: &[u8]) -> Vec<u8> {
        let (tos, identification, dont_fragment, ttl, protocol) = (0, 0x1234, true, 61, ipv4::protocol::TCP);
        ipv4::Repr { tos, identification, dont_fragment, ttl, protocol, source, destination: HOST }.packet(payload)
    }

    #[test]
    fn golden_bytes_without_source() {
        let out = encapsulate(&ipv4::Packet::parse(&packet(NODE, b"abc")).unwrap(), NODE, GATEWAY).unwrap();
        // by hand after RFC 2004, 3.1: protocol 6, S clear, destination 192.0.2.7; checksum of
        // 0600 + c000 + 0207 = c807, inverted 37f8
        assert_eq!(out[20..], [6, 0, 0x37, 0xf8, 192, 0, 2, 7, b'a', b'b', b'c']);
        let outer = ipv4::Packet::parse(&out).unwrap();
        assert_eq!((outer.source(), outer.destination(), outer.protocol(), outer.ttl()), (NODE, GATEWAY, 55, 61));
        assert_eq!(checksum(&out[..20]), 0);
        assert_eq!(decapsulate(&outer).unwrap(), packet(NODE, b"abc"));
    }

    #[test]
    fn golden_bytes_with_source() {
        let other = Ipv4Addr::new(10, 0, 0, 3);
        let out = encapsulate(&ipv4::Packet::parse(&packet(other, b"")).unwrap(), NODE, GATEWAY).unwrap();
        // 0680 + c000 + 0207 + 0a00 + 0003 = d28a, inverted 2d75
        assert_eq!(out[20..], [6, 0x80, 0x2d, 0x75, 192, 0, 2, 7, 10, 0, 0, 3]);
        assert_eq!(decapsulate(&ipv4::Packet::parse(&out).unwrap()).unwrap(), packet(other, b""));
    }

    #[test]
    fn a_wrong_checksum_and_every_truncation_are_refused() {
        let good = encapsulate(&ipv4::Packet::parse(&packet(NODE, b"")).unwrap(), NODE, GATEWAY).unwrap();
        for at in 20..28 {
            let mut bad = good.clone();
            bad[at] ^= 4;
            assert!(decapsulate(&ipv4::Packet::parse(&bad).unwrap()).is_err(), "{at}");
        }
        for len in 20..28 {
            let mut short = good[..len].to_vec();
            ipv4::repair(&mut short);
            assert_eq!(decapsulate(&ipv4::Packet::parse(&short).unwrap()), Err(TRUNCATED), "{len}");
        }
    }

    #[test]
    fn fragments_are_not_encapsulated() {
        let mut fragment = packet(NODE, b"abc");
        fragment[6] = 0x20; // more fragments
        assert!(encapsulate(&ipv4::Packet::parse(&fragment).unwrap(), NODE, GATEWAY).is_none());
    }

    proptest! {
        #[test]
        fn decapsulation_inverts_encapsulation(source: u32, payload in proptest::collection::vec(any::<u8>(), 0..100)) {
            let inner = packet(source.into(), &payload);
            let out = encapsulate(&ipv4::Packet::parse(&inner).unwrap(), NODE, GATEWAY).unwrap();
            prop_assert_eq!(decapsulate(&ipv4::Packet::parse(&out).unwrap()).unwrap(), inner);
        }

        #[test]
        fn no_byte_string_panics(payload in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut bytes = packet(NODE, &payload);
            bytes[9] = 55;
            let _ = decapsulate(&ipv4::Packet::parse(&bytes).unwrap());
        }
    }
}
