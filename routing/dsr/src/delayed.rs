//! What waits a random moment before it is sent: requests that are passed on, replies from the cache. Bounded;
//! cancellable.

use crate::datagram::Datagram;
use manet_engine::Instant;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// More than the neighbours that can ask within one jitter; what exceeds it is a flood.
const MAX_DELAYED: usize = 256;

#[derive(Clone, Debug)]
pub enum Delayed {
    /// To all neighbours.
    Broadcast(Datagram),
    /// An answer from the route cache to `initiator` about `target`, a route of `hops`.
    Reply { initiator: Ipv4Addr, target: Ipv4Addr, hops: usize, packet: Datagram },
}

#[derive(Clone, Debug, Default)]
pub struct Queue {
    waiting: BTreeMap<(Instant, u64), Delayed>,
    count: u64,
}

impl Queue {
    /// False: there is no room.
    pub fn push(&mut self, at: Instant, what: Delayed) -> bool {
        if self.waiting.len() >= MAX_DELAYED {
            return false;
        }
        self.count += 1;
        self.waiting.insert((at, self.count), what);
        true
    }

    pub fn due(&mut self, now: Instant) -> Option<Delayed> {
        let key = *self.waiting.first_key_value().filter(|((at, _), _)| *at <= now)?.0;
        self.waiting.remove(&key)
    }

    /// Takes back the replies to `initiator` about `target` that are no shorter than `hops` (RFC 4728, 8.2.5).
    pub fn cancel(&mut self, initiator: Ipv4Addr, target: Ipv4Addr, hops: usize) -> usize {
        let before = self.waiting.len();
        self.waiting.retain(|_, what| match what {
            Delayed::Reply { initiator: i, target: t, hops: h, .. } => (*i, *t) != (initiator, target) || *h < hops,
            Delayed::Broadcast(_) => true,
        });
        before - self.waiting.len()
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Whether a reply waits that [`Self::cancel`] could take back.
    pub fn has_replies(&self) -> bool {
        self.waiting.values().any(|what| matches!(what, Delayed::Reply { .. }))
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }
}
