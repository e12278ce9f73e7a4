//! Data packets for which the kernel has no route, or which the radio returned.

use crate::gateway::INTERNET;
use crate::machine::Dsdv;
use manet_engine::Instant;
use manet_routing::packet::ipv4;
use manet_routing::{Bytes, Output};

impl Dsdv {
    /// Handles a packet of the TUN device: this node's packet waits for a route, one of another station is dropped (unless
    /// its source gets notices).
    pub(crate) fn route(&mut self, now: Instant, bytes: Bytes) {
        let Some(packet) = ipv4::Packet::parse(&bytes) else { return self.base.counters.count("malformed-packet") };
        let (source, destination) = (packet.source(), packet.destination());
        if destination.is_broadcast() || destination.is_multicast() || destination.is_unspecified() {
            return self.base.counters.count("not-unicast");
        }
        let outside = self.is_outside(destination);
        let found = if outside { self.chosen.is_some() } else { self.table.next_hop(destination).is_some() };
        if found {
            self.base.counters.count("sent-again");
            self.base.out.push_back(Output::Send { bytes });
        } else if outside && self.is_gateway() || !outside && !self.node.is_station(destination) {
            // a gateway's kernel should have routes over its wires
            self.base.counters.count("outside");
            self.base.out.push_back(Output::Unreachable { bytes });
        } else if source == self.node.address || self.base.notices.concerns(&bytes) {
            self.base.hold(now, None, if outside { INTERNET } else { destination }, bytes);
        } else {
            self.base.give_up("no-route", bytes);
        }
    }

    /// Handles a packet of the radio's queue: it is sent over another route if there is one.
    pub(crate) fn returned(&mut self, now: Instant, bytes: Bytes) {
        self.base.counters.count("returned");
        self.route(now, bytes);
    }
}
