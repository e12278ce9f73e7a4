//! Broken links: Route Errors (RFC 4728, 8.3.4, 8.3.5), salvaging (8.3.6, 3.4.1), and dropped packets.

use crate::cache::Route;
use crate::datagram::Datagram;
use crate::machine::Dsr;
use crate::receive::errors;
use crate::reported::Reported;
use crate::wire::{Opt, RouteError, SourceRoute, What};
use manet_engine::Instant;
use manet_routing::packet::{icmp, ipv4};
use manet_routing::{Bytes, Mac, Note, Output};
use std::net::Ipv4Addr;

/// Values of the note `link-broken`.
const BY_FEEDBACK: u64 = 1;
const BY_SILENCE: u64 = 2;
const BY_ARP: u64 = 3;

impl Dsr {
    /// Handles a frame that the radio dropped (8.3.1).
    pub(crate) fn frame_failed(&mut self, now: Instant, to: Mac, bytes: &[u8]) {
        self.count("frames-failed");
        let packet = Datagram::parse(bytes).ok();
        let named = packet.as_ref().filter(|p| p.request().is_none()).and_then(Datagram::next_hop);
        let next = named.filter(|n| self.neighbours.mac(*n) == Some(to)).or(self.neighbours.address(to));
        let Some(next) = next else { return self.count("failed-unknown") };
        self.put(Output::PurgeFrames { to });
        self.broken(now, next, packet.into_iter().collect());
    }

    /// Handles packets purged from the radio's queue (3.4.2): like the failed packet, but informed nodes get no second
    /// report.
    pub(crate) fn frames_purged(&mut self, now: Instant, to: Mac, packets: &[Bytes]) {
        let Some(next) = self.neighbours.address(to) else { return self.count("failed-unknown") };
        let reported = std::mem::take(&mut self.reported);
        let mut reported =
            if reported.next == Some(next) { reported } else { Reported { next: Some(next), ..Reported::default() } };
        let packets: Vec<Datagram> = packets.iter().filter_map(|b| Datagram::parse(b).ok()).collect();
        self.counters.add("frames-purged", packets.len() as u64);
        for packet in packets {
            self.failed(now, next, packet, &mut reported);
        }
        self.reported = reported;
    }

    pub(crate) fn frame_delivered(&mut self, now: Instant, to: Mac) {
        let Some(next) = self.neighbours.address(to) else { return };
        self.neighbours.heard(now, next, to);
        if let Some(maintenance) = &mut self.maintenance {
            maintenance.alive(now, next);
        }
    }

    pub(crate) fn broken(&mut self, now: Instant, next: Ipv4Addr, packets: Vec<Datagram>) {
        self.link_gone(now, next, packets, BY_FEEDBACK);
    }

    pub(crate) fn broken_silently(&mut self, now: Instant, next: Ipv4Addr, packets: Vec<Datagram>) {
        // routes of other nodes still contain the link: without a link address it is not tried again
        self.neighbours.forget(next);
        self.link_gone(now, next, packets, BY_SILENCE);
    }

    /// Handles packets for a next hop without link address.
    pub(crate) fn without_address(&mut self, now: Instant, next: Ipv4Addr, mut packets: Vec<Datagram>) {
        match &self.maintenance {
            Some(maintenance) => {
                // a packet that waited for ARP is among the unconfirmed ones, too
                packets.retain(|p| !maintenance.has(next, p));
                self.broken_silently(now, next, packets);
            }
            None if self.arp.is_some() => self.link_gone(now, next, packets, BY_ARP),
            None => self.broken(now, next, packets),
        }
    }

    /// Handles a broken link to `next` and its unconfirmed packets, in the form in which they were sent.
    fn link_gone(&mut self, now: Instant, next: Ipv4Addr, mut packets: Vec<Datagram>, how: u64) {
        self.count("links-broken");
        self.note("link-broken", next, how);
        let own = self.own();
        self.cache.remove_link(now, own, next);
        if let Some(maintenance) = &mut self.maintenance {
            packets.extend(maintenance.broken(next));
        }
        let mut reported = Reported { next: Some(next), ..Reported::default() };
        for packet in packets {
            self.failed(now, next, packet, &mut reported);
        }
        self.reported = reported;
    }

