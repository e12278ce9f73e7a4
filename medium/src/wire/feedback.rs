//! Link-feedback messages between the medium and routing daemons (`formats/sockets.md`).
//!
//! ```text
//!  0      1      2          4                 8
//! +------+------+----------+-----------------+----------
//! | ver=1| type | reserved | body length u32 | body
//! +------+------+----------+-----------------+----------
//! ```
//! Integers are little-endian; one message is one SEQPACKET packet, so the body length must fit it exactly.

use super::{array, check_len, MacAddress, Malformed, Result};
use manet_engine::packet_filter::Program;

/// Version of the protocol.
pub const VERSION: u8 = 1;
/// Length of the header, bytes.
pub const HEADER_LEN: usize = 8;
/// Maximum length of a message, bytes, far above the largest Ethernet frame on the air.
pub const MAX_LEN: usize = 65_536;

/// Bit of SUBSCRIBE: FAILED messages.
pub const FAILURES: u32 = 1;
/// Bit of SUBSCRIBE: OVERHEARD messages.
pub const OVERHEARD: u32 = 2;
/// Bit of SUBSCRIBE: DELIVERED messages.
pub const DELIVERED: u32 = 4;

mod kind {
    pub const SUBSCRIBE: u8 = 1;
    pub const PURGE: u8 = 2;
    pub const FILTER: u8 = 3;
    pub const FAILED: u8 = 129;
    pub const PURGED: u8 = 130;
    pub const PURGE_DONE: u8 = 131;
    pub const OVERHEARD: u8 = 132;
    pub const DELIVERED: u8 = 133;
    pub const ERROR: u8 = 255;
}

/// A message. The first three kinds go to the medium, the others come from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repr<'a> {
    /// Selects the messages that the client receives.
    Subscribe {
        /// [`FAILURES`], [`OVERHEARD`], [`DELIVERED`].
        flags: u32,
    },
    /// Removes the queued frames for a neighbour.
    Purge {
        /// Receiver address of the frames.
        neighbour: MacAddress,
        /// Returned in the answers.
        token: u32,
    },
    /// Selects the overheard frames that the client receives.
    Filter {
        /// The instructions of a [`Program`]; empty: all frames.
        program: &'a [u8],
    },
    /// A frame reached a retry limit.
    Failed {
        /// Model time, ns.
        at_ns: u64,
        /// Receiver address.
        neighbour: MacAddress,
        /// The limit: a value of [`crate::mac::FailReason`].
        reason: u16,
        /// The Ethernet frame.
        frame: &'a [u8],
    },
    /// A frame removed by PURGE.
    Purged {
        /// Token of the request.
        token: u32,
        /// Receiver address.
        neighbour: MacAddress,
        /// The Ethernet frame.
        frame: &'a [u8],
    },
    /// Follows the last PURGED of a request.
    PurgeDone {
        /// Token of the request.
        token: u32,
        /// Number of frames removed.
        count: u32,
    },
    /// A data frame for another station, decoded by this one.
    Overheard {
        /// Model time, ns.
        at_ns: u64,
        /// Sender on this hop.
        transmitter: MacAddress,
        /// Receiver on this hop.
        receiver: MacAddress,
        /// The Ethernet frame.
        frame: &'a [u8],
    },
    /// A unicast frame was acknowledged.
    Delivered {
        /// Model time, ns.
        at_ns: u64,
        /// Receiver address.
        neighbour: MacAddress,
        /// Attempts beyond the first.
        retries: u16,
    },
    /// Answer to a malformed message.
    Error {
        /// One line.
        text: &'a str,
    },
}

