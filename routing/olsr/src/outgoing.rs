//! Messages that wait to be sent: forwarded ones wait for a random time (RFC 3626, section 3.4.1), and leave together with
//! a message of our own that is due, in as few packets as possible.

use crate::wire::{packet, Message, Packet};
use std::collections::VecDeque;

/// Maximum of waiting bytes: a second of a 2 Mbit/s radio is 250,000.
const MAX_BYTES: usize = 131_072;

/// The waiting messages.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Maximum of message bytes per packet.
    room: usize,
    /// Sequence number of the next packet (3.3.1).
    sequence: u16,
    waiting: VecDeque<Message>,
    bytes: usize,
}

impl Outgoing {
    /// `payload`: maximum bytes of a UDP datagram that is not fragmented. `sequence`: of the first packet.
    pub fn new(payload: usize, sequence: u16) -> Self {
        Self { room: payload.saturating_sub(packet::HEADER_LEN), sequence, waiting: VecDeque::new(), bytes: 0 }
    }

    /// Maximum bytes of a message that is not fragmented.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Adds a message. False: the queue is full or the message too long.
    pub fn push(&mut self, message: Message) -> bool {
        let len = message.buffer_len();
        let fits = self.bytes + len <= MAX_BYTES && len <= usize::from(u16::MAX) - packet::HEADER_LEN;
        if fits {
            self.bytes += len;
            self.waiting.push_back(message);
        }
        fits
    }

    /// Removes messages as the next packet; a message that is larger than the room is sent alone.
    pub fn next_packet(&mut self) -> Option<Packet> {
        let mut messages = vec![self.waiting.pop_front()?];
        let mut len = messages[0].buffer_len();
        while let Some(next) = self.waiting.front().map(Message::buffer_len).filter(|next| len + next <= self.room) {
            len += next;
            messages.extend(self.waiting.pop_front());
        }
        self.bytes -= len;
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        Some(Packet { sequence, messages })
    }

    /// Removes all messages.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Span;
    use std::net::Ipv4Addr;

    fn message(body: usize) -> Message {
        let originator = Ipv4Addr::new(10, 0, 0, 1);
        Message { kind: 9, validity: Span(0), originator, ttl: 1, hops: 0, sequence: 0, body: vec![0; body] }
    }

    fn lengths(out: &mut Outgoing) -> Vec<(u16, usize)> {
        std::iter::from_fn(|| out.next_packet()).map(|p| (p.sequence, p.messages.len())).collect()
    }

    #[test]
    fn messages_share_packets_as_far_as_they_fit() {
        // 100 - 4 = 96 bytes of messages; each has 12 + 20: three of them
        let mut out = Outgoing::new(100, u16::MAX);
        for _ in 0..4 {
            assert!(out.push(message(20)));
        }
        assert_eq!(lengths(&mut out), [(u16::MAX, 3), (0, 1)]);
    }

    #[test]
    fn a_message_larger_than_a_packet_is_sent_alone() {
        let mut out = Outgoing::new(100, 0);
        out.push(message(500));
        out.push(message(20));
        assert_eq!(lengths(&mut out), [(0, 1), (1, 1)]);
    }

    #[test]
    fn a_flood_does_not_grow_without_bound() {
        let mut out = Outgoing::new(1472, 0);
        let taken = (0..10_000).filter(|_| out.push(message(1000))).count();
        assert_eq!(taken, MAX_BYTES / 1012);
        while out.next_packet().is_some() {}
        assert!(out.bytes == 0 && out.push(message(1000)));
    }
}
