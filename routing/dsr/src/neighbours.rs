//! Link addresses of neighbours, learnt from their frames; there is no ARP.

use manet_engine::Instant;
use manet_routing::{Mac, BROADCAST_MAC};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

const MAX_NEIGHBOURS: usize = 256;

/// The heard neighbours.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    heard: BTreeMap<Ipv4Addr, (Mac, Instant)>,
    /// Number of changes of the addresses.
    version: u64,
}

impl Neighbours {
    /// Records a frame of `address`. Group addresses are ignored; a full table displaces the least recent neighbour.
    pub fn heard(&mut self, now: Instant, address: Ipv4Addr, mac: Mac) {
        if mac == BROADCAST_MAC || mac[0] & 1 != 0 {
            return;
        }
        if !self.heard.contains_key(&address) && self.heard.len() >= MAX_NEIGHBOURS {
            let oldest = self.heard.iter().min_by_key(|(_, (_, heard))| *heard).map(|(address, _)| *address);
            oldest.map(|address| self.heard.remove(&address));
        }
        let before = self.heard.insert(address, (mac, now));
        self.version += u64::from(before.is_none_or(|(known, _)| known != mac));
    }

    /// Removes a neighbour: it is not used as a next hop until it is heard again.
    pub fn forget(&mut self, address: Ipv4Addr) {
        self.version += u64::from(self.heard.remove(&address).is_some());
    }

    /// A number that changes with the set of addresses.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Link address of a neighbour.
    pub fn mac(&self, address: Ipv4Addr) -> Option<Mac> {
        self.heard.get(&address).map(|(mac, _)| *mac)
    }

    /// The neighbour that was most recently heard with this link address.
    pub fn address(&self, mac: Mac) -> Option<Ipv4Addr> {
        self.heard
            .iter()
            .filter(|(_, (m, _))| *m == mac)
            .max_by_key(|(_, (_, heard))| *heard)
            .map(|(address, _)| *address)
    }

    /// Neighbours and times of their last frames, sorted by address.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, Instant)> + '_ {
        self.heard.iter().map(|(address, (_, heard))| (*address, *heard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_displaces_the_least_recent_neighbour() {
        let mut neighbours = Neighbours::default();
        for n in 0..1000u32 {
            neighbours.heard(
                Instant::from_nanos(u64::from(n)),
                Ipv4Addr::from(n),
                [2, 0, 0, 0, (n >> 8) as u8, n as u8],
            );
        }
        assert_eq!((neighbours.iter().count(), neighbours.mac(Ipv4Addr::from(743))), (256, None));
        assert_eq!(neighbours.address([2, 0, 0, 0, 3, 231]), Some(Ipv4Addr::from(999)));
    }

    #[test]
    fn group_addresses_are_ignored() {
        let mut neighbours = Neighbours::default();
        neighbours.heard(Instant::ZERO, Ipv4Addr::from(1), [0x01, 0, 0x5e, 0, 0, 1]);
        assert_eq!(neighbours.iter().count(), 0);
    }
}
