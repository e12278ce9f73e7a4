//! Messages (struct nlmsghdr), followed by the header of a generic family (struct genlmsghdr) or another fixed part.
//!
//! ```text
//!  0        4      6       8       12       16
//! +--------+------+-------+-------+--------+------------+------------
//! | length | kind | flags | seq   | port   | fixed part | attributes
//! +--------+------+-------+-------+--------+------------+------------
//!                                          | command, version, 0, 0     of a generic family
//! ```

use crate::attribute::{length_field, put, Attributes, NESTED};

const HEADER_LEN: usize = 16;
const GENERIC_HEADER_LEN: usize = 4;

/// NLM_F_REQUEST, on each message to the kernel.
const REQUEST: u16 = 0x1;
/// NLM_F_ACK: requests an answer of kind [`ERROR`] also on success.
pub const ACK: u16 = 0x4;
/// NLM_F_ROOT | NLM_F_MATCH: requests a whole table, ended by a message of kind [`DONE`].
pub const DUMP: u16 = 0x300;
/// NLM_F_REPLACE: replaces an existing object.
pub const REPLACE: u16 = 0x100;
/// NLM_F_CREATE: creates the object if it does not exist.
pub const CREATE: u16 = 0x400;

/// Kind of the message with an error number, 0 for an acknowledgement.
pub const ERROR: u16 = 2;
/// Kind of the message that ends a dump.
pub const DONE: u16 = 3;

/// A request to the kernel.
#[derive(Clone, Debug)]
pub struct Builder {
    bytes: Vec<u8>,
    /// Offsets of the open attributes.
    open: Vec<usize>,
}

impl Builder {
    /// A message with its kind's fixed part (struct rtmsg, struct ifaddrmsg, ...), whose length is a multiple of 4.
    pub fn new(kind: u16, flags: u16, fixed: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER_LEN];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(REQUEST | flags).to_ne_bytes());
        bytes.extend(fixed);
        Self { bytes, open: Vec::new() }
    }

    /// A command of a generic family.
    pub fn generic(family: u16, command: u8, version: u8) -> Self {
        Self::new(family, 0, &[command, version, 0, 0])
    }

    /// Appends an attribute.
    ///
    /// # Panics
    /// If the value is longer than an attribute can hold (65 531 bytes).
    pub fn put(mut self, kind: u16, value: &[u8]) -> Self {
        put(&mut self.bytes, kind, value);
        self
    }

    /// Appends an attribute of 4 bytes in host byte order.
    pub fn put_u32(self, kind: u16, value: u32) -> Self {
        self.put(kind, &value.to_ne_bytes())
    }

    /// Appends a string with a terminating zero.
    ///
    /// # Panics
    /// If the string is longer than an attribute can hold (65 530 bytes).
    pub fn put_text(self, kind: u16, text: &str) -> Self {
        self.put(kind, &[text.as_bytes(), &[0]].concat())
    }

    /// Opens an attribute; those put before [`Self::close`] are inside it.
    pub fn open(mut self, kind: u16) -> Self {
        self.open.push(self.bytes.len());
        self.put(kind | NESTED, &[])
    }

    /// Closes the attribute that was opened last.
    ///
    /// # Panics
    /// If none is open, or it holds more than an attribute can (65 531 bytes).
    pub fn close(mut self) -> Self {
        let at = self.open.pop().expect("an attribute is open");
        let length = length_field(self.bytes.len() - at);
        self.bytes[at..at + 2].copy_from_slice(&length);
        self
    }

    /// Adds flags (`NLM_F_*`) to the header.
    pub fn flags(mut self, flags: u16) -> Self {
        let old = u16::from_ne_bytes([self.bytes[6], self.bytes[7]]);
        self.bytes[6..8].copy_from_slice(&(old | flags).to_ne_bytes());
        self
    }

    /// The bytes of the message; the kernel's answers carry the same sequence number.
    pub fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = (self.bytes.len() as u32).to_ne_bytes();
        self.bytes[..4].copy_from_slice(&length);
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

