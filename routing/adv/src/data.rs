//! Data packets: those without a route, those that the radio returned, and the use of routes.

use crate::machine::Adv;
use manet_engine::{Duration, Instant};
use manet_routing::packet::ipv4::{self, protocol};
use manet_routing::{Bytes, Flow, Output};
use std::net::Ipv4Addr;

impl Adv {
    /// Handles a packet of the TUN device: it waits for a route, at its source and at nodes on its path.
    pub(crate) fn route(&mut self, now: Instant, bytes: Bytes) {
        let Some(packet) = ipv4::Packet::parse(&bytes) else { return self.base.counters.count("malformed-packet") };
        let (source, destination, protocol) = (packet.source(), packet.destination(), packet.protocol());
        if destination == self.node.address
            || destination.is_broadcast()
            || destination.is_multicast()
            || destination.is_unspecified()
        {
            return self.base.counters.count("not-unicast");
        }
        if self.table.next_hop(destination).is_some() {
            self.base.counters.count("sent-again");
            self.base.out.push_back(Output::Send { bytes });
        } else if !self.node.is_station(destination) {
            self.base.counters.count("outside");
            self.base.out.push_back(Output::Unreachable { bytes });
        } else {
            self.want(now, destination, source == self.node.address);
            self.hold(now, destination, protocol, bytes);
        }
    }

    /// A packet waits for a route to `destination`, which is a receiver. The source searches for one by a flood: at once, or
    /// if a route of the connection has just broken, when updates had the time to bring another.
    fn want(&mut self, now: Instant, destination: Ipv4Addr, own: bool) {
        let us = self.node.address;
        let broken_since = match self.table.entry(now, us, destination) {
            Some(entry) => {
                entry.receiver = true;
                entry.sequence.map(|_| entry.broken_at)
            }
            None => {
                self.base.counters.count("table-full");
                None
            }
        };
        if !own {
            // the nodes towards the source still use the route over this node: they must learn that it is broken
            self.meter.packet();
            return;
        }
        let patience = self.options.broken_lifetime;
        if let Some(connection) = self.connections.used(now, destination, true) {
            let repair_until = broken_since.filter(|_| connection.opened).map_or(now, |at| (at + patience).max(now));
            connection.flood_at = Some(connection.flood_at.unwrap_or(repair_until));
        }
        self.receiver = true;
    }

    /// TCP repeats its segments, so that ICMP and all others share the limit of UDP.
    fn max_age(&self, protocol: u8) -> Duration {
        if protocol == protocol::TCP {
            self.options.buffer_tcp
        } else {
            self.options.buffer_udp
        }
    }

    fn hold(&mut self, now: Instant, destination: Ipv4Addr, protocol: u8, bytes: Bytes) {
        if self.base.hold(now, Some(self.max_age(protocol)), destination, bytes) {
            self.meter.packet();
        }
        if self.base.held.count(destination) >= self.options.buffer_threshold {
            self.meter.packet();
        }
    }

    /// Handles a packet of the radio's queue: it is sent over another route, or waits for one.
    pub(crate) fn returned(&mut self, now: Instant, bytes: Bytes) {
        self.base.counters.count("returned");
        self.meter.packet();
        self.route(now, bytes);
    }

    /// Records packets that the kernel sent, forwarded or received.
    pub(crate) fn used(&mut self, now: Instant, flow: &Flow) {
        if !self.node.is_station(flow.source) || !self.node.is_station(flow.destination) {
            return;
        }
        if let Some(entry) = self.table.get_mut(flow.source).filter(|e| e.is_usable()) {
            entry.used_at = now;
        }
        if flow.destination == self.node.address {
            self.connections.used(now, flow.source, false);
            self.receiver = true;
            return;
        }
        let mut known_receiver = true;
        if let Some(entry) = self.table.get_mut(flow.destination).filter(|e| e.is_usable()) {
            entry.used_at = now;
            entry.handled = entry.handled.saturating_add(flow.packets);
            known_receiver = entry.receiver;
        }
        if flow.source == self.node.address {
            if let Some(connection) = self.connections.used(now, flow.destination, true) {
                if known_receiver {
                    connection.opened = true;
                } else {
                    // nobody advertises a route to a node that is no receiver
                    connection.flood_at = Some(connection.flood_at.unwrap_or(now));
                }
            }
            self.receiver = true;
        }
    }
}
