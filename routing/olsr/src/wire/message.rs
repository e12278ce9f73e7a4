//! The message header (RFC 3626, section 3.3.2):
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! |  Message Type |     Vtime     |         Message Size          |
//! |                      Originator Address                       |
//! |  Time To Live |   Hop Count   |    Message Sequence Number    |
//! |                            MESSAGE                            |
//! ```
//!
//! The size includes the header. The body is kept as bytes: a message of unknown type is forwarded unchanged.

use super::{address, be16, Malformed, Span};
use std::net::Ipv4Addr;

/// Length of the header in bytes.
pub const HEADER_LEN: usize = 12;

/// Message type HELLO (18.4).
pub const HELLO: u8 = 1;
/// Message type TC.
pub const TC: u8 = 2;
/// Message type MID.
pub const MID: u8 = 3;
/// Message type HNA.
pub const HNA: u8 = 4;

/// A message with any body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Message type.
    pub kind: u8,
    /// Vtime: how long the information is valid.
    pub validity: Span,
    /// Main address of the node that created the message.
    pub originator: Ipv4Addr,
    /// Remaining hops.
    pub ttl: u8,
    /// Hops so far.
    pub hops: u8,
    /// Message sequence number of the originator.
    pub sequence: u16,
    /// Bytes after the header.
    pub body: Vec<u8>,
}

impl Message {
    /// The first message of `bytes`, and the bytes after it. Fails if its size does not fit.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let header = bytes.get(..HEADER_LEN).ok_or(Malformed)?;
        let size = usize::from(be16(&header[2..]));
        if size < HEADER_LEN || size > bytes.len() {
            return Err(Malformed);
        }
        let message = Self {
            kind: header[0],
            validity: Span(header[1]),
            originator: address(&header[4..]),
            ttl: header[8],
            hops: header[9],
            sequence: be16(&header[10..]),
            body: bytes[HEADER_LEN..size].to_vec(),
        };
        Ok((message, &bytes[size..]))
    }

    /// Length with header, in bytes.
    pub fn buffer_len(&self) -> usize {
        HEADER_LEN + self.body.len()
    }

    /// # Panics
    /// If the body is longer than a message can be; what was parsed is not.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let size = u16::try_from(self.buffer_len()).expect("a message has at most 65,535 bytes");
        out.extend([self.kind, self.validity.0]);
        out.extend(size.to_be_bytes());
        out.extend(self.originator.octets());
        out.extend([self.ttl, self.hops]);
        out.extend(self.sequence.to_be_bytes());
        out.extend(&self.body);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn any_message() -> impl Strategy<Value = Message> {
        let header = (any::<u8>(), any::<u8>(), any::<u32>(), any::<u8>(), any::<u8>(), any::<u16>());
        (header, proptest::collection::vec(any::<u8>(), 0..60)).prop_map(|((kind, v, o, ttl, hops, sequence), body)| {
            Message { kind, validity: Span(v), originator: Ipv4Addr::from(o), ttl, hops, sequence, body }
        })
    }

    #[test]
    fn a_header_has_the_layout_of_rfc_3626_3_3_2() {
        let message = Message {
            kind: TC,
            validity: Span(0xe7),
            originator: Ipv4Addr::new(10, 0, 0, 1),
            ttl: 255,
            hops: 2,
            sequence: 0x1234,
            body: vec![0xaa, 0xbb],
        };
        let bytes = [2, 0xe7, 0, 14, 10, 0, 0, 1, 255, 2, 0x12, 0x34, 0xaa, 0xbb];
        let mut out = Vec::new();
        message.emit(&mut out);
        assert_eq!(out, bytes);
        assert_eq!(Message::parse(&bytes), Ok((message, &[][..])));
    }

    #[test]
    fn a_size_below_the_header_or_beyond_the_bytes_is_malformed() {
        let mut bytes = [0u8; 16];
        for (size, fits) in [(0, false), (11, false), (12, true), (16, true), (17, false)] {
            bytes[3] = size;
            assert_eq!(Message::parse(&bytes).is_ok(), fits, "{size}");
        }
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(message in any_message(), rest in proptest::collection::vec(any::<u8>(), 0..20)) {
            let mut bytes = Vec::new();
            message.emit(&mut bytes);
            prop_assert_eq!(bytes.len(), message.buffer_len());
            bytes.extend(&rest);
            prop_assert_eq!(Message::parse(&bytes), Ok((message, &rest[..])));
        }

        #[test]
        fn a_cut_message_is_malformed(message in any_message(), cut: prop::sample::Index) {
            let mut bytes = Vec::new();
            message.emit(&mut bytes);
            prop_assert_eq!(Message::parse(&bytes[..cut.index(bytes.len())]), Err(Malformed));
        }
    }
}
