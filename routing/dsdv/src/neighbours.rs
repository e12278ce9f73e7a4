//! Which neighbours were heard, and when. (ns-2 keeps this in the routing entries of the neighbours.)

use crate::sequence::Sequence;
use manet_engine::{Duration, Instant};
use std::collections::btree_map::Entry;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// More stations than ever share a channel; what forged senders can fill.
pub const MAX_NEIGHBOURS: usize = 256;

#[derive(Clone, Debug)]
pub struct Neighbour {
    pub heard_at: Instant,
    /// The last sequence number in its entry about itself.
    pub sequence: Option<Sequence>,
    /// When its update last showed that it hears us (required by `bidirectional_check` only).
    pub hears_us_at: Option<Instant>,
}

#[derive(Clone, Debug)]
pub struct Neighbours {
    all: BTreeMap<Ipv4Addr, Neighbour>,
    silence: Duration,
}

impl Neighbours {
    pub fn new(silence: Duration) -> Self {
        Self { all: BTreeMap::new(), silence }
    }

    /// `None`: there are too many to know another.
    pub fn heard(&mut self, now: Instant, address: Ipv4Addr) -> Option<&mut Neighbour> {
        let room = self.all.len() < MAX_NEIGHBOURS;
        let neighbour = match self.all.entry(address) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) if room => {
                place.insert(Neighbour { heard_at: now, sequence: None, hears_us_at: None })
            }
            Entry::Vacant(_) => return None,
        };
        neighbour.heard_at = now;
        Some(neighbour)
    }

    pub fn get(&self, address: Ipv4Addr) -> Option<&Neighbour> {
        self.all.get(&address)
    }

    pub fn forget(&mut self, address: Ipv4Addr) -> bool {
        self.all.remove(&address).is_some()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &Neighbour)> {
        self.all.iter().map(|(a, n)| (*a, n))
    }

    /// Forgets those that were silent, or silent about us, for too long.
    pub fn expire(&mut self, now: Instant) -> Vec<Ipv4Addr> {
        let silent: Vec<Ipv4Addr> = self.iter().filter(|(_, n)| self.expires_at(n) <= now).map(|(a, _)| a).collect();
        for address in &silent {
            self.all.remove(address);
        }
        silent
    }

    pub fn expires_at(&self, neighbour: &Neighbour) -> Instant {
        neighbour.hears_us_at.map_or(neighbour.heard_at, |at| at.min(neighbour.heard_at)) + self.silence
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        self.all.values().map(|n| self.expires_at(n)).min()
    }
}
