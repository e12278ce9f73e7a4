//! A node's routes: the entry, and the table in memory (on a real node the kernel holds the table).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The device that packets of a route leave by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// Over the air, to the neighbour `via`.
    Radio,
    /// Into the TUN device, to the machine, packet by packet.
    Machine,
}

/// A route to a host or network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Address of the host or network.
    pub destination: Ipv4Addr,
    /// Prefix length in bits, 32 for a host.
    pub prefix: u8,
    /// The next hop; the destination itself if it is a neighbour.
    pub via: Ipv4Addr,
    /// Hop count, for status and notes only (the kernel's priority is the same for all routes).
    pub hops: u8,
    /// Outgoing device.
    pub device: Device,
    /// MTU of the path in bytes, if it differs from the device's.
    pub mtu: Option<u16>,
}

impl Route {
    /// A host route over the air.
    pub fn host(destination: Ipv4Addr, via: Ipv4Addr, hops: u8) -> Self {
        Self { destination, prefix: 32, via, hops, device: Device::Radio, mtu: None }
    }
}

/// A routing table in memory with longest-prefix match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes(BTreeMap<(u8, Ipv4Addr), Route>);

impl Routes {
    /// Adds or replaces a route. Host bits of the destination are cleared, as in the kernel's table. True: the table changed.
    pub fn set(&mut self, mut route: Route) -> bool {
        route.destination = network(route.destination, route.prefix);
        self.0.insert((route.prefix, route.destination), route) != Some(route)
    }

    /// Removes a route and returns it; `None` if it did not exist. Host bits are ignored.
    pub fn clear(&mut self, destination: Ipv4Addr, prefix: u8) -> Option<Route> {
        self.0.remove(&(prefix, network(destination, prefix)))
    }

    /// The route with the longest matching prefix.
    pub fn lookup(&self, destination: Ipv4Addr) -> Option<&Route> {
        (0..=32u8).rev().find_map(|prefix| self.0.get(&(prefix, network(destination, prefix))))
    }

    /// All routes, by prefix length and destination.
    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.0.values()
    }

    /// Number of routes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the table has no route.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The address with its host bits cleared. `prefix`: bits, more than 32 count as 32.
pub fn network(address: Ipv4Addr, prefix: u8) -> Ipv4Addr {
    let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
    Ipv4Addr::from(u32::from(address) & mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ip(d: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, d)
    }

    #[test]
    fn the_longest_prefix_wins_and_clearing_it_uncovers_the_shorter() {
        let mut routes = Routes::default();
        routes.set(Route { prefix: 0, ..Route::host(Ipv4Addr::UNSPECIFIED, ip(9), 3) });
        routes.set(Route::host(ip(2), ip(3), 2));
        assert_eq!(routes.lookup(ip(2)).unwrap().via, ip(3));
        assert_eq!(routes.lookup(ip(4)).unwrap().via, ip(9));
        routes.clear(ip(2), 32);
        assert_eq!(routes.lookup(ip(2)).unwrap().via, ip(9));
    }

    #[test]
    fn setting_again_replaces() {
        let mut routes = Routes::default();
        routes.set(Route::host(ip(2), ip(3), 2));
        routes.set(Route::host(ip(2), ip(4), 5));
        assert_eq!(routes.iter().map(|r| r.via).collect::<Vec<_>>(), [ip(4)]);
    }

    #[test]
    fn host_bits_do_not_make_another_network() {
        assert_eq!(network(Ipv4Addr::new(10, 1, 2, 3), 8), Ipv4Addr::new(10, 0, 0, 0));
        assert_eq!(network(Ipv4Addr::new(10, 1, 2, 3), 0), Ipv4Addr::UNSPECIFIED);
    }
}
