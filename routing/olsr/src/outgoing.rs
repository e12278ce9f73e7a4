//! Messages that wait to be sent: those to be forwarded are held back a random time (RFC 3626, section 3.4.1), and
//! what is there when one of our own is due travels with it, in as few packets as it takes.

use crate::wire::{packet, Message, Packet};
use std::collections::VecDeque;

/// Bytes that wait at most: a second of a 2 Mbit/s radio is 250,000.
const MAX_BYTES: usize = 131_072;

#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Bytes of messages that fit a packet.
    room: usize,
    /// Packet sequence number of the next (3.3.1).
    sequence: u16,
    waiting: VecDeque<Message>,
    bytes: usize,
}

impl Outgoing {
    /// `payload`: bytes of a UDP datagram that is not fragmented.
    pub fn new(payload: usize, sequence: u16) -> Self {
        Self { room: payload.saturating_sub(packet::HEADER_LEN), sequence, waiting: VecDeque::new(), bytes: 0 }
    }

    /// Bytes of the largest message that is not fragmented.
    pub fn room(&self) -> usize {
        self.room
    }

    /// False: there is no room.
    pub fn push(&mut self, message: Message) -> bool {
        let len = message.buffer_len();
        let fits = self.bytes + len <= MAX_BYTES && len <= usize::from(u16::MAX) - packet::HEADER_LEN;
        if fits {
            self.bytes += len;
            self.waiting.push_back(message);
        }
        fits
    }

    /// The next packet; a message that is larger than the room goes alone.
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
    fn a_message_larger_than_a_packet_goes_alone() {
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
