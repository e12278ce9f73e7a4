//! Frames from the air: received, forwarded (RFC 4728, sections 8.1.4 and 8.1.5), or overheard (3.3.1).

use crate::datagram::{Datagram, Walk};
use crate::machine::Dsr;
use crate::maintenance::Maintenance;
use crate::wire::{Ack, AckRequest, Opt, RouteError, Treatment, What};
use manet_engine::Instant;
use manet_routing::packet::ipv4::{self, protocol};
use manet_routing::{Bytes, Mac, Output};
use std::net::Ipv4Addr;

impl Dsr {
    /// Handles a frame for this node or a broadcast.
    pub(crate) fn receive(&mut self, now: Instant, from: Mac, bytes: &[u8]) {
        let Some((mut packet, walk)) = self.accept(bytes) else { return };
        self.note_transmitter(now, from, &packet, walk.as_ref());
        if packet.request().is_some() && packet.source() == self.own() {
            return self.count("request-own");
        }
        if !self.treat_unknown(now, &mut packet) {
            return self.count("unknown-option");
        }
        self.receive_errors(now, &packet);
        self.receive_acks(now, &packet);
        if packet.request().is_some() {
            return self.receive_request(now, packet);
        }
        let Some(walk) = walk else { return self.count("bad-route") };
        if self.teaches(&packet) {
            self.learn_walk(now, &walk);
        }
        self.learn_replies(now, &packet, walk.nodes[walk.transmitter], false);
        self.watch_passed_on(now, &packet);
        if packet.source_route().is_some() || packet.destination() == self.own() {
            self.answer_ack_request(now, &mut packet, &walk);
        }
        if packet.destination() == self.own() {
            return self.arrived(now, packet);
        }
        self.forward(now, packet);
    }

    /// Handles a frame for another node.
    pub(crate) fn overhear(&mut self, now: Instant, from: Mac, bytes: &[u8]) {
        let Some((packet, walk)) = self.accept(bytes) else { return };
        self.note_transmitter(now, from, &packet, walk.as_ref());
        let Some(walk) = walk else { return };
        self.watch_passed_on(now, &packet);
        self.cancel_replies(&packet, &walk);
        if self.options.snoop {
            for error in errors(&packet) {
                if let What::NodeUnreachable(node) = error.what {
                    self.cache.remove_link(now, error.source, node);
                }
            }
            if self.teaches(&packet) {
                self.learn_walk(now, &walk);
            }
            self.learn_replies(now, &packet, walk.nodes[walk.transmitter], true);
        }
        self.shorten(now, &packet, &walk);
    }

    /// The packet and its progress on its route; `None`: it was counted and dropped.
    fn accept(&mut self, bytes: &[u8]) -> Option<(Datagram, Option<Walk>)> {
        let packet = match Datagram::parse(bytes) {
            Ok(packet) => packet,
            Err(reason) => {
                self.count(reason);
                return None;
            }
        };
        let walk = packet.walk();
        let sent_by_us = walk.as_ref().is_some_and(|w| w.nodes.get(w.transmitter) == Some(&self.node.address));
        let to_ourselves = packet.source() == self.own() && packet.destination() == self.own();
        let reason = if sent_by_us || to_ourselves {
            // our own packet may be overheard, salvaged by another node; but no other node uses our address
            "own-source"
        } else if packet.request().is_none() && walk.is_none() {
            "bad-route"
        } else if !packet.is_sound() {
            // malformed, or forged
            "route-loop"
        } else {
            return Some((packet, walk));
        };
        self.count(reason);
        None
    }

    /// Learns to which node the link address `from` belongs.
    fn note_transmitter(&mut self, now: Instant, from: Mac, packet: &Datagram, walk: Option<&Walk>) {
        let transmitter = match (packet.request(), walk) {
            (Some(request), _) => request.addresses.last().copied().or(Some(packet.source())),
            (None, Some(walk)) => walk.nodes.get(walk.transmitter).copied(),
            (None, None) => None,
        };
        let Some(transmitter) = transmitter else { return };
        if transmitter != self.own() && self.node.in_network(transmitter) {
            self.neighbours.heard(now, transmitter, from);
        }
    }

