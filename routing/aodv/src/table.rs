//! The route table (RFC 3561, section 2 and 6.2).
//!
//! An entry is valid until `expires`; then, or when its link breaks, it is invalid for DELETE_PERIOD with its sequence
//! number, and then removed. Not every valid entry is in the kernel: most reverse routes are never used, so a route is
//! installed when a reply passes or a packet needs it (`installed`). The RFC makes no such distinction.
//!
//! Loop freedom: an entry never becomes less fresh. Older sequence numbers are refused, and a route that becomes invalid
//! gets a higher one.

use crate::sequence;
use manet_engine::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Maximum number of entries. Forged originators may fill the table; they do not displace routes that carry data.
pub const MAX_ROUTES: usize = 1024;
/// Maximum number of precursors of an entry. Errors to two or more are broadcast, so that further ones change nothing.
const MAX_PRECURSORS: usize = 16;

/// The state of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Packets may use the route.
    Valid,
    /// Expired or broken; kept for its sequence number.
    Invalid,
    /// Local repair is under way (6.12).
    Repair,
}

/// An entry of the table (RFC 3561, section 2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Destination sequence number; `None`: unknown (the RFC's valid flag is not set).
    pub sequence: Option<u32>,
    /// Present state.
    pub state: State,
    /// Hop count to the destination.
    pub hops: u8,
    /// The neighbour to send to.
    pub next_hop: Ipv4Addr,
    /// Neighbours that use this route over this node.
    pub precursors: BTreeSet<Ipv4Addr>,
    /// Time at which a valid entry becomes invalid or an invalid one is removed.
    pub expires: Instant,
    /// Time of the last data packet.
    pub used: Option<Instant>,
    /// Whether the kernel has this route.
    pub installed: bool,
}

impl Entry {
    /// Whether the state is [`State::Valid`].
    pub fn valid(&self) -> bool {
        self.state == State::Valid
    }

    /// Adds a precursor unless the maximum is reached.
    pub fn add_precursor(&mut self, neighbour: Ipv4Addr) {
        if self.precursors.len() < MAX_PRECURSORS {
            self.precursors.insert(neighbour);
        }
    }

    /// The sequence number for a route error: fresher than that of any precursor. 0: unknown.
    pub fn error_sequence(&self) -> u32 {
        self.sequence.unwrap_or(0)
    }
}

/// A route learnt from a message.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Destination sequence number; `None`: the neighbour itself was heard, without its number.
    pub sequence: Option<u32>,
    /// Hop count to the destination.
    pub hops: u8,
    /// The neighbour that sent the message.
    pub next_hop: Ipv4Addr,
    /// End of the route's lifetime.
    pub expires: Instant,
}

/// The effect of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// No effect: the offer is not better than the entry, or the table is full.
    Refused,
    /// The same route; its lifetime may be longer now.
    Refreshed,
    /// The entry is new or has changed.
    Updated,
}

/// The routing table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    entries: BTreeMap<Ipv4Addr, Entry>,
    /// The destinations sorted by `expires`.
    deadlines: BTreeSet<(Instant, Ipv4Addr)>,
    /// Displaced entries that the kernel still has: the machine clears and empties this list.
    pub evicted: Vec<Ipv4Addr>,
    /// Number of offers refused for lack of room.
    pub full: u64,
}

impl Table {
    /// The entry of `destination`.
    pub fn get(&self, destination: Ipv4Addr) -> Option<&Entry> {
        self.entries.get(&destination)
    }
    /// The entry of `destination` if it is valid.
    pub fn valid(&self, destination: Ipv4Addr) -> Option<&Entry> {
        self.get(destination).filter(|e| e.valid())
    }
    /// All entries, sorted by destination.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// The earliest expiry.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Changes an entry with `f` and updates its deadline. `None`: no such entry.
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

    /// Accepts the offer if it is fresher, equally fresh and shorter, or if no usable entry exists (6.2, 6.5, 6.7).
    pub fn offer(&mut self, offer: Offer) -> Change {
        let Some(entry) = self.get(offer.destination) else { return self.insert(offer) };
        let same = entry.valid() && entry.next_hop == offer.next_hop && entry.hops == offer.hops;
        let take = match (offer.sequence, entry.sequence) {
            // a neighbour heard directly is one hop away (6.2 iii)
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

    /// Removes the entry without data that would expire first. False: all entries carry data.
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

    /// Removes an entry and returns it.
    pub fn remove(&mut self, destination: Ipv4Addr) -> Option<Entry> {
        let entry = self.entries.remove(&destination)?;
        self.deadlines.remove(&(entry.expires, destination));
        Some(entry)
    }

    /// Records a data packet on a valid route and prolongs the route to `now + lifetime` (6.2).
    pub fn touch(&mut self, now: Instant, destination: Ipv4Addr, lifetime: Duration) {
        self.change(destination, |e| {
            if e.valid() {
                e.expires = e.expires.max(now + lifetime);
                e.used = Some(now);
            }
        });
    }

    /// Prolongs a valid route to `until`; it never becomes shorter.
    pub fn prolong(&mut self, destination: Ipv4Addr, until: Instant) {
        self.change(destination, |e| {
            if e.valid() {
                e.expires = e.expires.max(until);
            }
        });
    }

    /// Invalidates a route and increments its number, or takes `reported` if that is fresher (6.11).
    /// True: the kernel has the route, which must be cleared there.
    pub fn invalidate(&mut self, destination: Ipv4Addr, reported: Option<u32>, gone_at: Instant) -> bool {
        let changed = self.change(destination, |e| {
            if e.valid() {
                e.sequence = e.sequence.map(sequence::next);
            }
            e.sequence = match (e.sequence, reported) {
                (Some(own), Some(reported)) => Some(sequence::newest(own, reported)),
                (own, reported) => own.or(reported),
            };
            e.state = State::Invalid;
            e.expires = gone_at;
            std::mem::take(&mut e.installed)
        });
        changed.unwrap_or(false)
    }

    /// Destinations of the valid routes over this neighbour, itself included.
    pub fn over(&self, neighbour: Ipv4Addr) -> Vec<Ipv4Addr> {
        self.iter().filter(|e| e.valid() && e.next_hop == neighbour).map(|e| e.destination).collect()
    }

    /// The entry with the earliest expiry at or before `now`. The caller must change or remove it.
    pub fn due(&self, now: Instant) -> Option<&Entry> {
        self.deadlines.first().filter(|(at, _)| *at <= now).and_then(|(_, d)| self.get(*d))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::trial::{at, ip};

    fn offer(sequence: Option<u32>, hops: u8, next_hop: Ipv4Addr) -> Offer {
        Offer { destination: ip(9), sequence, hops, next_hop, expires: at(3) }
    }

    #[test]
    fn only_a_fresher_or_an_equally_fresh_and_shorter_route_is_accepted() {
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
    fn a_repeated_route_is_prolonged_and_never_shortened() {
        let mut table = Table::default();
        table.offer(offer(Some(5), 3, ip(2)));
        assert_eq!(table.offer(Offer { expires: at(8), ..offer(Some(5), 3, ip(2)) }), Change::Refreshed);
        assert_eq!(table.offer(Offer { expires: at(1), ..offer(Some(5), 3, ip(2)) }), Change::Refreshed);
        assert_eq!((table.get(ip(9)).unwrap().expires, table.next_timeout()), (at(8), Some(at(8))));
    }

    #[test]
    fn an_invalid_route_is_fresher_than_the_copies_of_others() {
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
    fn a_full_table_displaces_routes_without_data() {
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
