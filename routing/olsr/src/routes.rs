//! The routing table (RFC 3626, section 10), recalculated from the sets; networks as in section 12.6.
//!
//! All routes are shortest paths in the sets. Among next hops of equal distance the standard prefers the more willing one,
//! then a neighbour that has selected this node as MPR. This daemon then prefers the next hop in use, which avoids needless
//! changes, then the lower address.

use crate::associations::{Aliases, Networks};
use crate::links::Links;
use crate::mpr::Selectors;
use crate::neighbours::Neighbours;
use crate::options::{WILL_ALWAYS, WILL_NEVER};
use crate::topology::Topology;
use manet_engine::Instant;
use manet_routing::Route;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Longer paths are ignored: the TTL of an IP packet would expire on them.
const MAX_HOPS: u8 = 254;

/// The input of the calculation.
pub struct View<'a> {
    /// Time at which links are judged.
    pub now: Instant,
    /// The node's addresses.
    pub own: &'a BTreeSet<Ipv4Addr>,
    /// Networks that the node reaches without OLSR.
    pub attached: &'a [(Ipv4Addr, u8)],
    /// Link set.
    pub links: &'a Links,
    /// Neighbour and 2-hop neighbour sets.
    pub neighbours: &'a Neighbours,
    /// MPR selector set.
    pub selectors: &'a Selectors,
    /// Topology set.
    pub topology: &'a Topology,
    /// Interface association set.
    pub aliases: &'a Aliases,
    /// Network association set.
    pub networks: &'a Networks,
}

/// A calculated route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The route.
    pub route: Route,
    /// The set that it is from: `neighbour`, `two-hop`, `topology`, `alias`, `network`.
    pub source: &'static str,
}

/// Routes by prefix length and destination.
pub type Table = BTreeMap<(u8, Ipv4Addr), Known>;

struct Calculation<'a> {
    view: &'a View<'a>,
    before: &'a Table,
    table: Table,
    /// The node itself and all hosts of `table`, in ascending order. Most candidates are in it and need not be sorted.
    closed: Vec<Ipv4Addr>,
}

/// Calculates the table. `before`: the previous table, for the next hops in use.
pub fn calculate(view: &View<'_>, before: &Table) -> Table {
    let closed = view.own.iter().copied().collect();
    let mut calculation = Calculation { view, before, table: Table::new(), closed };
    calculation.neighbours();
    let mut found = calculation.two_hop_neighbours();
    let mut hops = 2;
    while hops < MAX_HOPS && !found.is_empty() {
        hops += 1;
        found = calculation.beyond(&found, hops);
    }
    calculation.aliases();
    calculation.networks();
    calculation.table
}

/// A candidate route. The smallest wins: first by rank, then the next hop in use, then by the next hop's address. It is one
/// number, because sorting dominates the cost: from the left prefix, destination, rank, next hop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate(u128);

impl Candidate {
    fn new(prefix: u8, destination: Ipv4Addr, rank: u8, via: Ipv4Addr) -> Self {
        let to = u128::from(prefix) << 32 | u128::from(destination.to_bits());
        Self(to << 40 | u128::from(rank) << 32 | u128::from(via.to_bits()))
    }

    fn prefix(self) -> u8 {
        (self.0 >> 72) as u8
    }

    fn destination(self) -> Ipv4Addr {
        Ipv4Addr::from_bits((self.0 >> 40) as u32)
    }

    fn rank(self) -> u8 {
        (self.0 >> 32) as u8
    }

    fn via(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.0 as u32)
    }

    fn same_destination(&self, other: &Self) -> bool {
        self.0 >> 40 == other.0 >> 40
    }
}

