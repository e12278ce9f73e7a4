//! HELLO (RFC 3626, section 6.1.1):
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! |          Reserved             |     Htime     |  Willingness  |
//! |   Link Code   |   Reserved    |       Link Message Size       |   one block
//! |                  Neighbor Interface Address ...               |   for each link code
//! ```

use super::{addresses, be16, Malformed, Span};
use std::net::Ipv4Addr;

/// Length of the fixed part in bytes.
pub const HEADER_LEN: usize = 4;
/// Length of the fixed part of a block in bytes.
pub const BLOCK_HEADER_LEN: usize = 4;

/// Link type: the lower two bits of the link code (6.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkType {
    /// UNSPEC_LINK: no information.
    Unspecified = 0,
    /// ASYM_LINK: the neighbour is heard.
    Asymmetric = 1,
    /// SYM_LINK: both nodes hear each other.
    Symmetric = 2,
    /// LOST_LINK.
    Lost = 3,
}

impl LinkType {
    /// The name in text and status.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Asymmetric => "heard",
            Self::Symmetric => "symmetric",
            Self::Lost => "lost",
        }
    }
}

/// Neighbour type: bits 2 and 3 of the link code (6.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NeighbourType {
    /// NOT_NEIGH: not a symmetric neighbour.
    Not = 0,
    /// SYM_NEIGH: a symmetric neighbour.
    Symmetric = 1,
    /// MPR_NEIGH: a symmetric neighbour that the sender chose as MPR.
    Mpr = 2,
}

/// A HELLO message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Htime: time to the next HELLO.
    pub interval: Span,
    /// Willingness to be an MPR, 0 to 7 (18.8).
    pub willingness: u8,
    /// Links of the sender, grouped by link code.
    pub blocks: Vec<Block>,
}

/// Links with the same link code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Link code.
    pub code: u8,
    /// Interface addresses of the neighbours.
    pub addresses: Vec<Ipv4Addr>,
}

impl Block {
    /// A block with the link code of these types.
    pub fn new(link: LinkType, neighbour: NeighbourType, addresses: Vec<Ipv4Addr>) -> Self {
        Self { code: link as u8 | (neighbour as u8) << 2, addresses }
    }

    /// The types of the link code. `None`: an unknown neighbour type, or a symmetric link to no neighbour; such a block is
    /// ignored (6.1.1).
    pub fn types(&self) -> Option<(LinkType, NeighbourType)> {
        let link = match self.code & 3 {
            0 => LinkType::Unspecified,
            1 => LinkType::Asymmetric,
            2 => LinkType::Symmetric,
            _ => LinkType::Lost,
        };
        let neighbour = match self.code >> 2 {
            0 => NeighbourType::Not,
            1 => NeighbourType::Symmetric,
            2 => NeighbourType::Mpr,
            _ => return None,
        };
        (link != LinkType::Symmetric || neighbour != NeighbourType::Not).then_some((link, neighbour))
    }

    fn buffer_len(&self) -> usize {
        BLOCK_HEADER_LEN + 4 * self.addresses.len()
    }
}

impl Hello {
    /// Parses a message body. Fails if a length does not fit.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let header = body.get(..HEADER_LEN).ok_or(Malformed)?;
        let (mut blocks, mut rest) = (Vec::new(), &body[HEADER_LEN..]);
        while !rest.is_empty() {
            let block = rest.get(..BLOCK_HEADER_LEN).ok_or(Malformed)?;
            let size = usize::from(be16(&block[2..]));
            let list = rest.get(BLOCK_HEADER_LEN..size).ok_or(Malformed)?;
            blocks.push(Block { code: block[0], addresses: addresses(list)? });
            rest = &rest[size..];
        }
        Ok(Self { interval: Span(header[2]), willingness: header[3], blocks })
    }

    /// # Panics
    /// If a block has more than 16,382 addresses.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = vec![0, 0, self.interval.0, self.willingness];
        for block in &self.blocks {
            let size = u16::try_from(block.buffer_len()).expect("a block has at most 65,535 bytes");
            out.extend([block.code, 0]);
            out.extend(size.to_be_bytes());
            out.extend(block.addresses.iter().flat_map(Ipv4Addr::octets));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_hello() -> impl Strategy<Value = Hello> {
        let block = (any::<u8>(), proptest::collection::vec(any::<u32>(), 0..6))
            .prop_map(|(code, list)| Block { code, addresses: list.into_iter().map(Ipv4Addr::from).collect() });
        (any::<u8>(), any::<u8>(), proptest::collection::vec(block, 0..5))
            .prop_map(|(interval, willingness, blocks)| Hello { interval: Span(interval), willingness, blocks })
    }

    #[test]
    fn link_codes_are_those_of_rfc_3626_6_1_1() {
        // bits 0-1: 1 ASYM, 2 SYM, 3 LOST; bits 2-3: 0 NOT, 1 SYM, 2 MPR
        let code = |link, neighbour| Block::new(link, neighbour, vec![]).code;
        assert_eq!(code(LinkType::Asymmetric, NeighbourType::Not), 1);
        assert_eq!(code(LinkType::Lost, NeighbourType::Not), 3);
        assert_eq!(code(LinkType::Symmetric, NeighbourType::Symmetric), 6);
        assert_eq!(code(LinkType::Symmetric, NeighbourType::Mpr), 10);
    }

    #[test]
    fn impossible_codes_have_no_types() {
        let types = |code| Block { code, addresses: vec![] }.types();
        // 2: symmetric link, not a neighbour; 12 and above: no such neighbour type; 16: beyond four bits
        assert!([2, 12, 13, 14, 15, 16, 255].iter().all(|c| types(*c).is_none()));
        assert_eq!(types(10), Some((LinkType::Symmetric, NeighbourType::Mpr)));
        assert_eq!(types(4), Some((LinkType::Unspecified, NeighbourType::Symmetric)));
    }

    #[test]
    fn a_block_size_that_does_not_fit_is_malformed() {
        let body = |size| [0, 0, 5, 3, 6, 0, 0, size, 10, 0, 0, 1];
        for (size, fits) in [(8, true), (4, false), (0, false), (3, false), (6, false), (9, false), (12, false)] {
            // 4 leaves four bytes that would be a block of size 1
            assert_eq!(Hello::parse(&body(size)).is_ok(), fits, "{size}");
        }
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(hello in any_hello()) {
            prop_assert_eq!(Hello::parse(&hello.emit()), Ok(hello));
        }

        #[test]
        fn a_cut_hello_is_malformed_or_has_fewer_blocks(hello in any_hello(), cut: prop::sample::Index) {
            let bytes = hello.emit();
            if let Ok(shorter) = Hello::parse(&bytes[..cut.index(bytes.len())]) {
                prop_assert!(shorter.blocks.len() < hello.blocks.len());
            }
        }

        #[test]
        fn noise_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            if let Ok(hello) = Hello::parse(&bytes) {
                prop_assert_eq!(hello.emit().len(), bytes.len());
            }
        }
    }
}
