//! Packets (UDP port 6698, IP TTL 1): blocks of IMEP (draft-ietf-manet-imep-spec-01) with messages of TORA
//! (draft-ietf-manet-tora-spec-04). No other implementation for a real network exists, so the layout is our own: the drafts'
//! fields in whole bytes, and adjacency numbers (see [`crate::neighbours`]).
//!
//! ```text
//! packet     version 1 (8) | blocks (8): 0x80 ACK, 0x40 HELLO, 0x20 OBJECT | length of the packet in bytes (16), then the blocks
//! ACK        count (16) | entries: address (32), its adjacency number for us (16), sequence number (16)
//! HELLO      count (16) | entries: address (32), our number (16), its number for us or 0 (16)
//! OBJECT     sequence number (16) | responses (16) | messages (16)
//!            | responses: address (32), our number (16), its number (16), sequence number of its first block (16) | messages
//! QRY        version 1 (8) | type 1 (8) | 0 (16) | destination (32)
//! UPD        version 1 (8) | type 2 (8) | 0 (14), N, r | destination (32) | tau, ns (64) | oid (32) | delta (32, signed) | id (32)
//! CLR        version 1 (8) | type 3 (8) | 0 (16) | destination (32) | tau, ns (64) | oid (32)
//! ```
//!
//! N: the height is null; the fields after the destination are zero.

use crate::height::{Height, Level};
use std::fmt;
use std::net::Ipv4Addr;

/// UDP port; IANA has not assigned it, nor a protocol number to IMEP.
pub const PORT: u16 = 6698;
/// Length of the headers of IPv4 (without options) and UDP, in bytes.
pub const HEADERS_LEN: usize = 20 + 8;
/// Length of the header of a packet and of its blocks' heads together, in bytes.
pub const HEADS_LEN: usize = 4 + 2 + 2 + 6;
/// Length of an entry of an ACK or a HELLO, in bytes.
pub const ENTRY_LEN: usize = 8;
/// Length of a response of an OBJECT, in bytes.
pub const RESPONSE_LEN: usize = 10;
/// Length of the longest message, in bytes.
pub const MAX_MESSAGE_LEN: usize = 28;

const VERSION: u8 = 1;
const ACK: u8 = 0x80;
const HELLO: u8 = 0x40;
const OBJECT: u8 = 0x20;
const QRY: u8 = 1;
const UPD: u8 = 2;
const CLR: u8 = 3;
const REFLECTED: u16 = 1;
const NULL: u16 = 2;

/// A packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Blocks of other nodes that arrived.
    pub acks: Vec<Ack>,
    /// The nodes that the sender hears, in beacons.
    pub hello: Option<Vec<Heard>>,
    /// Messages.
    pub block: Option<Block>,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The sender of the block.
    pub address: Ipv4Addr,
    /// The number of the block's sender for the adjacency.
    pub number: u16,
    /// The block.
    pub sequence: u16,
}

/// A node that the sender hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The node.
    pub address: Ipv4Addr,
    /// The sender's number for the adjacency.
    pub number: u16,
    /// The node's number, as far as the sender knows; 0: unknown.
    pub echo: u16,
}

/// A node that is to acknowledge a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The node and the adjacency.
    pub peer: Heard,
    /// Sequence number of the first block of the adjacency.
    pub first: u16,
}

/// Messages that arrive in order at the nodes in `responses`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Consecutive number of the sender's blocks.
    pub sequence: u16,
    /// The nodes that are to acknowledge it.
    pub responses: Vec<Response>,
    /// The messages.
    pub messages: Vec<Message>,
}

/// A message of TORA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The destination of the routes.
    pub destination: Ipv4Addr,
    /// Its contents.
    pub body: Body,
}

/// The contents of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// QRY: a route is required.
    Query,
    /// UPD: the height of the sender; `None`: null.
    Update(Option<Height>),
    /// CLR: the routes of the reflected level are invalid.
    Clear(Level),
}

