//! Data packets for which the kernel has no route, or which the radio returned.

use crate::gateway::INTERNET;
use crate::machine::Dsdv;
use manet_engine::Instant;
use manet_routing::packet::ipv4;
use manet_routing::{Bytes, Notices, Output};
use std::net::Ipv4Addr;

impl Dsdv {
    /// Handles a packet of the TUN device: this node's packet waits for a route, one of another station is dropped (unless
    /// its source gets notices).
    pub(crate) fn route(&mut self, now: Instant, bytes: Bytes) {
        let Some(packet) = ipv4::Packet::parse(&bytes) else { return self.counters.count("malformed-packet") };
        let (source, destination) = (packet.source(), packet.destination());
        if destination.is_broadcast() || destination.is_multicast() || destination.is_unspecified() {
            return self.counters.count("not-unicast");
        }
        let outside = self.is_outside(destination);
        let found = if outside { self.chosen.is_some() } else { self.table.next_hop(destination).is_some() };
        if found {
            self.counters.count("sent-again");
            self.out.push_back(Output::Send { bytes });
        } else if outside && self.is_gateway() || !outside && !self.is_station(destination) {
            // a gateway's kernel should have routes over its wires
            self.counters.count("outside");
            self.out.push_back(Output::Unreachable { bytes });
        } else if source == self.node.address || self.notices.concerns(&bytes) {
            self.hold(now, if outside { INTERNET } else { destination }, bytes);
        } else {
            self.give_up("no-route", bytes);
        }
    }

    fn hold(&mut self, now: Instant, destination: Ipv4Addr, bytes: Bytes) {
        self.counters.count("held");
        let notice = self.notices.held(now, &bytes).map(|kind| Notices::output(kind, &bytes));
        if let Some(oldest) = self.held.hold(now, destination, bytes) {
            self.notices.dropped(&oldest);
            self.give_up("held-full", oldest);
        }
        self.out.extend(notice);
    }

    /// Handles a packet of the radio's queue: it is sent over another route if there is one.
    pub(crate) fn returned(&mut self, now: Instant, bytes: Bytes) {
        self.counters.count("returned");
        self.route(now, bytes);
    }

    pub(crate) fn expire_held(&mut self, now: Instant) {
        for bytes in self.held.expire(now) {
            self.notices.dropped(&bytes);
            self.give_up("held-expired", bytes);
        }
    }

    fn give_up(&mut self, why: &'static str, bytes: Bytes) {
        self.counters.count(why);
        let about = ipv4::Packet::parse(&bytes).map_or(Ipv4Addr::UNSPECIFIED, |p| p.destination());
        self.out.push_back(Output::note("no-route", about, 1));
        self.out.push_back(Output::Unreachable { bytes });
    }
}
