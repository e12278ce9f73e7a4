//! The messages. The paper gives fields and no bytes, so this layout is our own: UDP [`PORT`] to [`PORT`] (not registered at
//! IANA), IP TTL 1, one message per datagram, numbers in network order, no padding. Anything else is malformed: a wrong
//! length, an unknown type, an undefined flag.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |     Type      |     Flags     |     Hops      |  Wanted Hops  |  of each message
//! |                   Sender's Sequence Number                    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!
//! Update (1); flags 1: full, 2: the sender has restarted and knows no routes. Entries follow up to the end:
//! |                          Destination                          |
//! |                           Next Hop                            |
//! |                        Sequence Number                        |
//! |                            Signer                             |
//! |     Hops      | 0 0 0 0 0 |Res|R|   R: receiver; Res: expected response, 0 none to 3 high
//!
//! Init-connection (2); flags 1: only the destination answers, 2: Wanted Hops and Wanted Number are known:
//! |                            Source                             |  Hops: of the sender to the source
//! |                    Source's Sequence Number                   |
//! |                              Id                               |
//! |                            Wanted                             |
//! |                         Wanted Number                         |
//!
//! Receiver-alert (3), non-receiver-alert (5):
//! |                          Destination                          |  Hops: of the sender to the destination
//! |                 Destination's Sequence Number                 |
//!
//! End-connection (4):
//! |                            Source                             |
//! |                              Id                               |
//! |                          Destination                          |
//! ```
//!
//! Hop counts are the sender's: 0 in its entry about itself, 255 without a route. The flood's last hop is the IP source.

use crate::sequence::Sequence;
use std::net::Ipv4Addr;

/// UDP port, not registered.
pub const PORT: u16 = 9524;
/// Length of the part common to all messages, in bytes.
pub const HEADER_LEN: usize = 8;
/// Length of an update's entry in bytes.
pub const ENTRY_LEN: usize = 18;
/// Length of the headers of IPv4 (without options) and UDP, in bytes.
pub const IP_UDP_LEN: usize = 20 + 8;
/// The hop count without a route.
pub const INFINITE: u8 = 255;

const UPDATE: u8 = 1;
const INIT: u8 = 2;
const ALERT: u8 = 3;
const END: u8 = 4;
const NON_RECEIVER: u8 = 5;
const FULL: u8 = 1;
const RESTARTED: u8 = 2;
const DESTINATION_ONLY: u8 = 1;
const WANTED_KNOWN: u8 = 2;
const RECEIVER: u8 = 1;
const RESPONSE_SHIFT: u32 = 1;
const ENTRY_FLAGS: u8 = 0b111;

/// The answer that the sender of an entry expects from its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Response {
    /// None.
    #[default]
    None,
    /// The route carries packets, in a slow network. Our nodes do not send it.
    Low,
    /// The route carries packets.
    Medium,
    /// Packets wait for the route.
    High,
}

impl Response {
    const ALL: [Self; 4] = [Self::None, Self::Low, Self::Medium, Self::High];
}

/// An entry of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advert {
    /// Address of the station.
    pub destination: Ipv4Addr,
    /// The sender's next hop to it.
    pub next_hop: Ipv4Addr,
    /// The destination's number, or of a broken route the number after it; 0: none is known.
    pub sequence: Sequence,
    /// The destination, or the node that broke the route.
    pub signer: Ipv4Addr,
    /// The sender's hop count, or [`INFINITE`].
    pub hops: u8,
    /// Whether the destination is an active receiver.
    pub receiver: bool,
    /// The expected answer.
    pub response: Response,
}

/// A message without its sender's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Distances of the sender.
    Update {
        /// Whether all receivers are listed.
        full: bool,
        /// Whether the sender has forgotten its routes.
        restarted: bool,
        /// The first is the sender itself.
        adverts: Vec<Advert>,
    },
    /// A source looks for a destination.
    Init(Init),
    /// A destination is a receiver, or no longer one.
    Alert {
        /// False: non-receiver-alert.
        receiver: bool,
        /// Address of the station.
        destination: Ipv4Addr,
        /// Its number.
        sequence: Sequence,
        /// The sender's hop count.
        hops: u8,
    },
    /// A source ends its connection.
    End {
        /// Address of the source.
        source: Ipv4Addr,
        /// The source's number of the flood.
        id: u32,
        /// The receiver.
        destination: Ipv4Addr,
    },
}

/// An init-connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Init {
    /// Address of the source.
    pub source: Ipv4Addr,
    /// The source's number.
    pub sequence: Sequence,
    /// The sender's hop count to the source.
    pub hops: u8,
    /// The source's number of the flood.
    pub id: u32,
    /// Address of the destination.
    pub wanted: Ipv4Addr,
    /// The newest number of the destination, and the fewest hops with it, that nodes on the path knew.
    pub known: Option<(Sequence, u8)>,
    /// Whether only the destination answers.
    pub destination_only: bool,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The number of the neighbour that sent it.
    pub sender: Sequence,
    /// The rest.
    pub body: Body,
}

