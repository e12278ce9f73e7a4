//! The routing table (RFC 3626, section 10), calculated anew from the sets; networks as in section 12.6.
//!
//! All routes have the fewest hops that the sets know of. Where several next hops do equally well the standard prefers
//! the more willing one, then an MPR selector of ours; what it leaves open goes to the next hop in use, so that nothing
//! moves without need, then to the lower address.

use crate::associations::{Aliases, Networks};
use crate::links::Links;
use crate::mpr::Selectors;
use crate::neighbours::Neighbours;
use crate::options::WILL_NEVER;
use crate::topology::Topology;
use manet_engine::Instant;
use manet_routing::Route;
use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Longer paths are not followed: an IP packet would not survive them.
const MOST_HOPS: u8 = 254;

/// What the calculation reads.
pub struct View<'a> {
    pub now: Instant,
    /// The node's addresses.
    pub own: &'a BTreeSet<Ipv4Addr>,
    /// Networks that the node reaches without OLSR.
    pub attached: &'a [(Ipv4Addr, u8)],
    pub links: &'a Links,
    pub neighbours: &'a Neighbours,
    pub selectors: &'a Selectors,
    pub topology: &'a Topology,
    pub aliases: &'a Aliases,
    pub networks: &'a Networks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub route: Route,
    /// Where it is from: `neighbour`, `two-hop`, `topology`, `alias`, `network`.
    pub source: &'static str,
}

/// By (prefix, destination).
pub type Table = BTreeMap<(u8, Ipv4Addr), Known>;

struct Calculation<'a> {
    view: &'a View<'a>,
    before: &'a Table,
    table: Table,
}

pub fn calculate(view: &View<'_>, before: &Table) -> Table {
    let mut calculation = Calculation { view, before, table: Table::new() };
    calculation.neighbours();
    calculation.two_hop_neighbours();
    let mut hops = 2;
    while hops < MOST_HOPS && calculation.beyond(hops) {
        hops += 1;
    }
    calculation.aliases();
    calculation.networks();
    calculation.table
}

impl Calculation<'_> {
    fn add(&mut self, route: Route, source: &'static str) {
        self.table.entry((route.prefix, route.destination)).or_insert(Known { route, source });
    }

    fn host(&self, destination: Ipv4Addr) -> Option<&Route> {
        self.table.get(&(32, destination)).map(|known| &known.route)
    }

    /// Whether a route to this host is still to be found.
    fn is_open(&self, destination: Ipv4Addr) -> bool {
        !self.view.own.contains(&destination) && self.host(destination).is_none()
    }

    fn in_use(&self, prefix: u8, destination: Ipv4Addr) -> Option<Ipv4Addr> {
        self.before.get(&(prefix, destination)).map(|known| known.route.via)
    }

    /// Step 2: each interface of each symmetric neighbour that is heard, and its main address.
    fn neighbours(&mut self) {
        let view = self.view;
        let symmetric: Vec<_> = view.links.iter().filter(|(_, link)| link.is_symmetric(view.now)).collect();
        for (interface, _) in &symmetric {
            self.add(Route::host(*interface, *interface, 1), "neighbour");
        }
        for (interface, link) in symmetric {
            if self.is_open(link.main) {
                self.add(Route::host(link.main, interface, 1), "neighbour");
            }
        }
    }

    /// Step 3, not over neighbours that are unwilling.
    fn two_hop_neighbours(&mut self) {
        let view = self.view;
        let mut best = BTreeMap::new();
        for (neighbour, far) in view.neighbours.two_hop().filter(|(_, far)| self.is_open(*far)) {
            let willing = view.neighbours.get(neighbour).filter(|n| n.symmetric && n.willingness != WILL_NEVER);
            let (Some(willing), Some(first)) = (willing, self.host(neighbour)) else { continue };
            let selects_us = view.selectors.contains(neighbour);
            let moves = self.in_use(32, far) != Some(first.via);
            keep_best(&mut best, far, (Reverse(willing.willingness), !selects_us, moves, first.via));
        }
        for (far, (_, _, _, via)) in best {
            self.add(Route::host(far, via, 2), "two-hop");
        }
    }

    /// Step 3.1 for one h: what nodes at `hops` reach. False: nothing.
    fn beyond(&mut self, hops: u8) -> bool {
        let mut best = BTreeMap::new();
        for (_, known) in self.table.iter().filter(|(_, known)| known.route.hops == hops) {
            let via = known.route.via;
            for far in self.view.topology.from(known.route.destination).filter(|far| self.is_open(*far)) {
                keep_best(&mut best, far, (self.in_use(32, far) != Some(via), via));
            }
        }
        let found = !best.is_empty();
        for (far, (_, via)) in best {
            self.add(Route::host(far, via, hops + 1), "topology");
        }
        found
    }

    /// Step 4: the other interfaces of the nodes that are reached.
    fn aliases(&mut self) {
        for (interface, main) in self.view.aliases.iter() {
            // not over another alias: only main addresses have interfaces
            let main = self.table.get(&(32, main)).filter(|known| known.source != "alias").map(|known| known.route);
            if let Some(route) = main.filter(|_| self.is_open(interface)) {
                self.add(Route { destination: interface, ..route }, "alias");
            }
        }
    }

    /// 12.6: each network over its nearest gateway.
    fn networks(&mut self) {
        let mut best = BTreeMap::new();
        for (network, prefix, gateway) in self.view.networks.iter() {
            let here = self.view.attached.contains(&(network, prefix)) || self.table.contains_key(&(prefix, network));
            let Some(route) = self.host(gateway).filter(|_| !here) else { continue };
            let moves = self.in_use(prefix, network) != Some(route.via);
            keep_best(&mut best, (prefix, network), (route.hops, moves, route.via));
        }
        for ((prefix, network), (hops, _, via)) in best {
            self.add(Route { prefix, ..Route::host(network, via, hops) }, "network");
        }
    }
}

/// The smallest rank wins.
fn keep_best<K: Ord, R: Ord>(best: &mut BTreeMap<K, R>, key: K, rank: R) {
    match best.entry(key) {
        Entry::Vacant(entry) => drop(entry.insert(rank)),
        Entry::Occupied(mut entry) if rank < *entry.get() => drop(entry.insert(rank)),
        Entry::Occupied(_) => {}
    }
}
