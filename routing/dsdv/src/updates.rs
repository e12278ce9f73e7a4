//! Our own updates: their times and contents.

use crate::entry::INFINITE;
use crate::machine::{Dsdv, Timer};
use crate::wire::{self, Advert};
use manet_engine::{Duration, Instant};
use manet_routing::{Output, BROADCAST};

/// An incremental update of no more entries than this never becomes a full one (ns-2.35).
const FEW: usize = 3;
const NEIGHBOURS_ONLY: u8 = 1;

impl Dsdv {
    /// The earliest time of the next update: `trigger_interval` after the last one.
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
        let min = Duration::from_secs_f64(period * (1.0 - self.options.jitter));
        let more = self.rng.between(Duration::ZERO, Duration::from_secs_f64(period * self.options.jitter));
        self.timers.set(Timer::Full, now + min + more);
    }

    pub(crate) fn send_soon(&mut self, now: Instant) {
        if self.timers.get(Timer::Send).is_none() {
            let wait = self.rng.between(Duration::ZERO, self.options.broadcast_jitter);
            self.timers.set(Timer::Send, now + wait);
        }
    }

    pub(crate) fn send(&mut self, now: Instant) {
        let news = self.table.news(now);
        let known = self.table.len() + self.own_entries().len();
        let much = news > FEW && news as f64 > self.options.full_dump_share * known as f64;
        let full = self.full_wanted || much;
        if !full && news == 0 && !self.greeting_wanted {
            return;
        }
        if full {
            self.sequence = self.sequence.next();
            if !self.full_wanted {
                self.plan_full(now);
            }
        }
        let mut adverts = self.table.advertise(now, full);
        if self.options.bidirectional_check {
            self.add_heard(&mut adverts);
        }
        self.base.counters.count(if full { "full-sent" } else { "incremental-sent" });
        self.broadcast(&adverts);
        self.last_update_at = Some(now);
        (self.full_wanted, self.greeting_wanted) = (false, false);
    }

    /// Our own entry and, of a gateway, that of the network behind it.
    fn own_entries(&self) -> Vec<Advert> {
        let own = |destination| Advert { destination, hops: 1, sequence: self.sequence };
        std::iter::once(self.node.address).chain(self.own_wires()).map(own).collect()
    }

    /// Each datagram begins with our own entries, so that each receiver of any of them has a route to us.
    fn broadcast(&mut self, adverts: &[Advert]) {
        let own = self.own_entries();
        let room = wire::entries_per_datagram(self.node.mtu) - own.len();
        // an empty table is advertised as well: it announces this node
        let parts = adverts.chunks(room).chain(adverts.is_empty().then_some(adverts));
        for part in parts {
            let bytes = wire::emit(&[&own, part].concat()).into();
            self.base.counters.count("datagrams-sent");
            self.base.counters.add("entries-sent", (part.len() + own.len()) as u64);
            self.base.out.push_back(Output::Control { to: BROADCAST, ttl: NEIGHBOURS_ONLY, bytes });
        }
    }

    /// Informs neighbours without a route that they are heard, by entries with an infinite hop count.
    fn add_heard(&self, adverts: &mut Vec<Advert>) {
        let known = |address| adverts.iter().any(|a| a.destination == address && confirms(a));
        let heard = self.neighbours.iter().filter(|(address, _)| !known(*address));
        let lines: Vec<Advert> = heard
            .map(|(destination, n)| {
                let sequence = n.sequence.filter(|n| !n.is_broken()).unwrap_or_default();
                Advert { destination, hops: u32::from(INFINITE), sequence }
            })
            .collect();
        adverts.extend(lines);
    }

    /// Sends a last entry about this node, as lost.
    pub(crate) fn stop(&mut self) {
        self.sequence = self.sequence.broken();
        let farewell = Advert { destination: self.node.address, hops: u32::from(INFINITE), sequence: self.sequence };
        let bytes = wire::emit(&[farewell]).into();
        self.base.out.push_back(Output::Control { to: BROADCAST, ttl: NEIGHBOURS_ONLY, bytes });
        for timer in [Timer::Silence, Timer::Full, Timer::Trigger, Timer::Send, Timer::Held] {
            self.timers.stop(timer);
        }
        self.stopped = true;
    }
}

/// Whether the sender of this entry hears the station directly: as a neighbour, or without a route so far.
pub(crate) fn confirms(advert: &Advert) -> bool {
    !advert.sequence.is_broken() && (advert.hops == 2 || advert.hops == u32::from(INFINITE))
}
