//! Route Reply option (RFC 4728, section 6.3).
//!
//! ```text
//!                 +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!                 |    type = 2   |    1 + 4 n    |L|  reserved   |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                    address 1 ... address n                    |
//! ```
//! Three bytes precede the addresses: [`super::header`] inserts a Pad1 before the option to align them. The route leads
//! from the IP destination (the initiator, not listed) over the addresses to the last of them, the target.

use super::{addresses, put_addresses, Malformed};
use std::net::Ipv4Addr;

/// Option type.
pub const KIND: u8 = 2;
/// Maximum number of addresses: (255 - 1) / 4.
pub const MAX_ADDRESSES: usize = 63;

/// A route reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Flag L: the last hop leaves the DSR network.
    pub last_external: bool,
    /// At least one address; the last is the target.
    pub addresses: Vec<Ipv4Addr>,
}

impl Reply {
    /// Parses the option data. Fails if the addresses are none or incomplete.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let (flags, list) = data.split_first().ok_or(Malformed::Length)?;
        let addresses = addresses(list)?;
        if addresses.is_empty() {
            return Err(Malformed::Length);
        }
        Ok(Self { last_external: flags & 0x80 != 0, addresses })
    }

    /// The option data.
    pub fn data(&self) -> Vec<u8> {
        let mut data = vec![if self.last_external { 0x80 } else { 0 }];
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
        // RFC 4728, section 6.3: type 2, length 1 + 4 x 2 = 9, L and seven zero bits, 10.0.0.2, 192.168.1.9
        let bytes = [2, 9, 0x80, 10, 0, 0, 2, 192, 168, 1, 9];
        let addresses = vec![Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(192, 168, 1, 9)];
        // the shortest has one address: 5 bytes
        check_golden(&bytes, &Opt::Reply(Reply { last_external: true, addresses }), 5);
    }
}
