//! Heard neighbours with times. (ns-2 keeps them in the routing entries of the neighbours.)

use crate::sequence::Sequence;
use manet_engine::{Duration, Instant};
use std::collections::btree_map::Entry;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Maximum number of neighbours, more than share a channel. It limits the effect of forged senders.
pub const MAX_NEIGHBOURS: usize = 256;

/// A neighbour.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Time of its last update.
    pub heard_at: Instant,
    /// Its last sequence number in an entry about itself.
    pub sequence: Option<Sequence>,
    /// Time of its last update that showed that it hears us (used by `bidirectional_check` only).
    pub hears_us_at: Option<Instant>,
}

/// The heard neighbours.
#[derive(Clone, Debug)]
pub struct Neighbours {
    all: BTreeMap<Ipv4Addr, Neighbour>,
    silence: Duration,
}

impl Neighbours {
    /// `silence`: time after which a silent neighbour is lost.
    pub fn new(silence: Duration) -> Self {
        Self { all: BTreeMap::new(), silence }
    }

    /// Records an update of `address`. `None`: [`MAX_NEIGHBOURS`] is reached.
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

    /// The neighbour with this address.
    pub fn get(&self, address: Ipv4Addr) -> Option<&Neighbour> {
        self.all.get(&address)
    }

    /// Removes a neighbour. True: it was known.
    pub fn forget(&mut self, address: Ipv4Addr) -> bool {
        self.all.remove(&address).is_some()
    }

    /// All neighbours, sorted by address.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &Neighbour)> {
        self.all.iter().map(|(a, n)| (*a, n))
    }

    /// Removes and returns the neighbours that were silent, or did not list us, for too long.
    pub fn expire(&mut self, now: Instant) -> Vec<Ipv4Addr> {
        let silent: Vec<Ipv4Addr> = self.iter().filter(|(_, n)| self.expires_at(n) <= now).map(|(a, _)| a).collect();
        for address in &silent {
            self.all.remove(address);
        }
        silent
    }

    /// Time at which the neighbour is lost unless it is heard.
    pub fn expires_at(&self, neighbour: &Neighbour) -> Instant {
        neighbour.hears_us_at.map_or(neighbour.heard_at, |at| at.min(neighbour.heard_at)) + self.silence
    }

    /// The earliest loss of a neighbour.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.all.values().map(|n| self.expires_at(n)).min()
    }
}
