//! Source Route option (RFC 4728, section 6.7).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |   type = 96   |    2 + 4 n    |F|L|reservd|salvage| segs left |
//! |                    address 1 ... address n                    |
//! ```
//! The addresses are the hops between the IP source and the IP destination. If the packet was salvaged, or came from
//! outside (F), address 1 is the node that gave the packet this route. Segments left counts the listed hops that are still
//! to be visited.

use super::{addresses, be16, put_addresses, Malformed};
use std::net::Ipv4Addr;

/// Option type.
pub const KIND: u8 = 96;
/// Maximum number of addresses: (255 - 2) / 4, and the limit of the six bits of segments left.
pub const MAX_ADDRESSES: usize = 63;

/// A source route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRoute {
    /// Flag F: the first hop came from outside the DSR network.
    pub first_external: bool,
    /// Flag L: the last hop leaves the DSR network.
    pub last_external: bool,
    /// Salvage count; 4 bits.
    pub salvage: u8,
    /// Listed hops that are still to be visited; 6 bits.
    pub segments_left: u8,
    /// Listed hops in their order.
    pub addresses: Vec<Ipv4Addr>,
}

impl SourceRoute {
    /// A route whose hops are all inside the DSR network.
    pub fn internal(salvage: u8, segments_left: u8, addresses: Vec<Ipv4Addr>) -> Self {
        Self { first_external: false, last_external: false, salvage, segments_left, addresses }
    }

    /// Parses the option data. Fails if it is truncated.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let word = be16(data.get(..2).ok_or(Malformed::Length)?);
        Ok(Self {
            first_external: word & 0x8000 != 0,
            last_external: word & 0x4000 != 0,
            salvage: (word >> 6 & 0xf) as u8,
            segments_left: (word & 0x3f) as u8,
            addresses: addresses(&data[2..])?,
        })
    }

    /// The option data; counts are cut to their bits.
    pub fn data(&self) -> Vec<u8> {
        let flags = u16::from(self.first_external) << 15 | u16::from(self.last_external) << 14;
        let word = flags | u16::from(self.salvage & 0xf) << 6 | u16::from(self.segments_left & 0x3f);
        let mut data = word.to_be_bytes().to_vec();
        put_addresses(&mut data, &self.addresses);
        data
    }

    /// Number of listed hops that the packet has visited; `None` if the option is inconsistent (section 8.1.5).
    pub fn visited(&self) -> Option<usize> {
        self.addresses.len().checked_sub(usize::from(self.segments_left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{check_golden, Opt};

    const HOPS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3)];

    #[test]
    fn golden_bytes() {
        // RFC 4728, section 6.7: type 96, length 2 + 4 x 2 = 10, then 16 bits:
        // F = 0, L = 1, reserved 0000, salvage 9 = 1001, segments left 2 = 000010: 0100 0010 0100 0010
        let bytes = [96, 10, 0x42, 0x42, 10, 0, 0, 2, 10, 0, 0, 3];
        let route = SourceRoute { last_external: true, ..SourceRoute::internal(9, 2, HOPS.to_vec()) };
        check_golden(&bytes, &Opt::SourceRoute(route), 2);
    }

    #[test]
    fn more_segments_left_than_hops_is_an_error() {
        let data = [0, 3, 10, 0, 0, 2, 10, 0, 0, 3];
        assert_eq!(SourceRoute::parse(&data).unwrap().visited(), None);
    }
}
