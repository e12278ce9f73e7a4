//! The route cache (RFC 4728, section 4.1), as a path cache.
//!
//! It holds whole paths from this node, as they were learnt, not a graph of links: the RFC allows both, ns-2's DSR (the
//! reference for our results) keeps paths, and a path cannot combine old and new links into a route that never existed. A
//! broken link cuts every path that contains it. No path visits a node twice or returns here. A full cache removes the
//! least recently used path (ns-2: the oldest).

use crate::lifetime::Lifetime;
use manet_engine::{Duration, Instant};
use manet_routing::Node;
use std::net::Ipv4Addr;

/// A path from this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The nodes after this one; the destination is the last.
    pub hops: Vec<Ipv4Addr>,
    /// Whether the last hop is outside the DSR network.
    pub external: bool,
}

#[derive(Clone, Debug)]
struct Path {
    route: Route,
    learnt: Instant,
    /// Time at which it was learnt or last used.
    used: Instant,
}

/// The route cache.
#[derive(Clone, Debug)]
pub struct Cache {
    node: Node,
    max_paths: usize,
    max_hops: usize,
    lifetime: Lifetime,
    paths: Vec<Path>,
    /// Whether the cache has changed since [`Self::take_changed`].
    changed: bool,
}

impl Cache {
    /// At most `max_paths` paths of `max_hops` hops, each kept for `lifetime` after its last use.
    pub fn new(node: Node, max_paths: usize, max_hops: usize, lifetime: Lifetime) -> Self {
        Self { node, max_paths, max_hops, lifetime, paths: Vec::new(), changed: false }
    }

    /// Learns a path, cut before a repeated node and to the maximum length. False: nothing is left of it.
    pub fn add(&mut self, now: Instant, hops: &[Ipv4Addr], external: bool) -> bool {
        let whole = hops.len();
        let inside = if external { whole.saturating_sub(1) } else { whole };
        let sound = |i: usize| {
            let hop = hops[i];
            let new = hop != self.node.address && !hops[..i].contains(&hop);
            new && if i < inside { self.can_be_a_node(hop) } else { !self.node.in_network(hop) && is_host(hop) }
        };
        let len = (0..whole.min(self.max_hops)).take_while(|i| sound(*i)).count();
        if len == 0 {
            return false;
        }
        self.put(now, Route { hops: hops[..len].to_vec(), external: external && len == whole });
        true
    }

    fn put(&mut self, now: Instant, route: Route) {
        self.expire(now);
        let known = self.paths.iter_mut().find(|p| p.route == route || p.route.continues(&route));
        if let Some(path) = known {
            path.used = now;
            return;
        }
        self.paths.retain(|p| !route.continues(&p.route));
        if self.paths.len() >= self.max_paths {
            let oldest = (0..self.paths.len()).min_by_key(|i| self.paths[*i].used);
            oldest.map(|i| self.paths.remove(i));
        }
        self.paths.push(Path { route, learnt: now, used: now });
        self.changed = true;
    }

    /// The shortest route to `destination`, the most recently used one among equals. Renews its lifetime.
    pub fn find(&mut self, now: Instant, destination: Ipv4Addr) -> Option<Route> {
        let (index, len) = self.best(now, destination)?;
        let path = &mut self.paths[index];
        path.used = now;
        Some(path.route.up_to(len))
    }

    /// As [`Self::find`], without renewing the lifetime.
    pub fn peek(&self, now: Instant, destination: Ipv4Addr) -> Option<Route> {
        self.best(now, destination).map(|(index, len)| self.paths[index].route.up_to(len))
    }

    /// Index of the path, and the number of its hops to the destination.
    fn best(&self, now: Instant, destination: Ipv4Addr) -> Option<(usize, usize)> {
        let hops_to = |path: &Path| path.route.hops.iter().position(|h| *h == destination);
        let timeout = self.lifetime.timeout(now);
        let fresh = self.paths.iter().enumerate().filter(|(_, p)| now.since(p.used) < timeout);
        let reaching = fresh.filter_map(|(i, p)| hops_to(p).map(|at| (i, at + 1, p.used)));
        reaching.min_by_key(|(_, len, used)| (*len, std::cmp::Reverse(*used))).map(|(i, len, _)| (i, len))
    }