/// A window on one message: the header is checked, the body has the stated length.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    kind: u8,
    body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Checks version, reserved bytes and length.
    ///
    /// # Errors
    /// The first of these that is wrong.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self> {
        check_len(bytes, HEADER_LEN)?;
        if bytes[0] != VERSION {
            return Err(Malformed("version is not 1"));
        }
        if bytes[2..4] != [0, 0] {
            return Err(Malformed("the reserved bytes are not 0"));
        }
        let body = &bytes[HEADER_LEN..];
        if u32::from_le_bytes(array(bytes, 4..8)) as usize != body.len() {
            return Err(Malformed("the body length does not match the packet"));
        }
        Ok(Self { kind: bytes[1], body })
    }

    fn exactly(&self, len: usize) -> Result<()> {
        if self.body.len() == len {
            Ok(())
        } else {
            Err(Malformed("wrong body length for this type"))
        }
    }
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(array(self.body, at..at + 2))
    }
    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(array(self.body, at..at + 4))
    }
    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(array(self.body, at..at + 8))
    }
    fn mac(&self, at: usize) -> MacAddress {
        array(self.body, at..at + 6)
    }
    /// The frame at the end of the body; its length field is at `at`.
    fn frame(&self, at: usize) -> Result<&'a [u8]> {
        check_len(self.body, at + 4)?;
        let frame = &self.body[at + 4..];
        if self.u32(at) as usize == frame.len() {
            Ok(frame)
        } else {
            Err(Malformed("the frame length does not match the body"))
        }
    }
}

impl<'a> Repr<'a> {
    /// Parses one packet of the socket.
    ///
    /// # Errors
    /// The first field that is wrong.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let m = Message::new_checked(bytes)?;
        Ok(match m.kind {
            kind::SUBSCRIBE => {
                m.exactly(4)?;
                if m.u32(0) & !(FAILURES | OVERHEARD | DELIVERED) != 0 {
                    return Err(Malformed("unknown flags; 1 failures, 2 overheard, 4 delivered"));
                }
                Repr::Subscribe { flags: m.u32(0) }
            }
            kind::PURGE => {
                m.exactly(12)?;
                m.zero(6)?;
                Repr::Purge { neighbour: m.mac(0), token: m.u32(8) }
            }
            kind::FILTER => {
                Program::parse(m.body).map_err(|refused| Malformed(refused.0))?;
                Repr::Filter { program: m.body }
            }
            kind::FAILED => {
                let frame = m.frame(16)?;
                Repr::Failed { at_ns: m.u64(0), neighbour: m.mac(8), reason: m.u16(14), frame }
            }
            kind::PURGED => {
                let frame = m.frame(12)?;
                m.zero(10)?;
                Repr::Purged { token: m.u32(0), neighbour: m.mac(4), frame }
            }
            kind::PURGE_DONE => {
                m.exactly(8)?;
                Repr::PurgeDone { token: m.u32(0), count: m.u32(4) }
            }
            kind::OVERHEARD => {
                let frame = m.frame(20)?;
                Repr::Overheard { at_ns: m.u64(0), transmitter: m.mac(8), receiver: m.mac(14), frame }
            }
            kind::DELIVERED => {
                if !m.frame(16)?.is_empty() {
                    return Err(Malformed("DELIVERED carries no frame"));
                }
                Repr::Delivered { at_ns: m.u64(0), neighbour: m.mac(8), retries: m.u16(14) }
            }
            kind::ERROR => {
                Repr::Error { text: std::str::from_utf8(m.body).map_err(|_| Malformed("text that is not UTF-8"))? }
            }
            _ => return Err(Malformed("unknown type; 1 SUBSCRIBE, 2 PURGE and 3 FILTER go to the medium")),
        })
    }

    fn kind(&self) -> u8 {
        match self {
            Repr::Subscribe { .. } => kind::SUBSCRIBE,
            Repr::Purge { .. } => kind::PURGE,
            Repr::Filter { .. } => kind::FILTER,
            Repr::Failed { .. } => kind::FAILED,
            Repr::Purged { .. } => kind::PURGED,
            Repr::PurgeDone { .. } => kind::PURGE_DONE,
            Repr::Overheard { .. } => kind::OVERHEARD,
            Repr::Delivered { .. } => kind::DELIVERED,
            Repr::Error { .. } => kind::ERROR,
        }
    }

    /// Length of the message, bytes.
    pub fn buffer_len(&self) -> usize {
        HEADER_LEN
            + match self {
                Repr::Subscribe { .. } => 4,
                Repr::Purge { .. } => 12,
                Repr::Filter { program } => program.len(),
                Repr::Failed { frame, .. } => 20 + frame.len(),
                Repr::Purged { frame, .. } => 16 + frame.len(),
                Repr::PurgeDone { .. } => 8,
                Repr::Overheard { frame, .. } => 24 + frame.len(),
                Repr::Delivered { .. } => 20,
                Repr::Error { text } => text.len(),
            }
    }

    /// Writes the message to the start of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than `buffer_len()`.
    pub fn emit(&self, out: &mut [u8]) {
        let out = &mut out[..self.buffer_len()];
        let body_len = (out.len() - HEADER_LEN) as u32;
        let mut w = Writer(out);
        w.put(&[VERSION, self.kind(), 0, 0]);
        w.put(&body_len.to_le_bytes());
        match *self {
            Repr::Subscribe { flags } => w.put(&flags.to_le_bytes()),
            Repr::Purge { neighbour, token } => {
                w.put(&neighbour);
                w.put(&[0, 0]);
                w.put(&token.to_le_bytes());
            }
            Repr::Filter { program } => w.put(program),
            Repr::Failed { at_ns, neighbour, reason, frame } => {
                w.put(&at_ns.to_le_bytes());
                w.put(&neighbour);
                w.put(&reason.to_le_bytes());
                w.put_frame(frame);
            }
            Repr::Purged { token, neighbour, frame } => {
                w.put(&token.to_le_bytes());
                w.put(&neighbour);
                w.put(&[0, 0]);
                w.put_frame(frame);
            }
            Repr::PurgeDone { token, count } => {
                w.put(&token.to_le_bytes());
                w.put(&count.to_le_bytes());
            }
            Repr::Overheard { at_ns, transmitter, receiver, frame } => {
                w.put(&at_ns.to_le_bytes());
                w.put(&transmitter);
                w.put(&receiver);
                w.put_frame(frame);
            }
            Repr::Delivered { at_ns, neighbour, retries } => {
                w.put(&at_ns.to_le_bytes());
                w.put(&neighbour);
                w.put(&retries.to_le_bytes());
                w.put_frame(&[]);
            }
            Repr::Error { text } => w.put(text.as_bytes()),
        }
    }

    /// The bytes of the message.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = vec![0; self.buffer_len()];
        self.emit(&mut out);
        out
    }
}

