//! The update message in the format of ns-3's DSDV module (no specification exists; ns-2's has a hop count of 8 bits and
//! its own header): UDP port 269 to 269, IP TTL 1, only entries of 12 bytes.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                          Destination                          |
//! |                           Hop Count                           |
//! |                        Sequence Number                        |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! The hop count is the receiver's: it is 1 in a sender's entry about itself.

use crate::sequence::Sequence;
use std::net::Ipv4Addr;

/// UDP port, as in ns-3 (the "manet" port of RFC 5498).
pub const PORT: u16 = 269;
/// Length of an entry in bytes.
pub const ENTRY_LEN: usize = 12;
/// Length of the headers of IPv4 (without options) and UDP, in bytes.
pub const HEADERS_LEN: usize = 20 + 8;

/// An entry of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advert {
    /// Address of the station.
    pub destination: Ipv4Addr,
    /// Hop count of the receiver; without meaning if the number is odd.
    pub hops: u32,
    /// Sequence number of the destination.
    pub sequence: Sequence,
}

/// The length is not a positive multiple of [`ENTRY_LEN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The entries of a datagram.
pub fn parse(bytes: &[u8]) -> Result<Vec<Advert>, Malformed> {
    if bytes.is_empty() || bytes.len() % ENTRY_LEN != 0 {
        return Err(Malformed);
    }
    Ok(bytes.chunks_exact(ENTRY_LEN).map(Advert::read).collect())
}

/// The payload of a datagram with these entries.
pub fn emit(adverts: &[Advert]) -> Vec<u8> {
    adverts.iter().flat_map(Advert::write).collect()
}

/// Maximum number of entries in a datagram that is not fragmented. `mtu` in bytes.
pub fn entries_per_datagram(mtu: u16) -> usize {
    usize::from(mtu).saturating_sub(HEADERS_LEN) / ENTRY_LEN
}

impl Advert {
    fn read(entry: &[u8]) -> Self {
        let word = |i: usize| u32::from_be_bytes([entry[i], entry[i + 1], entry[i + 2], entry[i + 3]]);
        Self { destination: word(0).into(), hops: word(4), sequence: Sequence(word(8)) }
    }

    fn write(&self) -> [u8; ENTRY_LEN] {
        let mut entry = [0; ENTRY_LEN];
        entry[..4].copy_from_slice(&self.destination.octets());
        entry[4..8].copy_from_slice(&self.hops.to_be_bytes());
        entry[8..].copy_from_slice(&self.sequence.0.to_be_bytes());
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Written by hand from the drawing above.
    const GOLDEN: [u8; 24] = [
        10, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, // itself: one hop for the receiver, number 2
        10, 0, 0, 4, 0, 0, 0, 3, 0x01, 0x02, 0x03, 0x05, // 10.0.0.4, lost: an odd number
    ];

    fn golden() -> [Advert; 2] {
        [
            Advert { destination: Ipv4Addr::new(10, 0, 0, 1), hops: 1, sequence: Sequence(2) },
            Advert { destination: Ipv4Addr::new(10, 0, 0, 4), hops: 3, sequence: Sequence(0x0102_0305) },
        ]
    }

    #[test]
    fn golden_bytes_both_ways() {
        assert_eq!(emit(&golden()), GOLDEN);
        assert_eq!(parse(&GOLDEN).unwrap(), golden());
    }

    #[test]
    fn an_update_of_ns_3_parses_and_emit_restores_it() {
        // ns-3.37's node 10.0.0.2 in a chain of five, as captured from the air (tests/interop): itself with number 8, and
        // the stations that it has heard since, each with the receiver's hop count
        let bytes = manet_routing::Bytes::from_hex(
            "0a00000200000001000000080a00000500000004000000060a00000400000003000000020a00000300000002000000080a00000100000002\
             00000008",
        );
        let bytes = bytes.unwrap();
        let adverts = parse(&bytes).unwrap();
        let seen: Vec<(u8, u32, u32)> =
            adverts.iter().map(|a| (a.destination.octets()[3], a.hops, a.sequence.0)).collect();
        assert_eq!(seen, [(2, 1, 8), (5, 4, 6), (4, 3, 2), (3, 2, 8), (1, 2, 8)]);
        assert_eq!(emit(&adverts), bytes.0);
    }

    #[test]
    fn a_datagram_truncated_inside_an_entry_is_malformed() {
        for len in 0..GOLDEN.len() {
            assert_eq!(parse(&GOLDEN[..len]).is_ok(), len == 12, "{len} bytes");
        }
    }

    #[test]
    fn an_update_of_1500_bytes_has_122_entries() {
        // (1500 - 28) / 12 = 122.7
        assert_eq!(entries_per_datagram(1500), 122);
        assert_eq!(entries_per_datagram(20), 0);
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(raw in proptest::collection::vec(any::<(u32, u32, u32)>(), 1..200)) {
            let adverts: Vec<Advert> =
                raw.iter().map(|(d, h, n)| Advert { destination: (*d).into(), hops: *h, sequence: Sequence(*n) }).collect();
            prop_assert_eq!(parse(&emit(&adverts)).unwrap(), adverts);
        }

        #[test]
        fn any_bytes_parse_without_panic_and_emit_restores_them(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(adverts) = parse(&bytes) {
                prop_assert_eq!(emit(&adverts), bytes);
            }
        }
    }
}
