//! Handling of neighbours' messages.

use crate::machine::Adv;
use crate::pending::Flood;
use crate::sequence::Sequence;
use crate::table::{Offer, Received};
use crate::wire::{Advert, Body, Init, Message, Response};
use manet_engine::Instant;
use std::net::Ipv4Addr;

impl Adv {
    pub(crate) fn receive(&mut self, now: Instant, from: Ipv4Addr, bytes: &[u8]) {
        if from == self.node.address {
            return self.base.counters.count("own-address");
        }
        if !self.node.is_station(from) {
            return self.base.counters.count("foreign-source");
        }
        let Ok(message) = Message::parse(bytes) else { return self.base.counters.count("malformed") };
        let Ok(before) = self.neighbours.heard(now, from, message.sender) else {
            return self.base.counters.count("neighbours-full");
        };
        self.receive_sender(now, from, before, message.sender);
        match message.body {
            Body::Update { restarted, adverts, .. } => {
                if restarted {
                    self.restarted(now, from);
                }
                self.receive_update(now, from, &adverts);
            }
            Body::Init(init) => self.receive_init(now, from, init),
            Body::Alert { receiver, destination, sequence, hops } => {
                self.receive_alert(now, Offer { via: from, destination, sequence, hops, receiver });
            }
            Body::End { source, id, destination } => self.receive_end(now, source, id, destination),
        }
    }

    /// Handles the sender's own number: a decrease shows that it restarted and has forgotten its routes.
    fn receive_sender(&mut self, now: Instant, from: Ipv4Addr, before: Option<Sequence>, own: Sequence) {
        if before.is_some_and(|n| n.newer_than(own)) {
            self.restarted(now, from);
        }
        let forgotten = |n: Sequence| n.newer_than(own);
        if let Some(entry) = self.table.get_mut(from).filter(|e| e.sequence.is_some_and(forgotten)) {
            // it must learn its own number, or it stays unreachable
            entry.changed = true;
            self.meter.demand();
        }
    }

    fn restarted(&mut self, now: Instant, neighbour: Ipv4Addr) {
        self.base.counters.count("neighbour-restarted");
        self.lose_routes(now, neighbour);
    }

    /// Offers a route to the table. True: it is used.
    fn learn(&mut self, now: Instant, offer: Offer) -> bool {
        if offer.destination == self.node.address || !self.node.is_station(offer.destination) {
            self.base.counters.count("bad-destination");
            return false;
        }
        match self.table.offer(now, self.node.address, offer) {
            Received::Accepted { asked } => {
                if asked {
                    self.meter.demand();
                }
                self.follow(offer.destination);
                true
            }
            Received::Refused(why) => {
                self.base.counters.count(why);
                false
            }
        }
    }

    fn receive_update(&mut self, now: Instant, from: Ipv4Addr, adverts: &[Advert]) {
        self.base.counters.count("updates-heard");
        self.base.counters.add("entries-heard", adverts.len() as u64);
        if adverts.iter().any(|a| a.destination == from && a.is_broken()) {
            // only a daemon that ends says so of itself
            self.base.counters.count("farewells");
            self.lose_routes(now, from);
            self.neighbours.forget(from);
            return;
        }
        for advert in adverts {
            if advert.destination == self.node.address {
                self.receive_own_entry(advert);
            } else {
                if advert.is_broken() {
                    self.receive_broken(now, from, advert);
                } else {
                    self.receive_route(now, from, advert);
                }
                self.meter.expected(advert.response);
            }
        }
    }

    /// Handles an entry about us. A request for us, and a number that we do not know, are answered.
    fn receive_own_entry(&mut self, advert: &Advert) {
        let number = if advert.is_broken() { advert.sequence.unbroken() } else { advert.sequence };
        let unknown = advert.is_broken() && advert.sequence == Sequence::default();
        if !unknown && number.newer_than(self.sequence) {
            self.sequence = number;
            self.base.counters.count("own-number-learnt");
            self.meter.demand();
        }
        let over_us = advert.is_broken() || advert.next_hop == self.node.address;
        if advert.response == Response::High && over_us {
            self.base.counters.count("requests-heard");
            self.meter.demand();
        } else {
            self.meter.expected(advert.response);
        }
    }

    fn receive_route(&mut self, now: Instant, from: Ipv4Addr, advert: &Advert) {
        let Advert { destination, sequence, hops, receiver, response, next_hop, .. } = *advert;
        let us = self.node.address;
        if next_hop == us {
            // after a restart this node does not know that the neighbour's route leads over it
            self.base.counters.count("over-us");
        } else {
            self.learn(now, Offer { via: from, destination, sequence, hops, receiver });
        }
        let interval = self.options.init_interval;
        let Some(entry) = self.table.get_mut(destination) else { return };
        if entry.is_usable() && entry.via == from && entry.sequence.is_some_and(|n| n.newer_than(sequence)) {
            // our next hop knows less than it told: it may have forgotten its route, which may now lead over us
            self.base.counters.count("next-hop-forgot");
            entry.lose(now, us);
            self.follow(destination);
        } else if response == Response::High && next_hop == us {
            // it passes on a request of nodes behind it
            entry.request(now, Some(sequence), interval);
        }
    }

