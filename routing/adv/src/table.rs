//! The routing table and its rules: a newer number is accepted, the same number only with fewer hops, an older one never.
//!
//! Loop freedom: each entry keeps the newest number of its destination and the fewest hops that this node had with it, also
//! after a break. A neighbour becomes next hop only with a newer number, or the same number and fewer hops than that. So each
//! next hop on a path has a newer number than the node before it, or the same number and fewer hops.

use crate::entry::Entry;
use crate::sequence::Sequence;
use crate::wire::INFINITE;
use manet_engine::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Maximum number of destinations: a full update of them takes 13 datagrams.
pub const MAX_DESTINATIONS: usize = 1024;
/// Maximum hop count of a route.
pub const MAX_HOPS: u8 = INFINITE - 1;

/// A neighbour's route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The neighbour.
    pub via: Ipv4Addr,
    /// Destination of the route.
    pub destination: Ipv4Addr,
    /// The destination's number.
    pub sequence: Sequence,
    /// The neighbour's hop count.
    pub hops: u8,
    /// Whether the neighbour takes the destination for a receiver.
    pub receiver: bool,
}

/// The effect of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// The route is used; the kernel's route may have to change. `asked`: a neighbour has waited for it.
    Accepted {
        /// Whether a neighbour had asked for a route that this node did not have.
        asked: bool,
    },
    /// Refused; the name of the counter of the reason.
    Refused(&'static str),
}

/// The routing table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    entries: BTreeMap<Ipv4Addr, Entry>,
}

impl Table {
    /// The entry of `destination`.
    pub fn get(&self, destination: Ipv4Addr) -> Option<&Entry> {
        self.entries.get(&destination)
    }

    /// The entry of `destination`.
    pub fn get_mut(&mut self, destination: Ipv4Addr) -> Option<&mut Entry> {
        self.entries.get_mut(&destination)
    }

    /// The next hop of a usable route.
    pub fn next_hop(&self, destination: Ipv4Addr) -> Option<Ipv4Addr> {
        self.get(destination).filter(|e| e.is_usable()).map(|e| e.via)
    }

