//! Acknowledgement Request option (RFC 4728, section 6.5): requests an [`super::Ack`] from the next hop only.
//!
//! ```text
//! |   type = 160  |  length = 2   |        identification         |
//! ```

use super::{be16, Malformed};

/// Option type.
pub const KIND: u8 = 160;

/// An acknowledgement request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRequest {
    /// Number that the acknowledgement repeats.
    pub identification: u16,
}

impl AckRequest {
    /// Parses the option data. Fails if it is shorter than 2 bytes.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        data.get(..2).map(|d| Self { identification: be16(d) }).ok_or(Malformed::Length)
    }

    /// The option data, 2 bytes.
    pub fn data(&self) -> Vec<u8> {
        self.identification.to_be_bytes().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{check_golden, Opt};

    #[test]
    fn golden_bytes() {
        // RFC 4728, section 6.5: type 160, length 2, identification 0xabcd
        check_golden(&[160, 2, 0xab, 0xcd], &Opt::AckRequest(AckRequest { identification: 0xabcd }), 2);
    }
}
