//! Packets that wait for a route: in order per destination, limited in number and in age. On request the buffer keeps a
//! journal of arrivals and departures: no capture of the radio contains these packets.

use crate::Bytes;
use manet_engine::{Duration, Instant};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Waiting {
    since: Instant,
    until: Instant,
    destination: Ipv4Addr,
    bytes: Bytes,
}

/// The step of a packet through the buffer that a journal entry records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// The packet entered the buffer.
    Held,
    /// The packet left by a route.
    SentOn,
    /// The packet was dropped: the buffer was full, its time had passed, or no route was found.
    GivenUp,
}

/// An entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The recorded step.
    pub passage: Passage,
    /// Arrival of the packet; for [`Passage::Held`] the present instant.
    pub since: Instant,
    /// The packet, from its IPv4 header on.
    pub bytes: Bytes,
}

/// One buffer per node, drop-head: a full buffer drops its oldest packet, as in ns-2.
#[derive(Clone, Debug)]
pub struct Held {
    packets: usize,
    packets_per_destination: usize,
    max_age: Duration,
    waiting: VecDeque<Waiting>,
    journal: Option<Vec<Change>>,
}

impl Held {
    /// At most `packets` packets in total and `packets_per_destination` for one destination, each for at most `max_age`.
    pub fn new(packets: usize, packets_per_destination: usize, max_age: Duration) -> Self {
        Self { packets, packets_per_destination, max_age, waiting: VecDeque::new(), journal: None }
    }

    /// Starts the journal. It grows until [`Self::take_journal`] empties it.
    pub fn keep_journal(&mut self) {
        self.journal = Some(Vec::new());
    }

    /// Empties the journal and returns its entries, oldest first. Empty if no journal is kept.
    pub fn take_journal(&mut self) -> Vec<Change> {
        self.journal.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn enter(&mut self, passage: Passage, waiting: &Waiting) {
        if let Some(journal) = &mut self.journal {
            journal.push(Change { passage, since: waiting.since, bytes: waiting.bytes.clone() });
        }
    }

    fn leave(&mut self, passage: Passage, waiting: Waiting) -> Bytes {
        self.enter(passage, &waiting);
        waiting.bytes
    }

    /// Adds a packet. Returns the packet dropped to make room (the new packet itself if the buffer has size 0).
    pub fn hold(&mut self, now: Instant, destination: Ipv4Addr, bytes: Bytes) -> Option<Bytes> {
        self.hold_for(now, self.max_age, destination, bytes)
    }

    /// As [`Self::hold`], with an age limit of this packet's own.
    pub fn hold_for(&mut self, now: Instant, max_age: Duration, destination: Ipv4Addr, bytes: Bytes) -> Option<Bytes> {
        let waiting = Waiting { since: now, until: now + max_age, destination, bytes };
        self.enter(Passage::Held, &waiting);
        self.waiting.push_back(waiting);
        let oldest = if self.count(destination) > self.packets_per_destination {
            self.waiting.iter().position(|w| w.destination == destination)?
        } else if self.waiting.len() > self.packets {
            0
        } else {
            return None;
        };
        self.waiting.remove(oldest).map(|w| self.leave(Passage::GivenUp, w))
    }

    /// Removes all packets for `destination`, oldest first: a route exists.
    pub fn take(&mut self, destination: Ipv4Addr) -> Vec<Bytes> {
        self.remove(Passage::SentOn, |w| w.destination == destination)
    }

    /// Removes the packets for `destination` that satisfy `those`, oldest first: no route was found.
    pub fn give_up(&mut self, destination: Ipv4Addr, those: impl Fn(&Bytes) -> bool) -> Vec<Bytes> {
        self.remove(Passage::GivenUp, |w| w.destination == destination && those(&w.bytes))
    }

    /// Restarts the age of the packets for `destination`.
    pub fn renew(&mut self, now: Instant, destination: Ipv4Addr) {
        let (mut renewed, left) = self.split(|w| w.destination == destination);
        self.waiting = left;
        renewed.iter_mut().for_each(|w| w.until = now + self.max_age);
        self.waiting.append(&mut renewed);
    }

    /// Removes the packets that have reached the maximum age, oldest first.
    pub fn expire(&mut self, now: Instant) -> Vec<Bytes> {
        self.remove(Passage::GivenUp, |w| w.until <= now)
    }

    fn remove(&mut self, passage: Passage, which: impl Fn(&Waiting) -> bool) -> Vec<Bytes> {
        let (removed, left) = self.split(which);
        self.waiting = left;
        removed.into_iter().map(|w| self.leave(passage, w)).collect()
    }

    fn split(&mut self, which: impl Fn(&Waiting) -> bool) -> (VecDeque<Waiting>, VecDeque<Waiting>) {
        std::mem::take(&mut self.waiting).into_iter().partition(which)
    }

    /// The earliest expiry of a packet; call [`Self::expire`] then.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.waiting.iter().map(|w| w.until).min()
    }