/// One message of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Message type (nlmsg_type): a family's number, [`ERROR`] or [`DONE`].
    pub kind: u16,
    /// Sequence number of the request that it answers; 0 for a notification.
    pub sequence: u32,
    /// Fixed part and attributes.
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// The attributes after a fixed part of `fixed_len` bytes; `None`: the message is shorter.
    pub fn attributes(&self, fixed_len: usize) -> Option<Attributes<'a>> {
        self.payload.get(fixed_len..).map(Attributes)
    }

    /// Command and attributes of a message of a generic family; `None`: the message is too short.
    pub fn generic(&self) -> Option<(u8, Attributes<'a>)> {
        Some((*self.payload.first()?, self.attributes(GENERIC_HEADER_LEN)?))
    }

    /// The number in a message of kind [`ERROR`]: negative for an error, as the kernel writes it.
    pub fn error(&self) -> Option<i32> {
        self.payload.first_chunk().map(|number| i32::from_ne_bytes(*number))
    }
}

/// The bytes of a datagram; iterates over its messages up to the first malformed one.
#[derive(Clone, Copy, Debug)]
pub struct Messages<'a>(pub &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let h: &[u8; HEADER_LEN] = self.0.first_chunk()?;
        let length = u32::from_ne_bytes([h[0], h[1], h[2], h[3]]) as usize;
        let message = Message {
            kind: u16::from_ne_bytes([h[4], h[5]]),
            sequence: u32::from_ne_bytes([h[8], h[9], h[10], h[11]]),
            payload: self.0.get(HEADER_LEN..length)?,
        };
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_is_written_as_the_kernel_reads_it() {
        let bytes = Builder::new(24, CREATE, &[2, 32, 0, 0]).put(1, &[10, 0, 0, 3]).flags(ACK).finish(7);
        let header =
            [&28u32.to_ne_bytes()[..], &24u16.to_ne_bytes(), &0x405u16.to_ne_bytes(), &7u32.to_ne_bytes(), &[0; 4]];
        let attribute = [&8u16.to_ne_bytes()[..], &1u16.to_ne_bytes(), &[10, 0, 0, 3]];
        assert_eq!(bytes, [header.concat(), vec![2, 32, 0, 0], attribute.concat()].concat());
    }

    #[test]
    fn nested_attributes_read_back() {
        let bytes =
            Builder::generic(27, 6, 1).put_u32(3, 7).open(90).put(1, &[4]).close().put_text(4, "wlan0").finish(9);
        let mut messages = Messages(&bytes);
        let message = messages.next().unwrap();
        assert_eq!((message.kind, message.sequence, messages.next()), (27, 9, None));
        let (command, attributes) = message.generic().unwrap();
        assert_eq!((command, attributes.u32(3)), (6, Some(7)));
        assert_eq!(attributes.nested(90).unwrap().collect::<Vec<_>>(), [(1, &[4u8][..])]);
        assert_eq!(attributes.map(|(kind, _)| kind).collect::<Vec<_>>(), [3, 90, 4]);
        assert_eq!(attributes.get(4), Some(&b"wlan0\0"[..]));
    }

    #[test]
    fn messages_of_one_datagram_are_read_in_turn() {
        let two =
            [Builder::generic(20, 1, 0).finish(1), Builder::new(ERROR, 0, &(-3i32).to_ne_bytes()).finish(2)].concat();
        let read: Vec<_> = Messages(&two).map(|m| (m.kind, m.sequence, m.error())).collect();
        assert_eq!(read, [(20, 1, Some(1)), (ERROR, 2, Some(-3))]);
        assert_eq!(Messages(&two[..two.len() - 1]).count(), 1, "the second is cut");
        assert_eq!(Messages(&[0; HEADER_LEN]).count(), 0, "a length of 0 leads nowhere");
    }

    proptest! {
        #[test]
        fn attributes_put_read_back(values in proptest::collection::vec((1u16..200, proptest::collection::vec(any::<u8>(), 0..40)), 0..9)) {
            let bytes = values.iter().fold(Builder::generic(1, 2, 1), |b, (kind, value)| b.put(*kind, value)).finish(0);
            let message = Messages(&bytes).next().unwrap();
            let read: Vec<_> = message.generic().unwrap().1.map(|(kind, value)| (kind, value.to_vec())).collect();
            prop_assert_eq!(read, values);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            for message in Messages(&bytes) {
                prop_assert!(HEADER_LEN + message.payload.len() <= bytes.len());
                let _ = (message.error(), message.generic().map(|(_, attributes)| attributes.count()));
            }
        }
    }
}
