//! The route table (RFC 3561, section 2 and 6.2).
//!
//! An entry is valid until `expires`; then, or when its link breaks, it is invalid for DELETE_PERIOD, keeping its
//! sequence number, and then gone. Not every valid entry is in the kernel: most reverse routes are never used, so a
//! route goes there when a reply passes or a packet asks for it (`installed`). The RFC knows no such difference.
//!
//! Order that keeps routes free of loops: an entry never becomes less fresh. Older sequence numbers are not taken, and
//! a route that goes invalid gets a higher one.

use crate::sequence;
use manet_engine::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Entries. Forged originators may fill it; routes that carry data are not given up for them.
pub const MAX_ROUTES: usize = 1024;
/// Precursors of an entry. With two a route error is broadcast already, so those left out change nothing.
const MAX_PRECURSORS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Valid,
    Invalid,
    /// Local repair is under way (6.12).
    Repair,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub destination: Ipv4Addr,
    /// With the RFC's valid flag: `None` is an unknown one.
    pub sequence: Option<u32>,
    pub state: State,
    pub hops: u8,
    pub next_hop: Ipv4Addr,
    pub precursors: BTreeSet<Ipv4Addr>,
    /// When a valid entry becomes invalid, or an invalid one goes.
    pub expires: Instant,
    /// Last data packet.
    pub used: Option<Instant>,
    pub installed: bool,
}

impl Entry {
    pub fn valid(&self) -> bool {
        self.state == State::Valid
    }

    pub fn add_precursor(&mut self, neighbour: Ipv4Addr) {
        if self.precursors.len() < MAX_PRECURSORS {
            self.precursors.insert(neighbour);
        }
    }

    /// The sequence number in a route error: fresher than any that our precursors have. 0 is unknown.
    pub fn error_sequence(&self) -> u32 {
        self.sequence.unwrap_or(0)
    }
}

/// A route that a message offers.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    pub destination: Ipv4Addr,
    /// `None`: the neighbour itself was heard, without its sequence number.
    pub sequence: Option<u32>,
    pub hops: u8,
    pub next_hop: Ipv4Addr,
    pub expires: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Not better than what is there, or no room.
    Refused,
    /// The same route, now known to live on.
    Refreshed,
    Updated,
}

#[derive(Clone, Debug, Default)]
pub struct Table {
    entries: BTreeMap<Ipv4Addr, Entry>,
    /// The same by the instant at which something is to be done.
    deadlines: BTreeSet<(Instant, Ipv4Addr)>,
    /// Entries given up for others while in the kernel: to be cleared there.
    pub evicted: Vec<Ipv4Addr>,
    /// Offers that found no room.
    pub full: u64,
}

impl Table {
    pub fn get(&self, destination: Ipv4Addr) -> Option<&Entry> {
        self.entries.get(&destination)
    }
    pub fn valid(&self, destination: Ipv4Addr) -> Option<&Entry> {
        self.get(destination).filter(|e| e.valid())
    }
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    pub fn next_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Changes an entry, keeping the deadlines in step.
    pub fn change<T>(&mut self, destination: Ipv4Addr, f: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let entry = self.entries.get_mut(&destination)?;
        let before = entry.expires;
        let result = f(entry);
        if entry.expires != before {
            self.deadlines.remove(&(before, destination));
            self.deadlines.insert((entry.expires, destination));
        }
        Some(result)
    }

    /// Takes the offer if it is fresher, as fresh and shorter, or if there is nothing usable (6.2, 6.5, 6.7).
    pub fn offer(&mut self, offer: Offer) -> Change {
        let Some(entry) = self.get(offer.destination) else { return self.insert(offer) };
        let same = entry.valid() && entry.next_hop == offer.next_hop && entry.hops == offer.hops;
        let take = match (offer.sequence, entry.sequence) {
            // a neighbour heard directly: its route is the air (6.2 iii)
            (None, _) => !same,
            (Some(_), None) => true,
            (Some(new), Some(old)) if new == old => !entry.valid() || offer.hops < entry.hops,
            (Some(new), Some(old)) => sequence::newer(new, old),
        };
        if !take && !(same && (offer.sequence.is_none() || offer.sequence == entry.sequence)) {
            return Change::Refused;
        }
        self.change(offer.destination, |e| {
            e.expires = if e.valid() { e.expires.max(offer.expires) } else { offer.expires };
            e.state = State::Valid;
            e.sequence = offer.sequence.or(e.sequence);
            (e.hops, e.next_hop) = (offer.hops, offer.next_hop);
        });
        if take {
            Change::Updated
        } else {
            Change::Refreshed
        }
    }

    fn insert(&mut self, offer: Offer) -> Change {
        if self.entries.len() >= MAX_ROUTES && !self.make_room() {
            self.full += 1;
            return Change::Refused;
        }
        let entry = Entry {
            destination: offer.destination,
            sequence: offer.sequence,
            state: State::Valid,
            hops: offer.hops,
            next_hop: offer.next_hop,
            precursors: BTreeSet::new(),
            expires: offer.expires,
            used: None,
            installed: false,
        };
        self.deadlines.insert((entry.expires, entry.destination));
        self.entries.insert(entry.destination, entry);
        Change::Updated
    }

    /// Gives up, of the entries without data, the one that would end first.
    fn make_room(&mut self) -> bool {
        let idle = |e: &Entry| e.state == State::Invalid || e.used.is_none() && e.state == State::Valid;
        let Some((_, victim)) = self.deadlines.iter().find(|(_, d)| self.entries.get(d).is_some_and(idle)) else {
            return false;
        };
        let victim = *victim;
        if self.remove(victim).is_some_and(|e| e.installed) {
            self.evicted.push(victim);
        }
        true
    }

