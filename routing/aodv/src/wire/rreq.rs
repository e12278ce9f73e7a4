//! Route request (RFC 3561, 5.1).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+-+-+-+-+-+---------------------+---------------+
//! |   type = 1    |J|R|G|D|U|      reserved       |   hop count   |
//! +---------------+-+-+-+-+-+---------------------+---------------+
//! |                            RREQ ID                            |
//! |                     destination address                       |
//! |                 destination sequence number                   |
//! |                      originator address                       |
//! |                  originator sequence number                   |
//! +---------------------------------------------------------------+
//! ```
//! J and R are for multicast: they are forwarded and otherwise ignored.

use super::{address, be32, fixed, letters, Extension, Result};
use std::fmt;
use std::net::Ipv4Addr;

/// Message type.
pub const TYPE: u8 = 1;
/// Length without extensions, in bytes.
pub const LEN: usize = 24;

mod flag {
    pub const JOIN: u8 = 0x80;
    pub const REPAIR: u8 = 0x40;
    pub const GRATUITOUS: u8 = 0x20;
    pub const DESTINATION_ONLY: u8 = 0x10;
    pub const UNKNOWN: u8 = 0x08;
}

/// A route request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Flag J.
    pub join: bool,
    /// Flag R.
    pub repair: bool,
    /// Flag G: the destination gets a gratuitous reply.
    pub gratuitous: bool,
    /// Flag D: only the destination may reply.
    pub destination_only: bool,
    /// Flag U: the destination's sequence number is unknown.
    pub unknown: bool,
    /// Hop count from the originator to the sender.
    pub hops: u8,
    /// RREQ ID; with the originator it identifies the request.
    pub id: u32,
    /// The requested address.
    pub destination: Ipv4Addr,
    /// Last known sequence number of the destination.
    pub destination_sequence: u32,
    /// The node that began the discovery.
    pub originator: Ipv4Addr,
    /// Sequence number of the originator.
    pub originator_sequence: u32,
    /// Extensions in their order.
    pub extensions: Vec<Extension>,
}

impl Repr {
    /// A request of its originator, without flags and extensions, and with 0 as the destination's sequence number.
    pub fn new(id: u32, destination: Ipv4Addr, originator: Ipv4Addr, originator_sequence: u32) -> Self {
        Self {
            join: false,
            repair: false,
            gratuitous: false,
            destination_only: false,
            unknown: false,
            hops: 0,
            id,
            destination,
            destination_sequence: 0,
            originator,
            originator_sequence,
            extensions: Vec::new(),
        }
    }

    /// Fails if the message is truncated, of another type, or has an extension that may not be skipped.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let head: &[u8; LEN] = fixed(bytes, TYPE)?;
        let has = |flag: u8| head[1] & flag != 0;
        Ok(Self {
            join: has(flag::JOIN),
            repair: has(flag::REPAIR),
            gratuitous: has(flag::GRATUITOUS),
            destination_only: has(flag::DESTINATION_ONLY),
            unknown: has(flag::UNKNOWN),
            hops: head[3],
            id: be32(head, 4),
            destination: address(head, 8),
            destination_sequence: be32(head, 12),
            originator: address(head, 16),
            originator_sequence: be32(head, 20),
            extensions: Extension::parse_all(&bytes[LEN..])?,
        })
    }

    /// The message.
    pub fn emit(&self) -> Vec<u8> {
        let bit = |on: bool, flag: u8| if on { flag } else { 0 };
        let flags = bit(self.join, flag::JOIN)
            | bit(self.repair, flag::REPAIR)
            | bit(self.gratuitous, flag::GRATUITOUS)
            | bit(self.destination_only, flag::DESTINATION_ONLY)
            | bit(self.unknown, flag::UNKNOWN);
        let mut out = vec![TYPE, flags, 0, self.hops];
        out.extend(self.id.to_be_bytes());
        out.extend(self.destination.octets());
        out.extend(self.destination_sequence.to_be_bytes());
        out.extend(self.originator.octets());
        out.extend(self.originator_sequence.to_be_bytes());
        self.extensions.iter().for_each(|e| e.emit(&mut out));
        out
    }

    /// The destination's sequence number, if one is given. In AODV-UU the number 0 without the flag means unknown.
    pub fn wanted_sequence(&self) -> Option<u32> {
        Some(self.destination_sequence).filter(|s| !self.unknown && *s != 0)
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = letters(&[
            (self.join, 'J'),
            (self.repair, 'R'),
            (self.gratuitous, 'G'),
            (self.destination_only, 'D'),
            (self.unknown, 'U'),
        ]);
        write!(
            f,
            "RREQ {} for {} seq {} from {} seq {} hops {}{flags}",
            self.id, self.destination, self.destination_sequence, self.originator, self.originator_sequence, self.hops
        )?;
        self.extensions.iter().try_for_each(|e| write!(f, ", {e}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // written out by hand after the figure of RFC 3561, 5.1: G and U set, two hops, id 5, for 10.0.0.4 from 10.0.0.1
    const BYTES: [u8; LEN] = [1, 0x28, 0, 2, 0, 0, 0, 5, 10, 0, 0, 4, 0, 0, 0, 0, 10, 0, 0, 1, 0, 0, 1, 2];

    fn repr() -> Repr {
        let (destination, originator) = (Ipv4Addr::new(10, 0, 0, 4), Ipv4Addr::new(10, 0, 0, 1));
        Repr { gratuitous: true, unknown: true, hops: 2, ..Repr::new(5, destination, originator, 0x102) }
    }

    #[test]
    fn golden_bytes_both_ways() {
        assert_eq!(Repr::parse(&BYTES), Ok(repr()));
        assert_eq!(repr().emit(), BYTES);
        assert_eq!(repr().to_string(), "RREQ 5 for 10.0.0.4 seq 0 from 10.0.0.1 seq 258 hops 2 flags GU");
    }

    #[test]
    fn reserved_bits_are_ignored_and_sent_as_zero() {
        let mut bytes = BYTES;
        bytes[1] |= 0x07;
        bytes[2] = 0xff;
        assert_eq!(Repr::parse(&bytes), Ok(repr()));
    }

    #[test]
    fn truncation_at_every_length_is_an_error() {
        for len in 0..LEN {
            assert!(Repr::parse(&BYTES[..len]).is_err(), "{len}");
        }
    }

    #[test]
    fn zero_and_the_u_flag_each_mean_unknown() {
        assert_eq!(Repr { unknown: false, ..repr() }.wanted_sequence(), None);
        assert_eq!(Repr { destination_sequence: 7, ..repr() }.wanted_sequence(), None);
        assert_eq!(Repr { destination_sequence: 7, unknown: false, ..repr() }.wanted_sequence(), Some(7));
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(
            flags in any::<[bool; 5]>(), hops: u8, id: u32, addresses in any::<[u32; 2]>(), sequences in any::<[u32; 2]>(),
            extensions in proptest::collection::vec((1u8..128, proptest::collection::vec(any::<u8>(), 0..20)), 0..4),
        ) {
            let message = Repr {
                join: flags[0], repair: flags[1], gratuitous: flags[2], destination_only: flags[3], unknown: flags[4],
                hops, id,
                destination: addresses[0].into(), destination_sequence: sequences[0],
                originator: addresses[1].into(), originator_sequence: sequences[1],
                extensions: extensions.into_iter().map(|(kind, data)| Extension { kind, data }).collect(),
            };
            prop_assert_eq!(Repr::parse(&message.emit()), Ok(message));
        }
    }
}
