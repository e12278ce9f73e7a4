//! Packets of the local stack (RFC 4728, section 8.1.1), and the sending of all packets: source routes and frames.

use crate::cache::Route;
use crate::datagram::Datagram;
use crate::discovery::Step;
use crate::machine::Dsr;
use crate::maintenance::Due;
use crate::reported::Reported;
use crate::wire::{Opt, Request, SourceRoute};
use manet_engine::Instant;
use manet_routing::{Bytes, Note, Output, BROADCAST, BROADCAST_MAC};
use std::net::Ipv4Addr;

/// Maximum number of destinations whose path is remembered for the notes.
const NOTED: usize = 256;

impl Dsr {
    /// Handles a packet of the local stack or, at a gateway, of a wire.
    pub(crate) fn originate(&mut self, now: Instant, bytes: &[u8]) {
        let packet = match Datagram::parse(bytes) {
            Ok(packet) => packet,
            Err(reason) => return self.count(reason),
        };
        let (source, destination) = (packet.source(), packet.destination());
        if destination.is_multicast() || destination.is_broadcast() || destination == self.node.broadcast() {
            // RFC 4728 floods requests only; it defines no broadcast of data
            return self.count("multicast");
        }
        if !packet.options.is_empty() || destination == self.own() {
            return self.count("not-ours-to-send");
        }
        let from_wire = self.is_gateway() && !self.node.in_network(source);
        if source != self.own() && !from_wire {
            return self.count("foreign-source");
        }
        if self.is_gateway() && !self.node.in_network(destination) {
            // the kernel has no wire for it, and no other gateway would answer
            self.count("no-wire");
            return self.put(Output::Unreachable { bytes: packet.plain() });
        }
        self.count("originated");
        self.send_data(now, packet);
    }

    /// Sends the packet over a cached route, or holds it and starts a discovery.
    pub(crate) fn send_data(&mut self, now: Instant, packet: Datagram) {
        let destination = packet.destination();
        match self.cache.find(now, destination) {
            Some(route) => {
                self.note_route(destination, &route);
                self.send_over(now, packet, &route);
            }
            None => self.hold(now, packet),
        }
    }

    fn hold(&mut self, now: Instant, packet: Datagram) {
        let destination = packet.destination();
        self.note_lost(destination);
        if let Some(bytes) = self.held.hold(now, destination, packet.plain()) {
            self.count("held-full");
            self.give_up_held(now, bytes, &mut Reported::default());
        }
        if let Some(step) = self.discoveries.start(now, destination) {
            self.discover(now, destination, step);
        }
    }

    /// Notes that the route to a destination of our own packets is lost.
    fn note_lost(&mut self, destination: Ipv4Addr) {
        let was = self.noted.get(&destination).is_some_and(|hops| !hops.is_empty());
        if self.noted.len() < NOTED || self.noted.contains_key(&destination) {
            self.noted.insert(destination, Vec::new());
        }
        if was {
            self.note("lost", destination, 0);
        }
    }

    /// Notes lost and new routes to destinations of our own packets at once after a change of the cache, not with the next
    /// packet.
    pub(crate) fn follow_cache(&mut self, now: Instant) {
        let noted: Vec<(Ipv4Addr, bool)> = self.noted.iter().map(|(d, hops)| (*d, hops.is_empty())).collect();
        for (destination, lost) in noted {
            match self.cache.peek(now, destination) {
                Some(route) if lost => self.note_route(destination, &route),
                None if !lost => self.note_lost(destination),
                _ => {}
            }
        }
    }

    pub(crate) fn note_route(&mut self, destination: Ipv4Addr, route: &Route) {
        if self.noted.get(&destination) == Some(&route.hops) {
            return;
        }
        if self.noted.len() < NOTED || self.noted.contains_key(&destination) {
            self.noted.insert(destination, route.hops.clone());
        }
        let (event, value, via) = ("route".to_owned(), route.hops.len() as u64, route.hops.first().copied());
        self.put(Output::Note(Note { event, about: destination, value, via, packet: None }));
    }

    /// Adds the source route (8.1.3) and sends. One hop inside the network needs none.
    pub(crate) fn send_over(&mut self, now: Instant, mut packet: Datagram, route: &Route) {
        let Some((_, between)) = route.hops.split_last() else { return };
        let first_external = packet.source() != self.own();
        let mut addresses = if first_external { vec![self.own()] } else { Vec::new() };
        addresses.extend(between);
        packet.unroute();
        if !addresses.is_empty() {
            packet.options.insert(
                0,
                Opt::SourceRoute(SourceRoute {
                    first_external,
                    last_external: route.external,
                    salvage: 0,
                    segments_left: between.len() as u8,
                    addresses,
                }),
            );
        }
        self.transmit(now, packet, route.hops[0]);
    }

    /// Sends a packet of DSR options over `hops` (the last is its destination).
    pub(crate) fn send_control(&mut self, now: Instant, options: Vec<Opt>, hops: Vec<Ipv4Addr>) {
        let Some(destination) = hops.last().copied() else { return self.count("no-way-back") };
        let packet = Datagram::control(self.own(), destination, self.next_ip_id(), options);
        self.send_over(now, packet, &Route { hops, external: false });
    }