impl Message<'_> {
    fn zero(&self, at: usize) -> Result<()> {
        if self.u16(at) == 0 {
            Ok(())
        } else {
            Err(Malformed("the reserved bytes are not 0"))
        }
    }
}

struct Writer<'a>(&'a mut [u8]);

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let (head, tail) = std::mem::take(&mut self.0).split_at_mut(bytes.len());
        head.copy_from_slice(bytes);
        self.0 = tail;
    }
    fn put_frame(&mut self, frame: &[u8]) {
        self.put(&(frame.len() as u32).to_le_bytes());
        self.put(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const N: MacAddress = [2, 0, 0, 0, 0, 9];

    /// Written out by hand after formats/sockets.md; medium/examples/link_feedback_client.py writes the first three.
    fn golden() -> Vec<(Vec<u8>, Repr<'static>)> {
        vec![
            (vec![1, 1, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0], Repr::Subscribe { flags: FAILURES | DELIVERED }),
            (vec![1, 2, 0, 0, 12, 0, 0, 0, 2, 0, 0, 0, 0, 9, 0, 0, 7, 0, 0, 0], Repr::Purge { neighbour: N, token: 7 }),
            (vec![1, 3, 0, 0, 8, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0], Repr::Filter { program: &[6, 0, 0, 0, 1, 0, 0, 0] }),
            (
                vec![1, 129, 0, 0, 22, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 1, 0, 2, 0, 0, 0, 0xaa, 0xbb],
                Repr::Failed { at_ns: 513, neighbour: N, reason: 1, frame: &[0xaa, 0xbb] },
            ),
            (
                vec![1, 130, 0, 0, 17, 0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0, 0, 9, 0, 0, 1, 0, 0, 0, 0xcc],
                Repr::Purged { token: 7, neighbour: N, frame: &[0xcc] },
            ),
            (vec![1, 131, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0, 3, 0, 0, 0], Repr::PurgeDone { token: 7, count: 3 }),
            (
                vec![
                    1, 132, 0, 0, 25, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 1, 0, 0, 0,
                    0xdd,
                ],
                Repr::Overheard { at_ns: 1, transmitter: N, receiver: [2, 0, 0, 0, 0, 8], frame: &[0xdd] },
            ),
            (
                vec![1, 133, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 4, 0, 0, 0, 0, 0],
                Repr::Delivered { at_ns: 1, neighbour: N, retries: 4 },
            ),
            (vec![1, 255, 0, 0, 2, 0, 0, 0, b'n', b'o'], Repr::Error { text: "no" }),
        ]
    }

    #[test]
    fn golden_bytes_both_ways() {
        for (bytes, repr) in golden() {
            assert_eq!(Repr::parse(&bytes), Ok(repr));
            let mut out = vec![0xa5; repr.buffer_len()];
            repr.emit(&mut out);
            assert_eq!(out, bytes, "{repr:?}");
        }
    }

    #[test]
    fn truncation_at_every_length_is_an_error() {
        for (bytes, repr) in golden() {
            for n in 0..bytes.len() {
                assert!(Repr::parse(&bytes[..n]).is_err(), "{repr:?} cut to {n}");
            }
        }
    }

    #[test]
    fn each_wrong_field_of_a_message_is_found() {
        for (bytes, repr) in golden() {
            for (at, value) in [(0, 2), (2, 1), (4, bytes[4] ^ 1), (1, 77)] {
                let mut bad = bytes.clone();
                bad[at] = value;
                assert!(Repr::parse(&bad).is_err(), "{repr:?} with byte {at} = {value}");
            }
        }
        assert!(Repr::parse(&[1, 1, 0, 0, 4, 0, 0, 0, 8, 0, 0, 0]).is_err());
    }

    proptest! {
        #[test]
        fn round_trip(at_ns: u64, a: [u8; 6], b: [u8; 6], reason: u16, token: u32, count: u32,
                      frame in prop::collection::vec(any::<u8>(), 0..200), text in "\\PC{0,40}", flags in 0u32..8) {
            let frame = &frame[..];
            for repr in [
                Repr::Subscribe { flags },
                Repr::Purge { neighbour: a, token },
                Repr::Filter { program: &[6, 0, 0, 0, a[0], 0, 0, 0] },
                Repr::Failed { at_ns, neighbour: a, reason, frame },
                Repr::Purged { token, neighbour: a, frame },
                Repr::PurgeDone { token, count },
                Repr::Overheard { at_ns, transmitter: a, receiver: b, frame },
                Repr::Delivered { at_ns, neighbour: a, retries: reason },
                Repr::Error { text: &text },
            ] {
                let bytes = repr.to_vec();
                prop_assert_eq!(Repr::parse(&bytes), Ok(repr));
            }
        }

        #[test]
        fn no_bytes_panic(kind: u8, body in prop::collection::vec(any::<u8>(), 0..64), raw: Vec<u8>) {
            let _ = Repr::parse(&raw);
            let mut bytes = vec![VERSION, kind, 0, 0];
            bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&body);
            if let Ok(repr) = Repr::parse(&bytes) {
                prop_assert_eq!(repr.to_vec(), bytes);
            }
        }
    }
}
