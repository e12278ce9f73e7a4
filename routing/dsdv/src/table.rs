//! The routing table and its rules (Perkins and Bhagwat, SIGCOMM 1994, sections 3 and 4, with ns-2.35's figures):
//! a newer number is accepted, the same number only with fewer hops, an older one never.
//!
//! Loop freedom: each next hop on a path has a newer number than the node before it, or the same number and fewer hops.
//! This holds as long as no node forgets what it advertised. So broken entries are kept; only a full table removes them,
//! the longest unchanged first.

use crate::entry::{Entry, INFINITE};
use crate::sequence::Sequence;
use crate::wire::Advert;
use manet_engine::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Maximum number of destinations: a full update of them takes 9 datagrams.
pub const MAX_DESTINATIONS: usize = 1024;

/// Parameters of the settling of routes before their advertisement.
#[derive(Clone, Copy, Debug)]
pub struct Settling {
    /// Settling time of a new destination.
    pub first: Duration,
    /// Weight of the old settling time in the average, 0 to 1.
    pub weight: f64,
    /// Whether a fresh number with another hop count triggers an update.
    pub trigger_on_fresh: bool,
}

/// The effect of an advertised entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Accepted; the kernel's route may have to change.
    Accepted,
    /// Refused; the name of the counter of the reason.
    Refused(&'static str),
    /// The neighbour has lost a destination of which this node has a newer sequence number, which is advertised at once.
    Outdated,
}

/// The routing table.
#[derive(Clone, Debug)]
pub struct Table {
    entries: BTreeMap<Ipv4Addr, Entry>,
    settling: Settling,
}

impl Table {
    /// An empty table.
    pub fn new(settling: Settling) -> Self {
        Self { entries: BTreeMap::new(), settling }
    }

    /// The entry of `destination`.
    pub fn get(&self, destination: Ipv4Addr) -> Option<&Entry> {
        self.entries.get(&destination)
    }

    /// The next hop of a usable route.
    pub fn next_hop(&self, destination: Ipv4Addr) -> Option<Ipv4Addr> {
        self.get(destination).filter(|e| e.is_usable()).map(|e| e.via)
    }

    /// All entries, sorted by destination.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &Entry)> {
        self.entries.iter().map(|(d, e)| (*d, e))
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Handles an entry of `via`: it reaches `destination`, `hops` away over `via` ([`INFINITE`]: no longer).
    pub fn receive(
        &mut self,
        now: Instant,
        via: Ipv4Addr,
        destination: Ipv4Addr,
        hops: u8,
        sequence: Sequence,
    ) -> Received {
        let Some(old) = self.entries.get_mut(&destination) else {
            return self.add(now, via, destination, hops, sequence);
        };
        if sequence == old.sequence {
            if hops >= old.hops {
                return Received::Refused("not-nearer");
            }
            let differs = hops != old.advertised_hops;
            replace(old, now, via, hops);
            (old.advertise_hops, old.trigger) = (differs, differs);
        } else if sequence.newer_than(old.sequence) {
            let took = old.changed_at.since(old.sequence_at).as_secs_f64();
            let weight = self.settling.weight;
            old.settling = Duration::from_secs_f64(weight * old.settling.as_secs_f64() + (1.0 - weight) * took);
            (old.sequence, old.sequence_at) = (sequence, now);
            let differs = hops != old.advertised_hops;
            replace(old, now, via, hops);
            (old.advertise_sequence, old.advertise_hops) = (true, differs);
            old.trigger = if self.settling.trigger_on_fresh { differs } else { old.trigger };
        } else if hops == INFINITE && old.is_usable() {
            self.advertise_at_once(now, destination);
            return Received::Outdated;
        } else {
            return Received::Refused("older-number");
        }
        Received::Accepted
    }

    fn add(&mut self, now: Instant, via: Ipv4Addr, destination: Ipv4Addr, hops: u8, sequence: Sequence) -> Received {
        let finite = hops != INFINITE;
        // a lost route displaces no other entry
        if self.entries.len() >= MAX_DESTINATIONS && !(finite && self.make_room()) {
            return Received::Refused("table-full");
        }
        let settling = self.settling.first;
        let entry = Entry {
            via,
            hops,
            sequence,
            changed_at: now,
            sequence_at: now,
            settling,
            advertise_at: if finite { now + settling * 2 } else { now },
            advertise_sequence: false,
            advertise_hops: finite,
            trigger: finite,
            advertised_hops: 0,
        };
        self.entries.insert(destination, entry);
        Received::Accepted
    }

    fn make_room(&mut self) -> bool {
        let broken = self.entries.iter().filter(|(_, e)| !e.is_usable());
        let Some(oldest) = broken.min_by_key(|(_, e)| e.changed_at).map(|(d, _)| *d) else { return false };
        self.entries.remove(&oldest).is_some()
    }

