//! IEEE 802.11 MAC headers of the frames on our air: RTS, CTS, ACK and data (IEEE 802.11-2016 clauses 9.2.3, 9.2.4,
//! 9.3.1.2, 9.3.1.3, 9.3.1.4, 9.3.2.1), and the LLC/SNAP header of RFC 1042 that opens a data frame's body.
//!
//! ```text
//!  0    2    4        10       16       22    24
//! +----+----+--------+--------+--------+-----+-----------------
//! | fc | dur| addr 1 | addr 2 | addr 3 | seq | body              data (24 bytes)
//! +----+----+--------+--------+--------+-----+-----------------
//! | fc | dur| addr 1 | addr 2 |                                 RTS (16 bytes)
//! +----+----+--------+--------+
//! | fc | dur| addr 1 |                                          CTS, ACK (10 bytes)
//! +----+----+--------+
//! ```
//! Multi-byte fields are little-endian. QoS data are written, not read. Not supported: management frames, HT Control, four addresses, sending of fragments
//! (the fragment number is carried). Headers are without FCS ([`fcs`]); lengths on the air include [`FCS_LEN`].

use super::{array, check_len, MacAddress, Malformed, Result};
use std::fmt;

/// Length of the frame check sequence, bytes.
pub const FCS_LEN: usize = 4;
/// Length of the header of a data frame, bytes.
pub const DATA_HEADER_LEN: usize = 24;
/// Length of an RTS without FCS, bytes.
pub const RTS_LEN: usize = 16;
/// Length of a CTS or ACK without FCS, bytes.
pub const CTS_ACK_LEN: usize = 10;
/// Maximum length of an MSDU, bytes (IEEE 802.11-2020, 9.2.4.7.1).
pub const MAX_MSDU_BYTES: usize = 2304;
/// Length of the LLC/SNAP header, bytes.
pub const SNAP_LEN: usize = 8;
/// DSAP and SSAP 0xaa, unnumbered information, OUI 0: then the ethertype (RFC 1042).
const SNAP_PREFIX: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];

// first byte: subtype, type, protocol version 0 (table 9-1)
const RTS: u8 = 0xb4;
const CTS: u8 = 0xc4;
const ACK: u8 = 0xd4;
const DATA: u8 = 0x08;
/// Bit of the subtype that makes data QoS data.
const QOS: u8 = 0x80;
/// Length of the QoS Control field, bytes.
pub const QOS_CONTROL_LEN: usize = 2;
/// Second byte of frame control (clause 9.2.4.1.7).
const RETRY: u8 = 0x08;

mod field {
    use std::ops::Range;
    pub const DURATION: Range<usize> = 2..4;
    pub const ADDRESS_1: Range<usize> = 4..10;
    pub const ADDRESS_2: Range<usize> = 10..16;
    pub const ADDRESS_3: Range<usize> = 16..22;
    pub const SEQUENCE: Range<usize> = 22..24;
}

/// Turns the header of a data frame into that of a QoS data frame with a traffic identifier (0 to 15), to be acknowledged at once
/// (9.2.4.5).
pub fn make_qos(header: &mut Vec<u8>, tid: u8) {
    let control: [u8; QOS_CONTROL_LEN] = u16::from(tid & 0xf).to_le_bytes();
    header[0] |= QOS;
    header.extend(control);
}

/// The frame check sequence of a frame, as it follows the bytes (clause 9.2.4.8): IEEE 802's CRC-32.
pub fn fcs(bytes: &[u8]) -> [u8; FCS_LEN] {
    crc32fast::hash(bytes).to_le_bytes()
}

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Request to send.
    Rts,
    /// Clear to send.
    Cts,
    /// Acknowledgement.
    Ack,
    /// Data, subtype 0.
    Data,
}

impl Kind {
    /// Length of the header without FCS, bytes.
    pub const fn header_len(self) -> usize {
        match self {
            Kind::Rts => RTS_LEN,
            Kind::Cts | Kind::Ack => CTS_ACK_LEN,
            Kind::Data => DATA_HEADER_LEN,
        }
    }
    const fn byte(self) -> u8 {
        match self {
            Kind::Rts => RTS,
            Kind::Cts => CTS,
            Kind::Ack => ACK,
            Kind::Data => DATA,
        }
    }
}

/// A window on the bytes of a frame without FCS.
#[derive(Clone, Copy, Debug)]
pub struct Frame<T: AsRef<[u8]>> {
    bytes: T,
    kind: Kind,
}

