//! ICMP destination unreachable (RFC 792): host, for packets that die for lack of a route, and fragmentation needed. And a
//! message of our own (formats/routing.md), in a type that RFC 4727, section 3.2 leaves to experiments: [`Notice`].

use super::{checksum, ipv4};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

const UNREACHABLE: u8 = 3;
const EXPERIMENT: u8 = 253;
const NETWORK: u8 = 0;
const HOST: u8 = 1;
const FRAGMENTATION_NEEDED: u8 = 4;
/// As the kernel quotes: as much as fits without the error exceeding 576 bytes (RFC 1812, 4.3.2.3).
const LONGEST: usize = 576;

/// What a node tells the source of a packet whose route broke there. Its values are the ICMP codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Notice {
    /// The packet waits here while another route is looked for.
    Held = 0,
    /// There is a route again, and the packet is on its way.
    Restored = 1,
}

/// The error about `packet` from `from` to the packet's source. `None` where RFC 1122, 3.2.2 forbids one: about an ICMP
/// error, a fragment other than the first, a broadcast or multicast, or a source that names no single host.
pub fn host_unreachable(packet: &[u8], from: Ipv4Addr) -> Option<Vec<u8>> {
    error(UNREACHABLE, HOST, packet, from)
}

/// The notice about `packet` from `from` to the packet's source; `None` as for [`host_unreachable`], which it resembles in
/// all but type and code.
pub fn notice(kind: Notice, packet: &[u8], from: Ipv4Addr) -> Option<Vec<u8>> {
    error(EXPERIMENT, kind as u8, packet, from)
}

fn error(kind: u8, code: u8, packet: &[u8], from: Ipv4Addr) -> Option<Vec<u8>> {
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
    Some(message(kind, code, 0, quoted, from, source))
}

/// ICMP fragmentation needed (RFC 1191, section 4) about `packet`: what fits is `mtu` bytes.
pub fn fragmentation_needed(packet: &ipv4::Packet, from: Ipv4Addr, mtu: u16) -> Vec<u8> {
    let quoted = &packet.bytes()[..packet.bytes().len().min(packet.header_len() + 8)];
    message(UNREACHABLE, FRAGMENTATION_NEEDED, mtu, quoted, from, packet.source())
}

fn message(kind: u8, code: u8, mtu: u16, quoted: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0, 0, 0];
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

/// Whether this is ICMP network or host unreachable about a TCP packet: what RFC 6069 has TCP act on.
pub fn is_unreachable_tcp(packet: &[u8]) -> bool {
    let Some(error) = ipv4::Packet::parse(packet) else { return false };
    let payload = error.payload();
    let about = error.protocol() == ipv4::protocol::ICMP
        && matches!(payload, [UNREACHABLE, NETWORK | HOST, ..])
        && payload.len() >= 8 + ipv4::HEADER_LEN;
    // The quoted packet may be cut, so that only its header is looked at: its protocol is octet 9.
    about && payload[8 + 9] == ipv4::protocol::TCP
}

/// Everything but the queries and answers of ping and its like.
fn is_error(packet: &ipv4::Packet) -> bool {
    const QUERIES: [u8; 8] = [0, 8, 13, 14, 15, 16, 17, 18];
    packet.protocol() == ipv4::protocol::ICMP && packet.payload().first().is_none_or(|kind| !QUERIES.contains(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
    fn what_rfc_6069_acts_on_is_known_from_other_errors_and_at_every_length() {
        let about = |protocol, code| {
            let mut error = host_unreachable(&packet(protocol, &[1; 100]), US).unwrap();
            error[21] = code;
            error
        };
        let dead = about(ipv4::protocol::TCP, 1);
        assert!(is_unreachable_tcp(&dead) && is_unreachable_tcp(&about(ipv4::protocol::TCP, 0)));
        assert!(
            !is_unreachable_tcp(&about(ipv4::protocol::TCP, 4)) && !is_unreachable_tcp(&about(ipv4::protocol::UDP, 1))
        );
        assert!(!is_unreachable_tcp(&packet(ipv4::protocol::TCP, &[3, 1, 0, 0, 0, 0, 0, 0])));
        for length in 0..dead.len() {
            is_unreachable_tcp(&dead[..length]);
        }
    }

    #[test]
    fn no_error_about_an_error_but_one_about_an_echo_request() {
        assert!(host_unreachable(&packet(ipv4::protocol::ICMP, &[3, 1, 0, 0, 0, 0, 0, 0]), US).is_none());
        assert!(host_unreachable(&packet(ipv4::protocol::ICMP, &[8, 0, 0, 0, 0, 0, 0, 0]), US).is_some());
    }

    #[test]
    fn a_notice_is_type_253_with_its_code_and_quotes_as_an_unreachable_does() {
        let about = packet(ipv4::protocol::TCP, &[0x13, 0x89, 0, 80, 0, 0, 1, 2]);
        for (kind, code) in [(Notice::Held, 0), (Notice::Restored, 1)] {
            let bytes = notice(kind, &about, US).unwrap();
            // header as the unreachable's: 20 + 8 + 28 = 56 bytes, CS6, TTL 64, ICMP, from us to the source
            let header = [0x45, 0xc0, 0, 56, 0, 0, 0, 0, 64, 1];
            assert_eq!((&bytes[..10], &bytes[12..20]), (header.as_slice(), [10, 0, 0, 9, 10, 0, 0, 1].as_slice()));
            assert_eq!((&bytes[20..22], &bytes[24..28]), ([253, code].as_slice(), [0; 4].as_slice()));
            assert_eq!((&bytes[28..], checksum(&bytes[20..])), (about.as_slice(), 0));
        }
        assert_eq!(notice(Notice::Held, &packet(ipv4::protocol::TCP, &[0; 1400]), US).unwrap().len(), 576);
    }

    #[test]
    fn there_is_no_error_and_no_notice_about_a_notice() {
        let about = notice(Notice::Held, &packet(ipv4::protocol::TCP, &[1; 20]), US).unwrap();
        assert_eq!((host_unreachable(&about, US), notice(Notice::Restored, &about, US)), (None, None));
    }

    #[test]
    fn nothing_is_said_of_later_fragments_and_to_sources_that_are_no_single_host() {
        let tcp = packet(ipv4::protocol::TCP, &[1; 20]);
        let changed = |at: usize, to: &[u8]| {
            let mut bytes = tcp.clone();
            bytes[at..at + to.len()].copy_from_slice(to);
            notice(Notice::Held, &bytes, US)
        };
        assert!(changed(6, &[0, 0]).is_some());
        for (at, to) in
            [(6, [0, 1].as_slice()), (12, &[127, 0, 0, 1]), (12, &[224, 0, 0, 1]), (12, &[0; 4]), (16, &[255; 4])]
        {
            assert_eq!(changed(at, to), None, "{at} {to:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_make_a_sound_message_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..700), first in 0x40u8..0x50) {
            let mut bytes = bytes;
            if let Some(b) = bytes.first_mut() {
                *b = first;
            }
            ipv4::repair(&mut bytes);
            for made in [host_unreachable(&bytes, US), notice(Notice::Held, &bytes, US)].into_iter().flatten() {
                let parsed = ipv4::Packet::parse(&made).unwrap();
                prop_assert!(made.len() <= LONGEST && bytes.starts_with(&parsed.payload()[8..]));
                prop_assert_eq!((checksum(parsed.payload()), parsed.source()), (0, US));
            }
        }
    }
}