    /// Loses every route over `neighbour`; returns their destinations.
    pub fn lose_via(&mut self, now: Instant, neighbour: Ipv4Addr) -> Vec<Ipv4Addr> {
        let over = self.entries.iter_mut().filter(|(_, e)| e.via == neighbour && e.is_usable());
        over.map(|(destination, entry)| {
            entry.lose(now);
            *destination
        })
        .collect()
    }

    /// Advertises this destination at once: a neighbour has older information.
    pub fn advertise_at_once(&mut self, now: Instant, destination: Ipv4Addr) {
        if let Some(entry) = self.entries.get_mut(&destination) {
            entry.advertise_at = now;
            entry.advertise_hops = true;
            entry.trigger = true;
        }
    }

    /// Number of entries in an incremental update.
    pub fn news(&self, now: Instant) -> usize {
        self.entries.values().filter(|e| e.is_news(now)).count()
    }

    /// The entries of a full or an incremental update, which are then marked as advertised.
    pub fn advertise(&mut self, now: Instant, full: bool) -> Vec<Advert> {
        let advertised =
            self.entries.iter_mut().filter(|(_, e)| if full { e.may_be_advertised(now) } else { e.is_news(now) });
        advertised
            .map(|(destination, entry)| {
                entry.advertised(full);
                // the receiver's hop count (wire.rs); that of a lost route has no meaning and stays ns-2's 250
                let hops = u32::from(entry.hops) + u32::from(entry.is_usable());
                Advert { destination: *destination, hops, sequence: entry.sequence }
            })
            .collect()
    }

    /// The earliest time at which an entry triggers an update.
    pub fn next_trigger(&self) -> Option<Instant> {
        self.entries.values().filter(|e| e.trigger).map(|e| e.advertise_at).min()
    }
}

