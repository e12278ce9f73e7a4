//! A table entry: distance and next hop of a destination, and the time of its advertisement (ns-2.35, `dsdv/rtable.h`).

use crate::sequence::Sequence;
use manet_engine::{Duration, Instant};
use std::net::Ipv4Addr;

/// The metric of a lost route, ns-2's 250 (its count has 8 bits).
pub const INFINITE: u8 = 250;

/// The entry of one destination.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Next hop; of a broken entry the neighbour that reported or caused the loss.
    pub via: Ipv4Addr,
    /// Hop count, 1 to 249, or [`INFINITE`].
    pub hops: u8,
    /// Sequence number of the route.
    pub sequence: Sequence,
    /// Time of the last better route.
    pub changed_at: Instant,
    /// Time at which the present sequence number was first heard.
    pub sequence_at: Instant,
    /// Weighted settling time: delay from the first to the best route with a sequence number.
    pub settling: Duration,
    /// Not advertised before this instant.
    pub advertise_at: Instant,
    /// Whether the sequence number is advertised in the next update.
    pub advertise_sequence: bool,
    /// Whether the hop count is advertised in each update up to the next full one.
    pub advertise_hops: bool,
    /// Whether this entry triggers an update as soon as it may be advertised.
    pub trigger: bool,
    /// The hop count last advertised; 0: none.
    pub advertised_hops: u8,
}

impl Entry {
    /// Whether packets may use the route.
    pub fn is_usable(&self) -> bool {
        self.hops != INFINITE
    }

    /// Whether the settling is over.
    pub fn may_be_advertised(&self, now: Instant) -> bool {
        self.advertise_at <= now
    }

    /// Whether an incremental update includes the entry.
    pub fn is_news(&self, now: Instant) -> bool {
        (self.advertise_sequence || self.advertise_hops) && self.may_be_advertised(now)
    }

    /// Marks the route as lost, to be advertised at once. `changed_at` stays, so that the loss does not count as the
    /// sequence number's best route.
    pub fn lose(&mut self, now: Instant) {
        self.hops = INFINITE;
        self.sequence = self.sequence.broken();
        self.advertise_at = now;
        self.advertise_sequence = true;
        self.advertise_hops = true;
        self.trigger = true;
    }

    /// Records an advertisement. Only a full one ends the repetition of the hop count.
    pub fn advertised(&mut self, full: bool) {
        self.advertised_hops = self.hops;
        self.advertise_sequence = false;
        self.advertise_hops &= !full;
        self.trigger = false;
    }

    /// The state for the status socket: `broken`, `settling` or `advertised`.
    pub fn state(&self, now: Instant) -> &'static str {
        match (self.is_usable(), self.may_be_advertised(now)) {
            (false, _) => "broken",
            (true, false) => "settling",
            (true, true) => "advertised",
        }
    }
}