    /// All entries, sorted by destination.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &Entry)> {
        self.entries.iter().map(|(d, e)| (*d, e))
    }

    /// All entries, sorted by destination.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Ipv4Addr, &mut Entry)> {
        self.entries.iter_mut().map(|(d, e)| (*d, e))
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Handles a neighbour's route.
    pub fn offer(&mut self, now: Instant, us: Ipv4Addr, offer: Offer) -> Received {
        let Offer { via, destination, sequence, hops, receiver } = offer;
        if hops >= MAX_HOPS || (hops == 0) != (via == destination) {
            return Received::Refused("bad-hops");
        }
        let Some(entry) = self.entry(now, us, destination) else { return Received::Refused("table-full") };
        if let Some(own) = entry.sequence.filter(|own| *own != sequence && !sequence.newer_than(*own)) {
            debug_assert!(own != sequence);
            return Received::Refused("older-number");
        }
        let newer = entry.sequence != Some(sequence);
        // the destination's own entry sets the flag; with an equal number, other nodes cannot clear it
        let flag = if newer || hops == 0 { receiver } else { entry.receiver || receiver };
        let flag_changed = std::mem::replace(&mut entry.receiver, flag) != flag;
        let nearer = if entry.is_usable() { hops + 1 < entry.hops } else { hops < entry.fewest_hops };
        if !newer && !nearer {
            if entry.is_usable() && entry.via == via {
                entry.used_at = now;
            }
            entry.changed |= flag_changed && entry.is_usable();
            return Received::Refused("not-nearer");
        }
        entry.via = via;
        entry.hops = hops + 1;
        entry.fewest_hops = hops + 1;
        entry.sequence = Some(sequence);
        entry.signer = destination;
        entry.used_at = now;
        entry.changed = flag || flag_changed;
        Received::Accepted { asked: std::mem::take(&mut entry.asked) }
    }

    /// The entry of `destination`, created without a route if there is none. `None`: the table is full of routes.
    pub fn entry(&mut self, now: Instant, us: Ipv4Addr, destination: Ipv4Addr) -> Option<&mut Entry> {
        let known = self.entries.contains_key(&destination);
        if !known && self.entries.len() >= MAX_DESTINATIONS && !self.make_room() {
            return None;
        }
        Some(self.entries.entry(destination).or_insert_with(|| Entry::unknown(now, us)))
    }

    fn make_room(&mut self) -> bool {
        let broken = self.entries.iter().filter(|(_, e)| !e.is_usable());
        let Some(oldest) = broken.min_by_key(|(_, e)| e.broken_at).map(|(d, _)| *d) else { return false };
        self.entries.remove(&oldest).is_some()
    }

    /// Loses every route over `neighbour`; returns their destinations.
    pub fn lose_via(&mut self, now: Instant, us: Ipv4Addr, neighbour: Ipv4Addr) -> Vec<Ipv4Addr> {
        let over = self.entries.iter_mut().filter(|(_, e)| e.via == neighbour && e.is_usable());
        over.map(|(destination, entry)| {
            entry.lose(now, us);
            *destination
        })
        .collect()
    }

    /// Removes the unused routes to nodes that are no receivers; returns their destinations.
    pub fn expire(&mut self, now: Instant, us: Ipv4Addr, idle: Duration) -> Vec<Ipv4Addr> {
        let unused = self.entries.iter_mut().filter(|(_, e)| e.is_usable() && !e.receiver && e.used_at + idle <= now);
        unused
            .map(|(destination, entry)| {
                entry.lose(now, us);
                *destination
            })
            .collect()
    }

    /// The earliest expiry of an unused route.
    pub fn next_timeout(&self, idle: Duration) -> Option<Instant> {
        self.entries.values().filter(|e| e.is_usable() && !e.receiver).map(|e| e.used_at + idle).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::trial::at;

    const US: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const P: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const Q: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
    const D: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);

    fn offer(table: &mut Table, via: Ipv4Addr, sequence: u32, hops: u8) -> Received {
        let offer = Offer { via, destination: D, sequence: Sequence(sequence), hops, receiver: true };
        table.offer(at(1), US, offer)
    }

    const ACCEPTED: Received = Received::Accepted { asked: false };

    /// A route to D: number 10, 4 hops over P.
    fn table() -> Table {
        let mut table = Table::default();
        assert_eq!(offer(&mut table, P, 10, 3), ACCEPTED);
        table
    }

    #[test]
    fn a_newer_number_wins_and_an_equal_one_only_with_fewer_hops() {
        let mut table = table();
        assert_eq!(offer(&mut table, Q, 10, 3), Received::Refused("not-nearer"));
        assert_eq!(offer(&mut table, Q, 8, 1), Received::Refused("older-number"));
        assert_eq!(offer(&mut table, Q, 10, 2), ACCEPTED);
        assert_eq!(offer(&mut table, P, 12, 7), ACCEPTED);
        assert_eq!((table.next_hop(D), table.get(D).unwrap().hops), (Some(P), 8));
    }

    #[test]
    fn after_a_break_only_a_nearer_neighbour_or_a_newer_number_restores_the_route() {
        let mut table = table();
        assert_eq!(table.lose_via(at(2), US, P), [D]);
        assert_eq!(table.next_hop(D), None);
        // with the fewest hops of this node, 4, the neighbour's route may lead over this node
        assert_eq!(offer(&mut table, Q, 10, 4), Received::Refused("not-nearer"));
        assert_eq!(offer(&mut table, Q, 10, 3), ACCEPTED);
        table.lose_via(at(3), US, Q);
        assert_eq!(offer(&mut table, Q, 12, 9), ACCEPTED);
    }

    #[test]
    fn a_neighbour_that_asked_in_vain_is_answered_once_by_the_next_route() {
        let mut table = table();
        table.get_mut(D).unwrap().asked = true;
        assert_eq!(offer(&mut table, P, 12, 3), Received::Accepted { asked: true });
        assert_eq!(offer(&mut table, P, 14, 3), ACCEPTED);
    }

    #[test]
    fn a_broken_entry_is_advertised_with_the_next_number_and_its_signer() {
        let mut table = table();
        table.lose_via(at(2), US, P);
        let advert = table.get(D).unwrap().advert(D, false);
        assert_eq!((advert.sequence, advert.signer, advert.hops), (Sequence(11), US, INFINITE));
        assert!(advert.is_broken() && table.get(D).unwrap().changed);
    }

    #[test]
    fn only_the_destination_or_a_newer_number_switches_the_receiver_flag_off() {
        let mut table = table();
        let off =
            |via, sequence, hops| Offer { via, destination: D, sequence: Sequence(sequence), hops, receiver: false };
        table.offer(at(1), US, off(Q, 10, 3));
        assert!(table.get(D).unwrap().receiver);
        table.offer(at(1), US, off(D, 10, 0));
        assert!(!table.get(D).unwrap().receiver);
        offer(&mut table, Q, 10, 5);
        assert!(table.get(D).unwrap().receiver);
        table.offer(at(1), US, off(Q, 12, 5));
        assert!(!table.get(D).unwrap().receiver);
    }

    #[test]
    fn an_unused_route_to_no_receiver_is_removed_and_one_to_a_receiver_stays() {
        let mut table = table();
        let idle = Duration::from_secs(10);
        assert_eq!((table.next_timeout(idle), table.expire(at(100), US, idle)), (None, vec![]));
        table.get_mut(D).unwrap().receiver = false;
        assert_eq!(table.next_timeout(idle), Some(at(11)));
        assert_eq!(table.expire(at(11), US, idle), [D]);
        assert!(!table.get(D).unwrap().changed, "it is not advertised");
    }

    #[test]
    fn a_full_table_displaces_the_longest_broken_entry_and_no_route() {
        let mut table = Table::default();
        let d = |i: usize| Ipv4Addr::from(0x0a01_0000 + i as u32);
        let offer = |table: &mut Table, s, via, destination| {
            let offer = Offer { via, destination, sequence: Sequence(2), hops: 2, receiver: false };
            table.offer(at(s), US, offer)
        };
        for i in 0..MAX_DESTINATIONS {
            offer(&mut table, 1, if i < 2 { P } else { Q }, d(i));
        }
        assert_eq!(offer(&mut table, 2, Q, d(5000)), Received::Refused("table-full"));
        table.lose_via(at(3), US, P);
        assert_eq!(offer(&mut table, 4, Q, d(5000)), ACCEPTED);
        assert_eq!((table.len(), table.get(d(0)), table.get(d(1)).is_some()), (MAX_DESTINATIONS, None, true));
    }
}