    /// Handles an entry without a route: our own route is lost if it leads over the sender. Otherwise the sender may get ours.
    fn receive_broken(&mut self, now: Instant, from: Ipv4Addr, advert: &Advert) {
        let interval = self.options.init_interval;
        let Some(entry) = self.table.get_mut(advert.destination) else {
            return self.base.counters.count("broken-unknown");
        };
        let known = (advert.sequence != Sequence::default()).then(|| advert.sequence.unbroken());
        let lost = entry.is_usable() && entry.via == from;
        if lost {
            entry.lose(now, advert.signer);
        }
        if advert.response == Response::High {
            entry.request(now, known, interval);
        }
        if lost {
            self.base.counters.count("lost-by-next-hop");
            self.follow(advert.destination);
        }
    }

    fn receive_init(&mut self, now: Instant, from: Ipv4Addr, init: Init) {
        let Init { source, sequence, hops, id, wanted, .. } = init;
        if source == self.node.address {
            return self.base.counters.count("own-flood");
        }
        if !self.node.is_station(wanted) || !self.node.is_station(source) || wanted == source {
            return self.base.counters.count("bad-destination");
        }
        // the source is a receiver as well: of the answers to its data
        self.learn(now, Offer { via: from, destination: source, sequence, hops, receiver: true });
        if !self.duplicates.remember(now, (source, id)) {
            return self.base.counters.count("duplicate");
        }
        if wanted == self.node.address {
            if let Some((number, _)) = init.known.filter(|(n, _)| n.newer_than(self.sequence)) {
                self.sequence = number;
            }
            self.connections.used(now, source, false);
            self.flood_alert(now);
            return;
        }
        let us = self.node.address;
        let Some(entry) = self.table.entry(now, us, wanted) else { return self.base.counters.count("table-full") };
        let was_receiver = std::mem::replace(&mut entry.receiver, true);
        let known = match (init.known, entry.sequence) {
            (Some((number, hops)), Some(own)) if number == own => Some((own, hops.min(entry.fewest_hops))),
            (Some((number, hops)), Some(own)) if number.newer_than(own) => Some((number, hops)),
            (_, Some(own)) => Some((own, entry.fewest_hops)),
            (known, None) => known,
        };
        let newer = |(number, hops): (Sequence, u8)| {
            entry.sequence.is_some_and(|own| own.newer_than(number) || own == number && entry.hops < hops)
        };
        let elsewhere = entry.via != from && entry.via != source;
        if entry.is_usable() && was_receiver && elsewhere && !init.destination_only && init.known.is_none_or(newer) {
            self.base.counters.count("answered-for-another");
            self.flood(now, Flood::Alert { destination: wanted, receiver: true });
        } else {
            self.flood(now, Flood::Init(Init { known, ..init }));
        }
    }

    /// Handles a receiver-alert or non-receiver-alert; only nodes that knew the destination as a receiver pass it on.
    fn receive_alert(&mut self, now: Instant, offer: Offer) {
        if offer.destination == self.node.address {
            if offer.sequence.newer_than(self.sequence) {
                self.sequence = offer.sequence;
                self.base.counters.count("own-number-learnt");
                self.meter.demand();
            }
            return;
        }
        let entry = self.table.get(offer.destination);
        let wanted = entry.is_some_and(|e| e.receiver);
        let newer = entry.is_none_or(|e| e.sequence.is_none_or(|own| offer.sequence.newer_than(own)));
        if self.learn(now, offer) && wanted && newer {
            self.flood(now, Flood::Alert { destination: offer.destination, receiver: offer.receiver });
        }
    }

    fn receive_end(&mut self, now: Instant, source: Ipv4Addr, id: u32, destination: Ipv4Addr) {
        if source == self.node.address {
            return self.base.counters.count("own-flood");
        }
        if !self.node.is_station(source) || !self.node.is_station(destination) {
            return self.base.counters.count("bad-destination");
        }
        if !self.duplicates.remember(now, (source, id)) {
            return self.base.counters.count("duplicate");
        }
        if destination != self.node.address {
            return self.flood(now, Flood::End { source, id, destination });
        }
        // this node's own packets may still wait for a route to it
        if self.base.held.count(source) == 0 && self.connections.end(source) {
            self.base.counters.count("connection-ended");
            self.check_receiver(now);
        }
    }
}
