//! ICMP destination unreachable (RFC 792): host, for packets dropped for lack of a route, and fragmentation needed. Also
//! messages of our own (formats/routing.md), in a type reserved for experiments (RFC 4727, section 3.2): [`Notice`] and
//! [`route_error`]. `restored` lists the forwarded data after the quoted packet as in RFC 4884: length of the quote in the
//! header's sixth byte, the quote padded to 128 bytes, then an extension structure with one object.

use super::{checksum, ipv4};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

const UNREACHABLE: u8 = 3;
const EXPERIMENT: u8 = 253;
/// Code of [`route_error`].
const ROUTE_ERROR: u8 = 2;
const NETWORK: u8 = 0;
const HOST: u8 = 1;
const FRAGMENTATION_NEEDED: u8 = 4;
/// The error quotes as much as fits into 576 bytes in total, as the kernel's (RFC 1812, section 4.3.2.3).
const MAX_LEN: usize = 576;
const MAX_QUOTE: usize = MAX_LEN - ipv4::HEADER_LEN - 8;

/// RFC 4884, section 3: the quote before extensions is at least this long, padded with zeros.
const QUOTE: usize = 128;
/// RFC 4884, section 7: version 2, then the structure's checksum.
const EXTENSION_VERSION: u8 = 2 << 4;
/// RFC 4884, section 8: classes from 247 on are for private use.
const RESTORED_CLASS: u8 = 247;
/// Maximum number of ranges in a notice; kernel-tcp/layers/notices.h has the same limit.
pub const MAX_RANGES: usize = 32;

/// TCP sequence numbers: the first, and the successor of the last.
pub type Range = (u32, u32);

/// A message of a node to the source of a packet whose route broke there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Notice {
    /// The packet waits here during route discovery or repair.
    Held,
    /// A route exists again and the packet was sent. The ranges are the data of its connection that waited with it, sorted
    /// and disjoint. An empty list says nothing about other data.
    Restored(Vec<Range>),
    /// As `Held`, in a form that every TCP understands: host unreachable, which is a hint of a possible routing transient,
    /// not proof (RFC 1122, section 3.2.2.1).
    Unreachable,
}

impl Notice {
    /// ICMP type and code.
    pub fn kind(&self) -> [u8; 2] {
        match self {
            Self::Held => [EXPERIMENT, 0],
            Self::Restored(_) => [EXPERIMENT, 1],
            Self::Unreachable => [UNREACHABLE, HOST],
        }
    }

    fn restored(&self) -> &[Range] {
        match self {
            Self::Held | Self::Unreachable => &[],
            Self::Restored(ranges) => &ranges[..ranges.len().min(MAX_RANGES)],
        }
    }
}

/// The error about `packet`, from `from` to the packet's source. `None` if RFC 1122, section 3.2.2 forbids one: about an
/// ICMP error, a fragment other than the first, a broadcast or multicast, or with a source that is no single host.
pub fn host_unreachable(packet: &[u8], from: Ipv4Addr) -> Option<Vec<u8>> {
    error([UNREACHABLE, HOST], packet, from, &[], MAX_QUOTE)
}

/// The notice about `packet`, from `from` to the packet's source; `None` as for [`host_unreachable`]. It differs from that
/// error in type, code and the list of restored data (the first [`MAX_RANGES`] ranges).
pub fn notice(kind: &Notice, packet: &[u8], from: Ipv4Addr) -> Option<Vec<u8>> {
    let restored = kind.restored();
    error(kind.kind(), packet, from, restored, if restored.is_empty() { MAX_QUOTE } else { QUOTE })
}

/// The explicit link failure notification of Holland and Vaidya (MobiCom 1999, section 6), payload of a Route Error about
/// the next hop of `packet`, which may have been salvaged: as [`host_unreachable`] in another type, with the fields that the
/// paper's message carries (addresses, ports and sequence number), which are the header and eight bytes. `None` as for
/// [`host_unreachable`], and if the packet is not TCP.
pub fn route_error(packet: &[u8], from: Ipv4Addr) -> Option<Vec<u8>> {
    let about = ipv4::Packet::parse(packet).filter(|p| p.protocol() == ipv4::protocol::TCP)?;
    error([EXPERIMENT, ROUTE_ERROR], packet, from, &[], about.header_len() + 8)
}

