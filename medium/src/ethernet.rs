//! The Ethernet header of what a host sends, and whether it carries network control.

pub const HEADER_BYTES: usize = 14;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// DSCP CS6 (RFC 4594 section 3.1: network control), in the upper six bits of the traffic class.
const CS6: u8 = 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub destination: [u8; 6],
    pub source: [u8; 6],
    pub ethertype: u16,
}

impl Header {
    /// `None` for what is too short to have a header and a payload.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        if frame.len() <= HEADER_BYTES {
            return None;
        }
        Some(Self {
            destination: frame[0..6].try_into().ok()?,
            source: frame[6..12].try_into().ok()?,
            ethertype: u16::from_be_bytes([frame[12], frame[13]]),
        })
    }

    /// Is the IP packet behind this header marked CS6?
    pub fn is_network_control(&self, frame: &[u8]) -> bool {
        let byte = |i: usize| frame.get(HEADER_BYTES + i).copied().unwrap_or(0);
        match self.ethertype {
            IPV4 => byte(1) >> 2 == CS6,
            IPV6 => ((byte(0) << 4) | (byte(1) >> 4)) >> 2 == CS6,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(ethertype: u16, payload: &[u8]) -> Vec<u8> {
        let mut f = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        f.extend(ethertype.to_be_bytes());
        f.extend(payload);
        f
    }

    fn control(f: &[u8]) -> bool {
        Header::parse(f).unwrap().is_network_control(f)
    }

    #[test]
    fn cs6_is_found_in_both_versions_of_ip() {
        assert!(control(&frame(IPV4, &[0x45, 0xc0])));
        assert!(!control(&frame(IPV4, &[0x45, 0xb8]))); // EF
        assert!(control(&frame(IPV6, &[0x6c, 0x00]))); // traffic class 0xc0 lies across two bytes
        assert!(!control(&frame(0x0806, &[0x00, 0xc0]))); // ARP
    }

    #[test]
    fn short_frames_are_no_frames() {
        for n in 0..=HEADER_BYTES {
            assert_eq!(Header::parse(&vec![0; n]), None);
        }
    }
}