impl<T: AsRef<[u8]>> Frame<T> {
    /// Checks kind and length.
    ///
    /// # Errors
    /// Another kind of frame, or too few bytes.
    pub fn new_checked(bytes: T) -> Result<Self> {
        check_len(bytes.as_ref(), CTS_ACK_LEN)?;
        let kind = match bytes.as_ref()[0] {
            RTS => Kind::Rts,
            CTS => Kind::Cts,
            ACK => Kind::Ack,
            DATA => Kind::Data,
            _ => return Err(Malformed("not an RTS, CTS, ACK or data frame")),
        };
        check_len(bytes.as_ref(), kind.header_len())?;
        Ok(Self { bytes, kind })
    }
    /// Kind of the frame.
    pub fn kind(&self) -> Kind {
        self.kind
    }
    /// The Retry bit.
    pub fn retry(&self) -> bool {
        self.bytes.as_ref()[1] & RETRY != 0
    }
    /// The Duration field, us.
    pub fn duration_us(&self) -> u16 {
        u16::from_le_bytes(array(self.bytes.as_ref(), field::DURATION))
    }
    /// Address 1.
    pub fn receiver(&self) -> MacAddress {
        array(self.bytes.as_ref(), field::ADDRESS_1)
    }
    /// Address 2; CTS and ACK have none.
    pub fn transmitter(&self) -> Option<MacAddress> {
        matches!(self.kind, Kind::Rts | Kind::Data).then(|| array(self.bytes.as_ref(), field::ADDRESS_2))
    }
    /// The bytes after the header of a data frame; empty for control frames.
    pub fn body(&self) -> &[u8] {
        if self.kind == Kind::Data {
            &self.bytes.as_ref()[DATA_HEADER_LEN..]
        } else {
            &[]
        }
    }
    fn flags_beyond_retry(&self) -> u8 {
        self.bytes.as_ref()[1] & !RETRY
    }
}

/// A frame without its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repr {
    /// Request to send.
    Rts {
        /// The Retry bit.
        retry: bool,
        /// Duration field, us.
        duration_us: u16,
        /// Address 1.
        receiver: MacAddress,
        /// Address 2.
        transmitter: MacAddress,
    },
    /// Clear to send.
    Cts {
        /// Duration field, us.
        duration_us: u16,
        /// Address 1.
        receiver: MacAddress,
    },
    /// Acknowledgement.
    Ack {
        /// Duration field, us.
        duration_us: u16,
        /// Address 1.
        receiver: MacAddress,
    },
    /// Data in an independent BSS: neither to nor from a distribution system (table 9-26).
    Data {
        /// The Retry bit.
        retry: bool,
        /// Duration field, us.
        duration_us: u16,
        /// Address 1.
        receiver: MacAddress,
        /// Address 2.
        transmitter: MacAddress,
        /// Address 3.
        bssid: MacAddress,
        /// Sequence number, 12 bits.
        sequence: u16,
        /// Fragment number, 4 bits.
        fragment: u8,
    },
}

impl Repr {
    /// Parses the header of a frame without FCS.
    ///
    /// # Errors
    /// Another kind of frame, flags that this air does not use, or too few bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let frame = Frame::new_checked(bytes)?;
        if frame.flags_beyond_retry() != 0 {
            return Err(Malformed("to or from a distribution system, or flags that our air does not use"));
        }
        let (retry, duration_us, receiver) = (frame.retry(), frame.duration_us(), frame.receiver());
        let transmitter = frame.transmitter().unwrap_or_default();
        Ok(match frame.kind() {
            Kind::Rts => Repr::Rts { retry, duration_us, receiver, transmitter },
            Kind::Cts | Kind::Ack if retry => return Err(Malformed("a CTS or ACK is never a retry")),
            Kind::Cts => Repr::Cts { duration_us, receiver },
            Kind::Ack => Repr::Ack { duration_us, receiver },
            Kind::Data => {
                let sequence_control = u16::from_le_bytes(array(bytes, field::SEQUENCE));
                Repr::Data {
                    retry,
                    duration_us,
                    receiver,
                    transmitter,
                    bssid: array(bytes, field::ADDRESS_3),
                    sequence: sequence_control >> 4,
                    fragment: (sequence_control & 0xf) as u8,
                }
            }
        })
    }

    /// Kind of the frame.
    pub const fn kind(&self) -> Kind {
        match self {
            Repr::Rts { .. } => Kind::Rts,
            Repr::Cts { .. } => Kind::Cts,
            Repr::Ack { .. } => Kind::Ack,
            Repr::Data { .. } => Kind::Data,
        }
    }

    /// Length of the header without FCS, bytes.
    pub const fn buffer_len(&self) -> usize {
        self.kind().header_len()
    }

    /// Writes the header to the start of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than `buffer_len()`.
    pub fn emit(&self, out: &mut [u8]) {
        out[0] = self.kind().byte();
        out[1] = 0;
        match *self {
            Repr::Cts { duration_us, receiver } | Repr::Ack { duration_us, receiver } => {
                emit_start(out, false, duration_us, &receiver);
            }
            Repr::Rts { retry, duration_us, receiver, transmitter } => {
                emit_start(out, retry, duration_us, &receiver);
                out[field::ADDRESS_2].copy_from_slice(&transmitter);
            }
            Repr::Data { retry, duration_us, receiver, transmitter, bssid, sequence, fragment } => {
                emit_start(out, retry, duration_us, &receiver);
                out[field::ADDRESS_2].copy_from_slice(&transmitter);
                out[field::ADDRESS_3].copy_from_slice(&bssid);
                let sequence_control = sequence << 4 | u16::from(fragment & 0xf);
                out[field::SEQUENCE].copy_from_slice(&sequence_control.to_le_bytes());
            }
        }
    }
}

