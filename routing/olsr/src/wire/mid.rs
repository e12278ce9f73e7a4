//! MID (RFC 3626, section 5.1): only the further interface addresses of a node.

use super::{addresses, Malformed};
use std::net::Ipv4Addr;

/// A MID message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mid {
    /// Interface addresses other than the main address.
    pub interfaces: Vec<Ipv4Addr>,
}

impl Mid {
    /// Parses a message body. Fails if the length is no multiple of 4.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        Ok(Self { interfaces: addresses(body)? })
    }

    /// The message body.
    pub fn emit(&self) -> Vec<u8> {
        self.interfaces.iter().flat_map(Ipv4Addr::octets).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_mid_has_the_layout_of_rfc_3626_5_1() {
        let mid = Mid { interfaces: vec![Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 2, 0, 1)] };
        let bytes = [10, 1, 0, 1, 10, 2, 0, 1];
        assert_eq!(mid.emit(), bytes);
        assert_eq!(Mid::parse(&bytes), Ok(mid));
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(list in proptest::collection::vec(any::<u32>(), 0..20)) {
            let mid = Mid { interfaces: list.into_iter().map(Ipv4Addr::from).collect() };
            prop_assert_eq!(Mid::parse(&mid.emit()), Ok(mid));
        }

        #[test]
        fn only_whole_addresses_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            prop_assert_eq!(Mid::parse(&bytes).is_ok(), bytes.len() % 4 == 0);
        }
    }
}
