//! Topology set (RFC 3626, sections 4.4 and 9.5): the advertised edges of all nodes.

use crate::neighbours::Full;
use crate::sequence;
use crate::until::Until;
use manet_engine::Instant;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Maximum number of edges: a thousand nodes with 16 neighbours each.
pub const MAX_EDGES: usize = 16_384;

/// The edges of one node's TCs. All have the same sequence number: a newer TC removes the older ones.
#[derive(Clone, Debug)]
struct Origin {
    ansn: u16,
    reaches: Until,
}

/// The topology set.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    origins: BTreeMap<Ipv4Addr, Origin>,
    edges: usize,
}

/// The TC is older than one that was processed (9.5, step 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale;

impl Topology {
    /// Begins a TC of `last` with this number (steps 2 and 3): a newer one removes the edges of older ones. `Ok(true)`:
    /// edges were removed.
    pub fn begin(&mut self, last: Ipv4Addr, ansn: u16) -> Result<bool, Stale> {
        match self.origins.get(&last) {
            Some(origin) if sequence::newer(origin.ansn, ansn) => Err(Stale),
            Some(origin) if sequence::newer(ansn, origin.ansn) => {
                self.edges -= origin.reaches.len();
                Ok(self.origins.remove(&last).is_some())
            }
            _ => Ok(false),
        }
    }

    /// Adds or refreshes the edge from `last` to `destination` (step 4). `Ok(true)`: it is new.
    pub fn reach(&mut self, last: Ipv4Addr, ansn: u16, destination: Ipv4Addr, until: Instant) -> Result<bool, Full> {
        let known = self.origins.get(&last).is_some_and(|o| o.reaches.contains(destination));
        if !known && self.edges >= MAX_EDGES {
            return Err(Full);
        }
        let origin = self.origins.entry(last).or_insert_with(|| Origin { ansn, reaches: Until::default() });
        let new = origin.reaches.set(destination, until);
        self.edges += usize::from(new);
        Ok(new)
    }

    /// Removes expired edges. True: there was at least one.
    pub fn expire(&mut self, now: Instant) -> bool {
        let before = self.edges;
        for origin in self.origins.values_mut() {
            origin.reaches.expire(now);
        }
        self.origins.retain(|_, origin| !origin.reaches.is_empty());
        self.edges = self.origins.values().map(|o| o.reaches.len()).sum();
        self.edges != before
    }

    /// The earliest expiry of an edge.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.origins.values().filter_map(|o| o.reaches.next_timeout()).min()
    }

    /// The destinations of the edges from `last`.
    pub fn from(&self, last: Ipv4Addr) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.origins.get(&last).into_iter().flat_map(|o| o.reaches.addresses())
    }

    /// All edges: last, destination, ANSN.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, Ipv4Addr, u16)> + '_ {
        self.origins.iter().flat_map(|(last, o)| o.reaches.addresses().map(|destination| (*last, destination, o.ansn)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::trial::at;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const C: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);

    fn tc(topology: &mut Topology, ansn: u16, list: &[Ipv4Addr]) -> Result<(), Stale> {
        topology.begin(A, ansn)?;
        for destination in list {
            topology.reach(A, ansn, *destination, at(15)).unwrap();
        }
        Ok(())
    }

    #[test]
    fn a_newer_tc_replaces_and_one_of_the_same_number_adds() {
        let mut topology = Topology::default();
        tc(&mut topology, 5, &[B]).unwrap();
        tc(&mut topology, 5, &[C]).unwrap();
        assert_eq!(topology.from(A).collect::<Vec<_>>(), [B, C]);
        tc(&mut topology, 6, &[C]).unwrap();
        assert_eq!(topology.from(A).collect::<Vec<_>>(), [C]);
        assert_eq!(tc(&mut topology, 5, &[B]), Err(Stale));
    }

    #[test]
    fn an_empty_tc_removes_all_edges() {
        let mut topology = Topology::default();
        tc(&mut topology, 5, &[B, C]).unwrap();
        assert_eq!(topology.begin(A, 6), Ok(true));
        assert_eq!((topology.iter().count(), topology.edges), (0, 0));
    }

    #[test]
    fn numbers_wrap_as_in_rfc_3626_section_19() {
        let mut topology = Topology::default();
        tc(&mut topology, 65_535, &[B]).unwrap();
        tc(&mut topology, 0, &[C]).unwrap();
        assert_eq!(topology.from(A).collect::<Vec<_>>(), [C]);
        assert_eq!(tc(&mut topology, 65_535, &[B]), Err(Stale));
    }

    #[test]
    fn an_edge_lives_for_the_vtime_of_its_tc() {
        let mut topology = Topology::default();
        tc(&mut topology, 5, &[B]).unwrap();
        assert_eq!(topology.next_timeout(), Some(at(15)));
        assert!(!topology.expire(at(14)));
        assert!(topology.expire(at(15)));
    }

    #[test]
    fn a_flood_of_edges_is_refused_but_known_ones_are_refreshed() {
        let mut topology = Topology::default();
        for n in 0..MAX_EDGES as u32 {
            assert_eq!(topology.reach(A, 1, Ipv4Addr::from(n), at(15)), Ok(true));
        }
        assert_eq!(topology.reach(B, 1, C, at(15)), Err(Full));
        assert_eq!(topology.reach(A, 1, Ipv4Addr::from(7), at(20)), Ok(false));
    }
}