    fn failed(&mut self, now: Instant, next: Ipv4Addr, mut packet: Datagram, reported: &mut Reported) {
        if packet.request().is_some() {
            return;
        }
        if !packet.is_sound() {
            return self.count("failed-unknown"); // not a packet that we sent
        }
        packet.options.retain(|o| !matches!(o, Opt::AckRequest(_)));
        if packet.salvage() == 0 && packet.origin() == self.own() || packet.source() == self.own() {
            return self.resend_own(now, packet);
        }
        let origin = packet.origin();
        if origin != self.own() && reported.origins.insert(origin) {
            self.send_error(now, &packet, What::NodeUnreachable(next));
        }
        if self.maintenance.is_some() && !self.salvaged.remember(now, &packet) {
            // its source is not informed: another copy may have arrived
            return self.count("salvaged-before");
        }
        if !self.salvage(now, &mut packet) && !self.wait_here(now, &packet) {
            self.drop_packet(now, &packet, reported);
        }
    }

    /// Sends a packet of this node over another route or puts it into the send buffer. A packet without payload starts no
    /// discovery (for a reply it could make two nodes search for each other without end: 8.2.4).
    fn resend_own(&mut self, now: Instant, mut packet: Datagram) {
        packet.unroute();
        if !packet.is_control() {
            self.count("resent");
            return self.send_data(now, packet);
        }
        let route = self.cache.find(now, packet.destination());
        match route.filter(|_| packet.replies().next().is_none()) {
            Some(route) => self.send_over(now, packet, &route),
            None => self.count("control-lost"),
        }
    }

    /// Salvages a packet (8.3.6). False: this is not allowed, or no route is known.
    fn salvage(&mut self, now: Instant, packet: &mut Datagram) -> bool {
        let count = packet.salvage();
        let only_reply = packet.is_control() && packet.replies().next().is_some();
        if !self.options.salvage || count >= self.options.max_salvage || only_reply {
            return false;
        }
        let Some(Route { hops, external }) = self.cache.find(now, packet.destination()) else { return false };
        self.put_salvage_route(packet, &hops, external, count + 1);
        self.count("salvaged");
        self.note("salvage", packet.destination(), u64::from(count + 1));
        self.transmit(now, packet.clone(), hops[0]);
        true
    }

    /// Replaces the source route; address 1 is the salvaging node.
    pub(crate) fn put_salvage_route(&self, packet: &mut Datagram, hops: &[Ipv4Addr], last_external: bool, salvage: u8) {
        let mut addresses = vec![self.own()];
        addresses.extend(&hops[..hops.len() - 1]);
        packet.unroute();
        let route = SourceRoute { last_external, ..SourceRoute::internal(salvage, (hops.len() - 1) as u8, addresses) };
        packet.options.insert(0, Opt::SourceRoute(route));
    }

    /// Drops a packet of another node: its source gets an ICMP error over the reverse path or a cached route, one for all
    /// packets of a flow lost with the same link, about the oldest, which TCP misses first.
    pub(crate) fn drop_packet(&mut self, now: Instant, packet: &Datagram, reported: &mut Reported) {
        self.count("lost");
        let flow = (packet.source(), packet.destination(), packet.next());
        if packet.is_control() || !reported.flows.insert(flow) {
            return;
        }
        let plain = packet.plain();
        let error = icmp::host_unreachable(&plain, self.own());
        self.notify_source(now, packet, error, "unreachable", "icmp-sent");
    }

    /// Sends an ICMP message about `packet`, noted as `event` and counted as `counter`.
    pub(crate) fn notify_source(
        &mut self,
        now: Instant,
        packet: &Datagram,
        message: Option<Vec<u8>>,
        event: &str,
        counter: &'static str,
    ) {
        let Some(message) = message.and_then(|m| Datagram::parse(&m).ok()) else { return };
        let Some(route) = self.route_to_source(now, packet) else { return self.count("icmp-without-route") };
        self.count(counter);
        let (event, about, value) = (event.to_owned(), packet.destination(), u64::from(packet.next()));
        self.put(Output::Note(Note { event, about, value, via: None, packet: Some(packet.plain()) }));
        self.send_over(now, message, &route);
    }