    /// Treats unknown options (RFC 4728, 8.1.6). False: the packet must be dropped.
    fn treat_unknown(&mut self, now: Instant, packet: &mut Datagram) -> bool {
        let unknown = |o: &Opt| matches!(o, Opt::Unknown(_));
        if !packet.options.iter().any(unknown) {
            return true;
        }
        let wanting = packet.options.iter().find_map(|o| match o {
            Opt::Unknown(u) if u.wants_error() => Some(u.kind),
            _ => None,
        });
        if let Some(kind) = wanting.filter(|_| packet.request().is_none()) {
            self.count("option-errors-sent");
            self.send_error(now, packet, What::OptionNotSupported(kind));
        }
        let treatment = |o: &Opt| if let Opt::Unknown(u) = o { Some(u.treatment()) } else { None };
        if packet.options.iter().any(|o| treatment(o) == Some(Treatment::Drop)) {
            return false;
        }
        packet.options.retain(|o| treatment(o) != Some(Treatment::Remove));
        for option in &mut packet.options {
            if let Opt::Unknown(unknown) = option {
                if unknown.treatment() == Treatment::Mark {
                    unknown.mark();
                }
            }
        }
        true
    }

    /// Removes the links of Route Errors, at every node on the path (RFC 4728, 8.3.5).
    fn receive_errors(&mut self, now: Instant, packet: &Datagram) {
        for error in errors(packet) {
            if let What::NodeUnreachable(node) = error.what {
                self.cache.remove_link(now, error.source, node);
            }
            // an error in a request is for all nodes; one for this node came separately before
            if error.destination == self.own() && packet.request().is_none() {
                self.count("errors-received");
                if matches!(error.what, What::NodeUnreachable(_)) {
                    self.pending_error = Some((error.clone(), now));
                }
            }
        }
    }

    fn receive_acks(&mut self, now: Instant, packet: &Datagram) {
        for option in &packet.options {
            let Opt::Ack(ack) = option else { continue };
            if ack.destination != self.own() {
                continue;
            }
            let confirms = |m: &mut Maintenance| m.acknowledged(now, ack.source, ack.identification);
            let confirmed = self.maintenance.as_mut().is_some_and(confirms);
            self.count(if confirmed { "acks-received" } else { "acks-unexpected" });
        }
    }

    /// Acknowledges to the previous hop on request (RFC 4728, 8.3.3). A request next to an acknowledgement for another node
    /// is ignored.
    fn answer_ack_request(&mut self, now: Instant, packet: &mut Datagram, walk: &Walk) {
        let asked = packet.options.iter().find_map(|o| if let Opt::AckRequest(a) = o { Some(*a) } else { None });
        packet.options.retain(|o| !matches!(o, Opt::AckRequest(_)));
        let mut acks =
            packet.options.iter().filter_map(|o| if let Opt::Ack(a) = o { Some(a.destination) } else { None });
        if acks.next().is_some_and(|first| first != self.own() && acks.all(|a| a != self.own())) {
            return;
        }
        let (Some(AckRequest { identification }), Some(before)) = (asked, walk.nodes.get(walk.transmitter)) else {
            return;
        };
        let ack = Ack { identification, source: self.own(), destination: *before };
        self.count("acks-sent");
        self.send_control(now, vec![Opt::Ack(ack)], vec![*before]);
    }

    fn teaches(&self, packet: &Datagram) -> bool {
        packet.is_control() || self.options.learn_from_data
    }

    /// Learns the route in both directions, from this node's place on it or from the transmitter (3.3.1; links are
    /// bidirectional, since the radio acknowledges).
    fn learn_walk(&mut self, now: Instant, walk: &Walk) {
        let own = walk.nodes.iter().position(|n| *n == self.own());
        if let Some(at) = own {
            self.learn(now, &walk.nodes[at + 1..], walk.last_external);
            let back: Vec<Ipv4Addr> = walk.nodes[..at].iter().rev().copied().collect();
            self.learn(now, &back, walk.first_external);
        }
        if own == Some(walk.transmitter + 1) {
            return;
        }
        // overheard: the route over the transmitter
        let back: Vec<Ipv4Addr> = walk.nodes[..=walk.transmitter].iter().rev().copied().collect();
        self.learn(now, &back, walk.first_external);
        if own.is_none() {
            self.learn(now, &walk.nodes[walk.transmitter..], walk.last_external);
        }
    }

