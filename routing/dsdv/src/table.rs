//! The routing table and its rules (Perkins and Bhagwat, SIGCOMM 1994, sections 3 and 4, with ns-2.35's figures):
//! a newer number is believed, the same number only if it is nearer, an older one never.
//!
//! Why no loop arises: towards the destination each node has a newer number than the one before it, or the same and fewer
//! hops. That holds as long as no node forgets what it told. So broken entries stay: only a full table gives
//! them up, the longest unchanged first.

use crate::entry::{Entry, INFINITE};
use crate::number::Number;
use crate::wire::Advert;
use manet_engine::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Destinations known at most: a full update of them is 9 datagrams.
pub const MOST_DESTINATIONS: usize = 1024;

/// How an entry becomes fit to be told.
#[derive(Clone, Copy, Debug)]
pub struct Settling {
    pub first: Duration,
    pub weight: f64,
    pub trigger_on_fresh: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Taken over; the kernel's route may be another now.
    Believed,
    /// Not taken over, and why.
    Refused(&'static str),
    /// The neighbour has lost a destination whose newer number we have: it is told at once.
    Educate,
}

#[derive(Clone, Debug)]
pub struct Table {
    entries: BTreeMap<Ipv4Addr, Entry>,
    settling: Settling,
}

impl Table {
    pub fn new(settling: Settling) -> Self {
        Self { entries: BTreeMap::new(), settling }
    }

    pub fn get(&self, destination: Ipv4Addr) -> Option<&Entry> {
        self.entries.get(&destination)
    }

    /// The next hop of a route that can be used.
    pub fn next_hop(&self, destination: Ipv4Addr) -> Option<Ipv4Addr> {
        self.get(destination).filter(|e| e.is_usable()).map(|e| e.via)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &Entry)> {
        self.entries.iter().map(|(d, e)| (*d, e))
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// `via` says that it reaches `destination`, over itself in `hops` ([`INFINITE`]: not any more).
    pub fn hear(&mut self, now: Instant, via: Ipv4Addr, destination: Ipv4Addr, hops: u8, number: Number) -> Heard {
        let Some(old) = self.entries.get_mut(&destination) else {
            return self.add(now, via, destination, hops, number);
        };
        if number == old.number {
            if hops >= old.hops {
                return Heard::Refused("not-nearer");
            }
            let differs = hops != old.told_hops;
            replace(old, now, via, hops);
            (old.tell_hops, old.trigger) = (differs, differs);
        } else if number.newer_than(old.number) {
            let took = old.changed_at.since(old.number_at).as_secs_f64();
            let weight = self.settling.weight;
            old.settling = Duration::from_secs_f64(weight * old.settling.as_secs_f64() + (1.0 - weight) * took);
            (old.number, old.number_at) = (number, now);
            let differs = hops != old.told_hops;
            replace(old, now, via, hops);
            (old.tell_number, old.tell_hops) = (true, differs);
            old.trigger = if self.settling.trigger_on_fresh { differs } else { old.trigger };
        } else if hops == INFINITE && old.is_usable() {
            self.tell_at_once(now, destination);
            return Heard::Educate;
        } else {
            return Heard::Refused("older-number");
        }
        Heard::Believed
    }

    fn add(&mut self, now: Instant, via: Ipv4Addr, destination: Ipv4Addr, hops: u8, number: Number) -> Heard {
        let finite = hops != INFINITE;
        // what is lost already is worth no other entry's room
        if self.entries.len() >= MOST_DESTINATIONS && !(finite && self.make_room()) {
            return Heard::Refused("table-full");
        }
        let settling = self.settling.first;
        let entry = Entry {
            via,
            hops,
            number,
            changed_at: now,
            number_at: now,
            settling,
            advertise_at: if finite { now + settling * 2 } else { now },
            tell_number: false,
            tell_hops: finite,
            trigger: finite,
            told_hops: 0,
        };
        self.entries.insert(destination, entry);
        Heard::Believed
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

    /// Somebody knows less about this destination than we do.
    pub fn tell_at_once(&mut self, now: Instant, destination: Ipv4Addr) {
        if let Some(entry) = self.entries.get_mut(&destination) {
            entry.advertise_at = now;
            entry.tell_hops = true;
            entry.trigger = true;
        }
    }

    /// How many entries an incremental update would have.
    pub fn news(&self, now: Instant) -> usize {
        self.entries.values().filter(|e| e.is_news(now)).count()
    }

    /// The entries of an update, marked as told: all that may be told, or only the news.
    pub fn tell(&mut self, now: Instant, full: bool) -> Vec<Advert> {
        let told = self.entries.iter_mut().filter(|(_, e)| if full { e.may_be_told(now) } else { e.is_news(now) });
        told.map(|(destination, entry)| {
            entry.told(full);
            // the receiver's hop count (wire.rs); a lost route's means nothing and stays ns-2's 250
            let hops = u32::from(entry.hops) + u32::from(entry.is_usable());
            Advert { destination: *destination, hops, number: entry.number }
        })
        .collect()
    }

    /// When an update is wanted for the sake of some entry.
    pub fn next_trigger(&self) -> Option<Instant> {
        self.entries.values().filter(|e| e.trigger).map(|e| e.advertise_at).min()
    }
}

/// The new route is used from now on. It is told after twice the settling time, or at once if it is lost or was.
fn replace(entry: &mut Entry, now: Instant, via: Ipv4Addr, hops: u8) {
    let settles = hops != INFINITE && entry.is_usable();
    entry.advertise_at = if settles { now + entry.settling * 2 } else { now };
    (entry.via, entry.hops, entry.changed_at) = (via, hops, now);
}
