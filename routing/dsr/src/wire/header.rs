//! The DSR Options header between IP header and payload (RFC 4728, section 6.1); IP protocol 48.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  next header  |F|   reserved  |        payload length         |
//! |                          options ...                          |
//! ```
//! F = 1 is the header of the flow-state extension (section 7), which is refused.

use super::{padding, reply, Malformed, Opt};

/// Length of the fixed part in bytes.
pub const FIXED_LEN: usize = 4;
/// Next header: no payload (IPv6's number, as in section 6.1).
pub const NO_NEXT: u8 = 59;

/// A DSR Options header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// IP protocol of the payload.
    pub next: u8,
    /// Options in the order of the packet, without padding.
    pub options: Vec<Opt>,
}

impl Header {
    /// The header at the start of `bytes`, and the payload after it. Fails if it is malformed or of the flow-state
    /// extension.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let fixed = bytes.get(..FIXED_LEN).ok_or(Malformed::Truncated)?;
        if fixed[1] & 0x80 != 0 {
            return Err(Malformed::FlowState);
        }
        let end = FIXED_LEN + usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        let mut rest = bytes.get(FIXED_LEN..end).ok_or(Malformed::Truncated)?;
        let mut options = Vec::new();
        while let Some((kind, after)) = rest.split_first() {
            if *kind == padding::PAD_1 {
                rest = after;
                continue;
            }
            let (len, after) = after.split_first().ok_or(Malformed::Truncated)?;
            let data = after.get(..usize::from(*len)).ok_or(Malformed::Truncated)?;
            rest = &after[data.len()..];
            if *kind != padding::PAD_N {
                options.push(Opt::parse(*kind, data)?);
            }
        }
        Ok((Self { next: fixed[0], options }, &bytes[end..]))
    }

    /// The bytes of the header with padding.
    ///
    /// # Panics
    /// If an option has more than 255 bytes of data; parsed options and those built in this crate have not.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![self.next, 0, 0, 0];
        for option in &self.options {
            if option.kind() == reply::KIND {
                // three bytes before its addresses
                let misplaced = (bytes.len() + 3) % 4;
                padding::put(&mut bytes, (4 - misplaced) % 4);
            }
            let data = option.data();
            bytes.extend([option.kind(), u8::try_from(data.len()).expect("an option has at most 255 bytes of data")]);
            bytes.extend(data);
        }
        let odd = bytes.len() % 4;
        padding::put(&mut bytes, (4 - odd) % 4);
        let len = u16::try_from(bytes.len() - FIXED_LEN).expect("the options of an IP packet");
        bytes[2..4].copy_from_slice(&len.to_be_bytes());
        bytes
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::wire::{Ack, AckRequest, Reply, Request, RouteError, SourceRoute, Unknown, What};
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    fn ip() -> impl Strategy<Value = Ipv4Addr> {
        any::<u32>().prop_map(Ipv4Addr::from)
    }

    fn ips(min: usize, max: usize) -> impl Strategy<Value = Vec<Ipv4Addr>> {
        proptest::collection::vec(ip(), min..=max)
    }

    fn what() -> impl Strategy<Value = What> {
        prop_oneof![
            ip().prop_map(What::NodeUnreachable),
            Just(What::FlowState),
            any::<u8>().prop_map(What::OptionNotSupported),
            (4..=255u8, proptest::collection::vec(any::<u8>(), 0..9)).prop_map(|(kind, info)| What::Other(kind, info)),
        ]
    }

    fn option() -> impl Strategy<Value = Opt> {
        let unknown = prop_oneof![4..32u8, 33..96u8, 97..160u8, 161..224u8, 225..=255u8];
        prop_oneof![
            (any::<u16>(), ip(), ips(0, 62)).prop_map(|(identification, target, addresses)| Opt::Request(Request {
                identification,
                target,
                addresses
            })),
            (any::<bool>(), ips(1, 63))
                .prop_map(|(last_external, addresses)| Opt::Reply(Reply { last_external, addresses })),
            (0..16u8, ip(), ip(), what()).prop_map(|(salvage, source, destination, what)| Opt::Error(RouteError {
                salvage,
                source,
                destination,
                what
            })),
            any::<u16>().prop_map(|identification| Opt::AckRequest(AckRequest { identification })),
            (any::<u16>(), ip(), ip()).prop_map(|(identification, source, destination)| Opt::Ack(Ack {
                identification,
                source,
                destination
            })),
            (any::<bool>(), any::<bool>(), 0..16u8, 0..64u8, ips(0, 63)).prop_map(
                |(f, l, salvage, left, addresses)| {
                    Opt::SourceRoute(SourceRoute {
                        first_external: f,
                        last_external: l,
                        salvage,
                        segments_left: left,
                        addresses,
                    })
                }
            ),
            (unknown, proptest::collection::vec(any::<u8>(), 0..40))
                .prop_map(|(kind, data)| Opt::Unknown(Unknown { kind, data })),
        ]
    }

    pub(crate) fn header() -> impl Strategy<Value = Header> {
        (any::<u8>(), proptest::collection::vec(option(), 0..5)).prop_map(|(next, options)| Header { next, options })
    }

    /// A reply and a source route before an echo request, as a target sends it.
    fn golden() -> (Header, Vec<u8>) {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3));
        let route = SourceRoute::internal(0, 1, vec![a]);
        let reply = Reply { last_external: false, addresses: vec![a, b] };
        let header = Header { next: 1, options: vec![Opt::SourceRoute(route), Opt::Reply(reply)] };
        // RFC 4728, section 6.1: next header 1, F and reserved 0, length 20
        let mut bytes = vec![1, 0, 0, 20];
        bytes.extend([96, 6, 0, 1, 10, 0, 0, 2]); // 6.7
        bytes.push(224); // 6.8: aligns the reply's addresses to a multiple of 4
        bytes.extend([2, 9, 0, 10, 0, 0, 2, 10, 0, 0, 3]); // 6.3
        (header, bytes)
    }

    #[test]
    fn golden_bytes() {
        let (header, bytes) = golden();
        assert_eq!(header.to_vec(), bytes);
        let mut packet = bytes.clone();
        packet.extend([8, 0, 0xf7, 0xff]);
        assert_eq!(Header::parse(&packet), Ok((header, [8, 0, 0xf7, 0xff].as_slice())));
    }

    #[test]
    fn every_truncation_is_refused() {
        let (_, bytes) = golden();
        for len in 0..bytes.len() {
            assert_eq!(Header::parse(&bytes[..len]), Err(Malformed::Truncated), "{len} bytes");
        }
    }

    #[test]
    fn a_length_that_cuts_an_option_is_refused() {
        let (_, mut bytes) = golden();
        bytes[3] = 18;
        assert_eq!(Header::parse(&bytes), Err(Malformed::Truncated));
    }

    #[test]
    fn padding_may_be_anywhere() {
        // Pad1, PadN of two bytes, an acknowledgement request, PadN of five bytes
        let bytes = [59, 0, 0, 12, 224, 0, 0, 160, 2, 0, 7, 0, 3, 0, 0, 0];
        let options = vec![Opt::AckRequest(AckRequest { identification: 7 })];
        assert_eq!(Header::parse(&bytes), Ok((Header { next: NO_NEXT, options }, [].as_slice())));
    }

    #[test]
    fn the_flow_state_header_is_distinguished_from_the_options_header() {
        assert_eq!(Header::parse(&[6, 0x80, 0, 1]), Err(Malformed::FlowState));
    }

    proptest! {
        #[test]
        fn parse_inverts_to_vec(header in header(), payload in proptest::collection::vec(any::<u8>(), 0..9)) {
            let mut bytes = header.to_vec();
            prop_assert_eq!(bytes.len() % 4, 0);
            bytes.extend(&payload);
            prop_assert_eq!(Header::parse(&bytes), Ok((header, payload.as_slice())));
        }

        #[test]
        fn any_bytes_parse_without_panic_and_a_parsed_header_is_stable(
            bytes in proptest::collection::vec(any::<u8>(), 0..120)
        ) {
            if let Ok((header, _)) = Header::parse(&bytes) {
                let again = header.to_vec();
                prop_assert_eq!(Header::parse(&again), Ok((header, [].as_slice())));
            }
        }

        #[test]
        fn noise_in_a_header_parses_without_panic(header in header(), at in any::<usize>(), noise in any::<u8>()) {
            let mut bytes = header.to_vec();
            let at = at % bytes.len();
            bytes[at] ^= noise;
            let _ = Header::parse(&bytes);
        }
    }
}
