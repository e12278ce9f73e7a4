//! The machine's part of the status (formats/routing.md).

use super::Aodv;
use crate::table::State;
use manet_engine::{Duration, Instant};
use manet_routing::status::{NeighbourStatus, RouteStatus};
use manet_routing::Status;
use std::net::Ipv4Addr;

impl Aodv {
    pub(super) fn report(&self, now: Instant) -> Status {
        Status {
            sequence: Some(self.sequence),
            routes: self.routes(now),
            neighbours: self.neighbour_states(now),
            held: self.held.len(),
            counters: self.counters.clone(),
            details: self.details(now),
        }
    }

    fn routes(&self, now: Instant) -> Vec<RouteStatus> {
        let entries = self.table.iter().map(|e| RouteStatus {
            destination: e.destination,
            prefix: 32,
            via: e.next_hop,
            hops: e.hops.into(),
            state: match e.state {
                State::Valid => "valid",
                State::Invalid => "invalid",
                State::Repair => "repair",
            },
            sequence: e.sequence,
            expires_s: Some(seconds(e.expires - now)),
            precursors: e.precursors.iter().copied().collect(),
            path: Vec::new(),
        });
        let internet = self.internet.iter().map(|(destination, gateway)| {
            let entry = self.table.get(gateway);
            let via = entry.filter(|_| self.options.default_routes()).map_or(gateway, |e| e.next_hop);
            RouteStatus::host(destination, via, entry.map_or(0, |e| e.hops.into()), "internet")
        });
        entries.chain(internet).collect()
    }

    /// The neighbours one hop away and those on the blacklist.
    fn neighbour_states(&self, now: Instant) -> Vec<NeighbourStatus> {
        let left = |at: Instant| Some(seconds(at - now));
        let blacklisted = self.neighbours.blacklist.iter();
        let blacklisted =
            blacklisted.map(|(address, at)| NeighbourStatus { address, state: "blacklisted", expires_s: left(at) });
        let hello = self.neighbours.hello.iter();
        let hello = hello.map(|(address, at)| NeighbourStatus { address, state: "hello", expires_s: left(at) });
        let here = self.table.iter().filter(|e| e.valid() && e.next_hop == e.destination);
        let heard = here.filter(|e| !self.neighbours.hello.contains(e.destination)).map(|e| NeighbourStatus {
            address: e.destination,
            state: "heard",
            expires_s: left(e.expires),
        });
        blacklisted.chain(hello).chain(heard).collect()
    }

    fn details(&self, now: Instant) -> serde_json::Value {
        let searches: Vec<_> =
            self.discoveries.iter().map(|(d, s)| serde_json::json!({"destination": d, "ttl": s.ttl})).collect();
        let gateways: Vec<(Ipv4Addr, Ipv4Addr)> = self.internet.iter().collect();
        serde_json::json!({
            "rreq_id": self.request_id,
            "searches": searches,
            "gateways": gateways,
            "requests_remembered": self.duplicates.len(),
            "silent_s": seconds(self.silent_until - now),
        })
    }
}

/// Seconds, rounded down to milliseconds.
fn seconds(d: Duration) -> f64 {
    (d.as_nanos() / 1_000_000) as f64 / 1000.0
}
