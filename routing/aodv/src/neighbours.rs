//! What is known of neighbours besides routes: whose hellos are listened for (RFC 3561, 6.10), whose acknowledgement is
//! waited for, and who is on the blacklist of one-way links (6.8).

use manet_engine::Instant;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Of each kind.
pub const MAX_NEIGHBOURS: usize = 256;

/// Addresses, each with an instant; one that does not fit is left out.
#[derive(Clone, Debug, Default)]
pub struct Until(BTreeMap<Ipv4Addr, Instant>);

impl Until {
    pub fn set(&mut self, address: Ipv4Addr, at: Instant) {
        if self.0.len() < MAX_NEIGHBOURS || self.0.contains_key(&address) {
            self.0.insert(address, at);
        }
    }
    /// Moves an instant that is set.
    pub fn renew(&mut self, address: Ipv4Addr, at: Instant) {
        if let Some(until) = self.0.get_mut(&address) {
            *until = at.max(*until);
        }
    }
    pub fn remove(&mut self, address: Ipv4Addr) -> bool {
        self.0.remove(&address).is_some()
    }
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        self.0.contains_key(&address)
    }
    pub fn next_timeout(&self) -> Option<Instant> {
        self.0.values().min().copied()
    }
    /// The earliest whose instant has come, taken out.
    pub fn pop_due(&mut self, now: Instant) -> Option<Ipv4Addr> {
        let (address, _) = self.0.iter().filter(|(_, at)| **at <= now).min_by_key(|(a, at)| (**at, **a))?;
        let address = *address;
        self.0.remove(&address);
        Some(address)
    }
    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, Instant)> + '_ {
        self.0.iter().map(|(a, at)| (*a, *at))
    }
}

#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    /// Neighbours that sent a hello; from this instant on their silence is a broken link.
    pub hello: Until,
    /// Neighbours that were sent a reply with a request for an RREP-ACK, and the deadline for it.
    pub acks: Until,
    /// Neighbours whose requests are ignored until this instant.
    pub blacklist: Until,
}

impl Neighbours {
    pub fn next_timeout(&self) -> Option<Instant> {
        [&self.hello, &self.acks, &self.blacklist].iter().filter_map(|u| u.next_timeout()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_come_in_order_and_a_renewed_one_later() {
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
    fn it_does_not_grow_without_end() {
        let mut until = Until::default();
        for n in 0..10_000u32 {
            until.set(n.into(), Instant::ZERO);
        }
        assert_eq!(until.0.len(), MAX_NEIGHBOURS);
    }
}
