//! AODV's messages as bytes (RFC 3561, section 5; UDP port 654): one file per message with a `Repr` that has `parse`
//! and `emit`, and minimal encapsulation (RFC 2004) for packets to Internet gateways.
//!
//! `parse` never panics and is lenient: reserved bits and trailing bytes are ignored
//! (AODV-UU's RREP-ACKs are 50 bytes long). `emit` is strict: reserved bits are zero.

pub mod extension;
pub mod minimal;
pub mod rerr;
pub mod rrep;
pub mod rrep_ack;
pub mod rreq;

pub use extension::Extension;

use std::fmt;
use std::net::Ipv4Addr;

/// A malformed message, with the name of its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
impl std::error::Error for Malformed {}

type Result<T> = std::result::Result<T, Malformed>;

const TRUNCATED: Malformed = Malformed("malformed-truncated");
const WRONG_TYPE: Malformed = Malformed("malformed-type");

/// A control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Route request.
    Rreq(rreq::Repr),
    /// Route reply or hello.
    Rrep(rrep::Repr),
    /// Route error.
    Rerr(rerr::Repr),
    /// Acknowledgement of a route reply.
    RrepAck(rrep_ack::Repr),
}

impl Message {
    /// Parses the payload of a datagram. Fails if it is truncated or of an unknown type.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        match bytes.first() {
            Some(&rreq::TYPE) => rreq::Repr::parse(bytes).map(Self::Rreq),
            Some(&rrep::TYPE) => rrep::Repr::parse(bytes).map(Self::Rrep),
            Some(&rerr::TYPE) => rerr::Repr::parse(bytes).map(Self::Rerr),
            Some(&rrep_ack::TYPE) => rrep_ack::Repr::parse(bytes).map(Self::RrepAck),
            Some(_) => Err(WRONG_TYPE),
            None => Err(TRUNCATED),
        }
    }

    /// The payload of a datagram.
    pub fn emit(&self) -> Vec<u8> {
        match self {
            Self::Rreq(m) => m.emit(),
            Self::Rrep(m) => m.emit(),
            Self::Rerr(m) => m.emit(),
            Self::RrepAck(m) => m.emit(),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rreq(m) => m.fmt(f),
            Self::Rrep(m) => m.fmt(f),
            Self::Rerr(m) => m.fmt(f),
            Self::RrepAck(m) => m.fmt(f),
        }
    }
}

/// The fixed part of a message. Fails if it is truncated or of another type.
fn fixed<const N: usize>(bytes: &[u8], kind: u8) -> Result<&[u8; N]> {
    let fixed: &[u8; N] = bytes.get(..N).and_then(|b| b.try_into().ok()).ok_or(TRUNCATED)?;
    if fixed[0] == kind {
        Ok(fixed)
    } else {
        Err(WRONG_TYPE)
    }
}

/// Callers have checked that four bytes exist at `at`.
fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// As [`be32`].
fn address(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::from(be32(bytes, at))
}

/// The letters of the set flags, for `Display`.
fn letters(flags: &[(bool, char)]) -> String {
    let set: String = flags.iter().filter(|(on, _)| *on).map(|(_, letter)| *letter).collect();
    if set.is_empty() {
        set
    } else {
        format!(" flags {set}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_parse_without_panic_and_a_parsed_message_can_be_sent(
            kind in 0u8..6,
            mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            if let Ok(message) = Message::parse(&bytes) {
                prop_assert_eq!(Message::parse(&message.emit()), Ok(message.clone()));
                prop_assert!(!message.to_string().is_empty());
            }
        }
    }

    #[test]
    fn unknown_types_are_refused() {
        assert_eq!(Message::parse(&[]), Err(TRUNCATED));
        assert_eq!(Message::parse(&[0; 60]), Err(WRONG_TYPE));
        assert_eq!(Message::parse(&[5; 60]), Err(WRONG_TYPE));
    }
}
