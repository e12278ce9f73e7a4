//! Broken links and the packets that the radio returns from them (RFC 3561, 6.11 i).

use super::error::Broken;
use super::Aodv;
use crate::wire::{minimal, rrep};
use manet_engine::Instant;
use manet_routing::packet::ipv4;
use manet_routing::{Bytes, Output};
use std::net::Ipv4Addr;

/// Source and destination of the packet that showed that the link is broken.
pub(super) type Pair = (Ipv4Addr, Ipv4Addr);

impl Aodv {
    pub(super) fn link_failed(&mut self, now: Instant, neighbour: Ipv4Addr, bytes: Bytes) {
        self.counters.count("link-failed");
        let packet = ipv4::Packet::parse(&bytes);
        if packet.and_then(|p| self.control(&p)) == Some(rrep::TYPE) {
            // 6.8: the link is one-way, only towards this node
            self.counters.count("rrep-failed");
            self.neighbours.blacklist.set(neighbour, now + self.timing.blacklist);
        }
        self.break_link(now, neighbour, 1, packet.map(|p| (p.source(), p.destination())));
        self.out.push_back(Output::Purge { neighbour });
        if packet.is_some() {
            self.returned(now, bytes);
        }
    }

    /// The type of a control message of this node; `None` for another packet.
    fn control(&self, packet: &ipv4::Packet) -> Option<u8> {
        let payload = packet.payload();
        let ours = packet.source() == self.node.address && packet.protocol() == ipv4::protocol::UDP;
        let to_port = payload.get(2..4) == Some(&crate::PORT.to_be_bytes());
        payload.get(8).copied().filter(|_| ours && to_port)
    }

    /// Invalidates all routes over the neighbour except one that may be repaired. `cause`: value of the note.
    pub(super) fn break_link(&mut self, now: Instant, neighbour: Ipv4Addr, cause: u64, failed: Option<Pair>) {
        let affected = self.table.over(neighbour);
        let repair = failed.filter(|pair| self.repairable(now, neighbour, *pair));
        let mut broken = Vec::new();
        for destination in &affected {
            match repair {
                Some((source, wanted)) if wanted == *destination => self.start_repair(now, source, wanted),
                _ => {
                    self.invalidate(now, *destination, None);
                    broken.extend(self.broken(*destination));
                }
            }
        }
        self.neighbours.hello.remove(neighbour);
        let failed = failed.map(|(source, destination)| (source, self.routed_to(destination)));
        self.add_source_side(neighbour, failed, &mut broken);
        if !affected.is_empty() {
            self.note("link-broken", neighbour, cause);
            self.check_gateways(now);
        }
        self.report_broken(now, false, broken);
    }

    /// Adds the next hop to the failed packet's source as a precursor, so that the source gets the error in any case.
    fn add_source_side(&self, neighbour: Ipv4Addr, failed: Option<Pair>, broken: &mut [Broken]) {
        let Some((source, destination)) = failed.filter(|(source, _)| !self.is_own(*source)) else { return };
        let back = self.table.valid(source).map(|e| e.next_hop).filter(|n| *n != neighbour);
        for b in broken.iter_mut().filter(|b| b.destination == destination && b.precursors.is_empty()) {
            b.precursors.extend(back);
        }
    }

    /// Handles a packet that the radio returned.
    pub(super) fn returned(&mut self, now: Instant, bytes: Bytes) {
        let Some(packet) = ipv4::Packet::parse(&bytes) else { return self.counters.count("packet-malformed") };
        if self.control(&packet).is_some() {
            return self.counters.count("control-lost");
        }
        let (own, destination) = (self.is_own(packet.source()), packet.destination());
        let tunnelled = packet.protocol() == ipv4::protocol::MINIMAL && packet.source() == self.node.address;
        let noticed = self.notices.concerns(&bytes);
        let waits = own
            || noticed
            || self.seeks_gateway(destination, own)
            || self.in_repair(destination)
            || self.table.valid(destination).is_some();
        let retry = waits && (noticed || self.options.requeue) && self.returned.may_retry(&packet);
        // the gateway may have changed, so the inner packet is routed again
        if let Some(inner) = tunnelled.then(|| minimal::decapsulate(&packet).ok()).flatten() {
            return self.resend(now, retry, own, Bytes(inner));
        }
        self.resend(now, retry, own, bytes);
    }

    fn resend(&mut self, now: Instant, retry: bool, own: bool, bytes: Bytes) {
        let Some(destination) = ipv4::Packet::parse(&bytes).map(|p| p.destination()) else {
            return self.counters.count("packet-malformed");
        };
        if !retry {
            self.give_up("link-lost", bytes);
        } else if self.table.valid(destination).is_some() {
            self.counters.count("requeued");
            self.transmit(now, bytes);
        } else if self.seeks_gateway(destination, own) {
            self.counters.count("requeued");
            self.send_to_internet(now, destination, bytes);
        } else {
            self.counters.count("requeued");
            self.hold(now, destination, bytes);
        }
    }
}
