//! Data packets for which the kernel has no route, or which the radio returned.

use crate::destination::Destination;
use crate::machine::Tora;
use manet_engine::Instant;
use manet_routing::packet::ipv4;
use manet_routing::{Bytes, Notices, Output};
use std::net::Ipv4Addr;

impl Tora {
    /// Handles a packet of the TUN device: it requires a route, and waits until there is one.
    pub(crate) fn route(&mut self, now: Instant, bytes: Bytes) {
        let Some(packet) = ipv4::Packet::parse(&bytes) else { return self.counters.count("malformed-packet") };
        let (source, destination) = (packet.source(), packet.destination());
        if destination.is_broadcast() || destination.is_multicast() || destination.is_unspecified() {
            return self.counters.count("not-unicast");
        }
        if !self.is_station(destination) || destination == self.node.address {
            self.counters.count("outside");
            return self.out.push_back(Output::Unreachable { bytes });
        }
        if !self.kernel.contains_key(&destination) {
            self.apply(now, destination, Destination::require);
        }
        match self.kernel.get(&destination).copied() {
            Some(via) => self.send_on(source, via, bytes),
            None if source == self.node.address || self.options.hold_forwarded || self.notices.concerns(&bytes) => {
                self.hold(now, destination, bytes);
            }
            None => self.give_up("no-route", bytes),
        }
    }

    /// A station does not accept a packet with its own address as source: such a packet does not go back.
    fn send_on(&mut self, source: Ipv4Addr, via: Ipv4Addr, bytes: Bytes) {
        if via == source {
            return self.give_up("back-to-source", bytes);
        }
        self.counters.count("sent-again");
        self.out.push_back(Output::Send { bytes });
    }

    fn hold(&mut self, now: Instant, destination: Ipv4Addr, bytes: Bytes) {
        self.counters.count("held");
        if self.held.count(destination) == 0 {
            self.out.push_back(Output::note("discovery", destination, u64::from(u8::MAX)));
        }
        let notice = self.notices.held(now, &bytes).map(|kind| Notices::output(kind, &bytes));
        if let Some(oldest) = self.held.hold(now, destination, bytes) {
            self.notices.dropped(&oldest);
            self.give_up("held-full", oldest);
        }
        self.out.extend(notice);
    }

    /// There is a route over `via`: the held packets take it.
    pub(crate) fn release(&mut self, destination: Ipv4Addr, via: Ipv4Addr) {
        if self.held.is_empty() {
            return;
        }
        for bytes in self.held.take(destination) {
            self.counters.count("held-sent");
            let notice = self.notices.released(&bytes).map(|kind| Notices::output(kind, &bytes));
            let source = ipv4::Packet::parse(&bytes).map_or(Ipv4Addr::UNSPECIFIED, |p| p.source());
            self.send_on(source, via, bytes);
            self.out.extend(notice);
        }
    }

    /// Handles a packet of the radio's queue: it is sent over another route if there is one.
    pub(crate) fn returned(&mut self, now: Instant, bytes: Bytes) {
        if !is_control(&bytes) {
            self.counters.count("returned");
            self.route(now, bytes);
        }
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

/// Whether the packet is one of TORA's own: it is repeated as a block, not as a packet.
pub(crate) fn is_control(bytes: &[u8]) -> bool {
    let Some(packet) = ipv4::Packet::parse(bytes) else { return false };
    let port = packet.payload().get(2..4).map(|p| u16::from_be_bytes([p[0], p[1]]));
    packet.protocol() == ipv4::protocol::UDP && port == Some(crate::wire::PORT)
}