/// Replaces the route. It is advertised after twice the settling time, or at once if the old or the new route is lost.
fn replace(entry: &mut Entry, now: Instant, via: Ipv4Addr, hops: u8) {
    let settles = hops != INFINITE && entry.is_usable();
    entry.advertise_at = if settles { now + entry.settling * 2 } else { now };
    (entry.via, entry.hops, entry.changed_at) = (via, hops, now);
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::trial::at;

    const D: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
    const P: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const Q: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);

    fn table() -> Table {
        Table::new(Settling { first: Duration::from_secs(6), weight: 0.875, trigger_on_fresh: true })
    }

    /// A table that knows D over P, 3 hops, number 100, and has advertised it.
    fn advertised() -> Table {
        let mut table = table();
        table.receive(at(0.0), P, D, 3, Sequence(100));
        assert_eq!(table.advertise(at(12.0), true).len(), 1);
        table
    }

    #[test]
    fn a_new_destination_is_advertised_after_twice_the_settling_time() {
        let mut table = table();
        assert_eq!(table.receive(at(1.0), P, D, 3, Sequence(100)), Received::Accepted);
        assert_eq!((table.next_hop(D), table.next_trigger()), (Some(P), Some(at(13.0)))); // 1 + 2 x 6
        assert!(table.advertise(at(12.9), true).is_empty());
        let advert = Advert { destination: D, hops: 4, sequence: Sequence(100) };
        assert_eq!(table.advertise(at(13.0), false), [advert]);
        assert_eq!(table.next_trigger(), None);
    }

    #[test]
    fn the_settling_time_is_an_average_with_seven_eighths_of_the_old() {
        let mut table = table();
        table.receive(at(0.0), P, D, 3, Sequence(100));
        table.receive(at(4.0), Q, D, 2, Sequence(100)); // the best route came 4 s after the first
        assert_eq!(table.get(D).unwrap().advertise_at, at(16.0)); // 4 + 2 x 6
        table.receive(at(15.0), P, D, 3, Sequence(102));
        assert_eq!(table.get(D).unwrap().settling, Duration::from_secs_f64(5.75)); // 7/8 x 6 + 1/8 x 4
        assert_eq!(table.get(D).unwrap().advertise_at, at(26.5)); // 15 + 2 x 5.75
        table.receive(at(28.0), P, D, 3, Sequence(104));
        assert_eq!(table.get(D).unwrap().settling, Duration::from_secs_f64(5.03125));
        // 7/8 x 5.75 + 1/8 x 0
    }

    #[test]
    fn the_same_number_needs_fewer_hops_and_an_older_one_never_counts() {
        let mut table = advertised();
        assert_eq!(table.receive(at(13.0), Q, D, 3, Sequence(100)), Received::Refused("not-nearer"));
        assert_eq!(table.receive(at(13.0), Q, D, 1, Sequence(98)), Received::Refused("older-number"));
        assert_eq!(table.next_hop(D), Some(P));
        assert_eq!(table.receive(at(13.0), Q, D, 2, Sequence(100)), Received::Accepted);
        assert_eq!(table.next_hop(D), Some(Q));
    }

    #[test]
    fn a_newer_number_is_accepted_with_more_hops_also_across_the_wrap() {
        let mut table = table();
        table.receive(at(0.0), P, D, 3, Sequence(u32::MAX - 1));
        assert_eq!(table.receive(at(1.0), Q, D, 7, Sequence(0)), Received::Accepted);
        assert_eq!((table.next_hop(D), table.get(D).unwrap().hops), (Some(Q), 7));
    }

    #[test]
    fn a_fresh_number_alone_triggers_nothing_but_another_hop_count_does() {
        let mut table = advertised();
        table.receive(at(20.0), P, D, 3, Sequence(102));
        assert_eq!(table.next_trigger(), None);
        assert_eq!(table.news(at(40.0)), 1, "it is in the next update in any case");
        table.receive(at(33.0), P, D, 4, Sequence(104));
        assert!(table.next_trigger().is_some());
        // a return to the last advertised hop count needs no update (ns-2.35)
        table.receive(at(46.0), P, D, 3, Sequence(106));
        assert_eq!(table.next_trigger(), None);
    }

    #[test]
    fn ns_2_waits_with_a_fresh_hop_count_for_the_next_update() {
        let mut table = advertised();
        table.settling.trigger_on_fresh = false;
        table.receive(at(33.0), P, D, 4, Sequence(104));
        assert_eq!((table.next_trigger(), table.news(at(60.0))), (None, 1));
    }

    #[test]
    fn a_lost_route_is_advertised_at_once_with_an_odd_number_and_so_is_its_return() {
        let mut table = advertised();
        assert_eq!(table.lose_via(at(20.0), P), [D]);
        assert_eq!((table.next_hop(D), table.next_trigger()), (None, Some(at(20.0))));
        assert_eq!(table.advertise(at(20.0), false), [Advert { destination: D, hops: 250, sequence: Sequence(101) }]);
        assert_eq!(table.receive(at(21.0), Q, D, 2, Sequence(100)), Received::Refused("older-number"));
        assert_eq!(table.receive(at(22.0), Q, D, 5, Sequence(102)), Received::Accepted);
        assert_eq!((table.next_hop(D), table.next_trigger()), (Some(Q), Some(at(22.0))));
    }

    #[test]
    fn our_own_loss_does_not_lengthen_the_settling_time() {
        let mut table = advertised();
        table.lose_via(at(20.0), P);
        table.receive(at(21.0), Q, D, 5, Sequence(102));
        assert_eq!(table.get(D).unwrap().settling, Duration::from_secs_f64(5.25));
        // 7/8 x 6 + 1/8 x 0
    }

    #[test]
    fn a_neighbour_that_lost_a_destination_with_an_older_number_gets_ours() {
        let mut table = advertised();
        assert_eq!(table.receive(at(20.0), Q, D, INFINITE, Sequence(99)), Received::Outdated);
        assert_eq!((table.next_hop(D), table.next_trigger()), (Some(P), Some(at(20.0))));
    }

    #[test]
    fn an_incremental_update_repeats_a_hop_count_until_a_full_one_but_a_number_only_once() {
        let mut table = advertised();
        table.receive(at(20.0), Q, D, 2, Sequence(100));
        assert_eq!(table.advertise(at(32.0), false).len(), 1);
        assert_eq!(table.advertise(at(33.0), false).len(), 1);
        assert_eq!(table.advertise(at(34.0), true).len(), 1);
        assert_eq!(table.advertise(at(35.0), false).len(), 0);
        table.receive(at(40.0), Q, D, 2, Sequence(102));
        assert_eq!(table.advertise(at(60.0), false).len(), 1);
        assert_eq!(table.advertise(at(61.0), false).len(), 0);
    }

    #[test]
    fn a_full_table_displaces_the_longest_broken_entry_and_no_route() {
        let mut table = table();
        let d = |i: usize| Ipv4Addr::from(0x0a01_0000 + i as u32);
        for i in 0..MAX_DESTINATIONS {
            table.receive(at(i as f64), if i < 2 { P } else { Q }, d(i), 2, Sequence(2));
        }
        assert_eq!(table.receive(at(2000.0), Q, D, 2, Sequence(2)), Received::Refused("table-full"));
        table.lose_via(at(2000.0), P);
        assert_eq!(table.receive(at(2001.0), Q, D, INFINITE, Sequence(3)), Received::Refused("table-full"));
        assert_eq!(table.receive(at(2001.0), Q, D, 2, Sequence(2)), Received::Accepted);
        assert_eq!((table.len(), table.get(d(0)), table.get(d(1)).is_some()), (MAX_DESTINATIONS, None, true));
    }
}
