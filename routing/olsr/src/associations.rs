//! Associations that nodes announce besides their links: further interface addresses (MID: RFC 3626, section 5) and
//! networks behind them (HNA: section 12).

use crate::neighbours::Full;
use manet_engine::Instant;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Maximum number of further interface addresses in the network.
pub const MAX_ALIASES: usize = 4096;
/// Maximum number of pairs of network and gateway.
pub const MAX_NETWORKS: usize = 4096;

/// Interface association set (4.1): interface address, main address, I_time.
#[derive(Clone, Debug, Default)]
pub struct Aliases(BTreeMap<Ipv4Addr, (Ipv4Addr, Instant)>);

impl Aliases {
    /// Adds or refreshes an address (5.4). `Ok(true)`: it is new or belonged to another node.
    pub fn add(&mut self, interface: Ipv4Addr, main: Ipv4Addr, until: Instant) -> Result<bool, Full> {
        if self.0.len() >= MAX_ALIASES && !self.0.contains_key(&interface) {
            return Err(Full);
        }
        let before = self.0.insert(interface, (main, until));
        Ok(before.is_none_or(|(was, _)| was != main))
    }

    /// The main address of the node with this interface (5.5); the address itself if none is known.
    pub fn main(&self, interface: Ipv4Addr) -> Ipv4Addr {
        self.0.get(&interface).map_or(interface, |(main, _)| *main)
    }

    /// Pairs of interface and main address, sorted by interface.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, Ipv4Addr)> + '_ {
        self.0.iter().map(|(interface, (main, _))| (*interface, *main))
    }

    /// Removes expired entries. True: there was at least one.
    pub fn expire(&mut self, now: Instant) -> bool {
        let before = self.0.len();
        self.0.retain(|_, (_, until)| *until > now);
        self.0.len() != before
    }

    /// The earliest expiry.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.0.values().map(|(_, until)| *until).min()
    }
}

/// Network association set (12.2): prefix, network, gateway, A_time.
#[derive(Clone, Debug, Default)]
pub struct Networks(BTreeMap<(u8, Ipv4Addr, Ipv4Addr), Instant>);

impl Networks {
    /// Adds or refreshes a network (12.5). `Ok(true)`: it is new.
    pub fn add(&mut self, network: Ipv4Addr, prefix: u8, gateway: Ipv4Addr, until: Instant) -> Result<bool, Full> {
        let key = (prefix, manet_routing::routes::network(network, prefix), gateway);
        if self.0.len() >= MAX_NETWORKS && !self.0.contains_key(&key) {
            return Err(Full);
        }
        Ok(self.0.insert(key, until).is_none())
    }

    /// Network, prefix length in bits, gateway.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, u8, Ipv4Addr)> + '_ {
        self.0.keys().map(|(prefix, network, gateway)| (*network, *prefix, *gateway))
    }

    /// Removes expired entries. True: there was at least one.
    pub fn expire(&mut self, now: Instant) -> bool {
        let before = self.0.len();
        self.0.retain(|_, until| *until > now);
        self.0.len() != before
    }

    /// The earliest expiry.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.0.values().min().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::trial::at;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const X: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

    #[test]
    fn an_interface_stands_for_its_node_until_it_expires() {
        let mut aliases = Aliases::default();
        assert_eq!(aliases.add(X, A, at(15)), Ok(true));
        assert_eq!(aliases.add(X, A, at(20)), Ok(false));
        assert_eq!((aliases.main(X), aliases.main(B)), (A, B));
        assert_eq!(aliases.add(X, B, at(20)), Ok(true));
        assert!(!aliases.expire(at(19)) && aliases.expire(at(20)));
        assert_eq!(aliases.main(X), X);
    }

    #[test]
    fn one_network_may_have_two_gateways_and_host_bits_make_no_difference() {
        let mut networks = Networks::default();
        assert_eq!(networks.add(Ipv4Addr::new(192, 168, 1, 7), 24, A, at(15)), Ok(true));
        assert_eq!(networks.add(Ipv4Addr::new(192, 168, 1, 9), 24, A, at(16)), Ok(false));
        assert_eq!(networks.add(Ipv4Addr::new(192, 168, 1, 0), 24, B, at(15)), Ok(true));
        assert_eq!(networks.iter().map(|(_, _, gateway)| gateway).collect::<Vec<_>>(), [A, B]);
        assert!(networks.expire(at(15)));
        assert_eq!(networks.iter().count(), 1);
    }

    #[test]
    fn forged_associations_fill_the_tables_and_no_more() {
        let (mut aliases, mut networks) = (Aliases::default(), Networks::default());
        for n in 0..10_000u32 {
            assert_eq!(aliases.add(Ipv4Addr::from(n), A, at(1)).is_ok(), n < MAX_ALIASES as u32);
            assert_eq!(networks.add(Ipv4Addr::from(n), 32, A, at(1)).is_ok(), n < MAX_NETWORKS as u32);
        }
    }
}
