//! Neighbour set and 2-hop neighbour set (RFC 3626, sections 4.3.1, 4.3.2, 8.1, 8.2), by main addresses.

use crate::links::Links;
use crate::until::Until;
use manet_engine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Maximum number of pairs of neighbour and 2-hop neighbour.
pub const MAX_TWO_HOP: usize = 16_384;

/// A neighbour tuple (4.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Willingness to be an MPR, 0 to 7.
    pub willingness: u8,
    /// Whether a link to it is symmetric.
    pub symmetric: bool,
}

/// The neighbour set and the 2-hop neighbour set.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    neighbours: BTreeMap<Ipv4Addr, Neighbour>,
    /// For each neighbour its 2-hop neighbours, each until N_time.
    two_hop: BTreeMap<Ipv4Addr, Until>,
    pairs: usize,
}

/// Changes of the symmetric neighbourhood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// New symmetric neighbours.
    pub gained: Vec<Ipv4Addr>,
    /// Former symmetric neighbours.
    pub lost: Vec<Ipv4Addr>,
}

impl Neighbours {
    /// Records the willingness in a HELLO (8.1.1). True: it has changed.
    pub fn willing(&mut self, main: Ipv4Addr, willingness: u8) -> bool {
        let neighbour = self.neighbours.entry(main).or_insert(Neighbour { willingness, symmetric: false });
        std::mem::replace(&mut neighbour.willingness, willingness) != willingness
    }

    /// Updates the set from the link set (8.1): a neighbour has at least one link and is symmetric if one of its links is.
    /// The 2-hop neighbours behind a lost neighbour are removed (8.5).
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
            self.two_hop.retain(|neighbour, _| !changes.lost.contains(neighbour));
            self.count();
        }
        changes
    }

    /// Adds or refreshes `two_hop` as a symmetric neighbour of `neighbour` (8.2.1, step 1). `Ok(true)`: it is new.
    pub fn add_two_hop(&mut self, neighbour: Ipv4Addr, two_hop: Ipv4Addr, until: Instant) -> Result<bool, Full> {
        let known = self.two_hop.get(&neighbour).is_some_and(|behind| behind.contains(two_hop));
        if !known && self.pairs >= MAX_TWO_HOP {
            return Err(Full);
        }
        let new = self.two_hop.entry(neighbour).or_default().set(two_hop, until);
        self.pairs += usize::from(new);
        Ok(new)
    }

    /// Removes `two_hop` from the neighbours of `neighbour` (8.2.1, step 2). True: it was there.
    pub fn remove_two_hop(&mut self, neighbour: Ipv4Addr, two_hop: Ipv4Addr) -> bool {
        let was = self.two_hop.get_mut(&neighbour).is_some_and(|known| known.remove(two_hop));
        self.pairs -= usize::from(was);
        was
    }

    /// Removes expired 2-hop neighbours. True: there was at least one.
    pub fn expire(&mut self, now: Instant) -> bool {
        let before = self.pairs;
        for known in self.two_hop.values_mut() {
            known.expire(now);
        }
        self.count();
        self.pairs != before
    }

    fn count(&mut self) {
        self.two_hop.retain(|_, known| !known.is_empty());
        self.pairs = self.two_hop.values().map(Until::len).sum();
    }

    /// The earliest expiry of a 2-hop neighbour.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.two_hop.values().filter_map(Until::next_timeout).min()
    }

    /// The neighbour with this main address.
    pub fn get(&self, main: Ipv4Addr) -> Option<Neighbour> {
        self.neighbours.get(&main).copied()
    }

    /// Whether this is a symmetric neighbour.
    pub fn is_symmetric(&self, main: Ipv4Addr) -> bool {
        self.get(main).is_some_and(|n| n.symmetric)
    }

    /// The symmetric neighbours with their willingness.
    pub fn symmetric(&self) -> impl Iterator<Item = (Ipv4Addr, u8)> + '_ {
        self.neighbours.iter().filter(|(_, n)| n.symmetric).map(|(main, n)| (*main, n.willingness))
    }

    /// Main addresses of the symmetric neighbours.
    pub fn symmetric_set(&self) -> BTreeSet<Ipv4Addr> {
        self.symmetric().map(|(main, _)| main).collect()
    }

    /// Pairs of neighbour and 2-hop neighbour, in ascending order.
    pub fn two_hop(&self) -> impl Iterator<Item = (Ipv4Addr, Ipv4Addr)> + '_ {
        self.two_hop.iter().flat_map(|(neighbour, known)| known.addresses().map(|far| (*neighbour, far)))
    }
}

