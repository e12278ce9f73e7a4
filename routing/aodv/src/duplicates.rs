//! Processed requests, by originator and RREQ ID, kept for PATH_DISCOVERY_TIME (RFC 3561, 6.5).

use manet_engine::{Duration, Instant};
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// A further request displaces the oldest; RREQ_RATELIMIT 10/s x 5.6 s x 73 originators.
const MAX_DUPLICATES: usize = 4096;

/// The processed requests.
#[derive(Clone, Debug)]
pub struct Duplicates {
    keep: Duration,
    known: BTreeSet<(Ipv4Addr, u32)>,
    /// Sorted by expiry: all are kept equally long.
    order: VecDeque<(Instant, (Ipv4Addr, u32))>,
}

impl Duplicates {
    /// `keep`: how long a request is remembered.
    pub fn new(keep: Duration) -> Self {
        Self { keep, known: BTreeSet::new(), order: VecDeque::new() }
    }

    /// Remembers a request. True: it is new.
    pub fn remember(&mut self, now: Instant, originator: Ipv4Addr, id: u32) -> bool {
        while self.order.front().is_some_and(|(until, _)| *until <= now) || self.order.len() >= MAX_DUPLICATES {
            if let Some((_, key)) = self.order.pop_front() {
                self.known.remove(&key);
            }
        }
        let new = self.known.insert((originator, id));
        if new {
            self.order.push_back((now + self.keep, (originator, id)));
        }
        new
    }

    /// Number of remembered requests.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether no request is remembered.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    #[test]
    fn a_request_is_known_for_path_discovery_time() {
        let mut duplicates = Duplicates::new(Duration::from_millis(5600));
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        assert!(duplicates.remember(at(0), A, 7) && duplicates.remember(at(0), A, 8));
        assert!(!duplicates.remember(at(5599), A, 7));
        assert!(duplicates.remember(at(5600), A, 7));
    }

    #[test]
    fn a_flood_does_not_exceed_the_limit() {
        let mut duplicates = Duplicates::new(Duration::from_secs(10));
        for id in 0..100_000 {
            assert!(duplicates.remember(Instant::ZERO, A, id));
        }
        assert_eq!((duplicates.len(), duplicates.order.len()), (MAX_DUPLICATES, MAX_DUPLICATES));
    }
}
