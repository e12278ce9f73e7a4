//! Packets that wait for a random time before they are sent: forwarded requests and replies from the cache. The queue is
//! bounded, and replies can be cancelled.

use crate::datagram::Datagram;
use manet_engine::Instant;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Maximum of waiting packets; the requests of all neighbours within one jitter are fewer.
const MAX_DELAYED: usize = 256;

/// A waiting packet.
#[derive(Clone, Debug)]
pub enum Delayed {
    /// A broadcast to all neighbours.
    Broadcast(Datagram),
    /// A reply from the route cache to `initiator` about `target`, with a route of `hops` hops.
    Reply { initiator: Ipv4Addr, target: Ipv4Addr, hops: usize, packet: Datagram },
}

/// The waiting packets, sorted by time.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    waiting: BTreeMap<(Instant, u64), Delayed>,
    count: u64,
}

impl Queue {
    /// Adds a packet for the time `at`. False: the queue is full.
    pub fn push(&mut self, at: Instant, what: Delayed) -> bool {
        if self.waiting.len() >= MAX_DELAYED {
            return false;
        }
        self.count += 1;
        self.waiting.insert((at, self.count), what);
        true
    }

    /// Removes the first packet whose time has come.
    pub fn due(&mut self, now: Instant) -> Option<Delayed> {
        let key = *self.waiting.first_key_value().filter(|((at, _), _)| *at <= now)?.0;
        self.waiting.remove(&key)
    }

    /// Cancels the replies to `initiator` about `target` with at least `hops` hops (RFC 4728, 8.2.5). Returns their number.
    pub fn cancel(&mut self, initiator: Ipv4Addr, target: Ipv4Addr, hops: usize) -> usize {
        let before = self.waiting.len();
        self.waiting.retain(|_, what| match what {
            Delayed::Reply { initiator: i, target: t, hops: h, .. } => (*i, *t) != (initiator, target) || *h < hops,
            Delayed::Broadcast(_) => true,
        });
        before - self.waiting.len()
    }

    /// Time of the first packet.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Whether a reply waits that [`Self::cancel`] could cancel.
    pub fn has_replies(&self) -> bool {
        self.waiting.values().any(|what| matches!(what, Delayed::Reply { .. }))
    }

    /// Number of waiting packets.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }
}
