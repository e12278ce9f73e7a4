//! Data packets for which the kernel has no route, or which the radio returned.

use crate::destination::Destination;
use crate::machine::Tora;
use manet_engine::Instant;
use manet_routing::packet::ipv4;
use manet_routing::{Bytes, Output};
use std::net::Ipv4Addr;

impl Tora {
    /// Handles a packet of the TUN device: it requires a route, and waits until there is one.
    pub(crate) fn route(&mut self, now: Instant, bytes: Bytes) {
        let Some(packet) = ipv4::Packet::parse(&bytes) else { return self.base.counters.count("malformed-packet") };
        let (source, destination) = (packet.source(), packet.destination());
        if destination.is_broadcast() || destination.is_multicast() || destination.is_unspecified() {
            return self.base.counters.count("not-unicast");
        }
        if !self.node.is_station(destination) || destination == self.node.address {
            self.base.counters.count("outside");
            return self.base.out.push_back(Output::Unreachable { bytes });
        }
        if self.base.next_hop(destination).is_none() {
            self.apply(now, destination, Destination::require);
        }
        match self.base.next_hop(destination) {
            Some(via) => self.send_on(source, via, bytes),
            None if source == self.node.address
                || self.options.hold_forwarded
                || self.base.notices.concerns(&bytes) =>
            {
                self.hold(now, destination, bytes);
            }
            None => self.base.give_up("no-route", bytes),
        }
    }

    /// A station does not accept a packet with its own address as source: such a packet does not go back.
    fn send_on(&mut self, source: Ipv4Addr, via: Ipv4Addr, bytes: Bytes) {
        if via == source {
            return self.base.give_up("back-to-source", bytes);
        }
        self.base.counters.count("sent-again");
        self.base.out.push_back(Output::Send { bytes });
    }

    fn hold(&mut self, now: Instant, destination: Ipv4Addr, bytes: Bytes) {
        if self.base.held.count(destination) == 0 {
            self.base.out.push_back(Output::note("discovery", destination, u64::from(u8::MAX)));
        }
        self.base.hold(now, None, destination, bytes);
    }

    /// There is a route over `via`: the held packets take it.
    pub(crate) fn release(&mut self, destination: Ipv4Addr, via: Ipv4Addr) {
        for (bytes, notice) in self.base.take_held(destination) {
            self.base.counters.count("held-sent");
            let source = ipv4::Packet::parse(&bytes).map_or(Ipv4Addr::UNSPECIFIED, |p| p.source());
            self.send_on(source, via, bytes);
            self.base.out.extend(notice);
        }
    }

    /// Handles a packet of the radio's queue: it is sent over another route if there is one.
    pub(crate) fn returned(&mut self, now: Instant, bytes: Bytes) {
        if !is_control(&bytes) {
            self.base.counters.count("returned");
            self.route(now, bytes);
        }
    }
}

/// Whether the packet is one of TORA's own: it is repeated as a block, not as a packet.
pub(crate) fn is_control(bytes: &[u8]) -> bool {
    let Some(packet) = ipv4::Packet::parse(bytes) else { return false };
    let port = packet.payload().get(2..4).map(|p| u16::from_be_bytes([p[0], p[1]]));
    packet.protocol() == ipv4::protocol::UDP && port == Some(crate::wire::PORT)
}
