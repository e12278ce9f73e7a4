//! One destination: how far, over which neighbour, and when it may be advertised (ns-2.35, `dsdv/rtable.h`).

use crate::sequence::Sequence;
use manet_engine::{Duration, Instant};
use std::net::Ipv4Addr;

/// The metric of a lost route, ns-2's 250 (its count has 8 bits).
pub const INFINITE: u8 = 250;

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Next hop; of a broken entry the neighbour that broke it.
    pub via: Ipv4Addr,
    pub hops: u8,
    pub sequence: Sequence,
    /// When the last better route came.
    pub changed_at: Instant,
    /// When the present sequence number was first heard.
    pub sequence_at: Instant,
    /// Weighted settling time: how long after a number's first route its best one comes.
    pub settling: Duration,
    /// Not advertised before this instant.
    pub advertise_at: Instant,
    /// The sequence number is to be advertised once.
    pub advertise_sequence: bool,
    /// The hop count is to be advertised in each update up to the next full one.
    pub advertise_hops: bool,
    /// Whether this entry triggers an update as soon as it may be advertised.
    pub trigger: bool,
    /// The hop count last advertised; 0: none.
    pub advertised_hops: u8,
}

impl Entry {
    pub fn is_usable(&self) -> bool {
        self.hops != INFINITE
    }

    pub fn may_be_advertised(&self, now: Instant) -> bool {
        self.advertise_at <= now
    }

    pub fn is_news(&self, now: Instant) -> bool {
        (self.advertise_sequence || self.advertise_hops) && self.may_be_advertised(now)
    }

    /// The route is lost, and advertised so at once. `changed_at` stays, so that this does not count as the sequence number's best route.
    pub fn lose(&mut self, now: Instant) {
        self.hops = INFINITE;
        self.sequence = self.sequence.broken();
        self.advertise_at = now;
        self.advertise_sequence = true;
        self.advertise_hops = true;
        self.trigger = true;
    }

    /// A full update ends what an incremental one repeats.
    pub fn advertised(&mut self, full: bool) {
        self.advertised_hops = self.hops;
        self.advertise_sequence = false;
        self.advertise_hops &= !full;
        self.trigger = false;
    }

    pub fn state(&self, now: Instant) -> &'static str {
        match (self.is_usable(), self.may_be_advertised(now)) {
            (false, _) => "broken",
            (true, false) => "settling",
            (true, true) => "advertised",
        }
    }
}
