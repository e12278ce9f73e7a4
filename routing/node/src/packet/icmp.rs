//! ICMP destination unreachable (RFC 792): host, for packets that die for lack of a route, and fragmentation needed.

use super::{checksum, ipv4};
use std::net::Ipv4Addr;

const UNREACHABLE: u8 = 3;
const HOST: u8 = 1;
const FRAGMENTATION_NEEDED: u8 = 4;
/// As the kernel quotes: as much as fits without the error exceeding 576 bytes (RFC 1812, 4.3.2.3).
const LONGEST: usize = 576;

/// The error about `packet` from `from` to the packet's source. `None` where RFC 1122, 3.2.2 forbids one: about an ICMP
/// error, a fragment other than the first, a broadcast or multicast, or a source that names no single host.
pub fn host_unreachable(packet: &[u8], from: Ipv4Addr) -> Option<Vec<u8>> {
    let about = ipv4::Packet::parse(packet)?;
    let (source, destination) = (about.source(), about.destination());
    let single = |a: Ipv4Addr| !(a.is_broadcast() || a.is_multicast() || a.is_unspecified());
    if !single(source)
        || !single(destination)
        || source.is_loopback()
        || about.fragment_offset() != 0
        || is_error(&about)
    {
        return None;
    }
    let quoted = &about.bytes()[..about.bytes().len().min(LONGEST - ipv4::HEADER_LEN - 8)];
    Some(unreachable(HOST, 0, quoted, from, source))
}

/// ICMP fragmentation needed (RFC 1191, section 4) about `packet`: what fits is `mtu` bytes.
pub fn fragmentation_needed(packet: &ipv4::Packet, from: Ipv4Addr, mtu: u16) -> Vec<u8> {
    let quoted = &packet.bytes()[..packet.bytes().len().min(packet.header_len() + 8)];
    unreachable(FRAGMENTATION_NEEDED, mtu, quoted, from, packet.source())
}

fn unreachable(code: u8, mtu: u16, quoted: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    let mut message = vec![UNREACHABLE, code, 0, 0, 0, 0];
    message.extend(mtu.to_be_bytes());
    message.extend(quoted);
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let header = ipv4::Repr {
        tos: ipv4::TOS_CS6,
        identification: 0,
        dont_fragment: false,
        ttl: 64,
        protocol: ipv4::protocol::ICMP,
        source: from,
        destination: to,
    };
    header.packet(&message)
}

/// Everything but the queries and answers of ping and its like.
fn is_error(packet: &ipv4::Packet) -> bool {
    const QUERIES: [u8; 8] = [0, 8, 13, 14, 15, 16, 17, 18];
    packet.protocol() == ipv4::protocol::ICMP && packet.payload().first().is_none_or(|kind| !QUERIES.contains(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);

    fn packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        ipv4::Repr { tos: 0, identification: 7, dont_fragment: true, ttl: 5, protocol, source, destination }
            .packet(payload)
    }

    #[test]
    fn the_error_quotes_the_packet_and_goes_to_its_source() {
        let about = packet(ipv4::protocol::TCP, &[1; 100]);
        let bytes = host_unreachable(&about, US).unwrap();
        let error = ipv4::Packet::parse(&bytes).unwrap();
        assert_eq!((error.source(), error.destination()), (US, Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!((&error.payload()[..2], &error.payload()[8..]), ([3, 1].as_slice(), about.as_slice()));
        assert_eq!(checksum(error.payload()), 0);
    }

    #[test]
    fn a_long_packet_is_quoted_up_to_576_bytes_in_all() {
        assert_eq!(host_unreachable(&packet(ipv4::protocol::TCP, &[0; 1400]), US).unwrap().len(), 576);
    }

    #[test]
    fn no_error_about_an_error_but_one_about_an_echo_request() {
        assert!(host_unreachable(&packet(ipv4::protocol::ICMP, &[3, 1, 0, 0, 0, 0, 0, 0]), US).is_none());
        assert!(host_unreachable(&packet(ipv4::protocol::ICMP, &[8, 0, 0, 0, 0, 0, 0, 0]), US).is_some());
    }
}
