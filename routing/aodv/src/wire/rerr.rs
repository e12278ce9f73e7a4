//! Route error (RFC 3561, 5.3).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+-+-----------------------------+---------------+
//! |   type = 3    |N|          reserved           |     count     |
//! +---------------+-+-----------------------------+---------------+
//! |                unreachable destination address                |
//! |            unreachable destination sequence number            |   count times, at least once
//! +---------------------------------------------------------------+
//! ```

use super::{address, be32, fixed, letters, Malformed, Result, TRUNCATED};
use std::fmt;
use std::net::Ipv4Addr;

/// Message type.
pub const TYPE: u8 = 3;
/// Length of the fixed part in bytes.
pub const HEADER_LEN: usize = 4;
/// Maximum of destinations in one sent message: AODV-UU's buffer has 812 bytes, 4 + 8 x 101; it cuts and refuses longer
/// ones.
pub const MAX_DESTINATIONS: usize = 100;
const NO_DELETE: u8 = 0x80;

/// A route error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The link was repaired: routes are kept.
    pub no_delete: bool,
    /// Destination and its sequence number; 1 to 255 of them.
    pub unreachable: Vec<(Ipv4Addr, u32)>,
}

impl Repr {
    /// Fails if the message is truncated, of another type, or has no destination.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let head: &[u8; HEADER_LEN] = fixed(bytes, TYPE)?;
        let count = usize::from(head[3]);
        if count == 0 {
            return Err(Malformed("malformed-count"));
        }
        let pairs = bytes.get(HEADER_LEN..HEADER_LEN + 8 * count).ok_or(TRUNCATED)?;
        let unreachable = pairs.chunks_exact(8).map(|p| (address(p, 0), be32(p, 4))).collect();
        Ok(Self { no_delete: head[1] & NO_DELETE != 0, unreachable })
    }

    /// The message. Destinations beyond the 255th are left out: the count has one byte.
    pub fn emit(&self) -> Vec<u8> {
        let count = self.unreachable.len().min(255);
        let mut out = vec![TYPE, if self.no_delete { NO_DELETE } else { 0 }, 0, count as u8];
        for (destination, sequence) in &self.unreachable[..count] {
            out.extend(destination.octets());
            out.extend(sequence.to_be_bytes());
        }
        out
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RERR{}", letters(&[(self.no_delete, 'N')]))?;
        self.unreachable.iter().try_for_each(|(destination, sequence)| write!(f, ", {destination} seq {sequence}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // written out by hand after the figure of RFC 3561, 5.3
    const BYTES: [u8; 20] = [3, 0x80, 0, 2, 10, 0, 0, 4, 0, 0, 0, 9, 10, 0, 0, 5, 0xff, 0xff, 0xff, 0xff];

    fn repr() -> Repr {
        let unreachable = vec![(Ipv4Addr::new(10, 0, 0, 4), 9), (Ipv4Addr::new(10, 0, 0, 5), u32::MAX)];
        Repr { no_delete: true, unreachable }
    }

    #[test]
    fn golden_bytes_both_ways() {
        assert_eq!(Repr::parse(&BYTES), Ok(repr()));
        assert_eq!(repr().emit(), BYTES);
        assert_eq!(repr().to_string(), "RERR flags N, 10.0.0.4 seq 9, 10.0.0.5 seq 4294967295");
    }

    #[test]
    fn truncation_at_every_length_and_a_count_of_zero_are_errors() {
        for len in 0..BYTES.len() {
            assert!(Repr::parse(&BYTES[..len]).is_err(), "{len}");
        }
        assert_eq!(Repr::parse(&[3, 0, 0, 0]), Err(Malformed("malformed-count")));
    }

    #[test]
    fn trailing_bytes_are_ignored() {
        assert_eq!(Repr::parse(&[&BYTES[..], &[1, 2, 3]].concat()), Ok(repr()));
    }

    #[test]
    fn the_longest_sent_message_fits_aodv_uus_buffer() {
        let unreachable = vec![(Ipv4Addr::new(10, 0, 0, 4), 9); MAX_DESTINATIONS];
        assert!(Repr { no_delete: false, unreachable }.emit().len() <= 812);
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(no_delete: bool, pairs in proptest::collection::vec(any::<(u32, u32)>(), 1..256)) {
            let unreachable = pairs.into_iter().map(|(a, s)| (a.into(), s)).collect();
            let message = Repr { no_delete, unreachable };
            prop_assert_eq!(Repr::parse(&message.emit()), Ok(message));
        }
    }
}