/// A table is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::Heard;
    use crate::wire::hello::LinkType;
    use crate::wire::Span;
    use manet_engine::Duration;
    use manet_routing::trial::at;

    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const C: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);

    /// B is heard over `interface` for 6 s, and hears us.
    fn hear(links: &mut Links, s: u32, interface: Ipv4Addr) {
        let validity = Duration::from_secs(6);
        let heard = Heard { main: B, us: Some(LinkType::Symmetric), validity, htime: Span(5), packet: 0 };
        links.hello(at(s), interface, heard);
    }

    #[test]
    fn a_neighbour_is_symmetric_as_long_as_one_of_its_links_is() {
        let (mut links, mut neighbours) = (Links::new(Duration::from_secs(6), false), Neighbours::default());
        hear(&mut links, 0, B);
        hear(&mut links, 3, Ipv4Addr::new(10, 0, 1, 2));
        neighbours.willing(B, 3);
        assert_eq!(neighbours.follow(at(3), &links), Changes { gained: vec![B], lost: vec![] });
        assert_eq!(neighbours.follow(at(8), &links), Changes::default());
        assert_eq!(neighbours.follow(at(9), &links), Changes { gained: vec![], lost: vec![B] });
        // it stays a neighbour, but not a symmetric one, until its links expire
        assert_eq!(neighbours.get(B), Some(Neighbour { willingness: 3, symmetric: false }));
        links.expire(at(15));
        neighbours.follow(at(15), &links);
        assert_eq!(neighbours.get(B), None);
    }

    #[test]
    fn the_two_hop_neighbours_of_a_lost_neighbour_are_removed() {
        let (mut links, mut neighbours) = (Links::new(Duration::from_secs(6), false), Neighbours::default());
        hear(&mut links, 0, B);
        neighbours.willing(B, 3);
        neighbours.follow(at(0), &links);
        assert_eq!(neighbours.add_two_hop(B, C, at(60)), Ok(true));
        assert_eq!(neighbours.add_two_hop(B, C, at(70)), Ok(false));
        neighbours.follow(at(6), &links);
        assert_eq!(neighbours.two_hop().count(), 0);
    }

    #[test]
    fn a_two_hop_neighbour_expires_or_is_removed_by_its_neighbour() {
        let mut neighbours = Neighbours::default();
        neighbours.add_two_hop(B, C, at(6)).unwrap();
        assert!(!neighbours.expire(at(5)) && neighbours.expire(at(6)));
        neighbours.add_two_hop(B, C, at(6)).unwrap();
        assert!(neighbours.remove_two_hop(B, C) && !neighbours.remove_two_hop(B, C));
    }

    #[test]
    fn forged_two_hop_neighbours_do_not_exceed_the_limit() {
        let mut neighbours = Neighbours::default();
        for n in 0..2 * MAX_TWO_HOP as u32 {
            assert_eq!(neighbours.add_two_hop(B, Ipv4Addr::from(n), at(6)).is_ok(), n < MAX_TWO_HOP as u32);
        }
    }

    #[test]
    fn a_changed_willingness_is_reported() {
        let mut neighbours = Neighbours::default();
        assert!(!neighbours.willing(B, 3) && !neighbours.willing(B, 3) && neighbours.willing(B, 6));
    }
}
