//! Internet destinations and the gateways that answered for them, as AODV-UU 0.9.6 has it on the wire: the gateway's
//! reply is a route to the gateway itself and names the wanted address in extension 4; the source then encapsulates
//! every packet towards the gateway (RFC 2004), and the way back is plain routing ("half tunnel").
//!
//! A destination keeps its gateway as long as there is a route to it: changing without need would break connections
//! through address translation. When the gateway is lost, another that answered for the destination takes over, the
//! nearest of them, else a new discovery starts.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Internet destinations at once; beyond, the oldest is forgotten.
pub const MAX_DESTINATIONS: usize = 256;
/// Gateways remembered for one.
const MAX_GATEWAYS: usize = 8;

#[derive(Clone, Debug, Default)]
struct Destination {
    chosen: Option<Ipv4Addr>,
    /// Those who answered, the latest last.
    answered: VecDeque<Ipv4Addr>,
}

#[derive(Clone, Debug, Default)]
pub struct Internet {
    destinations: BTreeMap<Ipv4Addr, Destination>,
    order: VecDeque<Ipv4Addr>,
}

impl Internet {
    /// `gateway` answers for `destination`. Returns a destination whose route must be cleared to make room.
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

    fn forget(&mut self, destination: Ipv4Addr) -> bool {
        self.destinations.remove(&destination).is_some_and(|d| d.chosen.is_some())
    }

    pub fn chosen(&self, destination: Ipv4Addr) -> Option<Ipv4Addr> {
        self.destinations.get(&destination)?.chosen
    }

    /// Sets the gateway with the fewest `hops` (`None`: no route to it) of those who answered; the latest among equals.
    pub fn choose(&mut self, destination: Ipv4Addr, hops: impl Fn(Ipv4Addr) -> Option<u8>) -> Option<Ipv4Addr> {
        let entry = self.destinations.get_mut(&destination)?;
        let reachable = entry.answered.iter().rev().filter_map(|g| hops(*g).map(|h| (h, *g)));
        entry.chosen = reachable.min_by_key(|(h, _)| *h).map(|(_, g)| g);
        entry.chosen
    }

    /// The destinations that go through `gateway`.
    pub fn through(&self, gateway: Ipv4Addr) -> Vec<Ipv4Addr> {
        self.destinations.iter().filter(|(_, d)| d.chosen == Some(gateway)).map(|(d, _)| *d).collect()
    }

    /// Destination, gateway.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, Ipv4Addr)> + '_ {
        self.destinations.iter().filter_map(|(d, entry)| entry.chosen.map(|g| (*d, g)))
    }

    pub fn len(&self) -> usize {
        self.destinations.len()
    }

    pub fn is_empty(&self) -> bool {
        self.destinations.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
    const fn ip(d: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, d)
    }

    #[test]
    fn the_nearest_gateway_that_answered_is_chosen_and_the_latest_among_equals() {
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
    fn the_oldest_destination_is_forgotten_for_a_new_one() {
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