fn error(what: [u8; 2], packet: &[u8], from: Ipv4Addr, restored: &[Range], max_quote: usize) -> Option<Vec<u8>> {
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
    let mut quoted = about.bytes()[..about.bytes().len().min(max_quote)].to_vec();
    let mut rest = [0; 4];
    if !restored.is_empty() {
        quoted.resize(QUOTE, 0);
        rest[1] = (QUOTE / 4) as u8;
        quoted.extend(extension(restored));
    }
    Some(message(what, rest, &quoted, from, source))
}

/// ICMP fragmentation needed (RFC 1191, section 4) about `packet`, from `from`. `mtu`: MTU of the next hop in bytes.
pub fn fragmentation_needed(packet: &ipv4::Packet, from: Ipv4Addr, mtu: u16) -> Vec<u8> {
    let quoted = &packet.bytes()[..packet.bytes().len().min(packet.header_len() + 8)];
    let [high, low] = mtu.to_be_bytes();
    message([UNREACHABLE, FRAGMENTATION_NEEDED], [0, 0, high, low], quoted, from, packet.source())
}

/// RFC 4884, sections 7 and 8: a structure of one object.
fn extension(restored: &[Range]) -> Vec<u8> {
    let mut bytes = vec![EXTENSION_VERSION, 0, 0, 0];
    let object_bytes = 4 + 8 * restored.len() as u16;
    bytes.extend(object_bytes.to_be_bytes());
    bytes.extend([RESTORED_CLASS, 0]);
    bytes.extend(restored.iter().flat_map(|(first, end)| [first.to_be_bytes(), end.to_be_bytes()]).flatten());
    let sum = checksum(&bytes);
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// `rest`: the second half of the ICMP header.
fn message(what: [u8; 2], rest: [u8; 4], quoted: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    let mut message = [what, [0; 2]].concat();
    message.extend(rest);
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

/// Whether this is ICMP network or host unreachable about a TCP packet, the messages on which TCP acts by RFC 6069.
pub fn is_unreachable_tcp(packet: &[u8]) -> bool {
    let Some(error) = ipv4::Packet::parse(packet) else { return false };
    let payload = error.payload();
    let about = error.protocol() == ipv4::protocol::ICMP
        && matches!(payload, [UNREACHABLE, NETWORK | HOST, ..])
        && payload.len() >= 8 + ipv4::HEADER_LEN;
    // the quoted packet may be cut, so only its header is read: the protocol is octet 9
    about && payload[8 + 9] == ipv4::protocol::TCP
}

/// Whether this is an ICMP message other than a query or reply (RFC 1122, section 3.2.2).
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
    fn unreachables_of_rfc_6069_are_recognised_at_every_length() {
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
        for (kind, code) in [(Notice::Held, 0), (Notice::Restored(Vec::new()), 1)] {
            let bytes = notice(&kind, &about, US).unwrap();
            // header as the unreachable's: 20 + 8 + 28 = 56 bytes, CS6, TTL 64, ICMP, from us to the source
            let header = [0x45, 0xc0, 0, 56, 0, 0, 0, 0, 64, 1];
            assert_eq!((&bytes[..10], &bytes[12..20]), (header.as_slice(), [10, 0, 0, 9, 10, 0, 0, 1].as_slice()));
            assert_eq!((&bytes[20..22], &bytes[24..28]), ([253, code].as_slice(), [0; 4].as_slice()));
            assert_eq!((&bytes[28..], checksum(&bytes[20..])), (about.as_slice(), 0));
        }
        assert_eq!(notice(&Notice::Held, &packet(ipv4::protocol::TCP, &[0; 1400]), US).unwrap().len(), 576);
    }

    #[test]
    fn the_notice_of_a_route_error_quotes_addresses_ports_and_sequence_number_of_tcp() {
        let about = packet(ipv4::protocol::TCP, &[7; 1400]);
        let bytes = route_error(&about, US).unwrap();
        // 20 of IP, 8 of ICMP, 20 + 8 of the quote
        assert_eq!((bytes.len(), &bytes[12..22]), (56, [10, 0, 0, 9, 10, 0, 0, 1, 253, 2].as_slice()));
        assert_eq!((&bytes[28..], checksum(&bytes[20..]), &bytes[24..28]), (&about[..28], 0, [0; 4].as_slice()));
        assert_eq!(route_error(&packet(ipv4::protocol::UDP, &[7; 20]), US), None);
        assert!(!is_unreachable_tcp(&bytes), "the kernel's TCP does not act on it (RFC 6069)");
    }

    /// The ranges of the one object behind the quote (RFC 4884).
    fn listed(message: &[u8]) -> Vec<Range> {
        let icmp = &message[ipv4::HEADER_LEN..];
        let structure = &icmp[8 + 4 * usize::from(icmp[5])..];
        assert_eq!((structure[0], checksum(structure), &structure[6..8]), (0x20, 0, [247, 0].as_slice()));
        assert_eq!(usize::from(u16::from_be_bytes([structure[4], structure[5]])), structure.len() - 4);
        let numbers: Vec<u32> =
            structure[8..].chunks_exact(4).map(|b| u32::from_be_bytes(b.try_into().unwrap())).collect();
        numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
    }

    #[test]
    fn restored_data_is_listed_behind_a_quote_of_128_bytes() {
        for payload in [20, 1400] {
            let about = packet(ipv4::protocol::TCP, &vec![1; payload]);
            let bytes = notice(&Notice::Restored(vec![(1, 1461), (0xffff_fff0, 9)]), &about, US).unwrap();
            let quoted = &bytes[28..28 + 128];
            assert_eq!((&bytes[20..22], bytes[25], checksum(&bytes[20..])), ([253, 1].as_slice(), 32, 0));
            assert_eq!(quoted[..40], about[..40]);
            assert!(quoted[about.len().min(128)..].iter().all(|b| *b == 0));
            assert_eq!(listed(&bytes), [(1, 1461), (0xffff_fff0, 9)]);
        }
    }

    #[test]
    fn there_is_no_error_and_no_notice_about_a_notice() {
        let about = notice(&Notice::Held, &packet(ipv4::protocol::TCP, &[1; 20]), US).unwrap();
        let restored = Notice::Restored(vec![(1, 2)]);
        assert_eq!((host_unreachable(&about, US), notice(&restored, &about, US)), (None, None));
    }

    #[test]
    fn no_error_about_later_fragments_or_to_sources_that_are_no_single_host() {
        let tcp = packet(ipv4::protocol::TCP, &[1; 20]);
        let changed = |at: usize, to: &[u8]| {
            let mut bytes = tcp.clone();
            bytes[at..at + to.len()].copy_from_slice(to);
            notice(&Notice::Held, &bytes, US)
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
            for made in [host_unreachable(&bytes, US), notice(&Notice::Held, &bytes, US)].into_iter().flatten() {
                let parsed = ipv4::Packet::parse(&made).unwrap();
                prop_assert!(made.len() <= MAX_LEN && bytes.starts_with(&parsed.payload()[8..]));
                prop_assert_eq!((checksum(parsed.payload()), parsed.source()), (0, US));
            }
        }

        #[test]
        fn any_list_survives_a_round_trip(
            ranges in proptest::collection::vec(any::<Range>(), 1..40),
            payload in proptest::collection::vec(any::<u8>(), 0..700),
        ) {
            let made = notice(&Notice::Restored(ranges.clone()), &packet(ipv4::protocol::TCP, &payload), US).unwrap();
            prop_assert!(made.len() <= MAX_LEN);
            prop_assert_eq!(listed(&made), &ranges[..ranges.len().min(MAX_RANGES)]);
        }
    }
}
