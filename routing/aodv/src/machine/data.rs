//! Data packets for which the kernel has no route.

use super::Aodv;
use manet_engine::{Duration, Instant};
use manet_routing::packet::ipv4;
use manet_routing::{Bytes, Output};
use std::net::Ipv4Addr;

impl Aodv {
    pub(super) fn route(&mut self, now: Instant, bytes: Bytes) {
        let Some(packet) = ipv4::Packet::parse(&bytes) else { return self.counters.count("packet-malformed") };
        let (source, destination) = (packet.source(), packet.destination());
        if !self.is_station(destination) || destination == self.node.address {
            return self.counters.count("packet-not-unicast");
        }
        if let Some(entry) = self.table.valid(destination) {
            // the packet came before the route, or the route was only in the table. A packet that returns repeatedly shows
            // that the kernel lacks the route that we set
            if entry.installed && !self.returned.may_retry(&packet) {
                return self.give_up("packet-returned", bytes);
            }
            return self.transmit(now, bytes);
        }
        let own = self.is_own(source);
        if self.seeks_gateway(destination, own) {
            // as above: with default routes the kernel should have forwarded the packet
            let installed = self.options.default_routes() && self.internet.chosen(destination).is_some();
            if installed && !self.returned.may_retry(&packet) {
                return self.give_up("packet-returned", bytes);
            }
            self.send_to_internet(now, destination, bytes);
        } else if own || self.in_repair(destination) || self.held_with_notice(&bytes, destination) {
            self.hold(now, destination, bytes);
        } else {
            self.no_route(now, source, destination);
            self.give_up("forward-no-route", bytes);
        }
    }

    /// Whether earlier packets of this packet's connection wait here and its source was notified.
    fn held_with_notice(&self, bytes: &Bytes, destination: Ipv4Addr) -> bool {
        self.notices.concerns(bytes) && self.held.count(destination) > 0
    }

    /// Sends a packet over the valid route to its destination.
    pub(super) fn transmit(&mut self, now: Instant, bytes: Bytes) {
        let Some(packet) = ipv4::Packet::parse(&bytes) else { return self.counters.count("packet-malformed") };
        let destination = packet.destination();
        self.used(now, packet.source(), destination);
        self.install(destination);
        self.out.push_back(Output::Send { bytes });
    }

    /// Reports a missing route for a packet of another station to the nodes on its path (6.11 ii).
    pub(super) fn no_route(&mut self, now: Instant, source: Ipv4Addr, destination: Ipv4Addr) {
        let entry = self.table.get(destination);
        let error = vec![(destination, entry.map_or(0, |e| e.error_sequence()))];
        if self.is_silent(now) {
            // 6.13: broadcast, and the wait begins again
            self.silent_until = now + self.timing.delete_period;
            return self.send_error(now, None, false, &error);
        }
        // the packet does not name its previous hop: the error goes to the precursors and the next hop to its source
        let mut informed = entry.map(|e| e.precursors.clone()).filter(|_| !self.options.uu()).unwrap_or_default();
        informed.extend(self.table.valid(source).map(|e| e.next_hop));
        // if the previous hop is none of them, more packets follow: then the route error is broadcast
        let again = self.reported.contains(destination) && !self.options.uu();
        let only = informed.first().copied().filter(|_| informed.len() == 1 && !again);
        self.reported.set(destination, now + Duration::from_secs(1));
        self.send_error(now, only, false, &error);
    }
}
