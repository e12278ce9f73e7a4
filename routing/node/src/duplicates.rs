//! Flooded messages that a node has seen, each remembered for the same time.

use manet_engine::{Duration, Instant};
use std::collections::{BTreeSet, VecDeque};

/// The seen messages; `K` names one, such as its originator and number.
#[derive(Clone, Debug)]
pub struct Duplicates<K> {
    keep: Duration,
    max: usize,
    known: BTreeSet<K>,
    /// Sorted by expiry: all are kept equally long.
    order: VecDeque<(Instant, K)>,
}

impl<K: Ord + Copy> Duplicates<K> {
    /// Each message is remembered for `keep`. Of more than `max`, the newest.
    pub fn new(keep: Duration, max: usize) -> Self {
        Self { keep, max, known: BTreeSet::new(), order: VecDeque::new() }
    }

    /// Remembers a message. True: it is new.
    pub fn remember(&mut self, now: Instant, key: K) -> bool {
        while self.order.front().is_some_and(|(until, _)| *until <= now) {
            self.forget_oldest();
        }
        let new = self.known.insert(key);
        if new {
            self.order.push_back((now + self.keep, key));
        }
        if self.order.len() > self.max {
            self.forget_oldest();
        }
        new
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

    /// Whether no message is remembered.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(s)
    }

    #[test]
    fn a_message_is_new_once_in_its_time() {
        let mut duplicates = Duplicates::new(Duration::from_secs(30), 9);
        assert!(duplicates.remember(at(0), 7));
        assert!(!duplicates.remember(at(29), 7));
        assert!(duplicates.remember(at(30), 7));
        assert!(!duplicates.remember(at(31), 7) && duplicates.remember(at(31), 8));
    }

    #[test]
    fn a_further_message_displaces_the_oldest_and_a_known_one_none() {
        let mut duplicates = Duplicates::new(Duration::from_secs(30), 4096);
        for n in 0..100_000u32 {
            assert!(duplicates.remember(at(0), n));
        }
        assert_eq!((duplicates.len(), duplicates.known.len()), (4096, 4096));
        assert!(!duplicates.remember(at(0), 100_000 - 4096));
        assert!(duplicates.remember(at(0), 0) && duplicates.remember(at(0), 100_000 - 4096));
    }
}