impl Calculation<'_> {
    fn add(&mut self, route: Route, source: &'static str) {
        self.table.entry((route.prefix, route.destination)).or_insert(Known { route, source });
        if route.prefix == 32 {
            if let Err(i) = self.closed.binary_search(&route.destination) {
                self.closed.insert(i, route.destination);
            }
        }
    }

    fn host(&self, destination: Ipv4Addr) -> Option<&Route> {
        self.table.get(&(32, destination)).map(|known| &known.route)
    }

    /// Whether no route to this host was found so far.
    fn is_open(&self, destination: Ipv4Addr) -> bool {
        self.closed.binary_search(&destination).is_err()
    }

    fn in_use(&self, prefix: u8, destination: Ipv4Addr) -> Option<Ipv4Addr> {
        self.before.get(&(prefix, destination)).map(|known| known.route.via)
    }

    /// Step 2: adds each heard interface of each symmetric neighbour, and its main address.
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

    /// Step 3, without unwilling neighbours. Returns the routes found.
    fn two_hop_neighbours(&mut self) -> Vec<Route> {
        let view = self.view;
        let mut candidates = Vec::new();
        let (mut last, mut first_hop) = (None, None);
        for (neighbour, far) in view.neighbours.two_hop() {
            if last.replace(neighbour) != Some(neighbour) {
                let willing = view.neighbours.get(neighbour).filter(|n| n.symmetric && n.willingness != WILL_NEVER);
                let selects_us = view.selectors.contains(neighbour);
                let rank = willing.map(|n| 2 * (WILL_ALWAYS - n.willingness.min(WILL_ALWAYS)) + u8::from(!selects_us));
                first_hop = rank.zip(self.host(neighbour).map(|first| first.via));
            }
            let open = first_hop.filter(|_| self.is_open(far));
            candidates.extend(open.map(|(rank, via)| Candidate::new(32, far, rank, via)));
        }
        self.reach(candidates, 2, "two-hop")
    }

    /// Step 3.1 for one h: adds the hosts that nodes at distance `hops` - 1 reach. Returns the routes found.
    fn beyond(&mut self, nodes: &[Route], hops: u8) -> Vec<Route> {
        let mut candidates = Vec::new();
        for node in nodes {
            let open = self.view.topology.from(node.destination).filter(|far| self.is_open(*far));
            candidates.extend(open.map(|far| Candidate::new(32, far, 0, node.via)));
        }
        self.reach(candidates, hops, "topology")
    }

    /// Adds the best route to each of these hosts, which have none so far.
    fn reach(&mut self, mut candidates: Vec<Candidate>, hops: u8, source: &'static str) -> Vec<Route> {
        candidates.sort_unstable();
        let groups = candidates.chunk_by(Candidate::same_destination);
        let found: Vec<Route> =
            groups.map(|group| Route::host(group[0].destination(), self.best_next_hop(group), hops)).collect();
        found.iter().for_each(|route| self.add(*route, source));
        found
    }

    /// The best next hop of these candidates, which are sorted and have one destination.
    fn best_next_hop(&self, candidates: &[Candidate]) -> Ipv4Addr {
        let first = candidates[0];
        let in_use = self.in_use(first.prefix(), first.destination());
        let equals = candidates.iter().take_while(|c| c.rank() == first.rank());
        equals.map(|c| c.via()).find(|via| Some(*via) == in_use).unwrap_or(first.via())
    }

    /// Step 4: adds the other interfaces of the reachable nodes.
    fn aliases(&mut self) {
        for (interface, main) in self.view.aliases.iter() {
            // not over another alias: only main addresses have interfaces
            let main = self.table.get(&(32, main)).filter(|known| known.source != "alias").map(|known| known.route);
            if let Some(route) = main.filter(|_| self.is_open(interface)) {
                self.add(Route { destination: interface, ..route }, "alias");
            }
        }
    }

    /// Adds each network over its nearest gateway (12.6).
    fn networks(&mut self) {
        let mut candidates = Vec::new();
        for (network, prefix, gateway) in self.view.networks.iter() {
            let here = self.view.attached.contains(&(network, prefix)) || self.table.contains_key(&(prefix, network));
            if let Some(route) = self.host(gateway).filter(|_| !here) {
                candidates.push(Candidate::new(prefix, network, route.hops, route.via));
            }
        }
        candidates.sort_unstable();
        for group in candidates.chunk_by(Candidate::same_destination) {
            let (prefix, destination, hops) = (group[0].prefix(), group[0].destination(), group[0].rank());
            let via = self.best_next_hop(group);
            self.add(Route { prefix, ..Route::host(destination, via, hops) }, "network");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::Heard;
    use crate::wire::hello::LinkType;
    use crate::wire::Span;
    use manet_engine::Duration;

    const fn ip(d: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, d)
    }

    #[derive(Default)]
    struct Sets {
        links: Links,
        neighbours: Neighbours,
        selectors: Selectors,
        topology: Topology,
        aliases: Aliases,
        networks: Networks,
        attached: Vec<(Ipv4Addr, u8)>,
    }

    const LATER: Instant = Instant::from_nanos(60_000_000_000);

    impl Sets {
        /// Symmetric neighbours of 10.0.0.1, each with its willingness and the nodes behind it.
        fn new(neighbours: &[(u8, u8, &[u8])]) -> Self {
            let mut sets = Self::default();
            for (n, willingness, behind) in neighbours {
                let us = Some(LinkType::Symmetric);
                let heard = Heard { main: ip(*n), us, validity: Duration::from_secs(60), htime: Span(5), packet: 0 };
                sets.links.hello(Instant::ZERO, ip(*n), heard);
                sets.neighbours.willing(ip(*n), *willingness);
                for far in *behind {
                    sets.neighbours.add_two_hop(ip(*n), ip(*far), LATER).unwrap();
                }
            }
            sets.neighbours.follow(Instant::ZERO, &sets.links);
            sets
        }

        fn tc(mut self, last: u8, list: &[u8]) -> Self {
            list.iter().for_each(|n| assert_eq!(self.topology.reach(ip(last), 1, ip(*n), LATER), Ok(true)));
            self
        }

        fn calculate(&self, before: &Table) -> Table {
            let own = BTreeSet::from([ip(1)]);
            let (now, attached) = (Instant::ZERO, &self.attached[..]);
            let Self { links, neighbours, selectors, topology, aliases, networks, .. } = self;
            let view = View { now, own: &own, attached, links, neighbours, selectors, topology, aliases, networks };
            calculate(&view, before)
        }

        /// Destination, next hop, hops.
        fn routes(&self) -> Vec<(u8, u8, u8)> {
            let last = |a: Ipv4Addr| a.octets()[3];
            let table = self.calculate(&Table::new());
            table.values().map(|k| (last(k.route.destination), last(k.route.via), k.route.hops)).collect()
        }
    }

    #[test]
    fn paths_have_the_fewest_hops_and_never_lead_back() {
        let sets = Sets::new(&[(2, 3, &[1, 3, 4]), (3, 3, &[1, 2])]).tc(4, &[5, 2, 1]).tc(5, &[6, 3]).tc(9, &[8]);
        assert_eq!(sets.routes(), [(2, 2, 1), (3, 3, 1), (4, 2, 2), (5, 2, 3), (6, 2, 4)]);
    }

    #[test]
    fn an_edge_counts_only_in_the_advertised_direction() {
        // 5 advertises 4; no node advertises 5
        assert_eq!(Sets::new(&[(2, 3, &[4])]).tc(5, &[4]).routes(), [(2, 2, 1), (4, 2, 2)]);
    }

    #[test]
    fn ties_prefer_willingness_then_a_selector_then_the_route_in_use_then_the_lower_address() {
        let via = |sets: &Sets, before: &Table| sets.calculate(before)[&(32, ip(9))].route.via;
        let (equal, none) = (Sets::new(&[(2, 3, &[9]), (3, 3, &[9])]), Table::new());
        assert_eq!(via(&equal, &none), ip(2));
        let in_use = Known { route: Route::host(ip(9), ip(3), 2), source: "two-hop" };
        let before = Table::from([((32, ip(9)), in_use)]);
        assert_eq!(via(&equal, &before), ip(3));
        let mut selected = Sets::new(&[(2, 3, &[9]), (3, 3, &[9])]);
        selected.selectors.chose_us(ip(2), LATER);
        assert_eq!(via(&selected, &before), ip(2));
        let willing = Sets::new(&[(2, 3, &[9]), (3, 4, &[9])]);
        assert_eq!(via(&willing, &none), ip(3));
        assert!(!Sets::new(&[(2, 0, &[9])]).calculate(&none).contains_key(&(32, ip(9))));
    }

    #[test]
    fn a_distant_route_keeps_its_next_hop_if_that_is_as_short() {
        let sets = Sets::new(&[(2, 3, &[4]), (3, 3, &[5])]).tc(4, &[9]).tc(5, &[9]);
        let before = Table::from([((32, ip(9)), Known { route: Route::host(ip(9), ip(3), 3), source: "topology" })]);
        assert_eq!(sets.calculate(&Table::new())[&(32, ip(9))].route.via, ip(2));
        assert_eq!(sets.calculate(&before)[&(32, ip(9))].route.via, ip(3));
    }

    #[test]
    fn an_alias_of_an_alias_and_an_alias_of_ourselves_make_no_route() {
        let mut sets = Sets::new(&[(2, 3, &[])]);
        for (interface, main) in [(20, 2), (21, 20), (1, 2), (22, 9)] {
            sets.aliases.add(ip(interface), ip(main), LATER).unwrap();
        }
        assert_eq!(sets.routes(), [(2, 2, 1), (20, 2, 1)]);
    }

    #[test]
    fn networks_use_the_nearest_reachable_gateway_and_never_our_own() {
        let mut sets = Sets::new(&[(2, 3, &[4]), (3, 3, &[])]);
        let net = |n| Ipv4Addr::new(192, 168, n, 0);
        sets.attached = vec![(net(1), 24)];
        for (network, gateway) in [(net(1), 2), (net(2), 4), (net(2), 3), (net(3), 9)] {
            sets.networks.add(network, 24, ip(gateway), LATER).unwrap();
        }
        let table = sets.calculate(&Table::new());
        let networks: Vec<_> = table.values().map(|k| k.route).filter(|r| r.prefix == 24).collect();
        assert_eq!(networks, [Route { prefix: 24, ..Route::host(net(2), ip(3), 1) }]);
    }
}
