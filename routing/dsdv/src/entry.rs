//! One destination: how far, by whom, and when the others may be told (ns-2.35, `dsdv/rtable.h`).

use crate::number::Number;
use manet_engine::{Duration, Instant};
use std::net::Ipv4Addr;

/// The metric of a lost route, ns-2's 250 (its count has 8 bits).
pub const INFINITE: u8 = 250;

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Next hop; of a broken entry the one who broke it.
    pub via: Ipv4Addr,
    pub hops: u8,
    pub number: Number,
    /// When the last better route came.
    pub changed_at: Instant,
    /// When the present number was first heard.
    pub number_at: Instant,
    /// Weighted settling time: how long after a number's first route its best one comes.
    pub settling: Duration,
    /// Not to be told before.
    pub advertise_at: Instant,
    /// The number is to be told once.
    pub tell_number: bool,
    /// The hop count is to be told in each update until the next full one has told it.
    pub tell_hops: bool,
    /// Whether an update is to be sent for this entry's sake as soon as it may be told.
    pub trigger: bool,
    /// 0: never told.
    pub told_hops: u8,
}

impl Entry {
    pub fn is_usable(&self) -> bool {
        self.hops != INFINITE
    }

    pub fn may_be_told(&self, now: Instant) -> bool {
        self.advertise_at <= now
    }

    pub fn is_news(&self, now: Instant) -> bool {
        (self.tell_number || self.tell_hops) && self.may_be_told(now)
    }

    /// The route is lost: told at once. `changed_at` stays, so that this is not taken for the number's best route.
    pub fn lose(&mut self, now: Instant) {
        self.hops = INFINITE;
        self.number = self.number.broken();
        self.advertise_at = now;
        self.tell_number = true;
        self.tell_hops = true;
        self.trigger = true;
    }

    /// A full update ends what an incremental one repeats.
    pub fn told(&mut self, full: bool) {
        self.told_hops = self.hops;
        self.tell_number = false;
        self.tell_hops &= !full;
        self.trigger = false;
    }

    pub fn state(&self, now: Instant) -> &'static str {
        match (self.is_usable(), self.may_be_told(now)) {
            (false, _) => "broken",
            (true, false) => "settling",
            (true, true) => "advertised",
        }
    }
}