    /// Packets that wait for `destination`.
    pub fn count(&self, destination: Ipv4Addr) -> usize {
        self.waiting.iter().filter(|w| w.destination == destination).count()
    }

    /// Destinations of the waiting packets, each once, in the order of their oldest packets.
    pub fn destinations(&self) -> Vec<Ipv4Addr> {
        let mut seen = Vec::new();
        for w in &self.waiting {
            if !seen.contains(&w.destination) {
                seen.push(w.destination);
            }
        }
        seen
    }

    /// Packets in the buffer.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no packet waits.
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
    fn a_full_buffer_drops_its_oldest_packet() {
        let mut held = Held::new(2, 2, Duration::from_secs(30));
        assert_eq!(held.hold(at(0), A, packet(1)), None);
        assert_eq!(held.hold(at(0), B, packet(2)), None);
        assert_eq!(held.hold(at(0), B, packet(3)), Some(packet(1)));
        assert_eq!(held.take(B), [packet(2), packet(3)]);
    }

    #[test]
    fn one_destination_cannot_fill_the_whole_buffer() {
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

    #[test]
    fn a_packet_with_an_own_age_limit_expires_before_older_ones() {
        let mut held = Held::new(10, 10, Duration::from_secs(30));
        held.hold(at(0), A, packet(1));
        held.hold_for(at(5), Duration::from_secs(1), A, packet(2));
        assert_eq!(held.next_timeout(), Some(at(6)));
        assert_eq!(held.expire(at(6)), [packet(2)]);
        assert_eq!(held.next_timeout(), Some(at(30)));
    }

    #[test]
    fn the_journal_records_arrival_and_departure_of_each_packet_once() {
        let mut held = Held::new(3, 3, Duration::from_secs(30));
        held.hold(at(0), A, packet(0));
        assert_eq!(held.take_journal(), []);
        held.keep_journal();
        // the third packet displaces an earlier one; then come a route, a failed discovery and expiry
        (1..=3).for_each(|n| drop(held.hold(at(n.into()), if n == 1 { A } else { B }, packet(n))));
        held.take(A);
        held.give_up(B, |bytes| bytes.0[0] == 2);
        held.renew(at(9), B);
        assert_eq!((held.expire(at(38)), held.expire(at(39))), (vec![], vec![packet(3)]));
        let recorded = held.take_journal().into_iter().map(|c| (c.passage, c.bytes.0[0], c.since));
        let expected = [
            (Passage::Held, 1, at(1)),
            (Passage::Held, 2, at(2)),
            (Passage::Held, 3, at(3)),
            (Passage::GivenUp, 0, at(0)),
            (Passage::SentOn, 1, at(1)),
            (Passage::GivenUp, 2, at(2)),
            (Passage::GivenUp, 3, at(3)),
        ];
        assert_eq!(recorded.collect::<Vec<_>>(), expected);
        assert!(held.is_empty() && held.take_journal().is_empty());
    }
}
