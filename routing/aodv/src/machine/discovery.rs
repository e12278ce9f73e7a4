//! Route discovery: the requests of the expanding ring search, its success and its failure (RFC 3561, 6.3, 6.4).

use super::Aodv;
use crate::discovery::{Discovery, Purpose};
use crate::sequence;
use crate::table::State;
use crate::wire::rreq;
use manet_engine::{Duration, Instant};
use manet_routing::packet::ipv4;
use manet_routing::{Bytes, Notices, Output};
use std::net::Ipv4Addr;

impl Aodv {
    /// Holds a packet until a route exists, and starts a discovery for it.
    pub(super) fn hold(&mut self, now: Instant, destination: Ipv4Addr, bytes: Bytes) {
        let notice = self.notices.held(now, &bytes).map(|kind| Notices::output(kind, &bytes));
        if let Some(oldest) = self.held.hold(now, destination, bytes) {
            self.counters.count("held-full");
            self.notices.dropped(&oldest);
        }
        self.out.extend(notice);
        if self.discoveries.get(destination).is_none() {
            self.start_discovery(now, destination);
        }
    }

    fn start_discovery(&mut self, now: Instant, destination: Ipv4Addr) {
        let last_hops = self.table.get(destination).map(|e| e.hops);
        let ttl = self.ring.first(last_hops);
        let discovery = Discovery { purpose: Purpose::Own, ttl, wide: self.ring.is_wide(ttl), sent: false, at: now };
        if self.discoveries.insert(destination, discovery) {
            self.request_route(now, destination, discovery);
        } else {
            self.counters.count("searches-full");
            self.discovery_failed(now, destination);
        }
    }

    /// Performs the due step of a discovery.
    pub(super) fn step(&mut self, now: Instant, destination: Ipv4Addr, discovery: Discovery) {
        if !discovery.sent {
            return self.request_route(now, destination, discovery);
        }
        match discovery.purpose {
            Purpose::Own => {}
            Purpose::Repair { .. } => return self.repair_failed(now, destination),
            Purpose::HoldDown => {
                self.discoveries.remove(destination);
                return;
            }
        }
        match self.ring.next(discovery.ttl, discovery.wide) {
            Some(ttl) => {
                let wide = discovery.wide + self.ring.is_wide(ttl);
                self.request_route(now, destination, Discovery { ttl, wide, sent: false, ..discovery });
            }
            None => {
                self.discoveries.remove(destination);
                self.discovery_failed(now, destination);
                self.hold_down(now, destination);
            }
        }
    }

    /// As in ns-2 (`MAX_RREQ_TIMEOUT`): for a time packets wait without a request; the first packet afterwards starts one.
    fn hold_down(&mut self, now: Instant, destination: Ipv4Addr) {
        if self.options.hold_down > Duration::ZERO {
            let at = now + self.options.hold_down;
            let discovery = Discovery { purpose: Purpose::HoldDown, ttl: 0, wide: 0, sent: true, at };
            self.discoveries.insert(destination, discovery);
        }
    }

    /// Sends the request of this step; postpones it during the silence after a restart or above the rate limit.
    pub(super) fn request_route(&mut self, now: Instant, destination: Ipv4Addr, discovery: Discovery) {
        let later = if self.is_silent(now) { Some(self.silent_until) } else { self.rreq_limit.take(now).err() };
        if let Some(at) = later {
            self.counters.count("rreq-put-off");
            self.discoveries.insert(destination, Discovery { sent: false, at, ..discovery });
            return;
        }
        let at = now + self.ring.wait(discovery.ttl, discovery.wide);
        self.discoveries.insert(destination, Discovery { sent: true, at, ..discovery });
        // 6.1: incremented immediately before a discovery
        self.sequence = sequence::next(self.sequence);
        self.request_id = self.request_id.wrapping_add(1);
        let known = self.table.get(destination).and_then(|e| e.sequence);
        let request = rreq::Repr {
            gratuitous: self.derived.gratuitous && discovery.purpose == Purpose::Own,
            destination_only: self.options.destination_only,
            // an unknown number is flag U and 0: AODV-UU uses only the latter and never sets the flag
            unknown: known.is_none() && !self.options.uu(),
            destination_sequence: known.unwrap_or(0),
            ..rreq::Repr::new(self.request_id, destination, self.node.address, self.sequence)
        };
        self.counters.count("rreq-sent");
        self.note("discovery", destination, discovery.ttl.into());
        self.broadcast(now, discovery.ttl, request.emit());
    }

    /// The discovery failed: drops the packets that waited for it (6.3).
    fn discovery_failed(&mut self, now: Instant, destination: Ipv4Addr) {
        let packets = self.held.give_up(destination, |_| true);
        let source = |bytes: &Bytes| ipv4::Packet::parse(bytes).map(|p| p.source());
        let others = packets.iter().filter_map(source).find(|source| !self.is_own(*source));
        if let Some(source) = others.filter(|_| self.seeks_gateway(destination, false)) {
            self.no_route(now, source, destination);
        }
        self.note("no-route", destination, packets.len() as u64);
        packets.iter().for_each(|bytes| self.notices.dropped(bytes));
        packets.into_iter().for_each(|bytes| self.give_up("no-route", bytes));
    }

    pub(super) fn expire_held(&mut self, now: Instant) {
        for bytes in self.held.expire(now) {
            self.notices.dropped(&bytes);
            let destination = ipv4::Packet::parse(&bytes).map(|p| p.destination());
            destination.into_iter().for_each(|d| self.note("no-route", d, 1));
            self.give_up("held-expired", bytes);
        }
    }

    /// A route to `destination` was found: sends the packets that waited for it.
    pub(super) fn route_found(&mut self, now: Instant, destination: Ipv4Addr) {
        if let Some(Discovery { purpose: Purpose::Repair { hops }, .. }) = self.discoveries.remove(destination) {
            self.repaired(now, destination, hops);
        }
        for bytes in self.held.take(destination) {
            let notice = self.notices.released(&bytes).map(|kind| Notices::output(kind, &bytes));
            self.transmit(now, bytes);
            self.out.extend(notice);
        }
    }

    /// After a failed repair: starts a discovery for this node's packets and drops those of other nodes.
    pub(super) fn discover_or_drop(&mut self, now: Instant, destination: Ipv4Addr) {
        let (node, gateway) = (&self.node, self.is_gateway());
        let own = |bytes: &Bytes| ipv4::Packet::parse(bytes).is_some_and(|p| super::is_own(node, gateway, p.source()));
        let others = self.held.give_up(destination, |bytes| !own(bytes));
        self.counters.add("repair-dropped", others.len() as u64);
        others.iter().for_each(|bytes| self.notices.dropped(bytes));
        self.out.extend(others.into_iter().map(|bytes| Output::Unreachable { bytes }));
        self.held.renew(now, destination);
        if self.held.count(destination) > 0 && self.discoveries.get(destination).is_none() {
            self.start_discovery(now, destination);
        }
    }

    pub(super) fn in_repair(&self, destination: Ipv4Addr) -> bool {
        self.table.get(destination).is_some_and(|e| e.state == State::Repair)
    }
}
