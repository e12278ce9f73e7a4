//! Ethernet II header (IEEE 802.3 clause 3.2.6, type interpretation), as TAP devices carry it: no FCS, no 802.1Q.
//!
//! ```text
//!  0                   6                  12        14
//! +-------------------+------------------+---------+----------
//! | destination       | source           | type    | payload
//! +-------------------+------------------+---------+----------
//! ```

use super::{array, check_len, MacAddress, Result};
use std::fmt;

/// Length of the header, bytes.
pub const HEADER_LEN: usize = 14;
/// EtherType of IPv4.
pub const TYPE_IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const TYPE_ARP: u16 = 0x0806;
/// EtherType of IPv6.
pub const TYPE_IPV6: u16 = 0x86dd;
/// Network control (RFC 2474; RFC 4594, section 3.1).
const DSCP_CS6: u8 = 48;

mod field {
    use std::ops::{Range, RangeFrom};
    pub const DESTINATION: Range<usize> = 0..6;
    pub const SOURCE: Range<usize> = 6..12;
    pub const TYPE: Range<usize> = 12..14;
    pub const PAYLOAD: RangeFrom<usize> = 14..;
}

/// A window on the bytes of a frame without FCS.
#[derive(Clone, Copy, Debug)]
pub struct Frame<T: AsRef<[u8]>>(T);

impl<T: AsRef<[u8]>> Frame<T> {
    /// Checks that the header is complete.
    ///
    /// # Errors
    /// Fewer than [`HEADER_LEN`] bytes.
    pub fn new_checked(bytes: T) -> Result<Self> {
        check_len(bytes.as_ref(), HEADER_LEN)?;
        Ok(Self(bytes))
    }
    /// Destination address.
    pub fn destination(&self) -> MacAddress {
        array(self.0.as_ref(), field::DESTINATION)
    }
    /// Source address.
    pub fn source(&self) -> MacAddress {
        array(self.0.as_ref(), field::SOURCE)
    }
    /// EtherType.
    pub fn ethertype(&self) -> u16 {
        u16::from_be_bytes(array(self.0.as_ref(), field::TYPE))
    }
    /// Payload, padding included.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[field::PAYLOAD]
    }

    /// DSCP of an IPv4 or IPv6 packet (RFC 2474); `None`: the frame carries something else.
    pub fn dscp(&self) -> Option<u8> {
        let [first, second] = *self.payload().first_chunk()?;
        match self.ethertype() {
            TYPE_IPV4 => Some(second >> 2),
            // the traffic class lies across the first two bytes, after the version
            TYPE_IPV6 => Some((first << 4 | second >> 4) >> 2),
            _ => None,
        }
    }

    /// Whether the frame is ARP or an IP packet with DSCP CS6, which the interface queue serves first.
    pub fn is_network_control(&self) -> bool {
        self.ethertype() == TYPE_ARP || self.dscp() == Some(DSCP_CS6)
    }
}

/// An Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Destination address.
    pub destination: MacAddress,
    /// Source address.
    pub source: MacAddress,
    /// EtherType.
    pub ethertype: u16,
}

impl Repr {
    /// Parses the header at the start of `bytes`.
    ///
    /// # Errors
    /// Fewer than [`HEADER_LEN`] bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let frame = Frame::new_checked(bytes)?;
        Ok(Self { destination: frame.destination(), source: frame.source(), ethertype: frame.ethertype() })
    }
    /// Length of the header, bytes.
    pub const fn buffer_len(&self) -> usize {
        HEADER_LEN
    }
    /// Writes the header to the start of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than `buffer_len()`.
    pub fn emit(&self, out: &mut [u8]) {
        out[field::DESTINATION].copy_from_slice(&self.destination);
        out[field::SOURCE].copy_from_slice(&self.source);
        out[field::TYPE].copy_from_slice(&self.ethertype.to_be_bytes());
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}, ethertype {:#06x}", Mac(self.source), Mac(self.destination), self.ethertype)
    }
}

/// Displays an address as `02:00:00:00:00:01`.
pub struct Mac(pub MacAddress);
impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // header written out by hand after clause 3.2.6; first bytes of an IPv4 packet with TOS 0xc0 (CS6)
    const BYTES: [u8; 16] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00, 0x45, 0xc0];
    const REPR: Repr = Repr { destination: [2, 0, 0, 0, 0, 2], source: [2, 0, 0, 0, 0, 1], ethertype: TYPE_IPV4 };

    #[test]
    fn golden_bytes_both_ways() {
        assert_eq!(Repr::parse(&BYTES), Ok(REPR));
        let mut out = [0xa5; HEADER_LEN];
        REPR.emit(&mut out);
        assert_eq!(out, BYTES[..HEADER_LEN]);
        assert_eq!(REPR.to_string(), "02:00:00:00:00:01 > 02:00:00:00:00:02, ethertype 0x0800");
    }

    #[test]
    fn truncation_at_every_length_is_an_error() {
        for n in 0..HEADER_LEN {
            assert!(Repr::parse(&BYTES[..n]).is_err());
        }
    }

    #[test]
    fn arp_and_cs6_are_network_control() {
        let control = |bytes: &[u8]| Frame::new_checked(bytes.to_vec()).unwrap().is_network_control();
        assert!(control(&BYTES));
        let dscp = |bytes: &[u8]| Frame::new_checked(bytes.to_vec()).unwrap().dscp();
        assert_eq!(dscp(&BYTES), Some(48));
        let mut other = BYTES;
        other[15] = 0xb8; // expedited forwarding
        assert!(!control(&other));
        assert_eq!(dscp(&other), Some(46));
        let mut v6 = BYTES;
        (v6[12], v6[13]) = (0x86, 0xdd);
        (v6[14], v6[15]) = (0x6c, 0x00);
        assert!(control(&v6));
        (v6[14], v6[15]) = (0x6b, 0x80); // expedited forwarding
        assert_eq!(dscp(&v6), Some(46));
        let mut arp = other;
        arp[13] = 6;
        assert!(control(&arp));
        assert_eq!(dscp(&arp), None);
        assert!(!control(&BYTES[..14]) && dscp(&BYTES[..15]).is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(frame) = Frame::new_checked(&bytes) {
                let _ = (frame.is_network_control(), frame.dscp(), frame.payload().len());
            }
        }

        #[test]
        fn round_trip(destination: [u8; 6], source: [u8; 6], ethertype: u16) {
            let repr = Repr { destination, source, ethertype };
            let mut out = [0xa5; HEADER_LEN];
            repr.emit(&mut out);
            prop_assert_eq!(Repr::parse(&out), Ok(repr));
        }
    }
}