    fn route_to_source(&mut self, now: Instant, packet: &Datagram) -> Option<Route> {
        let hops = packet.return_path(self.own());
        if hops.last() == Some(&packet.source()) {
            let external = packet.source_route().is_some_and(|r| r.first_external);
            return Some(Route { hops, external });
        }
        self.cache.find(now, packet.source())
    }

    /// Sends a Route Error over the packet's reverse path (8.3.4), followed by the errors and acknowledgements in the
    /// packet.
    pub(crate) fn send_error(&mut self, now: Instant, packet: &Datagram, what: What) {
        let (origin, salvage) = (packet.origin(), packet.salvage());
        let broken = matches!(what, What::NodeUnreachable(_));
        let mut hops = packet.return_path(self.own());
        if let Some(at) = hops.iter().position(|h| *h == origin) {
            hops.truncate(at + 1);
        } else {
            hops = self.cache.find(now, origin).map(|r| r.hops).unwrap_or_default();
        }
        let error = RouteError { salvage, source: self.own(), destination: origin, what };
        let mut options = vec![Opt::Error(error)];
        // 6.4, "total salvage count": one and its own salvage count for each error in the packet
        let mut total = 1 + u32::from(salvage);
        for option in &packet.options {
            match option {
                Opt::Error(error) => {
                    total += 1 + u32::from(error.salvage);
                    if total > u32::from(self.options.max_salvage) {
                        break;
                    }
                    options.push(option.clone());
                }
                Opt::Ack(_) => options.push(option.clone()),
                _ => {}
            }
        }
        self.count("errors-sent");
        let Some(destination) = hops.last().copied() else { return self.count("no-way-back") };
        let mut report = Datagram::control(self.own(), destination, self.next_ip_id(), options);
        if self.options.error_notices && broken && origin == packet.source() {
            self.notice_in(&mut report, packet);
        }
        self.send_over(now, report, &Route { hops, external: false });
    }

    /// Puts the notice about `packet` into the Route Error to its source. Of a salvaged packet only the salvaging node gets
    /// the error.
    fn notice_in(&mut self, report: &mut Datagram, packet: &Datagram) {
        let plain = packet.plain();
        let Some(message) = icmp::route_error(&plain, self.own()) else { return };
        let Some(message) = ipv4::Packet::parse(&message) else { return };
        report.put_notice(&message);
        self.count("error-notices-sent");
        let (event, about, value) = ("route-error".to_owned(), packet.destination(), u64::from(packet.next()));
        self.put(Output::Note(Note { event, about, value, via: None, packet: Some(plain) }));
    }

    /// Relays an error of this node that did not arrive and came back behind an error for this node (8.3.5).
    pub(crate) fn relay_errors(&mut self, now: Instant, packet: &Datagram) {
        let own = self.own();
        let mut rest = packet.options.iter().skip_while(|o| !matches!(o, Opt::Error(e) if e.destination == own));
        if rest.next().is_none() {
            return;
        }
        let rest: Vec<Opt> = rest.filter(|o| matches!(o, Opt::Error(_) | Opt::Ack(_))).cloned().collect();
        let Some(Opt::Error(lost)) = rest.first() else { return };
        if lost.source != own
            || lost.destination == own
            || errors(packet).count() > usize::from(self.options.max_salvage)
        {
            return;
        }
        let count = 1 + lost.salvage;
        let (to, own_id) = (lost.destination, self.next_ip_id());
        let Some(Route { hops, .. }) = self.cache.find(now, to) else { return };
        if count > self.options.max_salvage {
            return self.count("salvaged-enough");
        }
        // counted as salvaged, so that errors about errors end
        let mut packet = Datagram::control(own, to, own_id, rest);
        self.count("errors-relayed");
        self.put_salvage_route(&mut packet, &hops, false, count);
        self.transmit(now, packet, hops[0]);
    }
}