/// The bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Maximum number of entries in a datagram that is not fragmented. `mtu` in bytes.
pub fn entries_per_datagram(mtu: u16) -> usize {
    usize::from(mtu).saturating_sub(IP_UDP_LEN + HEADER_LEN) / ENTRY_LEN
}

fn word(bytes: &[u8], i: usize) -> u32 {
    u32::from_be_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]])
}

impl Message {
    /// Reads a datagram.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() < HEADER_LEN {
            return Err(Malformed);
        }
        let (header, rest) = bytes.split_at(HEADER_LEN);
        let [kind, flags, hops, wanted_hops] = [header[0], header[1], header[2], header[3]];
        let body = match (kind, rest.len()) {
            (UPDATE, len)
                if len % ENTRY_LEN == 0
                    && len > 0
                    && flags & !(FULL | RESTARTED) == 0
                    && (hops, wanted_hops) == (0, 0) =>
            {
                let adverts: Option<Vec<Advert>> = rest.chunks_exact(ENTRY_LEN).map(Advert::read).collect();
                let (full, restarted) = (flags & FULL != 0, flags & RESTARTED != 0);
                Body::Update { full, restarted, adverts: adverts.ok_or(Malformed)? }
            }
            (INIT, 20) if flags & !(DESTINATION_ONLY | WANTED_KNOWN) == 0 => {
                let known = flags & WANTED_KNOWN != 0;
                if !known && (word(rest, 16), wanted_hops) != (0, 0) {
                    return Err(Malformed);
                }
                Body::Init(Init {
                    source: word(rest, 0).into(),
                    sequence: Sequence(word(rest, 4)),
                    hops,
                    id: word(rest, 8),
                    wanted: word(rest, 12).into(),
                    known: known.then(|| (Sequence(word(rest, 16)), wanted_hops)),
                    destination_only: flags & DESTINATION_ONLY != 0,
                })
            }
            (ALERT | NON_RECEIVER, 8) if (flags, wanted_hops) == (0, 0) => Body::Alert {
                receiver: kind == ALERT,
                destination: word(rest, 0).into(),
                sequence: Sequence(word(rest, 4)),
                hops,
            },
            (END, 12) if (flags, hops, wanted_hops) == (0, 0, 0) => {
                Body::End { source: word(rest, 0).into(), id: word(rest, 4), destination: word(rest, 8).into() }
            }
            _ => return Err(Malformed),
        };
        Ok(Self { sender: Sequence(word(header, 4)), body })
    }

    /// The payload of the datagram.
    pub fn emit(&self) -> Vec<u8> {
        let (head, words): ([u8; 4], Vec<u32>) = match &self.body {
            Body::Update { full, restarted, .. } => {
                let flags = u8::from(*full) | if *restarted { RESTARTED } else { 0 };
                ([UPDATE, flags, 0, 0], Vec::new())
            }
            Body::Init(init) => {
                let (number, wanted_hops) = init.known.map_or((0, 0), |(number, hops)| (number.0, hops));
                let flags = u8::from(init.destination_only) | if init.known.is_some() { WANTED_KNOWN } else { 0 };
                let words = [init.source.into(), init.sequence.0, init.id, init.wanted.into(), number];
                ([INIT, flags, init.hops, wanted_hops], words.to_vec())
            }
            Body::Alert { receiver, destination, sequence, hops } => {
                let kind = if *receiver { ALERT } else { NON_RECEIVER };
                ([kind, 0, *hops, 0], vec![(*destination).into(), sequence.0])
            }
            Body::End { source, id, destination } => {
                ([END, 0, 0, 0], vec![(*source).into(), *id, (*destination).into()])
            }
        };
        let mut bytes = head.to_vec();
        bytes.extend(self.sender.0.to_be_bytes());
        bytes.extend(words.iter().flat_map(|w| w.to_be_bytes()));
        if let Body::Update { adverts, .. } = &self.body {
            bytes.extend(adverts.iter().flat_map(Advert::write));
        }
        bytes
    }
}

impl Advert {
    fn read(entry: &[u8]) -> Option<Self> {
        let flags = entry[17];
        (flags & !ENTRY_FLAGS == 0).then(|| Self {
            destination: word(entry, 0).into(),
            next_hop: word(entry, 4).into(),
            sequence: Sequence(word(entry, 8)),
            signer: word(entry, 12).into(),
            hops: entry[16],
            receiver: flags & RECEIVER != 0,
            response: Response::ALL[usize::from(flags >> RESPONSE_SHIFT)],
        })
    }

