//! The packet (RFC 3626, section 3.3): length, sequence number (one series per interface), messages.

use super::message::HEADER_LEN as MESSAGE_HEADER_LEN;
use super::{be16, Malformed, Message};

/// Length of the packet header in bytes.
pub const HEADER_LEN: usize = 4;

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Packet sequence number of the sender's interface.
    pub sequence: u16,
    /// Messages in their order.
    pub messages: Vec<Message>,
}

impl Packet {
    /// The packet, and whether malformed bytes follow its last message. A packet without room for a message (3.4, step 1:
    /// below 16 bytes) or longer than its bytes is malformed as a whole. Bytes beyond its length are ignored.
    pub fn parse(bytes: &[u8]) -> Result<(Self, bool), Malformed> {
        let header = bytes.get(..HEADER_LEN).ok_or(Malformed)?;
        let length = usize::from(be16(header));
        if length < HEADER_LEN + MESSAGE_HEADER_LEN || length > bytes.len() {
            return Err(Malformed);
        }
        let (mut messages, mut rest) = (Vec::new(), &bytes[HEADER_LEN..length]);
        while !rest.is_empty() {
            let Ok((message, next)) = Message::parse(rest) else { break };
            messages.push(message);
            rest = next;
        }
        Ok((Self { sequence: be16(&header[2..]), messages }, !rest.is_empty()))
    }

    /// Length in bytes.
    pub fn buffer_len(&self) -> usize {
        HEADER_LEN + self.messages.iter().map(Message::buffer_len).sum::<usize>()
    }

    /// # Panics
    /// If the messages are together longer than a packet can be.
    pub fn emit(&self) -> Vec<u8> {
        let length = u16::try_from(self.buffer_len()).expect("a packet has at most 65,535 bytes");
        let mut out = Vec::with_capacity(self.buffer_len());
        out.extend(length.to_be_bytes());
        out.extend(self.sequence.to_be_bytes());
        for message in &self.messages {
            message.emit(&mut out);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::any_message;
    use super::super::{hello, Hello, Span};
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    /// Written by hand from RFC 3626, 3.3 and 6.1: a packet with one HELLO that lists 10.0.0.2 as a symmetric MPR.
    const GOLDEN: [u8; 28] = [
        0, 28, 0, 9, // length, packet sequence number
        1, 0x86, 0, 24, 10, 0, 0, 1, 1, 0, 0, 7, // HELLO, 6 s, size, originator, TTL 1, no hops, number 7
        0, 0, 0x05, 3, // reserved, Htime 2 s, WILL_DEFAULT
        0x0a, 0, 0, 8, // SYM_LINK (2) + 4 x MPR_NEIGH (2), reserved, size of the block with its header
        10, 0, 0, 2,
    ];

    fn golden() -> Packet {
        let block = hello::Block { code: 10, addresses: vec![Ipv4Addr::new(10, 0, 0, 2)] };
        let hello = Hello { interval: Span(0x05), willingness: 3, blocks: vec![block] };
        let message = Message {
            kind: super::super::message::HELLO,
            validity: Span(0x86),
            originator: Ipv4Addr::new(10, 0, 0, 1),
            ttl: 1,
            hops: 0,
            sequence: 7,
            body: hello.emit(),
        };
        Packet { sequence: 9, messages: vec![message] }
    }

    #[test]
    fn a_packet_with_a_hello_is_these_bytes() {
        assert_eq!(golden().emit(), GOLDEN);
        assert_eq!(Packet::parse(&GOLDEN), Ok((golden(), false)));
        let text = "#9; HELLO of 10.0.0.1 #7 ttl 1 hops 0 for 6 s: next 2 s, willingness 3, symmetric mpr 10.0.0.2";
        assert_eq!(golden().to_string(), text);
    }

    #[test]
    fn bytes_beyond_the_length_are_ignored_and_missing_ones_are_malformed() {
        let mut longer = GOLDEN.to_vec();
        longer.extend([0xff; 5]);
        assert_eq!(Packet::parse(&longer), Ok((golden(), false)));
        for cut in 0..GOLDEN.len() {
            assert_eq!(Packet::parse(&GOLDEN[..cut]), Err(Malformed), "{cut}");
        }
    }

    #[test]
    fn messages_before_a_broken_one_are_kept() {
        let mut bytes = GOLDEN.to_vec();
        bytes.extend([9, 9, 0, 200]);
        bytes[1] += 4;
        assert_eq!(Packet::parse(&bytes), Ok((golden(), true)));
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(sequence: u16, messages in proptest::collection::vec(any_message(), 1..6)) {
            let packet = Packet { sequence, messages };
            prop_assert_eq!(Packet::parse(&packet.emit()), Ok((packet, false)));
        }

        #[test]
        fn a_packet_parsed_from_noise_can_be_emitted(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok((packet, cut)) = Packet::parse(&bytes) {
                let again = packet.emit();
                prop_assert!(again.len() <= bytes.len());
                prop_assert_eq!(&again[2..], &bytes[2..again.len()]);
                prop_assert!(cut || again[..2] == bytes[..2]);
            }
        }
    }
}