    /// Learns the routes in replies (8.2.6) that contain the transmitter: replies travel the route backwards. `overheard`:
    /// the frame was for another node.
    fn learn_replies(&mut self, now: Instant, packet: &Datagram, transmitter: Ipv4Addr, overheard: bool) {
        for reply in packet.replies() {
            let mut nodes = vec![packet.destination()];
            nodes.extend(&reply.addresses);
            let Some(at) = nodes.iter().position(|n| *n == transmitter) else {
                self.count("reply-elsewhere");
                continue;
            };
            let for_us = packet.destination() == self.own() && !overheard;
            if for_us {
                self.count("replies-received");
            }
            self.learn(now, &nodes[at..], reply.last_external);
            if let Some(target) = reply.addresses.last().filter(|_| for_us) {
                self.answered(now, *target);
            }
            let back: Vec<Ipv4Addr> = nodes[..at].iter().rev().copied().collect();
            match back.first() {
                // this node is on the route, before the transmitter
                Some(before) if *before == self.own() => self.learn(now, &back[1..], false),
                Some(_) if overheard => self.learn_via(now, transmitter, &back),
                _ => {}
            }
        }
    }

    /// Ends the back-off of requests for `target`, which only a Route Reply with a usable route does (4.3).
    fn answered(&mut self, now: Instant, target: Ipv4Addr) {
        if self.cache.peek(now, target).is_some() {
            self.discoveries.answered(target);
        }
    }

    fn learn_via(&mut self, now: Instant, neighbour: Ipv4Addr, rest: &[Ipv4Addr]) {
        let mut hops = vec![neighbour];
        hops.extend(rest);
        self.learn(now, &hops, false);
    }

    /// Presumes that a heard neighbour is in range.
    pub(crate) fn presume(&mut self, now: Instant, from: Mac) {
        let Some(maintenance) = &mut self.maintenance else { return };
        if self.neighbours.address(from).is_some_and(|next| maintenance.heard(now, next)) {
            self.count("presumed");
        }
    }

    /// Handles a passive acknowledgement (8.3.2).
    fn watch_passed_on(&mut self, now: Instant, packet: &Datagram) {
        if self.maintenance.as_mut().and_then(|m| m.overheard(now, packet)).is_some() {
            self.count("passive-acks");
        }
    }

    /// Hands the payload of a packet for this node to the stack.
    fn arrived(&mut self, now: Instant, packet: Datagram) {
        self.relay_errors(now, &packet);
        if packet.is_control() {
            self.count("control-received");
        }
        if !packet.has_payload() {
            return;
        }
        self.deliver(&packet);
    }

    pub(crate) fn deliver(&mut self, packet: &Datagram) {
        // RFC 4728, 8.5: a fragment of a packet that was too big for its route travels in IP-in-IP to the packet's
        // destination; the kernel reassembles the fragments. Other IP-in-IP is an application's tunnel.
        let is_fragment = |p: &ipv4::Packet| {
            p.destination() == packet.destination() && (p.more_fragments() || p.fragment_offset() > 0)
        };
        let wrapped = packet.next() == protocol::IP_IN_IP && !packet.options.is_empty();
        let fragment = ipv4::Packet::parse(packet.payload()).filter(|p| wrapped && is_fragment(p));
        self.count(if fragment.is_some() { "delivered-fragments" } else { "delivered" });
        let bytes = fragment.map_or_else(|| packet.plain(), |p| Bytes(p.bytes().to_vec()));
        self.put(Output::Deliver { bytes });
    }

    /// Forwards a packet along its source route (RFC 4728, 8.1.5).
    fn forward(&mut self, now: Instant, mut packet: Datagram) {
        let Some(route) = packet.source_route_mut() else { return self.count("no-source-route") };
        let left = route.segments_left;
        let here = route.visited().and_then(|visited| route.addresses.get(visited)).copied();
        if here != Some(self.node.address) || left == 0 {
            return self.count("not-our-turn");
        }
        route.segments_left = left - 1;
        let leaves = left == 1 && route.last_external;
        if leaves && self.is_gateway() && !self.node.in_network(packet.destination()) {
            // the kernel forwards it and decrements the TTL
            self.count("to-wire");
            return self.deliver(&packet);
        }
        if packet.ttl() <= 1 {
            return self.count("ttl-expired");
        }
        packet.set_ttl(packet.ttl() - 1);
        let Some(next) = packet.next_hop() else { return self.count("bad-route") };
        if !self.node.in_network(next) {
            self.count("no-wire");
            return self.broken(now, next, vec![packet]);
        }
        self.count("forwarded");
        self.transmit(now, packet, next);
    }
}

pub(crate) fn errors(packet: &Datagram) -> impl Iterator<Item = &RouteError> {
    packet.options.iter().filter_map(|o| if let Opt::Error(error) = o { Some(error) } else { None })
}
