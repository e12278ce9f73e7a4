//! The Route Request Table (RFC 4728, section 4.3) for requests of other nodes: each is processed once.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// RequestTableSize and RequestTableIds (RFC 4728, section 9).
const INITIATORS: usize = 64;
const IDS: usize = 16;

/// The last 16 requests of each of the last 64 initiators.
#[derive(Clone, Debug, Default)]
pub struct Duplicates {
    initiators: BTreeMap<Ipv4Addr, Ids>,
    count: u64,
}

#[derive(Clone, Debug, Default)]
struct Ids {
    last: u64,
    ids: VecDeque<(u16, Ipv4Addr)>,
}

impl Duplicates {
    /// Remembers a request. True: it is new.
    pub fn remember(&mut self, initiator: Ipv4Addr, identification: u16, target: Ipv4Addr) -> bool {
        self.count += 1;
        if !self.initiators.contains_key(&initiator) && self.initiators.len() >= INITIATORS {
            let oldest = self.initiators.iter().min_by_key(|(_, ids)| ids.last).map(|(address, _)| *address);
            oldest.map(|address| self.initiators.remove(&address));
        }
        let entry = self.initiators.entry(initiator).or_default();
        entry.last = self.count;
        if entry.ids.contains(&(identification, target)) {
            return false;
        }
        if entry.ids.len() >= IDS {
            entry.ids.pop_front();
        }
        entry.ids.push_back((identification, target));
        true
    }

    /// Number of initiators.
    pub fn len(&self) -> usize {
        self.initiators.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);

    #[test]
    fn a_request_is_new_once_and_again_after_sixteen_others() {
        let mut duplicates = Duplicates::default();
        assert!(duplicates.remember(T, 1, T) && !duplicates.remember(T, 1, T));
        for id in 2..18 {
            assert!(duplicates.remember(T, id, T));
        }
        assert!(duplicates.remember(T, 1, T));
    }

    #[test]
    fn an_initiator_beyond_64_displaces_the_least_recent_one() {
        let mut duplicates = Duplicates::default();
        for n in 0..10_000u32 {
            duplicates.remember(Ipv4Addr::from(n), 1, T);
            assert!(duplicates.len() <= 64);
        }
        assert!(duplicates.remember(Ipv4Addr::from(0), 1, T) && !duplicates.remember(Ipv4Addr::from(9_999), 1, T));
    }
}
