//! The flow of a packet, as a fair queue tells flows apart, and its ECN field: IPv4 (RFC 791, section 3.1) and IPv6 (RFC 8200,
//! section 3).
//!
//! A flow is the five-tuple of addresses, protocol and ports (RFC 8290, section 4.1). Without ports it is the rest: fragments, as
//! only the first of a packet has them, and protocols other than TCP, UDP and UDP-Lite, DSR's and IPv6's extension headers among
//! them. Other EtherTypes are told apart by EtherType and addresses.

use super::ethernet::{Frame, HEADER_LEN, TYPE_IPV4, TYPE_IPV6};
use manet_engine::random::mix;

const TCP: u8 = 6;
const UDP: u8 = 17;
/// RFC 3828.
const UDP_LITE: u8 = 136;

const IPV4_MIN: usize = 20;
const IPV6_HEADER: usize = 40;
/// More-fragments flag and offset of IPv4.
const FRAGMENT: u16 = 0x3fff;

/// The ECN field of IP (RFC 3168, section 5).
const ECN: u8 = 0b11;
const NOT_ECT: u8 = 0b00;
const CE: u8 = 0b11;

/// A hash of the flow of an Ethernet frame; `seed` perturbs it (RFC 8290, section 4.1). A frame without a complete header is a flow
/// of the empty five-tuple.
pub fn hash(frame: &[u8], seed: u64) -> u64 {
    let Ok(header) = Frame::new_checked(frame) else { return mix(seed) };
    let ip = header.payload();
    let mut sum = Hash(mix(seed ^ u64::from(header.ethertype())));
    match header.ethertype() {
        TYPE_IPV4 if ip.len() >= IPV4_MIN && ip[0] >> 4 == 4 => {
            sum.add(&ip[12..20]);
            let whole = u16::from_be_bytes([ip[6], ip[7]]) & FRAGMENT == 0;
            sum.add_transport(ip[9], ip.get(usize::from(ip[0] & 0x0f) * 4..).filter(|_| whole));
        }
        TYPE_IPV6 if ip.len() >= IPV6_HEADER && ip[0] >> 4 == 6 => {
            sum.add(&ip[8..40]);
            sum.add_transport(ip[6], ip.get(IPV6_HEADER..));
        }
        _ => sum.add(&frame[..12]),
    }
    sum.0
}

struct Hash(u64);

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            self.0 = mix(self.0 ^ word.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))).wrapping_add(1);
        }
    }

    fn add_transport(&mut self, protocol: u8, body: Option<&[u8]>) {
        self.add(&[protocol]);
        if let (TCP | UDP | UDP_LITE, Some(ports)) = (protocol, body.and_then(|body| body.get(..4))) {
            self.add(ports);
        }
    }
}

