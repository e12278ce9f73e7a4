//! Floods: init-connection, receiver-alert, end-connection, non-receiver-alert.

use crate::machine::Adv;
use crate::pending::Flood;
use crate::table::MAX_HOPS;
use crate::wire::{Body, Init, Message};
use manet_engine::{Duration, Instant};
use manet_routing::{Output, BROADCAST};
use std::net::Ipv4Addr;

/// Floods that a node starts or passes on in any second; further ones are dropped. 50 nodes that all search have 10 each.
const PER_SECOND: usize = 50;
const NEIGHBOURS_ONLY: u8 = 1;
/// Value of the note `discovery`: the flood crosses the whole network.
const WHOLE_NETWORK: u64 = 255;

impl Adv {
    /// Sends a message to all neighbours.
    pub(crate) fn broadcast(&mut self, now: Instant, body: Body) {
        let bytes = Message { sender: self.sequence, body }.emit().into();
        self.base.out.push_back(Output::Control { to: BROADCAST, ttl: NEIGHBOURS_ONLY, bytes });
        self.plan_hello(now);
    }

    /// Plans a flooded message after a random delay, unless there are too many.
    pub(crate) fn flood(&mut self, now: Instant, flood: Flood) {
        let second = Duration::from_secs(1);
        while self.flooded.front().is_some_and(|at| *at + second <= now) {
            self.flooded.pop_front();
        }
        if self.flooded.len() >= PER_SECOND {
            return self.base.counters.count("flood-limited");
        }
        self.flooded.push_back(now);
        let wait = self.rng.between(Duration::ZERO, self.options.broadcast_jitter);
        self.floods.push(now + wait, 0, flood);
    }

    pub(crate) fn send_floods(&mut self, now: Instant) {
        while let Some((_, flood)) = self.floods.pop_due(now) {
            let Some((name, body)) = self.flood_body(flood) else {
                self.base.counters.count("flood-route-lost");
                continue;
            };
            self.base.counters.count(name);
            self.broadcast(now, body);
        }
    }

    /// The message with the node's present hop count. `None`: its route was lost meanwhile.
    fn flood_body(&self, flood: Flood) -> Option<(&'static str, Body)> {
        let ours = |address| address == self.node.address;
        let route = |address| match ours(address) {
            true => Some((self.sequence, 0)),
            false => {
                let entry = self.table.get(address).filter(|e| e.is_usable() && e.hops < MAX_HOPS)?;
                Some((entry.sequence?, entry.hops))
            }
        };
        Some(match flood {
            Flood::Init(init) => {
                let (sequence, hops) = route(init.source)?;
                let name = if ours(init.source) { "init-sent" } else { "init-forwarded" };
                (name, Body::Init(Init { sequence, hops, ..init }))
            }
            Flood::Alert { destination, receiver } => {
                let (sequence, hops) = route(destination)?;
                let name = match (ours(destination), receiver) {
                    (true, true) => "alert-sent",
                    (false, true) => "alert-forwarded",
                    (true, false) => "non-receiver-sent",
                    (false, false) => "non-receiver-forwarded",
                };
                (name, Body::Alert { receiver, destination, sequence, hops })
            }
            Flood::End { source, id, destination } => {
                (if ours(source) { "end-sent" } else { "end-forwarded" }, Body::End { source, id, destination })
            }
        })
    }

    /// Floods the init-connections that are due and still needed.
    pub(crate) fn search(&mut self, now: Instant) {
        for wanted in self.connections.floods_due(now) {
            let entry = self.table.get(wanted);
            let usable = entry.is_some_and(|e| e.is_usable());
            let maintained = usable && entry.is_some_and(|e| e.receiver);
            if maintained || !usable && self.base.held.count(wanted) == 0 {
                self.connections.answered(wanted);
                continue;
            }
            let known = entry.and_then(|e| e.sequence.map(|n| (n, e.fewest_hops)));
            // an answer of another node may be useless for a node on its path, the destination's own never is
            let destination_only = self.connections.get(wanted).is_some_and(|c| c.floods > 0);
            self.sequence = self.sequence.next();
            let init = Init {
                source: self.node.address,
                sequence: self.sequence,
                hops: 0,
                id: self.next_flood_id(),
                wanted,
                known,
                destination_only,
            };
            self.base.out.push_back(Output::note("discovery", wanted, WHOLE_NETWORK));
            self.flood(now, Flood::Init(init));
            self.connections.flooded(now, wanted);
        }
    }

    fn next_flood_id(&mut self) -> u32 {
        self.flood_id = self.flood_id.wrapping_add(1);
        self.flood_id
    }

    /// Informs a destination that this node sends nothing more.
    pub(crate) fn flood_end(&mut self, now: Instant, destination: Ipv4Addr) {
        let id = self.next_flood_id();
        self.flood(now, Flood::End { source: self.node.address, id, destination });
    }

    /// Answers that this node is a receiver.
    pub(crate) fn flood_alert(&mut self, now: Instant) {
        self.receiver = true;
        self.sequence = self.sequence.next();
        self.flood(now, Flood::Alert { destination: self.node.address, receiver: true });
    }

    /// Announces that this node is no receiver any more, when its last connection has ended.
    pub(crate) fn check_receiver(&mut self, now: Instant) {
        if self.receiver && self.connections.is_empty() {
            self.receiver = false;
            self.sequence = self.sequence.next();
            self.flood(now, Flood::Alert { destination: self.node.address, receiver: false });
        }
    }
}