/// The bytes are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Reads fields from the start of a slice.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*field)
    }
    fn short(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_be_bytes)
    }
    fn address(&mut self) -> Result<Ipv4Addr, Malformed> {
        self.take::<4>().map(Ipv4Addr::from)
    }
    fn heard(&mut self) -> Result<Heard, Malformed> {
        Ok(Heard { address: self.address()?, number: self.short()?, echo: self.short()? })
    }
    /// Reads `count` items. No memory is reserved for a forged count.
    fn list<T>(&mut self, count: u16, item: impl Fn(&mut Self) -> Result<T, Malformed>) -> Result<Vec<T>, Malformed> {
        (0..count).map(|_| item(self)).collect()
    }
    fn message(&mut self) -> Result<Message, Malformed> {
        let [version, kind] = self.take()?;
        let (flags, destination) = (self.short()?, self.address()?);
        let body = match (version, kind) {
            (VERSION, QRY) => Body::Query,
            (VERSION, UPD) => {
                let (tau, oid) = (u64::from_be_bytes(self.take()?), self.address()?);
                let (delta, id) = (i32::from_be_bytes(self.take()?), self.address()?);
                let level = Level { tau, oid, reflected: flags & REFLECTED != 0 };
                Body::Update((flags & NULL == 0).then_some(Height { level, delta, id }))
            }
            (VERSION, CLR) => {
                let (tau, oid) = (u64::from_be_bytes(self.take()?), self.address()?);
                Body::Clear(Level { tau, oid, reflected: true })
            }
            _ => return Err(Malformed),
        };
        Ok(Message { destination, body })
    }
}

impl Packet {
    /// Reads a packet. Bytes after its length are ignored.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let [version, blocks] = reader.take()?;
        let length = usize::from(reader.short()?);
        if version != VERSION || blocks & !(ACK | HELLO | OBJECT) != 0 || length < 4 {
            return Err(Malformed);
        }
        reader.0 = bytes.get(4..length).ok_or(Malformed)?;
        let mut packet = Self::default();
        if blocks & ACK != 0 {
            let count = reader.short()?;
            let ack = |r: &mut Reader| Ok(Ack { address: r.address()?, number: r.short()?, sequence: r.short()? });
            packet.acks = reader.list(count, ack)?;
        }
        if blocks & HELLO != 0 {
            let count = reader.short()?;
            packet.hello = Some(reader.list(count, Reader::heard)?);
        }
        if blocks & OBJECT != 0 {
            let (sequence, responses, messages) = (reader.short()?, reader.short()?, reader.short()?);
            let response = |r: &mut Reader| Ok(Response { peer: r.heard()?, first: r.short()? });
            let responses = reader.list(responses, response)?;
            let messages = reader.list(messages, Reader::message)?;
            packet.block = Some(Block { sequence, responses, messages });
        }
        if reader.0.is_empty() {
            Ok(packet)
        } else {
            Err(Malformed)
        }
    }

    /// The bytes of the packet. The lists are shorter than 2^16 entries, and the packet than 2^16 bytes.
    pub fn emit(&self) -> Vec<u8> {
        let flag = |there: bool, flag: u8| if there { flag } else { 0 };
        let blocks =
            flag(!self.acks.is_empty(), ACK) | flag(self.hello.is_some(), HELLO) | flag(self.block.is_some(), OBJECT);
        let mut bytes = vec![VERSION, blocks, 0, 0];
        if !self.acks.is_empty() {
            bytes.extend((self.acks.len() as u16).to_be_bytes());
            for Ack { address, number, sequence } in &self.acks {
                bytes.extend(address.octets());
                bytes.extend([number.to_be_bytes(), sequence.to_be_bytes()].concat());
            }
        }
        if let Some(heard) = &self.hello {
            bytes.extend((heard.len() as u16).to_be_bytes());
            heard.iter().for_each(|heard| heard.emit(&mut bytes));
        }
        if let Some(Block { sequence, responses, messages }) = &self.block {
            for number in [*sequence, responses.len() as u16, messages.len() as u16] {
                bytes.extend(number.to_be_bytes());
            }
            for response in responses {
                response.peer.emit(&mut bytes);
                bytes.extend(response.first.to_be_bytes());
            }
            messages.iter().for_each(|message| message.emit(&mut bytes));
        }
        let length = bytes.len() as u16;
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        bytes
    }
}

