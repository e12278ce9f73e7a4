//! Our own updates: their times and contents.

use crate::machine::{Adv, Timer};
use crate::meter::Kind;
use crate::wire::{self, Advert, Body, Response, INFINITE};
use manet_engine::{Duration, Instant};
use manet_routing::Output;

impl Adv {
    /// Arms the timer of the next update if one is due, `min_interval` after the last one at the earliest.
    pub(crate) fn plan_update(&mut self, now: Instant) {
        let keep_alive = (self.options.keep_alive > Duration::ZERO && self.receiver).then_some(self.options.keep_alive);
        let since = self.last_update_at.unwrap_or(Instant::ZERO);
        self.timers.arm(Timer::KeepAlive, keep_alive.filter(|_| !self.full_wanted).map(|every| since + every));
        let wanted = self.full_wanted || self.meter.due().is_some();
        if wanted && self.timers.get(Timer::Update).is_none() {
            let earliest = self.last_update_at.map_or(now, |at| (at + self.options.min_interval).max(now));
            let wait = self.rng.between(Duration::ZERO, self.options.broadcast_jitter);
            self.timers.set(Timer::Update, earliest + wait);
        }
    }

    pub(crate) fn keep_alive(&mut self) {
        self.full_wanted = true;
    }

    /// Sends a full or a partial update.
    pub(crate) fn send_update(&mut self, now: Instant) {
        let due = self.meter.due();
        let kind = if self.full_wanted { Kind::Full } else { due.unwrap_or(Kind::Partial) };
        let active = self.receiver || self.table.iter().any(|(_, e)| e.receiver && e.is_usable() && e.handled > 0);
        self.sequence = self.sequence.next();
        let restarted = self.node.restarted && self.last_update_at.is_none();
        let adverts = self.adverts(now, kind);
        self.base.counters.count(if kind == Kind::Full { "full-sent" } else { "partial-sent" });
        self.send_adverts(now, kind == Kind::Full, restarted, &adverts);
        self.meter.sent(now, kind, active);
        self.last_update_at = Some(now);
        self.full_wanted = false;
    }

    /// The entries of an update, which are then marked as advertised. Broken ones are forgotten after `broken_lifetime`,
    /// unless packets wait for them.
    fn adverts(&mut self, now: Instant, kind: Kind) -> Vec<Advert> {
        let waiting = self.base.held.destinations();
        let lifetime = self.options.broken_lifetime;
        let mut adverts = Vec::new();
        for (destination, entry) in self.table.iter_mut() {
            let waits = waiting.contains(&destination);
            let broken = !entry.is_usable() && (waits || entry.sequence.is_some() && entry.broken_at + lifetime > now);
            let listed = match kind {
                Kind::Full => entry.receiver && (entry.is_usable() || broken),
                Kind::Partial => entry.receiver && broken,
            };
            if listed || entry.changed {
                adverts.push(entry.advert(destination, waits));
                entry.advertised();
            }
        }
        adverts
    }

    fn own_advert(&self, hops: u8) -> Advert {
        let us = self.node.address;
        let (sequence, receiver) = (self.sequence, self.receiver);
        Advert { destination: us, next_hop: us, sequence, signer: us, hops, receiver, response: Response::None }
    }

    /// Each datagram begins with our own entry, so that each receiver of any of them has a route to us.
    fn send_adverts(&mut self, now: Instant, full: bool, restarted: bool, adverts: &[Advert]) {
        let room = wire::entries_per_datagram(self.node.mtu) - 1;
        for part in adverts.chunks(room).chain(adverts.is_empty().then_some(adverts)) {
            let adverts = [&[self.own_advert(0)], part].concat();
            self.base.counters.count("datagrams-sent");
            self.base.counters.add("entries-sent", adverts.len() as u64);
            self.broadcast(now, Body::Update { full, restarted, adverts });
        }
    }

    /// After each broadcast the next sign of life is due up to a quarter of `hello_interval` early.
    pub(crate) fn plan_hello(&mut self, now: Instant) {
        if self.options.hellos() {
            let quarter = Duration::from_secs_f64(self.options.hello_interval.as_secs_f64() / 4.0);
            let more = self.rng.between(Duration::ZERO, quarter);
            self.timers.set(Timer::Hello, now + quarter * 3 + more);
        }
    }

    /// Sends our own entry, with the number of the last update.
    pub(crate) fn send_hello(&mut self, now: Instant) {
        self.base.counters.count("hello-sent");
        let adverts = vec![self.own_advert(0)];
        self.broadcast(now, Body::Update { full: false, restarted: false, adverts });
    }

    /// Sends a last entry about this node, without a route.
    pub(crate) fn stop(&mut self) {
        let adverts = vec![self.own_advert(INFINITE)];
        let bytes =
            wire::Message { sender: self.sequence, body: Body::Update { full: false, restarted: false, adverts } }
                .emit()
                .into();
        self.base.out.push_back(Output::Control { to: manet_routing::BROADCAST, ttl: 1, bytes });
        self.timers = Default::default();
        self.stopped = true;
    }
}
