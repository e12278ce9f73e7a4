//! Packets that wait for a route: in order per destination, limited in number and in age.

use crate::Bytes;
use manet_engine::{Duration, Instant};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Waiting {
    until: Instant,
    destination: Ipv4Addr,
    bytes: Bytes,
}

/// One buffer a node, drop-head: a full one gives up its oldest packet, as ns-2's do.
#[derive(Clone, Debug)]
pub struct Held {
    packets: usize,
    packets_per_destination: usize,
    longest: Duration,
    waiting: VecDeque<Waiting>,
}

impl Held {
    /// `packets` in all, of these `packets_per_destination` at most for one destination, none longer than `longest`.
    pub fn new(packets: usize, packets_per_destination: usize, longest: Duration) -> Self {
        Self { packets, packets_per_destination, longest, waiting: VecDeque::new() }
    }

    /// Keeps the packet; returns the one that had to go for it (the packet itself if the buffer holds none).
    pub fn hold(&mut self, now: Instant, destination: Ipv4Addr, bytes: Bytes) -> Option<Bytes> {
        self.waiting.push_back(Waiting { until: now + self.longest, destination, bytes });
        if self.count(destination) > self.packets_per_destination {
            let oldest = self.waiting.iter().position(|w| w.destination == destination)?;
            return self.waiting.remove(oldest).map(|w| w.bytes);
        }
        if self.waiting.len() > self.packets {
            return self.waiting.pop_front().map(|w| w.bytes);
        }
        None
    }

    /// All packets for `destination`, oldest first.
    pub fn take(&mut self, destination: Ipv4Addr) -> Vec<Bytes> {
        let (taken, left) = std::mem::take(&mut self.waiting).into_iter().partition(|w| w.destination == destination);
        self.waiting = left;
        let taken: VecDeque<Waiting> = taken;
        taken.into_iter().map(|w| w.bytes).collect()
    }

    /// Those that have waited too long.
    pub fn expire(&mut self, now: Instant) -> Vec<Bytes> {
        // all wait equally long, so they expire in the order in which they came
        let count = self.waiting.iter().take_while(|w| w.until <= now).count();
        self.waiting.drain(..count).map(|w| w.bytes).collect()
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        self.waiting.front().map(|w| w.until)
    }

    pub fn count(&self, destination: Ipv4Addr) -> usize {
        self.waiting.iter().filter(|w| w.destination == destination).count()
    }

    /// The destinations that are waited for, each once, the longest waiting first.
    pub fn destinations(&self) -> Vec<Ipv4Addr> {
        let mut seen = Vec::new();
        for w in &self.waiting {
            if !seen.contains(&w.destination) {
                seen.push(w.destination);
            }
        }
        seen
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn at(s: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(s)
    }

    fn packet(n: u8) -> Bytes {
        Bytes(vec![n])
    }

    #[test]
    fn a_full_buffer_gives_up_its_oldest_packet() {
        let mut held = Held::new(2, 2, Duration::from_secs(30));
        assert_eq!(held.hold(at(0), A, packet(1)), None);
        assert_eq!(held.hold(at(0), B, packet(2)), None);
        assert_eq!(held.hold(at(0), B, packet(3)), Some(packet(1)));
        assert_eq!(held.take(B), [packet(2), packet(3)]);
    }

    #[test]
    fn one_destination_cannot_take_the_room_of_the_others() {
        let mut held = Held::new(10, 1, Duration::from_secs(30));
        held.hold(at(0), A, packet(1));
        held.hold(at(0), B, packet(2));
        assert_eq!(held.hold(at(0), B, packet(3)), Some(packet(2)));
        assert_eq!(held.len(), 2);
    }

    #[test]
    fn packets_expire_at_their_age_and_not_before() {
        let mut held = Held::new(10, 10, Duration::from_secs(30));
        held.hold(at(0), A, packet(1));
        held.hold(at(5), A, packet(2));
        assert_eq!(held.next_timeout(), Some(at(30)));
        assert!(held.expire(at(29)).is_empty());
        assert_eq!(held.expire(at(30)), [packet(1)]);
        assert_eq!(held.len(), 1);
    }
}
