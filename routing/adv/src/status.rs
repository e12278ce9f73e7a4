//! The answer to a status request.

use crate::machine::Adv;
use manet_engine::Instant;
use manet_routing::status::{NeighbourStatus, RouteStatus};
use manet_routing::Status;

impl Adv {
    pub(crate) fn report(&self, now: Instant) -> Status {
        let routes = self.table.iter().map(|(destination, entry)| {
            let expires = (entry.is_usable() && !entry.receiver).then(|| entry.used_at + self.options.route_idle);
            RouteStatus {
                sequence: entry.sequence.map(|n| n.0),
                expires_s: expires.map(|at| at.since(now).as_secs_f64()),
                ..RouteStatus::host(destination, entry.via, u32::from(entry.hops), entry.state())
            }
        });
        let neighbours = self.neighbours.iter().map(|(address, n)| NeighbourStatus {
            address,
            state: "heard",
            expires_s: self.neighbours.expires_at(n).map(|at| at.since(now).as_secs_f64()),
        });
        Status {
            sequence: Some(self.sequence.0),
            routes: routes.collect(),
            neighbours: neighbours.collect(),
            held: self.base.held.len(),
            counters: self.base.counters.clone(),
            details: serde_json::json!({
                "receiver": self.receiver,
                "connections": self.connections.peers().collect::<Vec<_>>(),
                "meter": self.meter.value(),
                "threshold": self.meter.threshold(),
            }),
        }
    }
}
