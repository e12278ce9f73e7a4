//! Netlink messages and generic netlink's header and attributes (Linux include/uapi/linux/netlink.h, genetlink.h).
//!
//! ```text
//!  0        4      6       8       12       16        20
//! +--------+------+-------+-------+--------+---------+-----------------------------
//! | length | kind | flags | seq   | port   | cmd,ver | attributes                    a generic message
//! +--------+------+-------+-------+--------+---------+-----------------------------
//!
//!  0        2      4
//! +--------+------+---------------+
//! | length | kind | value, padded to 4 bytes |                                        an attribute
//! +--------+------+---------------+
//! ```
//! All fields are in the host's byte order: nothing of it leaves the machine.

use super::{array, Malformed, Result};

pub const HEADER_LEN: usize = 16;
pub const GENERIC_HEADER_LEN: usize = 4;
const ATTRIBUTE_HEADER_LEN: usize = 4;

pub const REQUEST: u16 = 1;
pub const ACK: u16 = 4;
/// Kind of the message with an error number, 0 for an acknowledgement.
pub const ERROR: u16 = 2;
/// Marks an attribute that holds attributes.
const NESTED: u16 = 0x8000;
const TYPE_MASK: u16 = 0x3fff;

const fn aligned(length: usize) -> usize {
    length.div_ceil(4) * 4
}

/// A message of a generic family.
#[derive(Clone, Debug)]
pub struct Builder {
    bytes: Vec<u8>,
    open: Vec<usize>,
}

impl Builder {
    pub fn new(family: u16, command: u8, version: u8, flags: u16, sequence: u32) -> Self {
        let mut bytes = vec![0; HEADER_LEN + GENERIC_HEADER_LEN];
        bytes[4..6].copy_from_slice(&family.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        (bytes[16], bytes[17]) = (command, version);
        Self { bytes, open: Vec::new() }
    }

    /// # Panics
    /// If the value is longer than an attribute can be (65 531 bytes).
    pub fn put(mut self, kind: u16, value: &[u8]) -> Self {
        let length = u16::try_from(ATTRIBUTE_HEADER_LEN + value.len()).expect("an attribute's length has 16 bits");
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(value);
        self.bytes.resize(aligned(self.bytes.len()), 0);
        self
    }
    pub fn put_u32(self, kind: u16, value: u32) -> Self {
        self.put(kind, &value.to_ne_bytes())
    }
    pub fn put_text(self, kind: u16, text: &str) -> Self {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.put(kind, &bytes)
    }
    /// What is put from now on until [`Self::close`] is inside.
    pub fn open(mut self, kind: u16) -> Self {
        self.open.push(self.bytes.len());
        self.put(kind | NESTED, &[])
    }
    /// # Panics
    /// If nothing is open, or it holds more than an attribute can.
    pub fn close(mut self) -> Self {
        let at = self.open.pop().expect("something is open");
        let length = u16::try_from(self.bytes.len() - at).expect("an attribute's length has 16 bits");
        self.bytes[at..at + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }
    pub fn finish(mut self) -> Vec<u8> {
        let length = (self.bytes.len() as u32).to_ne_bytes();
        self.bytes[..4].copy_from_slice(&length);
        self.bytes
    }
}

/// One message of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    pub kind: u16,
    pub sequence: u32,
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// The first message and the rest.
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8])> {
        super::check_len(bytes, HEADER_LEN)?;
        let length = u32::from_ne_bytes(array(bytes, 0..4)) as usize;
        if !(HEADER_LEN..=bytes.len()).contains(&length) {
            return Err(Malformed("a netlink message of impossible length"));
        }
        let message = Self {
            kind: u16::from_ne_bytes(array(bytes, 4..6)),
            sequence: u32::from_ne_bytes(array(bytes, 8..12)),
            payload: &bytes[HEADER_LEN..length],
        };
        Ok((message, &bytes[aligned(length).min(bytes.len())..]))
    }

    /// Of a message of kind [`ERROR`]: the number, negative for an error, as the kernel writes it.
    pub fn error(&self) -> Result<i32> {
        super::check_len(self.payload, 4)?;
        Ok(i32::from_ne_bytes(array(self.payload, 0..4)))
    }

    /// Of a generic message: command and attributes.
    pub fn generic(&self) -> Result<(u8, Attributes<'a>)> {
        super::check_len(self.payload, GENERIC_HEADER_LEN)?;
        Ok((self.payload[0], Attributes(&self.payload[GENERIC_HEADER_LEN..])))
    }
}

/// Attributes one after another; ends at the first malformed one.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);
    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.0;
        super::check_len(bytes, ATTRIBUTE_HEADER_LEN).ok()?;
        let length = usize::from(u16::from_ne_bytes(array(bytes, 0..2)));
        if !(ATTRIBUTE_HEADER_LEN..=bytes.len()).contains(&length) {
            return None;
        }
        self.0 = &bytes[aligned(length).min(bytes.len())..];
        Some((u16::from_ne_bytes(array(bytes, 2..4)) & TYPE_MASK, &bytes[ATTRIBUTE_HEADER_LEN..length]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nested_attributes_read_back() {
        let bytes = Builder::new(27, 6, 1, REQUEST, 9)
            .put_u32(3, 7)
            .open(90)
            .put(1, &[4])
            .close()
            .put_text(4, "wlan0")
            .finish();
        let (message, rest) = Message::parse(&bytes).unwrap();
        assert_eq!((message.kind, message.sequence, rest.len()), (27, 9, 0));
        let (command, mut attributes) = message.generic().unwrap();
        assert_eq!(command, 6);
        assert_eq!(attributes.next(), Some((3, &7u32.to_ne_bytes()[..])));
        let (kind, inner) = attributes.next().unwrap();
        assert_eq!((kind, Attributes(inner).next()), (90, Some((1, &[4u8][..]))));
        assert_eq!(attributes.next(), Some((4, &b"wlan0\0"[..])));
        assert_eq!(attributes.next(), None);
    }

    proptest! {
        #[test]
        fn what_is_put_reads_back(values in proptest::collection::vec((1u16..200, proptest::collection::vec(any::<u8>(), 0..40)), 0..9)) {
            let mut builder = Builder::new(1, 2, 1, 0, 0);
            for (kind, value) in &values {
                builder = builder.put(*kind, value);
            }
            let bytes = builder.finish();
            let (message, _) = Message::parse(&bytes).unwrap();
            let read: Vec<_> = message.generic().unwrap().1.map(|(kind, value)| (kind, value.to_vec())).collect();
            prop_assert_eq!(read, values);
        }

        #[test]
        fn nothing_panics_whatever_the_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let mut rest = &bytes[..];
            while let Ok((message, next)) = Message::parse(rest) {
                let _ = message.error();
                if let Ok((_, attributes)) = message.generic() {
                    prop_assert!(attributes.count() <= bytes.len());
                }
                rest = next;
            }
        }
    }
}