/// Marks the packet in an Ethernet frame Congestion Experienced, if its transport is capable of ECN (RFC 3168, section 5). Returns
/// whether it is marked now. The checksum of an IPv4 header is updated (RFC 1624, equation 3).
pub fn mark_congestion(frame: &mut [u8]) -> bool {
    let Ok(header) = Frame::new_checked(&*frame) else { return false };
    let ethertype = header.ethertype();
    let ip = &mut frame[HEADER_LEN..];
    match ethertype {
        TYPE_IPV4 if ip.len() >= IPV4_MIN && ip[0] >> 4 == 4 => {
            if ip[1] & ECN == NOT_ECT {
                return false;
            }
            let old = u16::from_be_bytes([ip[0], ip[1]]);
            ip[1] |= CE;
            let new = u16::from_be_bytes([ip[0], ip[1]]);
            let sum = u32::from(!u16::from_be_bytes([ip[10], ip[11]])) + u32::from(!old) + u32::from(new);
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            true
        }
        // the traffic class lies across the first two bytes, after the version; the header has no checksum
        TYPE_IPV6 if ip.len() >= IPV6_HEADER && ip[0] >> 4 == 6 => {
            let capable = ip[1] >> 4 & ECN != NOT_ECT;
            if capable {
                ip[1] |= CE << 4;
            }
            capable
        }
        _ => false,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An Ethernet frame with an IPv4 header of 20 bytes and `body`, whose checksum is right.
    pub fn ipv4(ecn: u8, protocol: u8, fragment: u16, body: &[u8]) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00, 0x45, ecn, 0, 0, 0, 7];
        frame[16..18].copy_from_slice(&(20 + body.len() as u16).to_be_bytes());
        frame.extend(fragment.to_be_bytes());
        frame.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame.extend(body);
        frame
    }

    fn ipv6(ecn: u8, protocol: u8, body: &[u8]) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, ecn << 4, 0, 0];
        frame.extend((body.len() as u16).to_be_bytes());
        frame.extend([protocol, 64]);
        frame.extend(
            [[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]]
                .concat(),
        );
        frame.extend(body);
        frame
    }

    /// The checksum of an IPv4 header, computed as a whole (RFC 1071, section 1), which is 0 over a header whose own is right.
    fn checksum(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum: u32 = words.sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        !((sum & 0xffff) + (sum >> 16)) as u16
    }

    const PORTS: [u8; 4] = [0x9c, 0x40, 0x14, 0x51]; // 40000 to 5201

    // RFC 8290, section 4.1
    #[test]
    fn a_flow_is_addresses_protocol_and_ports() {
        let tcp = ipv4(0, TCP, 0, &PORTS);
        assert_eq!(
            hash(&tcp, 1),
            hash(&ipv4(2, TCP, 0, &[&PORTS[..], &[1, 2, 3]].concat()), 1),
            "no other field counts"
        );
        let other_port = ipv4(0, TCP, 0, &[0x9c, 0x41, 0x14, 0x51]);
        let mut other_address = tcp.clone();
        other_address[33] = 3;
        for other in [&other_port, &other_address, &ipv4(0, UDP, 0, &PORTS), &ipv6(0, TCP, &PORTS)] {
            assert_ne!(hash(&tcp, 1), hash(other, 1));
        }
        assert_ne!(hash(&ipv6(0, TCP, &PORTS), 1), hash(&ipv6(0, TCP, &[0, 1, 0, 2]), 1));
    }

    // RFC 8290, section 4.1: a random number, so that nobody can choose flows that collide
    #[test]
    fn the_seed_perturbs_the_hash() {
        let [a, b] = [ipv4(0, TCP, 0, &PORTS), ipv4(0, TCP, 0, &[0, 1, 0, 2])];
        let apart = |seed| (hash(&a, seed) % 2, hash(&b, seed) % 2);
        assert!(
            (0..32).any(|seed| apart(seed).0 == apart(seed).1) && (0..32).any(|seed| apart(seed).0 != apart(seed).1)
        );
    }

    #[test]
    fn fragments_and_other_protocols_have_no_ports() {
        let [first, last] = [ipv4(0, UDP, 0x2000, &PORTS), ipv4(0, UDP, 0x00b9, &[9; 4])];
        assert_eq!(hash(&first, 1), hash(&last, 1), "the fragments of a packet are one flow");
        let [one, other] = [ipv4(0, 1, 0, &PORTS), ipv4(0, 1, 0, &[9; 4])];
        assert_eq!(hash(&one, 1), hash(&other, 1), "ICMP");
    }

    #[test]
    fn other_ethertypes_are_told_apart_by_their_addresses() {
        let arp = |source: u8| [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, source, 0x08, 0x06, 0, 1];
        assert_eq!(hash(&arp(1), 1), hash(&arp(1), 1));
        assert_ne!(hash(&arp(1), 1), hash(&arp(3), 1));
    }

    // RFC 3168, section 5: ECT(1) is 01, ECT(0) is 10, CE is 11
    #[test]
    fn a_capable_packet_is_marked_and_its_checksum_stays_right() {
        for ecn in [1, 2, 3] {
            let mut v4 = ipv4(ecn, TCP, 0, &PORTS);
            assert!(mark_congestion(&mut v4));
            assert_eq!(v4, ipv4(3, TCP, 0, &PORTS), "a whole computation gives the same checksum");
            let mut v6 = ipv6(ecn, TCP, &PORTS);
            assert!(mark_congestion(&mut v6));
            assert_eq!(v6, ipv6(3, TCP, &PORTS));
        }
    }

    #[test]
    fn other_packets_stay_as_they_are() {
        let arp = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1, 0x08, 0x06], &[3; 28]].concat();
        for frame in [ipv4(0, TCP, 0, &PORTS), ipv6(0, TCP, &PORTS), arp, ipv4(1, TCP, 0, &PORTS)[..33].to_vec()] {
            let mut marked = frame.clone();
            assert!(!mark_congestion(&mut marked));
            assert_eq!(marked, frame);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), seed: u64) {
            hash(&bytes, seed);
            let mut marked = bytes.clone();
            let is_marked = mark_congestion(&mut marked);
            prop_assert!(is_marked || marked == bytes);
            prop_assert_eq!(hash(&marked, seed), hash(&bytes, seed), "a mark does not change the flow");
        }

        // RFC 1624: as right as the checksum of the unmarked header was, whatever its fields are
        #[test]
        fn a_mark_keeps_each_checksum_right(fields in proptest::collection::vec(any::<u8>(), 16), ecn in 1_u8..4) {
            let mut frame = ipv4(ecn, TCP, 0, &[]);
            frame[16..24].copy_from_slice(&fields[..8]);
            frame[26..34].copy_from_slice(&fields[8..16]);
            frame[24..26].fill(0);
            let sum = checksum(&frame[14..34]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
            prop_assert!(mark_congestion(&mut frame));
            prop_assert_eq!(checksum(&frame[14..34]), 0);
        }
    }
}
