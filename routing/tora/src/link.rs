//! Links that come up and go down, and their effect on the heights.

use crate::data::is_control;
use crate::destination::{Destination, Here, Reply};
use crate::machine::{Timer, Tora};
use crate::neighbours::Change;
use crate::options::Link;
use crate::wire::{Body, Heard};
use manet_engine::{Duration, Instant};
use manet_routing::{Bytes, Output};
use std::net::Ipv4Addr;

/// Causes of a note `link-broken` (formats/routing.md).
const BY_RADIO: u64 = 1;
const BY_SILENCE: u64 = 2;
/// Maximum rounds of greetings in a beacon interval, so that many links that come and go do not fill the channel with them.
const GREETINGS: u64 = 4;

impl Tora {
    /// The neighbour lists us as `us`, in a beacon or as receiver of a block.
    pub(crate) fn listed(&mut self, now: Instant, from: Ipv4Addr, us: Heard) {
        let change = self.neighbours.listed(now, from, us, self.blocks.next_sequence());
        self.changed(now, from, change);
    }

    /// The neighbour's beacon does not list us.
    pub(crate) fn unlisted(&mut self, now: Instant, from: Ipv4Addr) {
        let change = self.neighbours.unlisted(from);
        self.changed(now, from, change);
    }

    fn changed(&mut self, now: Instant, neighbour: Ipv4Addr, change: Change) {
        match change {
            Change::Nothing => {}
            Change::Waiting => self.greet(now, neighbour),
            Change::Up => {
                self.greet(now, neighbour);
                self.link_up(now, neighbour);
            }
            Change::Down => {
                self.base.counters.count("links-reset");
                self.greet(now, neighbour);
                self.link_down(now, neighbour, BY_SILENCE);
            }
        }
    }

    /// The neighbour is told our numbers soon, but not at once: other nodes may answer the same packet.
    pub(crate) fn greet(&mut self, now: Instant, neighbour: Ipv4Addr) {
        self.greet.insert(neighbour);
        if self.timers.get(Timer::Greet).is_none() {
            let delay = self.rng.between(self.options.high_priority_max, self.options.low_priority_min);
            let interval = Duration::from_nanos(self.options.beacon_interval.as_nanos() / GREETINGS);
            self.timers.set(Timer::Greet, (now + delay).max(self.greeted_at + interval));
        }
    }

    /// Draft, 4.1: a new link carries the queries that wait for an answer.
    fn link_up(&mut self, now: Instant, neighbour: Ipv4Addr) {
        self.base.counters.count("links-up");
        let known: Vec<Ipv4Addr> = self.destinations.keys().copied().collect();
        for destination in known {
            self.apply(now, destination, |state, here| state.link_up(here, neighbour, destination == neighbour));
        }
        if !self.destinations.contains_key(&neighbour) {
            self.apply(now, neighbour, |state, here| state.link_up(here, neighbour, true));
        }
        if self.options.announce_heights {
            self.announce(now);
        }
    }

    /// Tells the heights that are not yet on their way.
    fn announce(&mut self, now: Instant) {
        let mut told = Vec::new();
        for (destination, state) in &mut self.destinations {
            if state.height.is_some() && state.updated_at != Some(now) {
                state.updated_at = Some(now);
                told.push((*destination, state.height));
            }
        }
        self.base.counters.add("heights-announced", told.len() as u64);
        told.into_iter().for_each(|(destination, height)| self.say(destination, Body::Update(height)));
    }

    /// The link was up and is down.
    fn link_down(&mut self, now: Instant, neighbour: Ipv4Addr, cause: u64) {
        self.blocks.lost(neighbour);
        self.acks.retain(|ack| ack.address != neighbour);
        self.base.out.push_back(Output::note("link-broken", neighbour, cause));
        self.for_all_destinations(now, |state, here| state.link_down(here, neighbour));
    }

    /// A packet of the neighbour arrived: a suspended link is used again.
    pub(crate) fn resume(&mut self, now: Instant, neighbour: Ipv4Addr) {
        if self.neighbours.resume(neighbour) {
            self.base.counters.count("links-resumed");
            self.for_all_destinations(now, |state, here| state.resume(here, neighbour));
        }
    }

    fn for_all_destinations(&mut self, now: Instant, rule: impl Fn(&mut Destination, Here) -> Reply) {
        let known: Vec<Ipv4Addr> = self.destinations.keys().copied().collect();
        known.into_iter().for_each(|destination| self.apply(now, destination, &rule));
    }

    pub(crate) fn silence(&mut self, now: Instant) {
        for (neighbour, up) in self.neighbours.expire(now) {
            if up {
                self.base.counters.count("links-silent");
                self.link_down(now, neighbour, BY_SILENCE);
            }
        }
    }

    /// The neighbour has not acknowledged a block.
    pub(crate) fn unacknowledged(&mut self, now: Instant, neighbour: Ipv4Addr) {
        self.base.counters.count("links-unacknowledged");
        if self.neighbours.forget(neighbour) {
            self.link_down(now, neighbour, BY_SILENCE);
        }
    }

    pub(crate) fn link_failed(&mut self, now: Instant, neighbour: Ipv4Addr, bytes: Bytes) {
        if !self.node.feedback || self.options.link == Link::Hello {
            return self.base.counters.count("feedback-ignored");
        }
        if is_control(&bytes) {
            // the block is repeated and its acknowledgements are counted, so that contention alone breaks no link
            return self.base.counters.count("control-lost");
        }
        self.base.counters.count("links-failed");
        if self.neighbours.suspend(neighbour) {
            self.base.out.push_back(Output::note("link-broken", neighbour, BY_RADIO));
            self.for_all_destinations(now, |state, here| state.suspend(here, neighbour));
            self.base.out.push_back(Output::Purge { neighbour });
        }
        if !bytes.is_empty() {
            self.returned(now, bytes);
        }
    }
}