    pub fn remove(&mut self, destination: Ipv4Addr) -> Option<Entry> {
        let entry = self.entries.remove(&destination)?;
        self.deadlines.remove(&(entry.expires, destination));
        Some(entry)
    }

    /// A data packet went by this valid route (6.2).
    pub fn touch(&mut self, now: Instant, destination: Ipv4Addr, lifetime: Duration) {
        self.change(destination, |e| {
            if e.valid() {
                e.expires = e.expires.max(now + lifetime);
                e.used = Some(now);
            }
        });
    }

    /// Prolongs a valid route.
    pub fn prolong(&mut self, destination: Ipv4Addr, until: Instant) {
        self.change(destination, |e| {
            if e.valid() {
                e.expires = e.expires.max(until);
            }
        });
    }

    /// The route is no more: its number goes up by one, or to `reported` if that is fresher (6.11). True: clear it in the kernel.
    pub fn invalidate(&mut self, destination: Ipv4Addr, reported: Option<u32>, gone_at: Instant) -> bool {
        let changed = self.change(destination, |e| {
            if e.valid() {
                e.sequence = e.sequence.map(sequence::next);
            }
            e.sequence = match (e.sequence, reported) {
                (Some(own), Some(reported)) => Some(sequence::freshest(own, reported)),
                (own, reported) => own.or(reported),
            };
            e.state = State::Invalid;
            e.expires = gone_at;
            std::mem::take(&mut e.installed)
        });
        changed.unwrap_or(false)
    }

    /// Valid routes over this neighbour, itself included.
    pub fn over(&self, neighbour: Ipv4Addr) -> Vec<Ipv4Addr> {
        self.iter().filter(|e| e.valid() && e.next_hop == neighbour).map(|e| e.destination).collect()
    }

    /// The next entry whose time has come. The caller must change or remove it.
    pub fn due(&self, now: Instant) -> Option<&Entry> {
        self.deadlines.first().filter(|(at, _)| *at <= now).and_then(|(_, d)| self.get(*d))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ip(d: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, d)
    }
    fn at(s: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(s)
    }
    fn offer(sequence: Option<u32>, hops: u8, next_hop: Ipv4Addr) -> Offer {
        Offer { destination: ip(9), sequence, hops, next_hop, expires: at(3) }
    }

    #[test]
    fn fresher_or_as_fresh_and_shorter_is_taken_and_nothing_else() {
        let mut table = Table::default();
        assert_eq!(table.offer(offer(Some(5), 3, ip(2))), Change::Updated);
        assert_eq!(table.offer(offer(Some(4), 1, ip(3))), Change::Refused);
        assert_eq!(table.offer(offer(Some(5), 3, ip(3))), Change::Refused);
        assert_eq!(table.offer(offer(Some(5), 2, ip(3))), Change::Updated);
        assert_eq!(table.offer(offer(Some(6), 7, ip(4))), Change::Updated);
        assert_eq!((table.get(ip(9)).unwrap().next_hop, table.get(ip(9)).unwrap().hops), (ip(4), 7));
    }

    #[test]
    fn after_the_wrap_a_small_number_is_fresher() {
        let mut table = Table::default();
        table.offer(offer(Some(u32::MAX), 3, ip(2)));
        assert_eq!(table.offer(offer(Some(1), 9, ip(3))), Change::Updated);
        assert_eq!(table.offer(offer(Some(u32::MAX), 1, ip(2))), Change::Refused);
    }

    #[test]
    fn the_same_route_again_is_prolonged_and_never_shortened() {
        let mut table = Table::default();
        table.offer(offer(Some(5), 3, ip(2)));
        assert_eq!(table.offer(Offer { expires: at(8), ..offer(Some(5), 3, ip(2)) }), Change::Refreshed);
        assert_eq!(table.offer(Offer { expires: at(1), ..offer(Some(5), 3, ip(2)) }), Change::Refreshed);
        assert_eq!((table.get(ip(9)).unwrap().expires, table.next_timeout()), (at(8), Some(at(8))));
    }

    #[test]
    fn an_invalid_route_is_fresher_than_what_others_have_from_us() {
        let mut table = Table::default();
        table.offer(offer(Some(5), 3, ip(2)));
        table.invalidate(ip(9), None, at(20));
        assert_eq!(table.get(ip(9)).unwrap().sequence, Some(6));
        assert_eq!(table.offer(offer(Some(5), 1, ip(3))), Change::Refused);
        assert_eq!(table.offer(offer(Some(6), 4, ip(3))), Change::Updated);
    }

    #[test]
    fn a_neighbour_heard_directly_keeps_its_number() {
        let mut table = Table::default();
        table.offer(offer(Some(5), 3, ip(2)));
        assert_eq!(table.offer(offer(None, 1, ip(9))), Change::Updated);
        let entry = table.get(ip(9)).unwrap();
        assert_eq!((entry.sequence, entry.hops, entry.next_hop), (Some(5), 1, ip(9)));
        assert_eq!(table.offer(offer(None, 1, ip(9))), Change::Refreshed);
    }

    #[test]
    fn a_full_table_gives_up_what_carries_no_data() {
        let mut table = Table::default();
        table.offer(offer(Some(5), 3, ip(2)));
        table.touch(at(0), ip(9), Duration::from_secs(1));
        for n in 0..5 * MAX_ROUTES as u32 {
            let destination = Ipv4Addr::from(0x0b00_0000 + n);
            table.offer(Offer { destination, expires: at(100), ..offer(Some(1), 1, ip(2)) });
        }
        assert_eq!((table.len(), table.deadlines.len(), table.full), (MAX_ROUTES, MAX_ROUTES, 0));
        assert!(table.valid(ip(9)).is_some());
    }
}
