//! Packets that wait for a route: in order per destination, limited in number and in age. What comes and goes is in a journal
//! for whoever asked for one: these packets are in no capture of the radio.

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

/// What became of a packet here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    Held,
    /// A route took it.
    SentOn,
    GivenUp,
}

/// An entry of the journal. `since`: when the packet came, which is now for [`Passage::Held`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub passage: Passage,
    pub since: Instant,
    pub bytes: Bytes,
}

/// One buffer a node, drop-head: a full one gives up its oldest packet, as ns-2's do.
#[derive(Clone, Debug)]
pub struct Held {
    packets: usize,
    packets_per_destination: usize,
    longest: Duration,
    waiting: VecDeque<Waiting>,
    journal: Option<Vec<Change>>,
}

impl Held {
    /// `packets` in all, of these `packets_per_destination` at most for one destination, none longer than `longest`.
    pub fn new(packets: usize, packets_per_destination: usize, longest: Duration) -> Self {
        Self { packets, packets_per_destination, longest, waiting: VecDeque::new(), journal: None }
    }

    /// Keeps a journal from now on, which is to be taken again and again.
    pub fn keep_journal(&mut self) {
        self.journal = Some(Vec::new());
    }

    /// What has changed since the last time.
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

    /// Keeps the packet; returns the one that had to go for it (the packet itself if the buffer holds none).
    pub fn hold(&mut self, now: Instant, destination: Ipv4Addr, bytes: Bytes) -> Option<Bytes> {
        let waiting = Waiting { since: now, until: now + self.longest, destination, bytes };
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

    /// All packets for `destination`, oldest first: there is a route.
    pub fn take(&mut self, destination: Ipv4Addr) -> Vec<Bytes> {
        self.remove(Passage::SentOn, |w| w.destination == destination)
    }

    /// Those of the packets for `destination`, oldest first: there will be no route.
    pub fn give_up(&mut self, destination: Ipv4Addr, those: impl Fn(&Bytes) -> bool) -> Vec<Bytes> {
        self.remove(Passage::GivenUp, |w| w.destination == destination && those(&w.bytes))
    }

    /// The packets for `destination` wait as if they had come now.
    pub fn renew(&mut self, now: Instant, destination: Ipv4Addr) {
        let (mut renewed, left) = self.split(|w| w.destination == destination);
        self.waiting = left;
        renewed.iter_mut().for_each(|w| w.until = now + self.longest);
        self.waiting.append(&mut renewed);
    }

    /// Those that have waited too long.
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

    #[test]
    fn the_journal_tells_of_every_packet_once_that_it_came_and_once_how_it_went() {
        let mut held = Held::new(3, 3, Duration::from_secs(30));
        held.hold(at(0), A, packet(0));
        assert_eq!(held.take_journal(), []);
        held.keep_journal();
        // the third pushes out the one from before; then a route, a failed search and old age
        (1..=3).for_each(|n| drop(held.hold(at(n.into()), if n == 1 { A } else { B }, packet(n))));
        held.take(A);
        held.give_up(B, |bytes| bytes.0[0] == 2);
        held.renew(at(9), B);
        assert_eq!((held.expire(at(38)), held.expire(at(39))), (vec![], vec![packet(3)]));
        let told = held.take_journal().into_iter().map(|c| (c.passage, c.bytes.0[0], c.since));
        let expected = [
            (Passage::Held, 1, at(1)),
            (Passage::Held, 2, at(2)),
            (Passage::Held, 3, at(3)),
            (Passage::GivenUp, 0, at(0)),
            (Passage::SentOn, 1, at(1)),
            (Passage::GivenUp, 2, at(2)),
            (Passage::GivenUp, 3, at(3)),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        assert!(held.is_empty() && held.take_journal().is_empty());
    }
}
