//! Heard neighbours, with the time of their last message and their last own number.

use crate::sequence::Sequence;
use manet_engine::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Maximum number of neighbours, more than share a channel. It limits the effect of forged senders.
pub const MAX_NEIGHBOURS: usize = 256;
/// Without a silence limit, a full list drops neighbours that were silent for so long.
const STALE: Duration = Duration::from_secs(60);

/// A neighbour.
#[derive(Clone, Copy, Debug)]
pub struct Neighbour {
    /// Time of its last message.
    pub heard_at: Instant,
    /// Its number in that message.
    pub sequence: Sequence,
}

/// [`MAX_NEIGHBOURS`] is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The heard neighbours.
#[derive(Clone, Debug)]
pub struct Neighbours {
    all: BTreeMap<Ipv4Addr, Neighbour>,
    silence: Option<Duration>,
}

impl Neighbours {
    /// `silence`: time after which a silent neighbour is lost; `None`: never.
    pub fn new(silence: Option<Duration>) -> Self {
        Self { all: BTreeMap::new(), silence }
    }

    /// Records a message. Returns the neighbour's number before, if it was known.
    pub fn heard(&mut self, now: Instant, address: Ipv4Addr, sequence: Sequence) -> Result<Option<Sequence>, Full> {
        if self.all.len() >= MAX_NEIGHBOURS && !self.all.contains_key(&address) {
            self.all.retain(|_, n| n.heard_at + STALE > now);
            if self.all.len() >= MAX_NEIGHBOURS {
                return Err(Full);
            }
        }
        Ok(self.all.insert(address, Neighbour { heard_at: now, sequence }).map(|n| n.sequence))
    }

    /// Removes a neighbour. True: it was known.
    pub fn forget(&mut self, address: Ipv4Addr) -> bool {
        self.all.remove(&address).is_some()
    }

    /// All neighbours, sorted by address.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &Neighbour)> {
        self.all.iter().map(|(a, n)| (*a, n))
    }

    /// Time at which the neighbour is lost unless it is heard.
    pub fn expires_at(&self, neighbour: &Neighbour) -> Option<Instant> {
        self.silence.map(|silence| neighbour.heard_at + silence)
    }

    /// Removes and returns the neighbours that were silent for too long.
    pub fn expire(&mut self, now: Instant) -> Vec<Ipv4Addr> {
        let lost = |n: &Neighbour| self.expires_at(n).is_some_and(|at| at <= now);
        let silent: Vec<Ipv4Addr> = self.iter().filter(|(_, n)| lost(n)).map(|(a, _)| a).collect();
        for address in &silent {
            self.all.remove(address);
        }
        silent
    }

    /// The earliest loss of a neighbour.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.all.values().filter_map(|n| self.expires_at(n)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::trial::at;

    #[test]
    fn only_with_a_silence_limit_a_silent_neighbour_is_lost() {
        let p = Ipv4Addr::new(10, 0, 0, 2);
        let mut watched = Neighbours::new(Some(Duration::from_secs(3)));
        assert_eq!(watched.heard(at(1), p, Sequence(2)), Ok(None));
        assert_eq!(watched.heard(at(2), p, Sequence(4)), Ok(Some(Sequence(2))));
        assert_eq!((watched.expire(at(4)), watched.next_timeout()), (vec![], Some(at(5))));
        assert_eq!(watched.expire(at(5)), [p]);
        let mut reported = Neighbours::new(None);
        assert_eq!(reported.heard(at(1), p, Sequence(2)), Ok(None));
        assert_eq!((reported.next_timeout(), reported.expire(at(1000))), (None, vec![]));
    }

    #[test]
    fn forged_neighbours_fill_the_list_for_a_minute_only() {
        let mut neighbours = Neighbours::new(None);
        let heard =
            |n: &mut Neighbours, s: u32, i: u32| n.heard(at(s), Ipv4Addr::from(0x0a00_0000 + i), Sequence(0)).is_ok();
        let accepted = (0..1000).filter(|i| heard(&mut neighbours, 1, *i)).count();
        assert_eq!(accepted, MAX_NEIGHBOURS);
        assert!(!heard(&mut neighbours, 60, 5000) && heard(&mut neighbours, 61, 5000));
    }
}
