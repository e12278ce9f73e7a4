//! Route reply (RFC 3561, 5.2) and, with TTL 1 to all neighbours, hello message (6.9).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+-+-+-----------------+---------+---------------+
//! |   type = 2    |R|A|    reserved     | prefix  |   hop count   |
//! +---------------+-+-+-----------------+---------+---------------+
//! |                     destination address                       |
//! |                 destination sequence number                   |
//! |                      originator address                       |
//! |                         lifetime, ms                          |
//! +---------------------------------------------------------------+
//! ```
//! Prefix (subnet routes, section 7) and R are forwarded and otherwise ignored.

use super::{address, be32, fixed, letters, Extension, Result};
use std::fmt;
use std::net::Ipv4Addr;

/// Message type.
pub const TYPE: u8 = 2;
/// Length without extensions, in bytes.
pub const LEN: usize = 20;
const REPAIR: u8 = 0x80;
const ACKNOWLEDGE: u8 = 0x40;
const PREFIX: u8 = 0x1f;

/// A route reply or hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Flag R.
    pub repair: bool,
    /// Flag A: the receiver must send an RREP-ACK.
    pub acknowledge: bool,
    /// Prefix size, 5 bits.
    pub prefix: u8,
    /// Hop count from the sender to the destination.
    pub hops: u8,
    /// Destination of the route.
    pub destination: Ipv4Addr,
    /// Sequence number of the destination.
    pub destination_sequence: u32,
    /// Originator of the request.
    pub originator: Ipv4Addr,
    /// Lifetime of the route in milliseconds.
    pub lifetime_ms: u32,
    /// Extensions in their order.
    pub extensions: Vec<Extension>,
}

impl Repr {
    /// A reply of the destination, without flags and extensions.
    pub fn new(destination: Ipv4Addr, destination_sequence: u32, originator: Ipv4Addr, lifetime_ms: u32) -> Self {
        Self {
            repair: false,
            acknowledge: false,
            prefix: 0,
            hops: 0,
            destination,
            destination_sequence,
            originator,
            lifetime_ms,
            extensions: Vec::new(),
        }
    }

    /// Fails if the message is truncated, of another type, or has an extension that may not be skipped.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let head: &[u8; LEN] = fixed(bytes, TYPE)?;
        Ok(Self {
            repair: head[1] & REPAIR != 0,
            acknowledge: head[1] & ACKNOWLEDGE != 0,
            prefix: head[2] & PREFIX,
            hops: head[3],
            destination: address(head, 4),
            destination_sequence: be32(head, 8),
            originator: address(head, 12),
            lifetime_ms: be32(head, 16),
            extensions: Extension::parse_all(&bytes[LEN..])?,
        })
    }

    /// The message; of `prefix` the low 5 bits.
    pub fn emit(&self) -> Vec<u8> {
        let flags = if self.repair { REPAIR } else { 0 } | if self.acknowledge { ACKNOWLEDGE } else { 0 };
        let mut out = vec![TYPE, flags, self.prefix & PREFIX, self.hops];
        out.extend(self.destination.octets());
        out.extend(self.destination_sequence.to_be_bytes());
        out.extend(self.originator.octets());
        out.extend(self.lifetime_ms.to_be_bytes());
        self.extensions.iter().for_each(|e| e.emit(&mut out));
        out
    }

    /// The Internet destination of a gateway's reply.
    pub fn internet_destination(&self) -> Option<Ipv4Addr> {
        self.extensions.iter().find_map(Extension::as_internet_destination)
    }
    /// The hello interval in milliseconds, if the message has one.
    pub fn hello_interval(&self) -> Option<u32> {
        self.extensions.iter().find_map(Extension::as_hello_interval)
    }
}

impl fmt::Display for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = letters(&[(self.repair, 'R'), (self.acknowledge, 'A')]);
        write!(
            f,
            "RREP {} seq {} to {} hops {} lifetime {} ms{flags}",
            self.destination, self.destination_sequence, self.originator, self.hops, self.lifetime_ms
        )?;
        self.extensions.iter().try_for_each(|e| write!(f, ", {e}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // written out by hand after the figure of RFC 3561, 5.2, with AODV-UU's extension 4: gateway 10.0.0.9, acknowledge
    const BYTES: [u8; LEN + 6] =
        [2, 0x40, 0, 1, 10, 0, 0, 9, 0, 0, 0, 7, 10, 0, 0, 1, 0, 0, 0x0b, 0xb8, 4, 4, 192, 0, 2, 7];

    fn repr() -> Repr {
        let (gateway, originator) = (Ipv4Addr::new(10, 0, 0, 9), Ipv4Addr::new(10, 0, 0, 1));
        let extensions = vec![Extension::internet_destination(Ipv4Addr::new(192, 0, 2, 7))];
        Repr { acknowledge: true, hops: 1, extensions, ..Repr::new(gateway, 7, originator, 3000) }
    }

    #[test]
    fn golden_bytes_both_ways() {
        assert_eq!(Repr::parse(&BYTES), Ok(repr()));
        assert_eq!(repr().emit(), BYTES);
        let text = "RREP 10.0.0.9 seq 7 to 10.0.0.1 hops 1 lifetime 3000 ms flags A, internet 192.0.2.7";
        assert_eq!(repr().to_string(), text);
    }

    #[test]
    fn truncation_at_every_length_is_an_error_and_a_cut_extension_is_ignored() {
        for len in 0..LEN {
            assert!(Repr::parse(&BYTES[..len]).is_err(), "{len}");
        }
        for len in LEN..BYTES.len() {
            assert_eq!(Repr::parse(&BYTES[..len]).unwrap().extensions, [], "{len}");
        }
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(
            flags in any::<[bool; 2]>(), prefix in 0u8..32, hops: u8, addresses in any::<[u32; 2]>(), sequence: u32, lifetime_ms: u32,
            extensions in proptest::collection::vec((1u8..128, proptest::collection::vec(any::<u8>(), 0..20)), 0..4),
        ) {
            let message = Repr {
                repair: flags[0], acknowledge: flags[1], prefix, hops,
                destination: addresses[0].into(), destination_sequence: sequence,
                originator: addresses[1].into(), lifetime_ms,
                extensions: extensions.into_iter().map(|(kind, data)| Extension { kind, data }).collect(),
            };
            prop_assert_eq!(Repr::parse(&message.emit()), Ok(message));
        }
    }
}