    /// Sends one frame to a neighbour.
    pub(crate) fn transmit(&mut self, now: Instant, packet: Datagram, next: Ipv4Addr) {
        // ARP asks for a next hop that was never heard; but one that does not acknowledge waits until it is heard again
        let resolved = self.arp.is_some() && self.maintenance.is_none();
        if !resolved && self.neighbours.mac(next).is_none() {
            self.count("no-mac");
            return self.unsendable.push_back((next, vec![packet]));
        }
        // replies and errors need no acknowledgement: a lost one is repeated after the next request or failure, and errors
        // about errors would load the channel
        let watched = !packet.is_control();
        let packet = match &mut self.maintenance {
            Some(maintenance) if watched => maintenance.send(now, next, packet),
            _ => Some(packet),
        };
        match packet {
            Some(packet) => self.frame(packet, next),
            None => self.count("kept-back"),
        }
    }

    /// Sends one frame to all neighbours.
    pub(crate) fn broadcast(&mut self, packet: &Datagram) {
        let bytes = packet.to_bytes();
        if bytes.len() > usize::from(self.node.mtu) {
            return self.count("too-big");
        }
        self.put(Output::Frame { to: BROADCAST_MAC, bytes, control: packet.is_control() });
    }

    /// Performs a step of a discovery (RFC 4728, 8.2.1).
    pub(crate) fn discover(&mut self, now: Instant, target: Ipv4Addr, step: Step) {
        let ttl = match step {
            Step::Neighbours => 1,
            Step::Network => self.options.discovery_hop_limit,
            Step::GiveUp => return self.give_up(now, target),
        };
        self.request_id = self.request_id.wrapping_add(1);
        let request = Request { identification: self.request_id, target, addresses: Vec::new() };
        let mut options = vec![Opt::Request(request)];
        let recent = |(_, heard): &(_, Instant)| now.since(*heard) < self.options.max_request_period;
        if let Some((error, _)) = self.pending_error.clone().filter(recent) {
            // RFC 4728, 3.4.4: so that no reply contains the broken link
            options.push(Opt::Error(error));
            if step == Step::Network {
                self.pending_error = None;
            }
        }
        let mut packet = Datagram::control(self.own(), BROADCAST, self.next_ip_id(), options);
        packet.set_ttl(ttl);
        self.duplicates.remember(self.own(), self.request_id, target);
        self.count(if ttl == 1 { "requests-to-neighbours" } else { "requests-sent" });
        self.note("discovery", target, u64::from(ttl));
        self.broadcast(&packet);
    }

    fn give_up(&mut self, now: Instant, target: Ipv4Addr) {
        let packets = self.held.give_up(target, |_| true);
        self.note("no-route", target, packets.len() as u64);
        self.counters.add("no-route", packets.len() as u64);
        let mut reported = Reported::default();
        for bytes in packets {
            self.give_up_held(now, bytes, &mut reported);
        }
    }

    pub(crate) fn continue_discoveries(&mut self, now: Instant) {
        loop {
            let held = &self.held;
            let Some((target, step)) = self.discoveries.due(now, |t| held.count(t) > 0) else { break };
            self.discover(now, target, step);
        }
        // destinations that waited because the maximum of discoveries was reached
        for target in self.held.destinations() {
            if let Some(step) = self.discoveries.start(now, target) {
                self.discover(now, target, step);
            }
        }
    }

    pub(crate) fn expire_held(&mut self, now: Instant) {
        let mut given_up: std::collections::BTreeMap<Ipv4Addr, u64> = Default::default();
        let mut reported = Reported::default();
        for bytes in self.held.expire(now) {
            self.count("held-too-long");
            if let Ok(packet) = Datagram::parse(&bytes) {
                *given_up.entry(packet.destination()).or_default() += 1;
            }
            self.give_up_held(now, bytes, &mut reported);
        }
        for (destination, packets) in given_up {
            self.note("no-route", destination, packets);
        }
    }

    /// Learns a path and sends the packets that waited for one of its hops (8.2.6: each new route checks the send buffer).
    pub(crate) fn learn(&mut self, now: Instant, hops: &[Ipv4Addr], external: bool) {
        // a node that was never heard is no neighbour, even if a packet lists it as one
        let near = hops.first().is_some_and(|first| self.neighbours.mac(*first).is_some());
        if !near || !self.cache.add(now, hops, external) || self.held.is_empty() {
            return;
        }
        for destination in self.held.destinations() {
            if self.cache.peek(now, destination).is_none() {
                continue;
            }
            for bytes in self.held.take(destination) {
                self.send_held(now, &bytes);
            }
        }
    }

    fn send_held(&mut self, now: Instant, bytes: &Bytes) {
        match Datagram::parse(bytes) {
            Ok(packet) if self.is_waiting_for_another(&packet) => self.release_waiting(now, packet),
            Ok(packet) => self.send_data(now, packet),
            Err(reason) => self.count(reason),
        }
    }

    pub(crate) fn continue_maintenance(&mut self, now: Instant) {
        while let Some(due) = self.maintenance.as_mut().and_then(|m| m.due(now)) {
            match due {
                Due::Retransmit(next, packet) => {
                    self.count("asked-for-ack");
                    self.frame(packet, next);
                }
                Due::Broken(next, packets) => {
                    self.count("unacknowledged");
                    self.broken_silently(now, next, packets);
                }
            }
        }
    }
}
