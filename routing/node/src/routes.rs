//! A node's routes: the entry, and the table in memory (what the kernel holds on a real node).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Where packets of a route go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// Over the air, to the neighbour `via`.
    Radio,
    /// Into the TUN device, to the machine, packet by packet.
    Machine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    pub destination: Ipv4Addr,
    /// Bits of the network, 32 for a host.
    pub prefix: u8,
    /// The neighbour to send to; the destination itself if it is one.
    pub via: Ipv4Addr,
    /// Hop count, for people (the kernel's priority is the same for all).
    pub hops: u8,
    pub device: Device,
    /// The path's MTU in bytes where it is not the device's.
    pub mtu: Option<u16>,
}

impl Route {
    /// A host route over the air.
    pub fn host(destination: Ipv4Addr, via: Ipv4Addr, hops: u8) -> Self {
        Self { destination, prefix: 32, via, hops, device: Device::Radio, mtu: None }
    }
}

/// Longest-prefix match in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes(BTreeMap<(u8, Ipv4Addr), Route>);

impl Routes {
    /// Host bits of the destination are cleared, as the kernel's table has it.
    pub fn set(&mut self, mut route: Route) {
        route.destination = network(route.destination, route.prefix);
        self.0.insert((route.prefix, route.destination), route);
    }

    pub fn clear(&mut self, destination: Ipv4Addr, prefix: u8) -> Option<Route> {
        self.0.remove(&(prefix, network(destination, prefix)))
    }

    pub fn lookup(&self, destination: Ipv4Addr) -> Option<&Route> {
        (0..=32u8).rev().find_map(|prefix| self.0.get(&(prefix, network(destination, prefix))))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.0.values()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The address with its host bits cleared.
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
