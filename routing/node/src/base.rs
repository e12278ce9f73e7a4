//! The state that machines of design A share: outputs, counters, the kernel's host routes, and the packets that wait for one.

use crate::packet::ipv4;
use crate::{Bytes, Counters, Held, Notices, Output, Route};
use manet_engine::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Counters that this type counts: `held`, `held-full`, `held-expired`.
#[derive(Debug)]
pub struct Base {
    /// Outputs that the driver has not taken yet.
    pub out: VecDeque<Output>,
    /// The machine's counters.
    pub counters: Counters,
    /// Packets that wait for a route.
    pub held: Held,
    /// The notices about them.
    pub notices: Notices,
    /// Next hops that we set in the kernel's table.
    next_hops: BTreeMap<Ipv4Addr, Ipv4Addr>,
}

impl Base {
    /// Without routes.
    pub fn new(held: Held, notices: Notices) -> Self {
        let (out, counters, next_hops) = (VecDeque::new(), Counters::default(), BTreeMap::new());
        Self { out, counters, held, notices, next_hops }
    }

    /// The next hop of the kernel's route.
    pub fn next_hop(&self, destination: Ipv4Addr) -> Option<Ipv4Addr> {
        self.next_hops.get(&destination).copied()
    }

    /// Sets the kernel's route, unless it has this next hop already.
    pub fn set_route(&mut self, destination: Ipv4Addr, via: Ipv4Addr, hops: u8) {
        if self.next_hops.insert(destination, via) != Some(via) {
            self.out.push_back(Output::SetRoute(Route::host(destination, via, hops)));
        }
    }

    /// Removes the kernel's route, if there is one.
    pub fn clear_route(&mut self, destination: Ipv4Addr) {
        if self.next_hops.remove(&destination).is_some() {
            self.out.push_back(Output::ClearRoute { destination, prefix: 32 });
        }
    }

    /// Holds a packet until there is a route; `max_age`: its own limit, if it is not that of the buffer. True: a full buffer
    /// dropped its oldest packet.
    pub fn hold(&mut self, now: Instant, max_age: Option<Duration>, destination: Ipv4Addr, bytes: Bytes) -> bool {
        self.counters.count("held");
        let notice = self.notices.held(now, &bytes).map(|kind| Notices::output(kind, &bytes));
        let oldest = match max_age {
            Some(max_age) => self.held.hold_for(now, max_age, destination, bytes),
            None => self.held.hold(now, destination, bytes),
        };
        let full = oldest.is_some();
        if let Some(oldest) = oldest {
            self.notices.dropped(&oldest);
            self.give_up("held-full", oldest);
        }
        self.out.extend(notice);
        full
    }

    /// The packets that wait for `destination`, oldest first, each with the notice that follows it. There is a route for them.
    pub fn take_held(&mut self, destination: Ipv4Addr) -> Vec<(Bytes, Option<Output>)> {
        if self.held.is_empty() {
            return Vec::new();
        }
        let packets = self.held.take(destination).into_iter();
        let noticed = |bytes: Bytes| {
            let notice = self.notices.released(&bytes).map(|kind| Notices::output(kind, &bytes));
            (bytes, notice)
        };
        packets.map(noticed).collect()
    }

    /// Sends the packets that wait for `destination`, each counted as `counter`.
    pub fn release(&mut self, destination: Ipv4Addr, counter: &'static str) {
        for (bytes, notice) in self.take_held(destination) {
            self.counters.count(counter);
            self.out.push_back(Output::Send { bytes });
            self.out.extend(notice);
        }
    }

    /// Drops the packets that have waited too long.
    pub fn expire_held(&mut self, now: Instant) {
        for bytes in self.held.expire(now) {
            self.notices.dropped(&bytes);
            self.give_up("held-expired", bytes);
        }
    }

    /// Drops a packet, counted as `why`, and informs its source.
    pub fn give_up(&mut self, why: &'static str, bytes: Bytes) {
        self.counters.count(why);
        let about = ipv4::Packet::parse(&bytes).map_or(Ipv4Addr::UNSPECIFIED, |p| p.destination());
        self.out.push_back(Output::note("no-route", about, 1));
        self.out.push_back(Output::Unreachable { bytes });
    }
}
