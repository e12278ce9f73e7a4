//! Block Ack and Block Ack Request with the compressed bitmap (IEEE 802.11-2016 clauses 9.3.1.8.2 and 9.3.1.9.3), as an HT-immediate
//! agreement sends them.
//!
//! ```text
//!  0    2    4        10       16        18      20
//! +----+----+--------+--------+---------+-------+
//! | fc | dur| addr 1 | addr 2 | control | start |                 Block Ack Request (20 bytes)
//! +----+----+--------+--------+---------+-------+------------+
//! | fc | dur| addr 1 | addr 2 | control | start | bitmap (8) |    Block Ack (28 bytes)
//! +----+----+--------+--------+---------+-------+------------+
//! ```
//! `control`: bit 0 acknowledgement policy (0: normal), bit 2 compressed bitmap, bits 12 to 15 TID. `start`: bits 4 to 15 starting
//! sequence number, bits 0 to 3 fragment number 0. Multi-byte fields are little-endian; lengths are without FCS. Not supported: basic
//! and multi-TID variants, GCR, bitmaps of another length, delayed agreements.

use super::{array, check_len, MacAddress, Malformed, Result};
use std::fmt;

/// Length of a Block Ack Request without FCS, bytes.
pub const REQUEST_LEN: usize = 20;
/// Length of a Block Ack without FCS, bytes.
pub const BLOCK_ACK_LEN: usize = 28;
/// Sequence numbers that a bitmap covers.
pub const BITMAP_BITS: u16 = 64;
/// Sequence numbers are taken modulo 4096 (clause 9.2.4.4.2).
pub const SEQUENCES: u16 = 4096;

// first byte: subtype, type, protocol version 0 (table 9-1)
const REQUEST: u8 = 0x84;
const BLOCK_ACK: u8 = 0x94;
const COMPRESSED: u16 = 1 << 2;
const TID_SHIFT: u32 = 12;

mod field {
    use std::ops::Range;
    pub const DURATION: Range<usize> = 2..4;
    pub const ADDRESS_1: Range<usize> = 4..10;
    pub const ADDRESS_2: Range<usize> = 10..16;
    pub const CONTROL: Range<usize> = 16..18;
    pub const START: Range<usize> = 18..20;
    pub const BITMAP: Range<usize> = 20..28;
}

/// Steps from the sequence number `from` forward to `to`, 0 to 4095.
pub const fn steps(from: u16, to: u16) -> u16 {
    to.wrapping_sub(from) % SEQUENCES
}

/// The MPDUs that a Block Ack acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bitmap {
    /// Starting sequence number.
    pub start: u16,
    /// Bit *n*: the MPDU with sequence number `start` + *n*.
    pub bits: u64,
}

impl Bitmap {
    /// Whether it acknowledges the MPDU with this sequence number.
    pub const fn contains(&self, sequence: u16) -> bool {
        let bit = steps(self.start, sequence);
        bit < BITMAP_BITS && self.bits >> bit & 1 == 1
    }
}

/// A Block Ack or Block Ack Request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repr {
    /// Block Ack Request.
    Request {
        /// Duration field, us.
        duration_us: u16,
        /// Address 1.
        receiver: MacAddress,
        /// Address 2.
        transmitter: MacAddress,
        /// Traffic identifier, 0 to 15.
        tid: u8,
        /// Starting sequence number.
        start: u16,
    },
    /// Block Ack.
    BlockAck {
        /// Duration field, us.
        duration_us: u16,
        /// Address 1.
        receiver: MacAddress,
        /// Address 2.
        transmitter: MacAddress,
        /// Traffic identifier, 0 to 15.
        tid: u8,
        /// The MPDUs received.
        bitmap: Bitmap,
    },
}

