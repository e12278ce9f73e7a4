//! IPv4 (RFC 791), ICMP (RFC 792) and ARP (RFC 826) as far as the daemons need them, and socket filters.
//!
//! `parse` does not panic for any bytes; writers fill in lengths and checksums.

pub mod arp;
pub mod icmp;
pub mod ipv4;

/// Internet checksum (RFC 1071) of `bytes`, an odd last byte padded with zero.
pub fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0)));
    let mut sum: u64 = words.map(u64::from).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    #[test]
    fn checksum_of_rfc_1071_example() {
        // RFC 1071, section 3: 0001 f203 f4f5 f6f7 sums to ddf2
        assert_eq!(super::checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }
}
