//! Extensions of RREQ and RREP (RFC 3561, section 9): type, length of the data, data.
//!
//! | type | data | source |
//! |---|---|---|
//! | 1 | hello interval, ms | RFC 3561, 9.1 |
//! | 2 | hello interval, ms | AODV-UU 0.9.6, received only |
//! | 3 | neighbour set of a hello, addresses | AODV-UU; it fills all but the first with 0.0.0.0, which stands for no neighbour |
//! | 4 | Internet destination of a gateway's reply | AODV-UU |
//!
//! Unknown types below 128 are forwarded unchanged. Those from 128 on may not be skipped: the message is refused.

use super::{address, be32, Malformed, Result};
use std::fmt;
use std::net::Ipv4Addr;

/// Type of the hello interval (RFC 3561, 9.1).
pub const HELLO_INTERVAL: u8 = 1;
/// Type of AODV-UU's hello interval.
pub const HELLO_INTERVAL_UU: u8 = 2;
/// Type of AODV-UU's neighbour set.
pub const NEIGHBOURS: u8 = 3;
/// Type of AODV-UU's Internet destination.
pub const INTERNET_DESTINATION: u8 = 4;
/// "Extensions with types between 128 and 255 may NOT be skipped" (section 9).
const NOT_SKIPPED: u8 = 128;

/// One extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Type.
    pub kind: u8,
    /// At most 255 bytes.
    pub data: Vec<u8>,
}

impl Extension {
    /// A hello interval in milliseconds.
    pub fn hello_interval(ms: u32) -> Self {
        Self { kind: HELLO_INTERVAL, data: ms.to_be_bytes().to_vec() }
    }
    /// The Internet destination of a gateway's reply.
    pub fn internet_destination(destination: Ipv4Addr) -> Self {
        Self { kind: INTERNET_DESTINATION, data: destination.octets().to_vec() }
    }
    /// A neighbour set of the first 63 addresses; more do not fit.
    pub fn neighbours(neighbours: &[Ipv4Addr]) -> Self {
        Self { kind: NEIGHBOURS, data: neighbours.iter().take(63).flat_map(|a| a.octets()).collect() }
    }

    /// Milliseconds, if this is a hello interval.
    pub fn as_hello_interval(&self) -> Option<u32> {
        let ours = matches!(self.kind, HELLO_INTERVAL | HELLO_INTERVAL_UU) && self.data.len() == 4;
        ours.then(|| be32(&self.data, 0))
    }
    /// The address, if this is an Internet destination.
    pub fn as_internet_destination(&self) -> Option<Ipv4Addr> {
        (self.kind == INTERNET_DESTINATION && self.data.len() >= 4).then(|| address(&self.data, 0))
    }
    /// The addresses other than 0.0.0.0, if this is a neighbour set.
    pub fn as_neighbours(&self) -> Option<Vec<Ipv4Addr>> {
        let addresses = self.data.chunks_exact(4).map(|c| address(c, 0)).filter(|a| !a.is_unspecified());
        (self.kind == NEIGHBOURS).then(|| addresses.collect())
    }

    /// Parses the extensions after a message's fixed part. The first that does not fit, or type 0 (reserved; padding), ends
    /// the list. Fails at a type from 128 on.
    pub fn parse_all(mut bytes: &[u8]) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        while let [kind, len, rest @ ..] = bytes {
            let Some(data) = rest.get(..usize::from(*len)).filter(|_| *kind != 0) else { break };
            if *kind >= NOT_SKIPPED {
                return Err(Malformed("malformed-extension"));
            }
            all.push(Self { kind: *kind, data: data.to_vec() });
            bytes = &rest[data.len()..];
        }
        Ok(all)
    }

    /// Appends the extension to `out`. Data beyond 255 bytes is cut.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let len = self.data.len().min(255);
        out.extend([self.kind, len as u8]);
        out.extend(&self.data[..len]);
    }
}

impl fmt::Display for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ms) = self.as_hello_interval() {
            write!(f, "hello every {ms} ms")
        } else if let Some(d) = self.as_internet_destination() {
            write!(f, "internet {d}")
        } else if let Some(n) = self.as_neighbours() {
            write!(f, "neighbours {n:?}")
        } else {
            write!(f, "extension {} of {} bytes", self.kind, self.data.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // written out by hand after section 9: type, length, data
    const INTERVAL: [u8; 6] = [1, 4, 0, 0, 0x03, 0xe8];
    const INTERNET: [u8; 6] = [4, 4, 192, 0, 2, 7];

    #[test]
    fn golden_bytes_both_ways() {
        let both = [INTERVAL, INTERNET].concat();
        let all = Extension::parse_all(&both).unwrap();
        assert_eq!(all[0].as_hello_interval(), Some(1000));
        assert_eq!(all[1].as_internet_destination(), Some(Ipv4Addr::new(192, 0, 2, 7)));
        let mut out = Vec::new();
        Extension::hello_interval(1000).emit(&mut out);
        Extension::internet_destination(Ipv4Addr::new(192, 0, 2, 7)).emit(&mut out);
        assert_eq!(out, both);
    }

    #[test]
    fn aodv_uus_hello_interval_has_type_2() {
        let all = Extension::parse_all(&[2, 4, 0, 0, 0, 9]).unwrap();
        assert_eq!(all[0].as_hello_interval(), Some(9));
    }

    #[test]
    fn a_neighbour_0_0_0_0_is_ignored() {
        // as AODV-UU 0.9.6 sends two neighbours: length 8, the second address zero
        let all = Extension::parse_all(&[3, 8, 10, 0, 0, 3, 0, 0, 0, 0]).unwrap();
        assert_eq!(all[0].as_neighbours(), Some(vec![Ipv4Addr::new(10, 0, 0, 3)]));
        let two = [Ipv4Addr::new(10, 0, 0, 3), Ipv4Addr::new(10, 0, 0, 4)];
        let mut out = Vec::new();
        Extension::neighbours(&two).emit(&mut out);
        assert_eq!(out, [3, 8, 10, 0, 0, 3, 10, 0, 0, 4]);
    }

    #[test]
    fn unknown_types_below_128_are_skipped_and_the_others_refuse_the_message() {
        let all = Extension::parse_all(&[99, 1, 7, 1, 4, 0, 0, 0, 1]).unwrap();
        assert_eq!((all.len(), all[1].as_hello_interval()), (2, Some(1)));
        assert_eq!(Extension::parse_all(&[128, 0]), Err(Malformed("malformed-extension")));
    }

    #[test]
    fn a_cut_extension_and_padding_end_the_list() {
        assert_eq!(Extension::parse_all(&[1, 4, 0, 0]).unwrap(), []);
        assert_eq!(Extension::parse_all(&[0; 48]).unwrap(), []);
        assert_eq!(Extension::parse_all(&[1]).unwrap(), []);
    }
}
