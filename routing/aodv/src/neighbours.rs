//! State of neighbours besides routes: monitored hellos (RFC 3561, 6.10), expected acknowledgements, and the blacklist of
//! one-way links (6.8).

use manet_engine::Instant;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Maximum number of neighbours per list.
pub const MAX_NEIGHBOURS: usize = 256;

/// Addresses, each with a deadline; a new one is ignored when [`MAX_NEIGHBOURS`] is reached.
#[derive(Clone, Debug, Default)]
pub struct Until(BTreeMap<Ipv4Addr, Instant>);

impl Until {
    /// Adds an address or changes its deadline.
    pub fn set(&mut self, address: Ipv4Addr, at: Instant) {
        if self.0.len() < MAX_NEIGHBOURS || self.0.contains_key(&address) {
            self.0.insert(address, at);
        }
    }
    /// Extends the deadline of a listed address; it never becomes earlier.
    pub fn renew(&mut self, address: Ipv4Addr, at: Instant) {
        if let Some(until) = self.0.get_mut(&address) {
            *until = at.max(*until);
        }
    }
    /// Removes an address. True: it was listed.
    pub fn remove(&mut self, address: Ipv4Addr) -> bool {
        self.0.remove(&address).is_some()
    }
    /// Whether the address is listed.
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        self.0.contains_key(&address)
    }
    /// The earliest deadline.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.0.values().min().copied()
    }
    /// Removes and returns the address with the earliest deadline at or before `now`.
    pub fn pop_due(&mut self, now: Instant) -> Option<Ipv4Addr> {
        let (address, _) = self.0.iter().filter(|(_, at)| **at <= now).min_by_key(|(a, at)| (**at, **a))?;
        let address = *address;
        self.0.remove(&address);
        Some(address)
    }
    /// Addresses and deadlines, sorted by address.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, Instant)> + '_ {
        self.0.iter().map(|(a, at)| (*a, *at))
    }
}

/// The lists of neighbours.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    /// Neighbours that sent a hello; silence until the deadline is a broken link.
    pub hello: Until,
    /// Neighbours that must acknowledge a reply (RREP-ACK) before the deadline.
    pub acks: Until,
    /// Neighbours whose requests are ignored until the deadline.
    pub blacklist: Until,
}

impl Neighbours {
    /// The earliest deadline of all lists.
    pub fn next_timeout(&self) -> Option<Instant> {
        [&self.hello, &self.acks, &self.blacklist].iter().filter_map(|u| u.next_timeout()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_expire_in_order_and_a_renewed_one_later() {
        let mut until = Until::default();
        let (at, ip) = (Instant::from_nanos, |d| Ipv4Addr::new(10, 0, 0, d));
        until.set(ip(1), at(5));
        until.set(ip(2), at(4));
        until.renew(ip(2), at(9));
        until.renew(ip(3), at(9));
        assert_eq!(until.next_timeout(), Some(at(5)));
        assert_eq!(
            [until.pop_due(at(9)), until.pop_due(at(9)), until.pop_due(at(9))],
            [Some(ip(1)), Some(ip(2)), None]
        );
    }

    #[test]
    fn the_list_does_not_exceed_its_limit() {
        let mut until = Until::default();
        for n in 0..10_000u32 {
            until.set(n.into(), Instant::ZERO);
        }
        assert_eq!(until.0.len(), MAX_NEIGHBOURS);
    }
}