fn emit_start(out: &mut [u8], retry: bool, duration_us: u16, receiver: &MacAddress) {
    out[1] |= if retry { RETRY } else { 0 };
    out[field::DURATION].copy_from_slice(&duration_us.to_le_bytes());
    out[field::ADDRESS_1].copy_from_slice(receiver);
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use super::ethernet::Mac;
        match *self {
            Repr::Rts { duration_us, receiver, transmitter, .. } => {
                write!(f, "RTS {} > {}, NAV {duration_us} us", Mac(transmitter), Mac(receiver))
            }
            Repr::Cts { duration_us, receiver } => write!(f, "CTS > {}, NAV {duration_us} us", Mac(receiver)),
            Repr::Ack { duration_us, receiver } => write!(f, "ACK > {}, NAV {duration_us} us", Mac(receiver)),
            Repr::Data { retry, receiver, transmitter, sequence, .. } => {
                let again = if retry { ", retry" } else { "" };
                write!(f, "data {} > {}, seq {sequence}{again}", Mac(transmitter), Mac(receiver))
            }
        }
    }
}

/// The LLC/SNAP header of a packet with this EtherType (RFC 1042).
pub fn snap(ethertype: u16) -> [u8; SNAP_LEN] {
    let mut out = [0; SNAP_LEN];
    out[..6].copy_from_slice(&SNAP_PREFIX);
    out[6..].copy_from_slice(&ethertype.to_be_bytes());
    out
}

/// EtherType and payload of the body of a data frame.
///
/// # Errors
/// No LLC/SNAP header with OUI 0.
pub fn parse_snap(body: &[u8]) -> Result<(u16, &[u8])> {
    check_len(body, SNAP_LEN)?;
    if body[..6] != SNAP_PREFIX {
        return Err(Malformed("not LLC/SNAP with OUI 0"));
    }
    Ok((u16::from_be_bytes(array(body, 6..8)), &body[SNAP_LEN..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: MacAddress = [2, 0, 0, 0, 0, 1];
    const B: MacAddress = [2, 0, 0, 0, 0, 2];

    /// Bytes written out by hand after the clauses above; tests/medium/test_outputs.py has tshark read a capture.
    fn golden() -> Vec<(Vec<u8>, Repr)> {
        vec![
            (
                vec![0xb4, 0x00, 0x2c, 0x01, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1],
                Repr::Rts { retry: false, duration_us: 300, receiver: B, transmitter: A },
            ),
            (vec![0xc4, 0x00, 0x10, 0x00, 2, 0, 0, 0, 0, 1], Repr::Cts { duration_us: 16, receiver: A }),
            (vec![0xd4, 0x00, 0x00, 0x00, 2, 0, 0, 0, 0, 1], Repr::Ack { duration_us: 0, receiver: A }),
            (
                vec![0x08, 0x08, 0x3a, 0x01, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0x51, 0x01],
                Repr::Data {
                    retry: true,
                    duration_us: 314,
                    receiver: B,
                    transmitter: A,
                    bssid: [2, 0, 0, 0, 0, 0],
                    sequence: 21,
                    fragment: 1,
                },
            ),
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
    fn snap_carries_the_ethertype() {
        assert_eq!(snap(0x0800), [0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
        assert_eq!(parse_snap(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 6, 7]), Ok((0x0806, &[7u8][..])));
        assert!(parse_snap(&[0xaa, 0xaa, 3, 0, 0, 1, 8, 6]).is_err());
    }

    fn any_repr() -> impl Strategy<Value = Repr> {
        (0..4u8, any::<(bool, u16, [u8; 6], [u8; 6], [u8; 6])>(), 0..4096u16, 0..16u8).prop_map(
            |(kind, (retry, duration_us, receiver, transmitter, bssid), sequence, fragment)| match kind {
                0 => Repr::Rts { retry, duration_us, receiver, transmitter },
                1 => Repr::Cts { duration_us, receiver },
                2 => Repr::Ack { duration_us, receiver },
                _ => Repr::Data { retry, duration_us, receiver, transmitter, bssid, sequence, fragment },
            },
        )
    }

    #[test]
    fn the_fcs_is_the_crc_32_of_ieee_802() {
        assert_eq!(fcs(b"123456789"), 0xcbf4_3926_u32.to_le_bytes()); // the check value of catalogues
        assert_eq!(fcs(&[]), [0; 4]);
    }

    proptest! {
        #[test]
        fn round_trip(repr in any_repr()) {
            let mut out = vec![0xa5; repr.buffer_len()];
            repr.emit(&mut out);
            prop_assert_eq!(Repr::parse(&out), Ok(repr));
        }

        #[test]
        fn no_bytes_panic(first in prop::sample::select(vec![RTS, CTS, ACK, DATA, 0x80]),
                          mut bytes in prop::collection::vec(any::<u8>(), 1..64)) {
            bytes[0] = first;
            let _ = Repr::parse(&bytes);
            if let Ok(frame) = Frame::new_checked(&bytes) {
                let _ = parse_snap(frame.body());
            }
        }
    }
}
