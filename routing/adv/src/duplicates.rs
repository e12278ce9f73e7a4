//! Floods that this node has handled, by source and id.

use manet_engine::{Duration, Instant};
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// A further flood displaces the oldest.
pub const MAX_DUPLICATES: usize = 4096;
/// A flood crosses the widest network in this time.
const KEEP: Duration = Duration::from_secs(10);

/// The handled floods.
#[derive(Clone, Debug, Default)]
pub struct Duplicates {
    known: BTreeSet<(Ipv4Addr, u32)>,
    /// Sorted by expiry: all are kept equally long.
    order: VecDeque<(Instant, (Ipv4Addr, u32))>,
}

impl Duplicates {
    /// Remembers a flood. True: it is new.
    pub fn remember(&mut self, now: Instant, source: Ipv4Addr, id: u32) -> bool {
        while self.order.front().is_some_and(|(until, _)| *until <= now) || self.order.len() >= MAX_DUPLICATES {
            if let Some((_, key)) = self.order.pop_front() {
                self.known.remove(&key);
            }
        }
        let new = self.known.insert((source, id));
        if new {
            self.order.push_back((now + KEEP, (source, id)));
        }
        new
    }

    /// Number of remembered floods.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether no flood is remembered.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    #[test]
    fn a_flood_is_known_for_ten_seconds() {
        let mut duplicates = Duplicates::default();
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        assert!(duplicates.remember(at(0), A, 7) && duplicates.remember(at(0), A, 8));
        assert!(!duplicates.remember(at(9_999), A, 7));
        assert!(duplicates.remember(at(10_000), A, 7));
    }

    #[test]
    fn many_floods_do_not_exceed_the_limit() {
        let mut duplicates = Duplicates::default();
        for id in 0..100_000 {
            assert!(duplicates.remember(Instant::ZERO, A, id));
        }
        assert_eq!((duplicates.len(), duplicates.order.len()), (MAX_DUPLICATES, MAX_DUPLICATES));
    }
}
