//! Updates: what is done with one that arrives, when one is sent and what is in it.

use crate::entry::INFINITE;
use crate::machine::{Dsdv, Timer};
use crate::number::Number;
use crate::table::Heard;
use crate::wire::{self, Advert};
use manet_engine::{Duration, Instant};
use manet_routing::{Output, BROADCAST};
use std::net::Ipv4Addr;

/// An incremental update of no more entries than this never becomes a full one (ns-2.35).
const FEW: usize = 3;
const NEIGHBOURS_ONLY: u8 = 1;

impl Dsdv {
    pub(crate) fn hear(&mut self, now: Instant, from: Ipv4Addr, bytes: &[u8]) {
        if from == self.node.address {
            return self.counters.count("own-address");
        }
        if !self.is_station(from) {
            return self.counters.count("foreign-source");
        }
        let Ok(adverts) = wire::parse(bytes) else { return self.counters.count("malformed") };
        let Some(neighbour) = self.neighbours.hear(now, from) else { return self.counters.count("neighbours-full") };
        self.counters.count("updates-heard");
        self.counters.add("entries-heard", adverts.len() as u64);
        let own = adverts.iter().find(|a| a.destination == from).map(|a| a.number);
        let before = neighbour.number;
        neighbour.number = own.or(before);
        let about_us = |a: &&Advert| a.destination == self.node.address;
        let check = self.options.bidirectional_check;
        if check && adverts.iter().filter(about_us).any(tells_that_it_hears) {
            // it may wait for the same word from us
            self.greeting_wanted |= neighbour.hears_us_at.is_none();
            neighbour.hears_us_at = Some(now);
        }
        let believed = !check || neighbour.hears_us_at.is_some();
        if let Some(own) = own {
            self.hear_of_itself(now, from, before, own);
        }
        for advert in &adverts {
            if advert.destination == self.node.address {
                self.hear_of_us(now, advert.number);
            } else if believed {
                self.hear_of(now, from, advert);
            }
        }
        if !believed {
            self.counters.count("unconfirmed");
            self.greeting_wanted = true;
        } else if own.is_some_and(Number::is_broken) {
            self.neighbours.forget(from);
        }
    }

    /// What the sender's entry about itself says beyond a route to it.
    fn hear_of_itself(&mut self, now: Instant, from: Ipv4Addr, before: Option<Number>, own: Number) {
        if own.is_broken() {
            // only the sender itself can mean this: it ends
            self.counters.count("farewells");
            self.lose_routes(now, from);
        } else if before.is_some_and(|n| n.newer_than(own)) {
            // it started anew and knows no routes: whoever sends over it may send in a circle
            self.counters.count("neighbour-restarted");
            self.lose_routes(now, from);
        }
        if self.table.get(from).is_some_and(|e| e.number.newer_than(own)) {
            // it must learn its number (after a restart), or that it was declared lost
            self.table.tell_at_once(now, from);
        }
    }

    /// The last word on ourselves is ours: a newer number, at once.
    fn hear_of_us(&mut self, now: Instant, number: Number) {
        let newer = number.newer_than(self.number);
        if newer {
            self.number = number;
        }
        if number.is_broken() || newer {
            self.counters.count(if number.is_broken() { "declared-lost" } else { "own-number-learnt" });
            let at = self.next_update_at(now).max(now);
            let planned = self.timers.get(Timer::Full).unwrap_or(at);
            self.timers.set(Timer::Full, at.min(planned));
        }
    }

    fn hear_of(&mut self, now: Instant, from: Ipv4Addr, advert: &Advert) {
        let Advert { destination, hops, number } = *advert;
        if !self.is_station(destination) {
            return self.counters.count("bad-destination");
        }
        let hops = match u8::try_from(hops) {
            _ if number.is_broken() => INFINITE,
            Ok(hops @ 1..INFINITE) if hops == 1 || destination != from => hops,
            _ => return self.counters.count("bad-hops"),
        };
        match self.table.hear(now, from, destination, hops, number) {
            Heard::Believed => self.follow(destination),
            Heard::Refused(why) => self.counters.count(why),
            Heard::Educate => self.counters.count("educated"),
        }
    }

