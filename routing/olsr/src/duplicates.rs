//! Duplicate set (RFC 3626, section 3.4): the received messages, so that none is processed or forwarded twice.
//!
//! With one interface D_iface_list is the same for every entry, and a message is considered for forwarding only once.

use manet_engine::{Duration, Instant};
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// A further message displaces the oldest; a real network of 200 nodes sends 1200 in the 30 s that they are kept.
pub const MAX_DUPLICATES: usize = 16_384;

type Key = (Ipv4Addr, u16);

/// The received messages.
#[derive(Clone, Debug)]
pub struct Duplicates {
    hold: Duration,
    known: BTreeSet<Key>,
    /// Sorted by expiry: all are kept equally long.
    order: VecDeque<(Instant, Key)>,
}

impl Duplicates {
    /// `hold`: DUP_HOLD_TIME.
    pub fn new(hold: Duration) -> Self {
        Self { hold, known: BTreeSet::new(), order: VecDeque::new() }
    }

    /// Remembers a message. True: it is new.
    pub fn remember(&mut self, now: Instant, originator: Ipv4Addr, sequence: u16) -> bool {
        self.expire(now);
        if !self.known.insert((originator, sequence)) {
            return false;
        }
        self.order.push_back((now + self.hold, (originator, sequence)));
        if self.order.len() > MAX_DUPLICATES {
            self.forget_oldest();
        }
        true
    }

    fn expire(&mut self, now: Instant) {
        while self.order.front().is_some_and(|(until, _)| *until <= now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, key)) = self.order.pop_front() {
            self.known.remove(&key);
        }
    }

    /// Number of remembered messages.
    pub fn len(&self) -> usize {
        self.order.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    fn at(s: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(s)
    }

    #[test]
    fn a_message_is_new_once_per_hold_time() {
        let mut duplicates = Duplicates::new(Duration::from_secs(30));
        assert!(duplicates.remember(at(0), A, 7));
        assert!(!duplicates.remember(at(29), A, 7));
        assert!(duplicates.remember(at(30), A, 7));
        assert!(!duplicates.remember(at(31), A, 7) && duplicates.remember(at(31), A, 8));
    }

    #[test]
    fn a_flood_displaces_the_oldest() {
        let mut duplicates = Duplicates::new(Duration::from_secs(30));
        for n in 0..100_000u32 {
            duplicates.remember(at(0), Ipv4Addr::from(n), 1);
        }
        assert_eq!((duplicates.len(), duplicates.known.len()), (MAX_DUPLICATES, MAX_DUPLICATES));
        assert!(
            !duplicates.remember(at(0), Ipv4Addr::from(99_999), 1) && duplicates.remember(at(0), Ipv4Addr::from(0), 1)
        );
    }
}
