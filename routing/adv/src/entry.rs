//! A table entry: route of a destination, its number, its receiver flag, and the use made of it.

use crate::sequence::Sequence;
use crate::wire::{Advert, Response, INFINITE};
use manet_engine::{Duration, Instant};
use std::net::Ipv4Addr;

/// The entry of one destination.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Next hop; of a broken entry the last one.
    pub via: Ipv4Addr,
    /// Hop count, 1 to 254, or [`INFINITE`]: no route.
    pub hops: u8,
    /// The newest number of the destination that this node had a route with; `None`: it never had one.
    pub sequence: Option<Sequence>,
    /// The fewest hops that this node had with that number. A neighbour is a possible next hop only if it has fewer.
    pub fewest_hops: u8,
    /// The node that broke the route, the destination if it is not broken.
    pub signer: Ipv4Addr,
    /// Time of the break; without meaning unless the entry is broken.
    pub broken_at: Instant,
    /// Time at which the route was last confirmed or carried packets.
    pub used_at: Instant,
    /// Whether the destination is an active receiver.
    pub receiver: bool,
    /// Packets forwarded by this entry; halved by each advertisement.
    pub handled: u32,
    /// Whether the next partial update includes the entry.
    pub changed: bool,
    /// Whether a neighbour waits for a newer route than this one: the next update passes the request on.
    pub relay: bool,
    /// Whether a neighbour waits for a route that this node could not give: the next one is advertised at once.
    pub asked: bool,
    /// Time of the last request that was passed on.
    pub relayed_at: Option<Instant>,
}

impl Entry {
    /// An entry without a route.
    pub fn unknown(now: Instant, us: Ipv4Addr) -> Self {
        Self {
            via: Ipv4Addr::UNSPECIFIED,
            hops: INFINITE,
            sequence: None,
            fewest_hops: INFINITE,
            signer: us,
            broken_at: now,
            used_at: now,
            receiver: false,
            handled: 0,
            changed: false,
            relay: false,
            asked: false,
            relayed_at: None,
        }
    }

    /// Whether packets may use the route.
    pub fn is_usable(&self) -> bool {
        self.hops != INFINITE
    }

    /// Marks the route as lost. The number and the fewest hops stay: they prevent loops.
    pub fn lose(&mut self, now: Instant, signer: Ipv4Addr) {
        self.hops = INFINITE;
        self.signer = signer;
        self.broken_at = now;
        self.changed = self.receiver;
        self.relay = false;
    }

    /// A neighbour asks for a route that is newer than `known`. The next update has ours; if that is not newer, it passes the
    /// request on towards the destination, at most once per `interval`.
    pub fn request(&mut self, now: Instant, known: Option<Sequence>, interval: Duration) {
        self.changed = true;
        let answer =
            self.is_usable() && self.sequence.is_some_and(|own| known.is_none_or(|known| own.newer_than(known)));
        if answer || self.relayed_at.is_some_and(|at| at + interval > now) {
            return;
        }
        self.asked = true;
        self.relay = true;
        self.relayed_at = Some(now);
    }

    /// The entry in an update.
    pub fn advert(&self, destination: Ipv4Addr, waiting: bool) -> Advert {
        let response = if waiting || self.relay {
            Response::High
        } else if self.handled > 0 && self.is_usable() {
            Response::Medium
        } else {
            Response::None
        };
        let number = self.sequence.unwrap_or_default();
        let (sequence, signer) = match (self.is_usable(), self.sequence) {
            (true, _) => (number, destination),
            (false, Some(_)) => (number.broken(), self.signer),
            (false, None) => (number, self.signer),
        };
        let (next_hop, hops, receiver) = (self.via, self.hops, self.receiver);
        Advert { destination, next_hop, sequence, signer, hops, receiver, response }
    }

    /// Records an advertisement.
    pub fn advertised(&mut self) {
        self.changed = false;
        self.relay = false;
        // the neighbours that have lost their routes over this node wait for the next one
        self.asked |= !self.is_usable();
        self.handled /= 2;
    }

    /// The state for the status socket.
    pub fn state(&self) -> &'static str {
        match (self.is_usable(), self.receiver) {
            (false, _) => "broken",
            (true, true) => "receiver",
            (true, false) => "known",
        }
    }
}