    /// An address that one station of the ad hoc network can have.
    pub(crate) fn is_station(&self, address: Ipv4Addr) -> bool {
        let bits = u32::from(self.node.network.1);
        let host_bits = u32::MAX.checked_shr(bits).unwrap_or(0);
        let host = u32::from(address) & host_bits;
        let names_the_network = bits < 31 && (host == 0 || host == host_bits);
        let single = !(address.is_unspecified() || address.is_broadcast() || address.is_multicast());
        self.node.in_network(address) && single && !names_the_network
    }

    /// Not before `trigger_interval` has passed since the last update.
    pub(crate) fn next_update_at(&self, now: Instant) -> Instant {
        self.last_update_at.map_or(now, |at| at + self.options.trigger_interval)
    }

    pub(crate) fn full_due(&mut self, now: Instant) {
        self.full_wanted = true;
        self.plan_full(now);
        self.send_soon(now);
    }

    fn plan_full(&mut self, now: Instant) {
        let period = self.options.period.as_secs_f64();
        let least = Duration::from_secs_f64(period * (1.0 - self.options.jitter));
        let more = self.up_to(Duration::from_secs_f64(period * self.options.jitter));
        self.timers.set(Timer::Full, now + least + more);
    }

    pub(crate) fn send_soon(&mut self, now: Instant) {
        if self.timers.get(Timer::Send).is_none() {
            let wait = self.up_to(self.options.broadcast_jitter);
            self.timers.set(Timer::Send, now + wait);
        }
    }

    pub(crate) fn send(&mut self, now: Instant) {
        let news = self.table.news(now);
        let known = self.table.len() + 1;
        let much = news > FEW && news as f64 > self.options.full_dump_share * known as f64;
        let full = self.full_wanted || much;
        if !full && news == 0 && !self.greeting_wanted {
            return;
        }
        if full {
            self.number = self.number.next();
            if !self.full_wanted {
                self.plan_full(now);
            }
        }
        let mut adverts = self.table.tell(now, full);
        if self.options.bidirectional_check {
            self.add_heard(&mut adverts);
        }
        self.counters.count(if full { "full-sent" } else { "incremental-sent" });
        self.broadcast(&adverts);
        self.last_update_at = Some(now);
        (self.full_wanted, self.greeting_wanted) = (false, false);
    }

    /// Each datagram begins with our own entry, so that whoever hears any of them has a route to us.
    fn broadcast(&mut self, adverts: &[Advert]) {
        let us = Advert { destination: self.node.address, hops: 1, number: self.number };
        let room = wire::entries_per_datagram(self.node.mtu) - 1;
        // an empty table is told as well: that we are there
        let parts = adverts.chunks(room).chain(adverts.is_empty().then_some(adverts));
        for part in parts {
            let bytes = wire::emit(&[&[us], part].concat()).into();
            self.counters.count("datagrams-sent");
            self.counters.add("entries-sent", part.len() as u64 + 1);
            self.out.push_back(Output::Control { to: BROADCAST, ttl: NEIGHBOURS_ONLY, bytes });
        }
    }

    /// Neighbours that are no routes yet are told that they are heard: by a hop count too large to be believed.
    fn add_heard(&self, adverts: &mut Vec<Advert>) {
        let known = |address| adverts.iter().any(|a| a.destination == address && tells_that_it_hears(a));
        let heard = self.neighbours.iter().filter(|(address, _)| !known(*address));
        let lines: Vec<Advert> = heard
            .map(|(destination, n)| {
                let number = n.number.filter(|n| !n.is_broken()).unwrap_or_default();
                Advert { destination, hops: u32::from(INFINITE), number }
            })
            .collect();
        adverts.extend(lines);
    }

    /// A last entry about ourselves: lost, by our own word.
    pub(crate) fn stop(&mut self) {
        self.number = self.number.broken();
        let farewell = Advert { destination: self.node.address, hops: u32::from(INFINITE), number: self.number };
        let bytes = wire::emit(&[farewell]).into();
        self.out.push_back(Output::Control { to: BROADCAST, ttl: NEIGHBOURS_ONLY, bytes });
        for timer in [Timer::Silence, Timer::Full, Timer::Trigger, Timer::Send, Timer::Held] {
            self.timers.stop(timer);
        }
        self.stopped = true;
    }
}

/// An entry about a station whose sender hears it directly: its neighbour, or one it has only heard so far.
fn tells_that_it_hears(advert: &Advert) -> bool {
    !advert.number.is_broken() && (advert.hops == 2 || advert.hops == u32::from(INFINITE))
}
