//! Route Request option (RFC 4728, section 6.2).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |    type = 1   |   6 + 4 n     |        identification         |
//! |                         target address                        |
//! |                    address 1 ... address n                    |
//! ```
//! The initiator is the IP source, the IP destination is 255.255.255.255, the IP TTL limits the hops.

use super::{address, addresses, be16, put_addresses, Malformed};
use std::net::Ipv4Addr;

/// Option type.
pub const KIND: u8 = 1;
/// Maximum number of addresses: the length is one byte, (255 - 6) / 4.
pub const MAX_ADDRESSES: usize = 62;

/// A route request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Number of the request among those of its initiator.
    pub identification: u16,
    /// The requested address.
    pub target: Ipv4Addr,
    /// The nodes that have forwarded the request so far, without the initiator.
    pub addresses: Vec<Ipv4Addr>,
}

impl Request {
    /// Parses the option data. Fails if it is truncated.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let fixed = data.get(..6).ok_or(Malformed::Length)?;
        Ok(Self { identification: be16(fixed), target: address(&fixed[2..]), addresses: addresses(&data[6..])? })
    }

    /// The option data.
    pub fn data(&self) -> Vec<u8> {
        let mut data = self.identification.to_be_bytes().to_vec();
        put_addresses(&mut data, &[self.target]);
        put_addresses(&mut data, &self.addresses);
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{check_golden, Opt};

    #[test]
    fn golden_bytes() {
        // RFC 4728, section 6.2: type 1, length 6 + 4 x 2 = 14, identification 0x1234, target 10.0.0.9, 10.0.0.2,
        // 10.0.0.3
        let bytes = [1, 14, 0x12, 0x34, 10, 0, 0, 9, 10, 0, 0, 2, 10, 0, 0, 3];
        let addresses = vec![Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3)];
        let request = Request { identification: 0x1234, target: Ipv4Addr::new(10, 0, 0, 9), addresses };
        check_golden(&bytes, &Opt::Request(request), 6);
    }

    #[test]
    fn half_an_address_is_refused() {
        assert_eq!(Request::parse(&[0, 1, 10, 0, 0, 9, 10, 0]), Err(Malformed::Length));
    }
}