    /// Removes the link `from` - `to` (RFC 4728, 8.3.5): cuts every path before `to`. True: a path was cut.
    pub fn remove_link(&mut self, now: Instant, from: Ipv4Addr, to: Ipv4Addr) -> bool {
        let own = self.node.address;
        let crosses = |hops: &[Ipv4Addr]| {
            (0..hops.len()).find(|i| hops[*i] == to && (if *i == 0 { own } else { hops[i - 1] }) == from)
        };
        let mut cut = false;
        for path in &mut self.paths {
            if let Some(at) = crosses(&path.route.hops) {
                path.route = path.route.up_to(at);
                self.lifetime.broke(now, path.learnt);
                cut = true;
            }
        }
        if cut {
            self.changed = true;
            self.merge();
        }
        cut
    }

    /// Removes paths that became empty or a prefix of another.
    fn merge(&mut self) {
        let paths = std::mem::take(&mut self.paths);
        for path in paths {
            let known = self.paths.iter().any(|p| p.route == path.route || p.route.continues(&path.route));
            if !path.route.hops.is_empty() && !known {
                self.paths.retain(|p| !path.route.continues(&p.route));
                self.paths.push(path);
            }
        }
    }

    /// Whether paths were learnt or cut since the last call.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    fn expire(&mut self, now: Instant) {
        let timeout = self.lifetime.timeout(now);
        self.paths.retain(|p| now.since(p.used) < timeout);
    }

    fn can_be_a_node(&self, address: Ipv4Addr) -> bool {
        self.node.in_network(address) && is_host(address) && address != self.node.broadcast()
    }

    /// The paths with their remaining lifetimes.
    pub fn paths(&self, now: Instant) -> impl Iterator<Item = (&Route, Duration)> {
        let timeout = self.lifetime.timeout(now);
        self.paths.iter().map(move |p| (&p.route, (p.used + timeout) - now))
    }

    /// Number of paths.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Whether there is no path.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }
}

impl Route {
    /// Whether `beginning` is a proper prefix of this route.
    fn continues(&self, beginning: &Route) -> bool {
        !beginning.external && self.hops.len() > beginning.hops.len() && self.hops.starts_with(&beginning.hops)
    }

    fn up_to(&self, len: usize) -> Route {
        Route { hops: self.hops[..len].to_vec(), external: self.external && len == self.hops.len() }
    }
}