impl Repr {
    /// Parses a frame without FCS.
    ///
    /// # Errors
    /// Another kind of frame or variant, flags that a control frame has not, or too few bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        check_len(bytes, REQUEST_LEN)?;
        if bytes[1] != 0 {
            return Err(Malformed("flags that a Block Ack has not"));
        }
        let control = u16::from_le_bytes(array(bytes, field::CONTROL));
        if control & !(0xf << TID_SHIFT) != COMPRESSED {
            return Err(Malformed("not a compressed Block Ack of an immediate agreement"));
        }
        let start_control = u16::from_le_bytes(array(bytes, field::START));
        if start_control & 0xf != 0 {
            return Err(Malformed("a bitmap of another length, or fragments"));
        }
        let (tid, start) = ((control >> TID_SHIFT) as u8, start_control >> 4);
        let duration_us = u16::from_le_bytes(array(bytes, field::DURATION));
        let (receiver, transmitter) = (array(bytes, field::ADDRESS_1), array(bytes, field::ADDRESS_2));
        match bytes[0] {
            REQUEST => Ok(Repr::Request { duration_us, receiver, transmitter, tid, start }),
            BLOCK_ACK => {
                check_len(bytes, BLOCK_ACK_LEN)?;
                let bits = u64::from_le_bytes(array(bytes, field::BITMAP));
                Ok(Repr::BlockAck { duration_us, receiver, transmitter, tid, bitmap: Bitmap { start, bits } })
            }
            _ => Err(Malformed("not a Block Ack or Block Ack Request")),
        }
    }

    /// Length without FCS, bytes.
    pub const fn buffer_len(&self) -> usize {
        match self {
            Repr::Request { .. } => REQUEST_LEN,
            Repr::BlockAck { .. } => BLOCK_ACK_LEN,
        }
    }

    /// Writes the frame to the start of `out`. TIDs and sequence numbers are taken modulo 16 and 4096.
    ///
    /// # Panics
    /// If `out` is shorter than `buffer_len()`.
    pub fn emit(&self, out: &mut [u8]) {
        let (kind, duration_us, receiver, transmitter, tid, start) = match *self {
            Repr::Request { duration_us, receiver, transmitter, tid, start } => {
                (REQUEST, duration_us, receiver, transmitter, tid, start)
            }
            Repr::BlockAck { duration_us, receiver, transmitter, tid, bitmap } => {
                out[field::BITMAP].copy_from_slice(&bitmap.bits.to_le_bytes());
                (BLOCK_ACK, duration_us, receiver, transmitter, tid, bitmap.start)
            }
        };
        out[0] = kind;
        out[1] = 0;
        out[field::DURATION].copy_from_slice(&duration_us.to_le_bytes());
        out[field::ADDRESS_1].copy_from_slice(&receiver);
        out[field::ADDRESS_2].copy_from_slice(&transmitter);
        out[field::CONTROL].copy_from_slice(&(u16::from(tid) << TID_SHIFT | COMPRESSED).to_le_bytes());
        out[field::START].copy_from_slice(&(start << 4).to_le_bytes());
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use super::ethernet::Mac;
        match *self {
            Repr::Request { receiver, transmitter, tid, start, .. } => {
                write!(f, "BAR {} > {}, TID {tid}, from seq {start}", Mac(transmitter), Mac(receiver))
            }
            Repr::BlockAck { receiver, transmitter, tid, bitmap: Bitmap { start, bits }, .. } => {
                let (from, to) = (Mac(transmitter), Mac(receiver));
                write!(f, "Block Ack {from} > {to}, TID {tid}, {} from seq {start}", bits.count_ones())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: MacAddress = [2, 0, 0, 0, 0, 1];
    const B: MacAddress = [2, 0, 0, 0, 0, 2];

    /// Bytes written out by hand after the clauses above.
    fn golden() -> Vec<(Vec<u8>, Repr)> {
        let request = vec![0x84, 0, 0x3c, 0, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x04, 0x50, 0xf0, 0xff];
        let mut block_ack = vec![0x94, 0, 0, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x04, 0x00, 0x10, 0x00];
        block_ack.extend([0x05, 0, 0, 0, 0, 0, 0, 0x80]);
        let bitmap = Bitmap { start: 1, bits: 1 | 1 << 2 | 1 << 63 };
        vec![
            (request, Repr::Request { duration_us: 60, receiver: B, transmitter: A, tid: 5, start: 4095 }),
            (block_ack, Repr::BlockAck { duration_us: 0, receiver: A, transmitter: B, tid: 0, bitmap }),
        ]
    }

    #[test]
    fn golden_bytes_both_ways() {
        for (bytes, repr) in golden() {
            assert_eq!(Repr::parse(&bytes), Ok(repr), "{repr}");
            let mut out = vec![0xa5; repr.buffer_len()];
            repr.emit(&mut out);
            assert_eq!(out, bytes, "{repr}");
        }
    }

    #[test]
    fn truncation_at_every_length_is_an_error() {
        for (bytes, repr) in golden() {
            for n in 0..bytes.len() {
                assert!(Repr::parse(&bytes[..n]).is_err(), "{repr} cut to {n}");
            }
        }
    }

    #[test]
    fn other_variants_are_errors() {
        let (bytes, _) = golden().remove(1);
        // Retry; delayed; multi-TID; basic; GCR; fragment 1; RTS
        for (at, value) in [(1, 0x08), (16, 0x05), (16, 0x06), (16, 0x00), (16, 0x0c), (18, 0x11), (0, 0xb4)] {
            let mut other = bytes.clone();
            other[at] = value;
            assert!(Repr::parse(&other).is_err(), "byte {at} is {value:#x}");
        }
    }

    #[test]
    fn a_bitmap_that_begins_near_4095_continues_at_0() {
        let bitmap = Bitmap { start: 4094, bits: 0b1011 };
        let contained: Vec<u16> = (0..SEQUENCES).filter(|s| bitmap.contains(*s)).collect();
        assert_eq!(contained, [1, 4094, 4095]);
    }

    fn any_repr() -> impl Strategy<Value = Repr> {
        (any::<(bool, u16, [u8; 6], [u8; 6], u64)>(), 0..16u8, 0..SEQUENCES).prop_map(
            |((request, duration_us, receiver, transmitter, bits), tid, start)| match request {
                true => Repr::Request { duration_us, receiver, transmitter, tid, start },
                false => Repr::BlockAck { duration_us, receiver, transmitter, tid, bitmap: Bitmap { start, bits } },
            },
        )
    }

    proptest! {
        #[test]
        fn round_trip(repr in any_repr()) {
            let mut out = vec![0xa5; repr.buffer_len()];
            repr.emit(&mut out);
            prop_assert_eq!(Repr::parse(&out), Ok(repr));
        }

        #[test]
        fn no_bytes_panic(first in prop::sample::select(vec![REQUEST, BLOCK_ACK, 0xb4]),
                          mut bytes in prop::collection::vec(any::<u8>(), 1..64)) {
            bytes[0] = first;
            let _ = Repr::parse(&bytes);
        }
    }
}
