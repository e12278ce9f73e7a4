//! Links that come up and go down, and their effect on the heights.

use crate::machine::{Timer, Tora};
use crate::neighbours::Change;
use crate::options::Link;
use crate::wire::{Body, Heard};
use manet_engine::Instant;
use manet_routing::{Bytes, Output};
use std::net::Ipv4Addr;

/// Causes of a note `link-broken` (formats/routing.md).
const BY_RADIO: u64 = 1;
const BY_SILENCE: u64 = 2;

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
            Change::Waiting => self.greet_soon(now),
            Change::Up => {
                self.greet_soon(now);
                self.link_up(now, neighbour);
            }
            Change::Down => {
                self.counters.count("links-reset");
                self.greet_soon(now);
                self.link_down(now, neighbour, BY_SILENCE);
            }
        }
    }

    /// A beacon follows soon, but not at once: other nodes may answer the same packet.
    pub(crate) fn greet_soon(&mut self, now: Instant) {
        if self.timers.get(Timer::Greet).is_none() {
            let delay = self.between(self.options.high_priority_max, self.options.low_priority_min);
            self.timers.set(Timer::Greet, now + delay);
        }
    }

    /// Draft, 4.1: a new link carries the queries that wait for an answer.
    fn link_up(&mut self, now: Instant, neighbour: Ipv4Addr) {
        self.counters.count("links-up");
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
        self.counters.add("heights-announced", told.len() as u64);
        told.into_iter().for_each(|(destination, height)| self.say(destination, Body::Update(height)));
    }

    /// The link was up and is down.
    fn link_down(&mut self, now: Instant, neighbour: Ipv4Addr, cause: u64) {
        self.blocks.lost(neighbour);
        self.acks.retain(|ack| ack.address != neighbour);
        self.out.push_back(Output::note("link-broken", neighbour, cause));
        let known: Vec<Ipv4Addr> = self.destinations.keys().copied().collect();
        for destination in known {
            self.apply(now, destination, |state, here| state.link_down(here, neighbour));
        }
    }

    pub(crate) fn silence(&mut self, now: Instant) {
        for (neighbour, up) in self.neighbours.expire(now) {
            if up {
                self.counters.count("links-silent");
                self.link_down(now, neighbour, BY_SILENCE);
            }
        }
    }

    /// The neighbour has not acknowledged a block.
    pub(crate) fn unacknowledged(&mut self, now: Instant, neighbour: Ipv4Addr) {
        self.counters.count("links-unacknowledged");
        if self.neighbours.forget(neighbour) {
            self.link_down(now, neighbour, BY_SILENCE);
        }
    }

    pub(crate) fn link_failed(&mut self, now: Instant, neighbour: Ipv4Addr, bytes: Bytes) {
        if !self.node.feedback || self.options.link == Link::Hello {
            return self.counters.count("feedback-ignored");
        }
        self.counters.count("links-failed");
        if self.neighbours.forget(neighbour) {
            self.link_down(now, neighbour, BY_RADIO);
            self.out.push_back(Output::Purge { neighbour });
        }
        if !bytes.is_empty() {
            self.returned(now, bytes);
        }
    }
}