fn is_host(address: Ipv4Addr) -> bool {
    !(address.is_unspecified() || address.is_broadcast() || address.is_multicast() || address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::trial::{at, ip};
    use proptest::prelude::*;

    const OWN: usize = 1;

    fn hops(list: &[usize]) -> Vec<Ipv4Addr> {
        list.iter().map(|d| ip(*d)).collect()
    }

    fn cache(max_paths: usize) -> Cache {
        cache_with(max_paths, false)
    }

    fn cache_with(max_paths: usize, adaptive: bool) -> Cache {
        let node = Node::new(1, ip(OWN), (ip(0), 24), [2, 0, 0, 0, 0, 1]);
        Cache::new(node, max_paths, 15, Lifetime::new(Duration::from_secs(300), adaptive))
    }

    fn found(cache: &mut Cache, to: usize) -> Option<Vec<Ipv4Addr>> {
        cache.find(at(1), ip(to)).map(|r| r.hops)
    }

    #[test]
    fn a_path_leads_to_each_of_its_hops_and_the_shortest_is_taken() {
        let mut cache = cache(64);
        cache.add(at(0), &hops(&[2, 3, 4]), false);
        cache.add(at(0), &hops(&[5, 4]), false);
        assert_eq!(found(&mut cache, 4), Some(hops(&[5, 4])));
        assert_eq!(found(&mut cache, 3), Some(hops(&[2, 3])));
        assert_eq!(found(&mut cache, 9), None);
    }

    #[test]
    fn of_equally_short_routes_the_one_learnt_last_is_taken() {
        let mut cache = cache(64);
        cache.add(at(1), &hops(&[3, 4]), false);
        cache.add(at(0), &hops(&[2, 4]), false);
        assert_eq!(found(&mut cache, 4), Some(hops(&[3, 4])));
    }

    #[test]
    fn a_broken_link_cuts_the_paths_that_cross_it_in_its_direction() {
        let mut cache = cache(64);
        cache.add(at(0), &hops(&[2, 3, 4]), false);
        cache.add(at(0), &hops(&[5, 4, 3]), false);
        assert!(cache.remove_link(at(1), ip(3), ip(4)));
        assert_eq!(found(&mut cache, 4), Some(hops(&[5, 4])));
        assert_eq!(found(&mut cache, 3), Some(hops(&[2, 3])));
        assert!(cache.remove_link(at(1), ip(OWN), ip(2)));
        assert_eq!(found(&mut cache, 3), Some(hops(&[5, 4, 3])));
        assert!(!cache.remove_link(at(1), ip(3), ip(4)));
    }

    #[test]
    fn a_path_is_learnt_up_to_its_first_repeated_node() {
        let mut cache = cache(64);
        assert!(cache.add(at(0), &hops(&[2, 3, 2, 4]), false));
        assert_eq!((found(&mut cache, 3), found(&mut cache, 4)), (Some(hops(&[2, 3])), None));
        assert!(!cache.add(at(0), &hops(&[OWN, 4]), false));
    }

    #[test]
    fn a_path_expires_after_its_last_use() {
        let mut cache = cache(64);
        cache.add(at(0), &hops(&[2]), false);
        assert!(cache.find(at(299), ip(2)).is_some());
        assert!(cache.peek(at(598), ip(2)).is_some());
        assert!(cache.peek(at(599), ip(2)).is_none());
    }

    #[test]
    fn a_broken_path_shortens_the_lives_of_the_others_if_the_time_out_is_adaptive() {
        // a path that lived for 8 s: 1.25 x 8 = 10 s
        for (adaptive, kept) in [(false, true), (true, false)] {
            let mut cache = cache_with(64, adaptive);
            cache.add(at(0), &hops(&[2, 3]), false);
            cache.add(at(4), &hops(&[5, 6]), false);
            assert!(cache.remove_link(at(8), ip(2), ip(3)));
            assert!(cache.peek(at(13), ip(6)).is_some());
            assert_eq!(cache.peek(at(14), ip(6)).is_some(), kept);
        }
    }

    #[test]
    fn a_full_cache_removes_the_least_recently_used_path() {
        let mut cache = cache(2);
        cache.add(at(0), &hops(&[2]), false);
        cache.add(at(0), &hops(&[3]), false);
        cache.find(at(1), ip(2));
        cache.add(at(2), &hops(&[4]), false);
        assert_eq!((found(&mut cache, 3), cache.len()), (None, 2));
    }

    #[test]
    fn only_the_last_hop_may_be_outside_and_only_in_an_external_path() {
        let outside = Ipv4Addr::new(192, 168, 1, 1);
        let mut cache = cache(64);
        assert!(cache.add(at(0), &[ip(2), outside], false));
        assert_eq!(cache.peek(at(0), outside), None);
        assert!(cache.add(at(0), &[ip(2), outside], true));
        assert_eq!(cache.peek(at(0), outside), Some(Route { hops: vec![ip(2), outside], external: true }));
        assert!(!cache.peek(at(0), ip(2)).unwrap().external);
    }

    proptest! {
        #[test]
        fn no_route_visits_a_node_twice_or_returns_here(
            adds in proptest::collection::vec((proptest::collection::vec(0..9usize, 0..20), any::<bool>()), 0..40),
            cuts in proptest::collection::vec((0..9usize, 0..9usize), 0..9)
        ) {
            let mut cache = cache(16);
            for (path, external) in &adds {
                cache.add(at(0), &hops(path), *external);
            }
            for (from, to) in &cuts {
                cache.remove_link(at(0), ip(*from), ip(*to));
            }
            prop_assert!(cache.len() <= 16);
            for (route, _) in cache.paths(at(0)) {
                let mut seen = route.hops.clone();
                seen.push(ip(OWN));
                for (from, to) in &cuts {
                    let from_own = *from == OWN && route.hops.first() == Some(&ip(*to));
                    prop_assert!(!from_own && !route.hops.windows(2).any(|w| w == [ip(*from), ip(*to)]));
                }
                seen.sort();
                seen.dedup();
                prop_assert_eq!(seen.len(), route.hops.len() + 1);
                prop_assert!(!route.hops.is_empty() && route.hops.len() <= 15);
            }
        }
    }
}
