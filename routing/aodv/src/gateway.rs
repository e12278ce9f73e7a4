//! Internet destinations and the gateways that replied for them, on the wire as in AODV-UU 0.9.6: the gateway's reply is
//! a route to the gateway itself and names the requested address in extension 4; the source then encapsulates every
//! packet to the gateway (RFC 2004), and the return path is plain routing ("half tunnel").
//!
//! A destination keeps its gateway as long as a route to the gateway exists: an unnecessary change would break
//! connections through address translation. When the gateway is lost, the nearest other gateway that replied for the
//! destination replaces it; without one a new discovery starts.
//!
//! With `internet = "default-route"` no packet is encapsulated: the source and each node on the path discover a gateway for
//! the destination and route it over the next hop to that gateway.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Maximum number of Internet destinations; a further one displaces the oldest.
pub const MAX_DESTINATIONS: usize = 256;
/// Maximum number of gateways per destination.
const MAX_GATEWAYS: usize = 8;

#[derive(Clone, Debug, Default)]
struct Destination {
    chosen: Option<Ipv4Addr>,
    /// The gateways that replied, the latest last.
    answered: VecDeque<Ipv4Addr>,
}

/// Internet destinations with their gateways.
#[derive(Clone, Debug, Default)]
pub struct Internet {
    destinations: BTreeMap<Ipv4Addr, Destination>,
    order: VecDeque<Ipv4Addr>,
}

impl Internet {
    /// Records that `gateway` replied for `destination`. Returns a displaced destination whose route must be cleared.
    pub fn answered(&mut self, destination: Ipv4Addr, gateway: Ipv4Addr) -> Option<Ipv4Addr> {
        let mut forgotten = None;
        if !self.destinations.contains_key(&destination) {
            if self.order.len() >= MAX_DESTINATIONS {
                forgotten = self.order.pop_front().filter(|old| self.forget(*old));
            }
            self.order.push_back(destination);
        }
        let entry = self.destinations.entry(destination).or_default();
        entry.answered.retain(|g| *g != gateway);
        entry.answered.push_back(gateway);
        if entry.answered.len() > MAX_GATEWAYS {
            entry.answered.pop_front();
        }
        forgotten
    }

    /// Removes the gateway in use from those that replied for `destination`, and returns it.
    pub fn refuse(&mut self, destination: Ipv4Addr) -> Option<Ipv4Addr> {
        let entry = self.destinations.get_mut(&destination)?;
        let gateway = entry.chosen.take()?;
        entry.answered.retain(|g| *g != gateway);
        Some(gateway)
    }

    fn forget(&mut self, destination: Ipv4Addr) -> bool {
        self.destinations.remove(&destination).is_some_and(|d| d.chosen.is_some())
    }

    /// The gateway in use for `destination`.
    pub fn chosen(&self, destination: Ipv4Addr) -> Option<Ipv4Addr> {
        self.destinations.get(&destination)?.chosen
    }

    /// Chooses, of the gateways that replied, the one with the fewest `hops` (`None`: no route to it); the latest among
    /// equals.
    pub fn choose(&mut self, destination: Ipv4Addr, hops: impl Fn(Ipv4Addr) -> Option<u8>) -> Option<Ipv4Addr> {
        let entry = self.destinations.get_mut(&destination)?;
        let reachable = entry.answered.iter().rev().filter_map(|g| hops(*g).map(|h| (h, *g)));
        entry.chosen = reachable.min_by_key(|(h, _)| *h).map(|(_, g)| g);
        entry.chosen
    }

    /// The destinations that use `gateway`.
    pub fn through(&self, gateway: Ipv4Addr) -> Vec<Ipv4Addr> {
        self.destinations.iter().filter(|(_, d)| d.chosen == Some(gateway)).map(|(d, _)| *d).collect()
    }

    /// Pairs of destination and gateway in use, sorted by destination.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, Ipv4Addr)> + '_ {
        self.destinations.iter().filter_map(|(d, entry)| entry.chosen.map(|g| (*d, g)))
    }

    /// Number of destinations.
    pub fn len(&self) -> usize {
        self.destinations.len()
    }

    /// Whether there is no destination.
    pub fn is_empty(&self) -> bool {
        self.destinations.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::trial::ip;

    const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

    #[test]
    fn the_nearest_replying_gateway_is_chosen_and_the_latest_among_equals() {
        let mut internet = Internet::default();
        for g in [8, 9, 7] {
            internet.answered(HOST, ip(g));
        }
        assert_eq!(internet.choose(HOST, |g| Some(if g == ip(8) { 3 } else { 2 })), Some(ip(7)));
        assert_eq!(internet.choose(HOST, |g| (g == ip(8)).then_some(3)), Some(ip(8)));
        assert_eq!(internet.through(ip(8)), [HOST]);
        assert_eq!((internet.choose(HOST, |_| None), internet.chosen(HOST)), (None, None));
    }

    #[test]
    fn a_new_destination_displaces_the_oldest() {
        let mut internet = Internet::default();
        let host = |n: u32| Ipv4Addr::from(0xc000_0200 + n);
        for n in 0..MAX_DESTINATIONS as u32 {
            assert_eq!(internet.answered(host(n), ip(9)), None);
            internet.choose(host(n), |_| Some(1));
        }
        assert_eq!(internet.answered(host(MAX_DESTINATIONS as u32), ip(9)), Some(host(0)));
        assert_eq!(internet.len(), MAX_DESTINATIONS);
    }
}
