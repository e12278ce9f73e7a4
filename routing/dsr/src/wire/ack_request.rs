//! Acknowledgement Request option (RFC 4728, section 6.5): asks the next hop, and only it, for an [`super::Ack`].
//!
//! ```text
//! |   type = 160  |  length = 2   |        identification         |
//! ```

use super::{be16, Malformed};

pub const KIND: u8 = 160;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRequest {
    pub identification: u16,
}

impl AckRequest {
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        data.get(..2).map(|d| Self { identification: be16(d) }).ok_or(Malformed::Length)
    }

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
