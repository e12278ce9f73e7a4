//! Hello messages and their absence (RFC 3561, 6.9 and 6.10).

use super::Aodv;
use crate::table::Offer;
use crate::wire::{rrep, Extension};
use manet_engine::{Duration, Instant};
use std::net::Ipv4Addr;

impl Aodv {
    /// Handles an RREP with TTL 1 to all neighbours. The network's own broadcast address counts too (ns-3 uses it).
    pub(super) fn receive_hello(&mut self, now: Instant, from: Ipv4Addr, hello: &rrep::Repr) {
        if hello.destination != from {
            return self.counters.count("hello-forged");
        }
        self.counters.count("hello-received");
        let interval = hello.hello_interval().map(|ms| Duration::from_millis(ms.into()));
        let loss = match interval.filter(|i| *i > Duration::ZERO) {
            Some(interval) => interval * u64::from(self.options.allowed_hello_loss) + self.timing.hello_jitter,
            None => self.timing.hello_loss,
        };
        if self.options.hellos() {
            self.neighbours.hello.set(from, now + loss);
        }
        let expires = now + loss.max(Duration::from_millis(hello.lifetime_ms.into()));
        let sequence = Some(hello.destination_sequence).filter(|s| *s != 0);
        self.learn(now, Offer { destination: from, sequence: None, hops: 1, next_hop: from, expires });
        if sequence.is_some() {
            self.learn(now, Offer { destination: from, sequence, hops: 1, next_hop: from, expires });
        }
    }

    pub(super) fn send_hello(&mut self, now: Instant) {
        let Some(_) = self.hello_at.filter(|at| *at <= now) else { return };
        let jitter = self.timing.hello_jitter;
        let extra = match jitter.as_nanos() {
            0 => Duration::ZERO,
            ns => Duration::from_nanos(self.rng.below(2 * ns)),
        };
        // at least one nanosecond for any interval
        let pause = (self.timing.hello_interval + extra - jitter).max(Duration::from_nanos(1));
        self.hello_at = Some(now + pause);
        let broadcast_lately = self.last_broadcast.is_some_and(|at| now - at < self.timing.hello_interval);
        if broadcast_lately || self.is_silent(now) || self.derived.hello_while_active && !self.is_active(now) {
            return;
        }
        let lifetime = self.timing.hello_interval * u64::from(self.options.allowed_hello_loss);
        let interval_ms = (self.timing.hello_interval.as_nanos() / 1_000_000) as u32;
        let extension = self.options.hello_interval_extension.then(|| Extension::hello_interval(interval_ms));
        let (us, lifetime_ms) = (self.node.address, (lifetime.as_nanos() / 1_000_000) as u32);
        let extensions = extension.into_iter().collect();
        let hello = rrep::Repr { extensions, ..rrep::Repr::new(us, self.sequence, us, lifetime_ms) };
        self.counters.count("hello-sent");
        // a hello does not replace the next one, which with jitter may be due within an interval
        let other = self.last_broadcast;
        self.broadcast(now, 1, hello.emit());
        self.last_broadcast = other;
    }

    /// Whether this node is on an active route: one of its routes carried data within ACTIVE_ROUTE_TIMEOUT (6.9).
    fn is_active(&self, now: Instant) -> bool {
        self.table.iter().any(|e| e.valid() && e.used.is_some_and(|at| now - at < self.timing.active_route))
    }

    /// The neighbour was silent for ALLOWED_HELLO_LOSS hello intervals: the link is lost (6.10).
    pub(super) fn silence(&mut self, now: Instant, neighbour: Ipv4Addr) {
        self.counters.count("link-silent");
        self.break_link(now, neighbour, 2, None);
    }
}
