//! Handling of neighbours' updates.

use crate::entry::INFINITE;
use crate::machine::{Dsdv, Timer};
use crate::sequence::Sequence;
use crate::table::Received;
use crate::updates::confirms;
use crate::wire::{self, Advert};
use manet_engine::Instant;
use std::net::Ipv4Addr;

impl Dsdv {
    pub(crate) fn receive(&mut self, now: Instant, from: Ipv4Addr, bytes: &[u8]) {
        if from == self.node.address {
            return self.base.counters.count("own-address");
        }
        if !self.node.is_station(from) {
            return self.base.counters.count("foreign-source");
        }
        let Ok(adverts) = wire::parse(bytes) else { return self.base.counters.count("malformed") };
        let Some(neighbour) = self.neighbours.heard(now, from) else {
            return self.base.counters.count("neighbours-full");
        };
        self.base.counters.count("updates-heard");
        self.base.counters.add("entries-heard", adverts.len() as u64);
        let own = adverts.iter().find(|a| a.destination == from).map(|a| a.sequence);
        let before = neighbour.sequence;
        neighbour.sequence = own.or(before);
        let about_us = |a: &&Advert| a.destination == self.node.address;
        let check = self.options.bidirectional_check;
        if check && adverts.iter().filter(about_us).any(confirms) {
            // the neighbour may wait for the same confirmation from this node
            self.greeting_wanted |= neighbour.hears_us_at.is_none();
            neighbour.hears_us_at = Some(now);
        }
        let confirmed = !check || neighbour.hears_us_at.is_some();
        if let Some(own) = own {
            self.receive_sender_entry(now, from, before, own);
        }
        for advert in &adverts {
            if self.is_own(advert.destination) {
                self.receive_own_entry(now, advert.sequence);
            } else if confirmed {
                self.receive_entry(now, from, advert);
            }
        }
        if !confirmed {
            self.base.counters.count("unconfirmed");
            self.greeting_wanted = true;
        } else if own.is_some_and(Sequence::is_broken) {
            self.neighbours.forget(from);
        }
    }

    /// Handles the sender's entry about itself, apart from the route to it.
    fn receive_sender_entry(&mut self, now: Instant, from: Ipv4Addr, before: Option<Sequence>, own: Sequence) {
        if own.is_broken() {
            // a farewell: only the sender itself advertises its own address with an odd number
            self.base.counters.count("farewells");
            self.lose_routes(now, from);
        } else if before.is_some_and(|n| n.newer_than(own)) {
            // it restarted and knows no routes: a packet sent over it may loop
            self.base.counters.count("neighbour-restarted");
            self.lose_routes(now, from);
        }
        if self.table.get(from).is_some_and(|e| e.sequence.newer_than(own)) {
            // the neighbour must learn its own number (after a restart), or that it was declared lost
            self.table.advertise_at_once(now, from);
        }
    }

    /// Whether entries for this destination begin here: our address, or the network behind us.
    fn is_own(&self, destination: Ipv4Addr) -> bool {
        destination == self.node.address || self.own_wires() == Some(destination)
    }

    /// Handles another node's entry about us: a newer sequence number is advertised at once.
    fn receive_own_entry(&mut self, now: Instant, sequence: Sequence) {
        let newer = sequence.newer_than(self.sequence);
        if newer {
            self.sequence = sequence;
        }
        if sequence.is_broken() || newer {
            self.base.counters.count(if sequence.is_broken() { "declared-lost" } else { "own-number-learnt" });
            let at = self.next_update_at(now).max(now);
            let planned = self.timers.get(Timer::Full).unwrap_or(at);
            self.timers.set(Timer::Full, at.min(planned));
        }
    }

    fn receive_entry(&mut self, now: Instant, from: Ipv4Addr, advert: &Advert) {
        let Advert { destination, hops, sequence } = *advert;
        if !self.node.is_station(destination) && self.gateway_of(destination).is_none_or(|g| g == self.node.address) {
            return self.base.counters.count("bad-destination");
        }
        let hops = match u8::try_from(hops) {
            _ if sequence.is_broken() => INFINITE,
            Ok(hops @ 1..INFINITE)
                if hops == 1 || destination != from && self.gateway_of(destination) != Some(from) =>
            {
                hops
            }
            _ => return self.base.counters.count("bad-hops"),
        };
        match self.table.receive(now, from, destination, hops, sequence) {
            Received::Accepted => self.follow(destination),
            Received::Refused(why) => self.base.counters.count(why),
            Received::Outdated => self.base.counters.count("educated"),
        }
    }
}
