//! The IPv4 header (RFC 791, section 3.1).

use super::checksum;
use std::net::Ipv4Addr;

/// Length of a header without options, in bytes.
pub const HEADER_LEN: usize = 20;
/// DSCP CS6 (RFC 2474, section 4.2.2.2: network control), in the TOS byte.
pub const TOS_CS6: u8 = 0xc0;

/// IP protocol numbers (IANA).
pub mod protocol {
    /// RFC 792.
    pub const ICMP: u8 = 1;
    /// IP in IP, RFC 2003.
    pub const IP_IN_IP: u8 = 4;
    /// RFC 9293.
    pub const TCP: u8 = 6;
    /// RFC 768.
    pub const UDP: u8 = 17;
    /// RFC 4728, section 6.1.
    pub const DSR: u8 = 48;
    /// Minimal encapsulation, RFC 2004.
    pub const MINIMAL: u8 = 55;
}

/// A window on a well-formed packet: version, header length and total length fit the bytes. The checksum is not verified: a
/// packet of a packet socket may not have one yet. Bytes beyond the total length (Ethernet padding) are not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    bytes: &'a [u8],
}

impl<'a> Packet<'a> {
    /// `None`: no well-formed IPv4 packet begins here.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let header = bytes.get(..HEADER_LEN)?;
        let (header_len, total) = (usize::from(header[0] & 0xf) * 4, usize::from(be16(&header[2..])));
        let fits = header[0] >> 4 == 4 && header_len >= HEADER_LEN && total >= header_len && total <= bytes.len();
        fits.then(|| Self { bytes: &bytes[..total] })
    }

    /// The whole packet, without padding.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
    /// Length of the header with its options, 20 to 60 bytes.
    pub fn header_len(&self) -> usize {
        usize::from(self.bytes[0] & 0xf) * 4
    }
    /// TOS byte: DSCP and ECN (RFC 2474, RFC 3168).
    pub fn tos(&self) -> u8 {
        self.bytes[1]
    }
    /// Number that the fragments of a packet share (RFC 6864).
    pub fn identification(&self) -> u16 {
        be16(&self.bytes[4..])
    }
    /// Position of this fragment, in units of 8 bytes.
    pub fn fragment_offset(&self) -> u16 {
        be16(&self.bytes[6..]) & 0x1fff
    }
    /// Flag MF.
    pub fn more_fragments(&self) -> bool {
        self.bytes[6] & 0x20 != 0
    }
    /// Flag DF.
    pub fn dont_fragment(&self) -> bool {
        self.bytes[6] & 0x40 != 0
    }
    /// Remaining hops.
    pub fn ttl(&self) -> u8 {
        self.bytes[8]
    }
    /// Number of the payload's protocol, see [`protocol`].
    pub fn protocol(&self) -> u8 {
        self.bytes[9]
    }
    /// Source address.
    pub fn source(&self) -> Ipv4Addr {
        address(&self.bytes[12..])
    }
    /// Destination address.
    pub fn destination(&self) -> Ipv4Addr {
        address(&self.bytes[16..])
    }
    /// The bytes after the header, without padding.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header_len()..]
    }
}

/// The free fields of a header without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// As of [`Packet::tos`].
    pub tos: u8,
    /// As of [`Packet::identification`].
    pub identification: u16,
    /// Flag DF.
    pub dont_fragment: bool,
    /// Remaining hops.
    pub ttl: u8,
    /// Number of the payload's protocol, see [`protocol`].
    pub protocol: u8,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
}

impl Repr {
    /// The packet with this header.
    ///
    /// # Panics
    /// If header and payload together exceed 65,535 bytes.
    pub fn packet(&self, payload: &[u8]) -> Vec<u8> {
        let total = u16::try_from(HEADER_LEN + payload.len()).expect("an IPv4 packet has at most 65,535 bytes");
        let mut bytes = Vec::with_capacity(usize::from(total));
        bytes.extend([0x45, self.tos]);
        bytes.extend(total.to_be_bytes());
        bytes.extend(self.identification.to_be_bytes());
        bytes.extend([if self.dont_fragment { 0x40 } else { 0 }, 0, self.ttl, self.protocol, 0, 0]);
        bytes.extend(self.source.octets());
        bytes.extend(self.destination.octets());
        bytes.extend(payload);
        write_checksum(&mut bytes);
        bytes
    }
}

/// Sets total length and header checksum of a packet whose header or payload was changed. A malformed packet stays as it
/// is.
pub fn repair(bytes: &mut [u8]) {
    let Ok(total) = u16::try_from(bytes.len()) else { return };
    let header_len = bytes.first().map_or(0, |b| usize::from(b & 0xf) * 4);
    if header_len >= HEADER_LEN && bytes.len() >= header_len {
        bytes[2..4].copy_from_slice(&total.to_be_bytes());
        write_checksum(bytes);
    }
}

fn write_checksum(bytes: &mut [u8]) {
    let header_len = usize::from(bytes[0] & 0xf) * 4;
    bytes[10..12].fill(0);
    let sum = checksum(&bytes[..header_len]);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
}

fn be16(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

fn address(bytes: &[u8]) -> Ipv4Addr {
    Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn repr() -> Repr {
        Repr {
            tos: TOS_CS6,
            identification: 0x1234,
            dont_fragment: true,
            ttl: 63,
            protocol: protocol::UDP,
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
        }
    }

    #[test]
    fn a_written_packet_reads_back_and_its_checksum_is_right() {
        let bytes = repr().packet(b"abc");
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!((packet.ttl(), packet.tos(), packet.protocol()), (63, TOS_CS6, protocol::UDP));
        assert_eq!((packet.source(), packet.destination()), (repr().source, repr().destination));
        assert_eq!((packet.payload(), packet.dont_fragment()), (b"abc".as_slice(), true));
        assert_eq!(checksum(&bytes[..HEADER_LEN]), 0);
    }

    #[test]
    fn padding_is_not_part_of_the_packet() {
        let mut bytes = repr().packet(b"abc");
        bytes.extend([0; 20]);
        assert_eq!(Packet::parse(&bytes).unwrap().payload(), b"abc");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some(packet) = Packet::parse(&bytes) {
                prop_assert!(packet.payload().len() + packet.header_len() <= bytes.len());
            }
            let mut copy = bytes.clone();
            repair(&mut copy);
        }
    }
}
