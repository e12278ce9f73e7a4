//! Neighbour set and 2-hop neighbour set (RFC 3626, sections 4.3.1, 4.3.2, 8.1, 8.2), by main addresses.

use crate::links::Links;
use manet_engine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Pairs of neighbour and 2-hop neighbour.
pub const MOST_TWO_HOP: usize = 16_384;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    pub willingness: u8,
    pub symmetric: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    neighbours: BTreeMap<Ipv4Addr, Neighbour>,
    /// (neighbour, 2-hop neighbour) and N_time.
    two_hop: BTreeMap<(Ipv4Addr, Ipv4Addr), Instant>,
}

/// How the symmetric neighbourhood changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub gained: Vec<Ipv4Addr>,
    pub lost: Vec<Ipv4Addr>,
}

impl Neighbours {
    /// The willingness a HELLO states (8.1.1). True: it is another than before.
    pub fn willing(&mut self, main: Ipv4Addr, willingness: u8) -> bool {
        let neighbour = self.neighbours.entry(main).or_insert(Neighbour { willingness, symmetric: false });
        std::mem::replace(&mut neighbour.willingness, willingness) != willingness
    }

    /// Follows the link set (8.1): there is a neighbour where there is a link, symmetric where one of its links is. The
    /// 2-hop neighbours behind one that is lost go with it (8.5).
    pub fn follow(&mut self, now: Instant, links: &Links) -> Changes {
        let (mains, symmetric) = (links.mains(), links.symmetric(now));
        let mut changes = Changes::default();
        for (main, neighbour) in &mut self.neighbours {
            let is = symmetric.contains(main);
            match (neighbour.symmetric, is) {
                (false, true) => changes.gained.push(*main),
                (true, false) => changes.lost.push(*main),
                _ => {}
            }
            neighbour.symmetric = is;
        }
        self.neighbours.retain(|main, _| mains.contains(main));
        if !changes.lost.is_empty() {
            self.two_hop.retain(|(neighbour, _), _| !changes.lost.contains(neighbour));
        }
        changes
    }

    /// 8.2.1, step 1: `neighbour` says that `two_hop` is its symmetric neighbour. `Ok(true)`: that is new.
    pub fn behind(&mut self, neighbour: Ipv4Addr, two_hop: Ipv4Addr, until: Instant) -> Result<bool, Full> {
        if let Some(time) = self.two_hop.get_mut(&(neighbour, two_hop)) {
            *time = until;
            return Ok(false);
        }
        if self.two_hop.len() >= MOST_TWO_HOP {
            return Err(Full);
        }
        self.two_hop.insert((neighbour, two_hop), until);
        Ok(true)
    }

    /// 8.2.1, step 2: `neighbour` says that `two_hop` is none of its neighbours. True: it was.
    pub fn not_behind(&mut self, neighbour: Ipv4Addr, two_hop: Ipv4Addr) -> bool {
        self.two_hop.remove(&(neighbour, two_hop)).is_some()
    }

    /// True: a 2-hop neighbour went.
    pub fn expire(&mut self, now: Instant) -> bool {
        let before = self.two_hop.len();
        self.two_hop.retain(|_, until| *until > now);
        self.two_hop.len() != before
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        self.two_hop.values().min().copied()
    }

    pub fn get(&self, main: Ipv4Addr) -> Option<Neighbour> {
        self.neighbours.get(&main).copied()
    }

    pub fn is_symmetric(&self, main: Ipv4Addr) -> bool {
        self.get(main).is_some_and(|n| n.symmetric)
    }

    /// The symmetric ones with their willingness.
    pub fn symmetric(&self) -> impl Iterator<Item = (Ipv4Addr, u8)> + '_ {
        self.neighbours.iter().filter(|(_, n)| n.symmetric).map(|(main, n)| (*main, n.willingness))
    }

    pub fn symmetric_set(&self) -> BTreeSet<Ipv4Addr> {
        self.symmetric().map(|(main, _)| main).collect()
    }

    /// (neighbour, 2-hop neighbour)
    pub fn two_hop(&self) -> impl Iterator<Item = (Ipv4Addr, Ipv4Addr)> + '_ {
        self.two_hop.keys().copied()
    }
}

/// A table has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;