impl Heard {
    fn emit(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.address.octets());
        bytes.extend([self.number.to_be_bytes(), self.echo.to_be_bytes()].concat());
    }
}

impl Message {
    fn emit(&self, bytes: &mut Vec<u8>) {
        let (kind, flags) = match self.body {
            Body::Query => (QRY, 0),
            Body::Update(None) => (UPD, NULL),
            Body::Update(Some(height)) => (UPD, if height.level.reflected { REFLECTED } else { 0 }),
            Body::Clear(_) => (CLR, 0),
        };
        bytes.extend([VERSION, kind]);
        bytes.extend(flags.to_be_bytes());
        bytes.extend(self.destination.octets());
        match self.body {
            Body::Query => {}
            Body::Update(None) => bytes.extend([0; 20]),
            Body::Update(Some(Height { level, delta, id })) => {
                bytes.extend(level.tau.to_be_bytes());
                bytes.extend(level.oid.octets());
                bytes.extend(delta.to_be_bytes());
                bytes.extend(id.octets());
            }
            Body::Clear(level) => {
                bytes.extend(level.tau.to_be_bytes());
                bytes.extend(level.oid.octets());
            }
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let destination = self.destination;
        match self.body {
            Body::Query => write!(f, "QRY {destination}"),
            Body::Update(None) => write!(f, "UPD {destination} null"),
            Body::Update(Some(height)) => write!(f, "UPD {destination} {height}"),
            Body::Clear(level) => write!(f, "CLR {destination} ({}, {})", level.tau, level.oid),
        }
    }
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> =
            self.acks.iter().map(|a| format!("ACK {} {} #{}", a.address, a.number, a.sequence)).collect();
        if let Some(heard) = &self.hello {
            let heard: Vec<String> = heard.iter().map(|h| format!(" {} {}/{}", h.address, h.number, h.echo)).collect();
            parts.push(format!("HELLO{}", heard.concat()));
        }
        if let Some(block) = &self.block {
            let to: Vec<String> = block.responses.iter().map(|r| format!(" {}", r.peer.address)).collect();
            parts.push(format!("OBJECT #{} to{}", block.sequence, to.concat()));
            parts.extend(block.messages.iter().map(Message::to_string));
        }
        f.write_str(&parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Written by hand from the drawing above.
    #[rustfmt::skip]
    const GOLDEN: [u8; 104] = [
        1, 0xe0, 0, 104,
        0, 1, 10, 0, 0, 2, 0, 5, 0, 6,
        0, 1, 10, 0, 0, 2, 0, 7, 0, 5,
        0, 9, 0, 1, 0, 3, 10, 0, 0, 2, 0, 7, 0, 5, 0, 8,
        1, 1, 0, 0, 10, 0, 0, 9,
        1, 2, 0, 1, 10, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1, 2, 10, 0, 0, 4, 0xff, 0xff, 0xff, 0xfe, 10, 0, 0, 1,
        1, 2, 0, 2, 10, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    fn golden() -> Packet {
        let ip = |last| Ipv4Addr::new(10, 0, 0, last);
        let peer = Heard { address: ip(2), number: 7, echo: 5 };
        let level = Level { tau: 258, oid: ip(4), reflected: true };
        let bodies = [
            (9, Body::Query),
            (9, Body::Update(Some(Height { level, delta: -2, id: ip(1) }))),
            (8, Body::Update(None)),
        ];
        let messages = bodies.map(|(last, body)| Message { destination: ip(last), body }).to_vec();
        Packet {
            acks: vec![Ack { address: ip(2), number: 5, sequence: 6 }],
            hello: Some(vec![peer]),
            block: Some(Block { sequence: 9, responses: vec![Response { peer, first: 8 }], messages }),
        }
    }

    #[test]
    fn golden_bytes_both_ways() {
        assert_eq!(golden().emit(), GOLDEN);
        assert_eq!(Packet::parse(&GOLDEN).unwrap(), golden());
        let text = "ACK 10.0.0.2 5 #6; HELLO 10.0.0.2 7/5; OBJECT #9 to 10.0.0.2; QRY 10.0.0.9; \
                    UPD 10.0.0.9 (258, 10.0.0.4, 1, -2, 10.0.0.1); UPD 10.0.0.8 null";
        assert_eq!(golden().to_string(), text);
    }

    #[test]
    fn a_truncated_packet_is_malformed_and_trailing_bytes_are_ignored() {
        for len in 0..GOLDEN.len() {
            assert_eq!(Packet::parse(&GOLDEN[..len]), Err(Malformed), "{len} bytes");
            // also if the length is right and a count is too large
            let mut cut = GOLDEN[..len].to_vec();
            if len >= 4 {
                cut[2..4].copy_from_slice(&(len as u16).to_be_bytes());
                assert_eq!(Packet::parse(&cut), Err(Malformed), "{len} bytes");
            }
        }
        assert_eq!(Packet::parse(&[&GOLDEN[..], &[7, 7]].concat()), Ok(golden()));
    }

    #[test]
    fn other_versions_blocks_and_types_are_malformed() {
        for (at, byte) in [(0, 2), (1, 0xe1), (40, 2), (41, 0), (41, 4)] {
            let mut bytes = GOLDEN;
            bytes[at] = byte;
            assert_eq!(Packet::parse(&bytes), Err(Malformed), "byte {at}");
        }
    }

    fn message() -> impl Strategy<Value = Message> {
        let numbers = (any::<u32>(), any::<u64>(), any::<u32>(), any::<bool>(), any::<i32>(), any::<u32>());
        (0..4, numbers).prop_map(|(kind, (destination, tau, oid, reflected, delta, id))| {
            let level = Level { tau, oid: oid.into(), reflected: reflected || kind == 3 };
            let body = match kind {
                0 => Body::Query,
                1 => Body::Update(None),
                2 => Body::Update(Some(Height { level, delta, id: id.into() })),
                _ => Body::Clear(level),
            };
            Message { destination: destination.into(), body }
        })
    }

    fn packet() -> impl Strategy<Value = Packet> {
        let heard = (any::<u32>(), any::<u16>(), any::<u16>());
        let heard = heard.prop_map(|(address, number, echo)| Heard { address: address.into(), number, echo });
        let response = (heard.clone(), any::<u16>()).prop_map(|(peer, first)| Response { peer, first });
        let ack = (any::<u32>(), any::<u16>(), any::<u16>());
        let ack = ack.prop_map(|(address, number, sequence)| Ack { address: address.into(), number, sequence });
        let block = (any::<u16>(), vec(response, 0..20), vec(message(), 0..20));
        let block = block.prop_map(|(sequence, responses, messages)| Block { sequence, responses, messages });
        let parts = (vec(ack, 0..20), proptest::option::of(vec(heard, 0..20)), proptest::option::of(block));
        parts.prop_map(|(acks, hello, block)| Packet { acks, hello, block })
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(packet in packet()) {
            prop_assert_eq!(Packet::parse(&packet.emit()).unwrap(), packet);
        }

        #[test]
        fn a_truncated_packet_does_not_parse(packet in packet(), cut in any::<proptest::sample::Index>()) {
            let bytes = packet.emit();
            prop_assert!(Packet::parse(&bytes[..cut.index(bytes.len())]).is_err());
        }

        #[test]
        fn any_bytes_parse_without_panic(bytes in vec(any::<u8>(), 0..300)) {
            let _ = Packet::parse(&bytes);
            let head = [1, 0x20, 1, 4, 0, 0, 0, 1, 0, 9];
            let _ = Packet::parse(&[&head[..], &bytes].concat());
        }
    }
}
