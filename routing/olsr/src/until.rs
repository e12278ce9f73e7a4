//! Addresses with expiry times, in a sorted vector, because iteration is far more frequent than change.

use manet_engine::Instant;
use std::net::Ipv4Addr;

/// The addresses, sorted.
#[derive(Clone, Debug, Default)]
pub struct Until(Vec<(Ipv4Addr, Instant)>);

impl Until {
    /// Adds an address or changes its expiry, also to an earlier time. True: the address is new.
    pub fn set(&mut self, address: Ipv4Addr, until: Instant) -> bool {
        let found = self.find(address);
        match found {
            Ok(i) => self.0[i].1 = until,
            Err(i) => self.0.insert(i, (address, until)),
        }
        found.is_err()
    }

    /// Removes an address. True: it was there.
    pub fn remove(&mut self, address: Ipv4Addr) -> bool {
        let found = self.find(address);
        if let Ok(i) = found {
            self.0.remove(i);
        }
        found.is_ok()
    }

    /// Removes expired addresses.
    pub fn expire(&mut self, now: Instant) {
        self.0.retain(|(_, until)| *until > now);
    }

    /// Whether the address is in the set.
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        self.find(address).is_ok()
    }

    /// Number of addresses.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All addresses, in ascending order.
    pub fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.0.iter().map(|(address, _)| *address)
    }

    /// The earliest expiry.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.0.iter().map(|(_, until)| *until).min()
    }

    fn find(&self, address: Ipv4Addr) -> Result<usize, usize> {
        self.0.binary_search_by_key(&address, |(a, _)| *a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::trial::{at, ip};

    #[test]
    fn addresses_come_in_order_each_once_and_with_its_last_time() {
        let mut until = Until::default();
        assert!(until.set(ip(3), at(5)) && until.set(ip(1), at(9)) && !until.set(ip(3), at(7)));
        assert_eq!(until.addresses().collect::<Vec<_>>(), [ip(1), ip(3)]);
        assert_eq!(until.next_timeout(), Some(at(7)));
    }

    #[test]
    fn expired_and_removed_addresses_are_gone() {
        let mut until = Until::default();
        until.set(ip(1), at(5));
        until.set(ip(2), at(6));
        until.set(ip(3), at(7));
        until.expire(at(5));
        assert!(until.remove(ip(2)) && !until.remove(ip(2)) && !until.remove(ip(1)));
        assert!(until.contains(ip(3)) && until.len() == 1);
        until.expire(at(7));
        assert!(until.is_empty() && until.next_timeout().is_none());
    }
}
