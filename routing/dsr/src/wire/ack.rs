//! Acknowledgement option (RFC 4728, section 6.6).
//!
//! ```text
//! |   type = 32   |  length = 10  |        identification         |
//! |                       ACK source address                      |
//! |                    ACK destination address                    |
//! ```

use super::{address, be16, put_addresses, Malformed};
use std::net::Ipv4Addr;

/// Option type.
pub const KIND: u8 = 32;

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Identification of the request.
    pub identification: u16,
    /// The acknowledging node.
    pub source: Ipv4Addr,
    /// The requesting node.
    pub destination: Ipv4Addr,
}

impl Ack {
    /// Parses the option data. Fails if it is shorter than 10 bytes.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let d = data.get(..10).ok_or(Malformed::Length)?;
        Ok(Self { identification: be16(d), source: address(&d[2..]), destination: address(&d[6..]) })
    }

    /// The option data, 10 bytes.
    pub fn data(&self) -> Vec<u8> {
        let mut data = self.identification.to_be_bytes().to_vec();
        put_addresses(&mut data, &[self.source, self.destination]);
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{check_golden, Opt};

    #[test]
    fn golden_bytes() {
        // RFC 4728, section 6.6: type 32, length 10, identification 0xabcd, from 10.0.0.2 to 10.0.0.1
        let (source, destination) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 1));
        let ack = Opt::Ack(Ack { identification: 0xabcd, source, destination });
        check_golden(&[32, 10, 0xab, 0xcd, 10, 0, 0, 2, 10, 0, 0, 1], &ack, 10);
    }
}
