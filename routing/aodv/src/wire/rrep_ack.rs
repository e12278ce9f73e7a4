//! Route reply acknowledgement (RFC 3561, 5.4): type 4 and a reserved byte.

use super::{fixed, Result};
use std::fmt;

/// Message type.
pub const TYPE: u8 = 4;
/// Length in bytes.
pub const LEN: usize = 2;

/// An acknowledgement, which has no fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr;

impl Repr {
    /// Accepts trailing bytes: AODV-UU 0.9.6 sends 50 bytes. Fails if the message is truncated or of another type.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        fixed::<LEN>(bytes, TYPE).map(|_| Self)
    }
    /// The message.
    pub fn emit(&self) -> Vec<u8> {
        vec![TYPE, 0]
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RREP-ACK")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden_bytes_both_ways() {
        // written out by hand after RFC 3561, 5.4
        assert_eq!(Repr::parse(&[4, 0]), Ok(Repr));
        assert_eq!(Repr.emit(), [4, 0]);
    }

    #[test]
    fn fifty_bytes_are_accepted_and_one_is_not() {
        let mut bytes = [0; 50];
        bytes[0] = 4;
        assert_eq!(Repr::parse(&bytes), Ok(Repr));
        assert!(Repr::parse(&[4]).is_err() && Repr::parse(&[]).is_err());
    }

    proptest! {
        #[test]
        fn no_byte_string_panics(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            prop_assert_eq!(Repr::parse(&bytes).is_ok(), bytes.len() >= 2 && bytes[0] == 4);
        }
    }
}
