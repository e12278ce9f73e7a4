//! TC (RFC 3626, section 9.1): Advertised Neighbor Sequence Number (16 bits), 16 reserved bits, main addresses.

use super::{addresses, be16, Malformed};
use std::net::Ipv4Addr;

/// Length of the fixed part in bytes.
pub const HEADER_LEN: usize = 4;

/// A TC message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tc {
    /// Advertised neighbour sequence number.
    pub ansn: u16,
    /// Main addresses of the advertised neighbours.
    pub neighbours: Vec<Ipv4Addr>,
}

impl Tc {
    /// Parses a message body. Fails if the length does not fit.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let header = body.get(..HEADER_LEN).ok_or(Malformed)?;
        Ok(Self { ansn: be16(header), neighbours: addresses(&body[HEADER_LEN..])? })
    }

    /// The message body.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_LEN + 4 * self.neighbours.len());
        out.extend(self.ansn.to_be_bytes());
        out.extend([0, 0]);
        out.extend(self.neighbours.iter().flat_map(Ipv4Addr::octets));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_tc_has_the_layout_of_rfc_3626_9_1() {
        let tc = Tc { ansn: 0x0102, neighbours: vec![Ipv4Addr::new(10, 0, 0, 3), Ipv4Addr::new(10, 0, 0, 4)] };
        let bytes = [1, 2, 0, 0, 10, 0, 0, 3, 10, 0, 0, 4];
        assert_eq!(tc.emit(), bytes);
        assert_eq!(Tc::parse(&bytes), Ok(tc));
    }

    #[test]
    fn an_empty_tc_is_valid_and_reserved_bits_are_ignored() {
        assert_eq!(Tc::parse(&[0, 9, 0xff, 0xff]), Ok(Tc { ansn: 9, neighbours: vec![] }));
        assert_eq!(Tc::parse(&[0, 9, 0]), Err(Malformed));
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(ansn: u16, list in proptest::collection::vec(any::<u32>(), 0..20)) {
            let tc = Tc { ansn, neighbours: list.into_iter().map(Ipv4Addr::from).collect() };
            prop_assert_eq!(Tc::parse(&tc.emit()), Ok(tc));
        }

        #[test]
        fn only_whole_addresses_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            prop_assert_eq!(Tc::parse(&bytes).is_ok(), bytes.len() >= 4 && bytes.len() % 4 == 0);
        }
    }
}