    fn write(&self) -> [u8; ENTRY_LEN] {
        let mut entry = [0; ENTRY_LEN];
        let words = [self.destination.into(), self.next_hop.into(), self.sequence.0, self.signer.into()];
        for (place, value) in entry.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&u32::to_be_bytes(value));
        }
        entry[16] = self.hops;
        entry[17] = u8::from(self.receiver) | (self.response as u8) << RESPONSE_SHIFT;
        entry
    }

    /// Whether the sender has no route.
    pub fn is_broken(&self) -> bool {
        self.hops == INFINITE || self.signer != self.destination
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const D: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 4);

    /// Written by hand from the drawing above, with their meaning.
    fn golden() -> [(&'static str, Body); 5] {
        let own = Advert {
            destination: A,
            next_hop: A,
            sequence: Sequence(6),
            signer: A,
            hops: 0,
            receiver: false,
            response: Response::None,
        };
        let broken = Advert {
            destination: D,
            next_hop: Ipv4Addr::new(10, 0, 0, 2),
            sequence: Sequence(9),
            hops: INFINITE,
            receiver: true,
            response: Response::High,
            ..own
        };
        let init = Init {
            source: A,
            sequence: Sequence(6),
            hops: 2,
            id: 0x0102_0304,
            wanted: D,
            known: Some((Sequence(8), 3)),
            destination_only: true,
        };
        let alert = |receiver| Body::Alert { receiver, destination: D, sequence: Sequence(10), hops: 1 };
        [
            (
                "01010000 00000006 0a000001 0a000001 00000006 0a000001 0000 0a000004 0a000002 00000009 0a000001 ff07",
                Body::Update { full: true, restarted: false, adverts: vec![own, broken] },
            ),
            ("02030203 00000006 0a000001 00000006 01020304 0a000004 00000008", Body::Init(init)),
            ("03000100 00000006 0a000004 0000000a", alert(true)),
            ("05000100 00000006 0a000004 0000000a", alert(false)),
            ("04000000 00000006 0a000001 00000007 0a000004", Body::End { source: A, id: 7, destination: D }),
        ]
    }

    fn bytes(text: &str) -> Vec<u8> {
        manet_routing::Bytes::from_hex(&text.replace(' ', "")).unwrap().0
    }

    #[test]
    fn golden_bytes_both_ways() {
        for (text, body) in golden() {
            let message = Message { sender: Sequence(6), body };
            assert_eq!(message.emit(), bytes(text));
            assert_eq!(Message::parse(&bytes(text)), Ok(message));
        }
    }

    #[test]
    fn a_truncated_or_longer_message_is_malformed() {
        for (text, _) in golden() {
            let whole = bytes(text);
            let entries =
                |len: usize| text.starts_with("01") && len > HEADER_LEN && (len - HEADER_LEN) % ENTRY_LEN == 0;
            for len in 0..whole.len() {
                assert_eq!(Message::parse(&whole[..len]).is_ok(), entries(len), "{text}, {len} bytes");
            }
            assert_eq!(Message::parse(&[&whole[..], &[0]].concat()), Err(Malformed));
        }
    }

    #[test]
    fn undefined_types_and_flags_are_malformed() {
        for (text, _) in golden() {
            for (at, value) in [(0, 0), (0, 6), (1, 0x80)] {
                let mut wrong = bytes(text);
                wrong[at] = value;
                assert_eq!(Message::parse(&wrong), Err(Malformed), "{text}");
            }
        }
        let mut wrong = bytes(golden()[0].0);
        *wrong.last_mut().unwrap() = 8;
        assert_eq!(Message::parse(&wrong), Err(Malformed));
    }

    #[test]
    fn an_update_of_1500_bytes_has_81_entries() {
        // (1500 - 28 - 8) / 18 = 81.3
        assert_eq!((entries_per_datagram(1500), entries_per_datagram(576), entries_per_datagram(20)), (81, 30, 0));
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(
            sender in any::<u32>(), full in any::<bool>(), restarted in any::<bool>(), raw in proptest::collection::vec(any::<(u32, u32, u32, u32, u8, bool, u8)>(), 1..80),
            init in any::<(u32, u32, u8, u32, u32, Option<(u32, u8)>, bool)>(),
        ) {
            let advert = |r: &(u32, u32, u32, u32, u8, bool, u8)| Advert {
                destination: r.0.into(), next_hop: r.1.into(), sequence: Sequence(r.2), signer: r.3.into(), hops: r.4,
                receiver: r.5, response: Response::ALL[usize::from(r.6 % 4)],
            };
            let init = Init {
                source: init.0.into(), sequence: Sequence(init.1), hops: init.2, id: init.3, wanted: init.4.into(),
                known: init.5.map(|(n, h)| (Sequence(n), h)), destination_only: init.6,
            };
            for body in [Body::Update { full, restarted, adverts: raw.iter().map(advert).collect() }, Body::Init(init)] {
                let message = Message { sender: Sequence(sender), body };
                prop_assert_eq!(Message::parse(&message.emit()), Ok(message));
            }
        }

        #[test]
        fn any_bytes_parse_without_panic_and_emit_restores_them(
            kind in 0u8..7, flags in 0u8..4, hops in any::<u8>(), mut rest in proptest::collection::vec(any::<u8>(), 0..100), entries in 0usize..4,
        ) {
            if entries > 0 {
                rest.resize(4 + entries * ENTRY_LEN, 0);
            }
            let bytes = [&[kind, flags, hops, 0][..], &rest].concat();
            if let Ok(message) = Message::parse(&bytes) {
                prop_assert_eq!(message.emit(), bytes);
            }
        }
    }
}
