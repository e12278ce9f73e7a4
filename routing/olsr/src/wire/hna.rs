//! HNA (RFC 3626, section 12.1): pairs of network address and netmask.

use super::{address, Malformed};
use std::net::Ipv4Addr;

/// An HNA message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hna {
    /// Pairs of network and netmask, unchecked; see [`prefix`].
    pub networks: Vec<(Ipv4Addr, Ipv4Addr)>,
}

impl Hna {
    /// Parses a message body. Fails if the length is no multiple of 8.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        if body.len() % 8 != 0 {
            return Err(Malformed);
        }
        Ok(Self { networks: body.chunks_exact(8).map(|pair| (address(pair), address(&pair[4..]))).collect() })
    }

    /// The message body.
    pub fn emit(&self) -> Vec<u8> {
        self.networks.iter().flat_map(|(network, mask)| [network.octets(), mask.octets()].concat()).collect()
    }
}

/// Prefix length of a netmask in bits; `None` if its one bits are not the leading ones.
pub fn prefix(mask: Ipv4Addr) -> Option<u8> {
    let bits = u32::from(mask);
    (bits.leading_ones() + bits.trailing_zeros() >= 32).then(|| bits.leading_ones() as u8)
}

/// The netmask of a prefix length in bits.
pub fn mask(prefix: u8) -> Ipv4Addr {
    manet_routing::routes::network(Ipv4Addr::BROADCAST, prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_hna_has_the_layout_of_rfc_3626_12_1() {
        let hna = Hna { networks: vec![(Ipv4Addr::new(192, 168, 1, 0), mask(30)), (Ipv4Addr::UNSPECIFIED, mask(0))] };
        let bytes = [192, 168, 1, 0, 255, 255, 255, 252, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(hna.emit(), bytes);
        assert_eq!(Hna::parse(&bytes), Ok(hna));
    }

    #[test]
    fn only_contiguous_masks_have_a_prefix() {
        for bits in 0..=32 {
            assert_eq!(prefix(mask(bits)), Some(bits));
        }
        assert_eq!(prefix(Ipv4Addr::new(255, 0, 255, 0)), None);
        assert_eq!(prefix(Ipv4Addr::new(0, 255, 255, 255)), None);
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(list in proptest::collection::vec(any::<(u32, u32)>(), 0..12)) {
            let hna = Hna { networks: list.into_iter().map(|(n, m)| (n.into(), m.into())).collect() };
            prop_assert_eq!(Hna::parse(&hna.emit()), Ok(hna));
        }

        #[test]
        fn only_whole_pairs_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            prop_assert_eq!(Hna::parse(&bytes).is_ok(), bytes.len() % 8 == 0);
        }
    }
}
