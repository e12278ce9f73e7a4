//! Packets for the Internet: the half tunnel of a source to its gateway, its end at the gateway, and the routes of each node
//! to a gateway that may take the tunnel's place (`internet = "default-route"`).

use super::Aodv;
use crate::wire::minimal;
use manet_engine::Instant;
use manet_routing::packet::{icmp, ipv4};
use manet_routing::{Bytes, Device, Notices, Output, Route};
use std::net::Ipv4Addr;

impl Aodv {
    /// Whether this node finds a gateway for a packet: for its own, and with default routes for every one.
    pub(super) fn seeks_gateway(&self, destination: Ipv4Addr, own: bool) -> bool {
        !self.node.in_network(destination) && (own || self.options.default_routes())
    }

    /// The station that packets for `destination` are routed to: with default routes the gateway of an Internet destination.
    pub(super) fn routed_to(&self, destination: Ipv4Addr) -> Ipv4Addr {
        let gateway = self.internet.chosen(destination).filter(|_| self.options.default_routes());
        gateway.unwrap_or(destination)
    }

    /// Sends a packet to an address outside the network.
    pub(super) fn send_to_internet(&mut self, now: Instant, destination: Ipv4Addr, bytes: Bytes) {
        if self.is_gateway() {
            // the kernel should have a route over our wires
            return self.give_up("packet-outside", bytes);
        }
        match self.gateway_for(destination) {
            Some(gateway) => self.send_over(now, gateway, bytes),
            None => self.hold(now, destination, bytes),
        }
    }

    fn send_over(&mut self, now: Instant, gateway: Ipv4Addr, bytes: Bytes) {
        if !self.options.default_routes() {
            return self.tunnel(now, gateway, bytes);
        }
        let Some(packet) = ipv4::Packet::parse(&bytes) else { return self.counters.count("packet-malformed") };
        self.used(now, packet.source(), packet.destination());
        self.out.push_back(Output::Send { bytes });
    }

    /// The destination's gateway; chooses another if it is lost.
    fn gateway_for(&mut self, destination: Ipv4Addr) -> Option<Ipv4Addr> {
        let chosen = self.internet.chosen(destination);
        if chosen.is_some_and(|g| self.table.valid(g).is_some()) {
            return chosen;
        }
        let table = &self.table;
        let gateway = self.internet.choose(destination, |g| table.valid(g).map(|e| e.hops))?;
        self.note("gateway", gateway, 1);
        self.set_internet_route(destination, gateway);
        Some(gateway)
    }

    /// Routes packets for the destination over the next hop to the gateway. With the tunnel they go to the machine, and the
    /// MTU leaves room for the tunnel header.
    fn set_internet_route(&mut self, destination: Ipv4Addr, gateway: Ipv4Addr) {
        let (hops, next_hop) = self.table.get(gateway).map_or((0, gateway), |e| (e.hops, e.next_hop));
        if self.options.default_routes() {
            return self.out.push_back(Output::SetRoute(Route::host(destination, next_hop, hops)));
        }
        let mtu = Some(self.node.mtu.saturating_sub(minimal::LEN as u16));
        let route = Route { destination, prefix: 32, via: gateway, hops, device: Device::Machine, mtu };
        self.out.push_back(Output::SetRoute(route));
    }

    /// Handles the reply of `gateway` to our request for `destination`.
    pub(super) fn gateway_answered(&mut self, now: Instant, destination: Ipv4Addr, gateway: Ipv4Addr) {
        if !crate::is_host(destination) || self.node.in_network(destination) || self.is_gateway() {
            return self.counters.count("malformed-internet");
        }
        // an unsolicited reply has no effect
        if self.discoveries.get(destination).is_none() && self.internet.chosen(destination).is_none() {
            return self.counters.count("gateway-unasked");
        }
        if let Some(forgotten) = self.internet.answered(destination, gateway) {
            self.out.push_back(Output::ClearRoute { destination: forgotten, prefix: 32 });
        }
        let Some(gateway) = self.gateway_for(destination) else { return };
        self.discoveries.remove(destination);
        for bytes in self.held.take(destination) {
            let notice = self.notices.released(&bytes).map(|kind| Notices::output(kind, &bytes));
            self.send_over(now, gateway, bytes);
            self.out.extend(notice);
        }
    }

    /// The route to `gateway` has another next hop or length: the routes to its Internet destinations follow.
    pub(super) fn follow_gateway(&mut self, gateway: Ipv4Addr) {
        if self.options.default_routes() {
            for destination in self.internet.through(gateway) {
                self.set_internet_route(destination, gateway);
            }
        }
    }

    /// Handles an error of the next hop about an Internet destination: it found no gateway for packets that we sent it.
    pub(super) fn internet_lost(&mut self, from: Ipv4Addr, destination: Ipv4Addr) {
        let gateway = self.routed_to(destination);
        let is_over = self.table.valid(gateway).is_some_and(|e| e.next_hop == from);
        if self.node.in_network(destination) || !is_over {
            return;
        }
        self.counters.count("gateway-lost");
        self.internet.refuse(destination);
        self.note("gateway", gateway, 0);
        if self.gateway_for(destination).is_none() {
            self.out.push_back(Output::ClearRoute { destination, prefix: 32 });
        }
    }

    /// Replaces gateways without a route by others that replied; without one the next packet starts a discovery.
    pub(super) fn check_gateways(&mut self, _now: Instant) {
        let lost: Vec<_> = self.internet.iter().filter(|(_, g)| self.table.valid(*g).is_none()).collect();
        for (destination, gateway) in lost {
            self.counters.count("gateway-lost");
            self.note("gateway", gateway, 0);
            if self.gateway_for(destination).is_none() {
                self.out.push_back(Output::ClearRoute { destination, prefix: 32 });
            }
        }
    }

    fn tunnel(&mut self, now: Instant, gateway: Ipv4Addr, bytes: Bytes) {
        let Some(packet) = ipv4::Packet::parse(&bytes) else { return self.counters.count("packet-malformed") };
        let Some(outer) = minimal::encapsulate(&packet, self.node.address, gateway) else {
            // RFC 2004, section 3.3.1
            return self.give_up("fragment-not-tunnelled", bytes);
        };
        let mtu = usize::from(self.node.mtu);
        if outer.len() <= mtu {
            self.counters.count("tunnelled");
            return self.transmit(now, Bytes(outer));
        }
        if packet.dont_fragment() {
            self.counters.count("too-big");
            let room = self.node.mtu.saturating_sub((outer.len() - packet.bytes().len()) as u16);
            let bytes = Bytes(icmp::fragmentation_needed(&packet, self.node.address, room));
            return self.out.push_back(Output::Send { bytes });
        }
        self.counters.count("tunnelled");
        for fragment in fragments(&outer, mtu) {
            self.transmit(now, Bytes(fragment));
        }
    }

    /// At the gateway: decapsulates a packet and hands it to the kernel, which routes it.
    pub(super) fn receive_tunnelled(&mut self, now: Instant, bytes: &Bytes) {
        if !self.is_gateway() {
            return self.counters.count("tunnel-not-gateway");
        }
        let Some(outer) = ipv4::Packet::parse(bytes) else { return self.counters.count("packet-malformed") };
        let mut inner = match minimal::decapsulate(&outer) {
            Ok(inner) => inner,
            Err(malformed) => return self.counters.count(malformed.0),
        };
        self.used(now, outer.source(), self.node.address);
        // this node forwards the packet as a router (RFC 1812, section 5.3.1)
        if inner[8] <= 1 {
            return self.counters.count("ttl-exceeded");
        }
        inner[8] -= 1;
        ipv4::repair(&mut inner);
        self.counters.count("decapsulated");
        self.out.push_back(Output::Send { bytes: Bytes(inner) });
    }
}

/// The packet in fragments of at most `mtu` bytes (RFC 791, section 3.2). All options are copied into each fragment.
fn fragments(bytes: &[u8], mtu: usize) -> Vec<Vec<u8>> {
    let Some(packet) = ipv4::Packet::parse(bytes) else { return Vec::new() };
    let header = &packet.bytes()[..packet.header_len()];
    let room = mtu.saturating_sub(header.len()) / 8 * 8;
    if room == 0 {
        return Vec::new();
    }
    let count = packet.payload().len().div_ceil(room);
    let piece = |(i, payload): (usize, &[u8])| {
        let mut out = [header, payload].concat();
        let more = if i + 1 < count { 0x2000 } else { 0 };
        out[6..8].copy_from_slice(&((i * room / 8) as u16 | more).to_be_bytes());
        ipv4::repair(&mut out);
        out
    };
    packet.payload().chunks(room).enumerate().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::packet::checksum;

    fn packet(payload: &[u8], dont_fragment: bool) -> Vec<u8> {
        let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 9));
        ipv4::Repr { tos: 0, identification: 5, dont_fragment, ttl: 64, protocol: 55, source, destination }
            .packet(payload)
    }

    #[test]
    fn fragments_reassemble_to_the_packet() {
        let payload: Vec<u8> = (0..200).collect();
        // room (100 - 20) / 8 * 8 = 80: 80 + 80 + 40
        let pieces = fragments(&packet(&payload, false), 100);
        let parsed: Vec<_> = pieces.iter().map(|p| ipv4::Packet::parse(p).unwrap()).collect();
        assert_eq!(parsed.iter().map(|p| p.fragment_offset() * 8).collect::<Vec<_>>(), [0, 80, 160]);
        assert_eq!(parsed.iter().map(|p| p.more_fragments()).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(parsed.iter().flat_map(|p| p.payload()).copied().collect::<Vec<_>>(), payload);
    }

    #[test]
    fn too_big_quotes_the_packet_and_states_the_mtu() {
        let (about, us) = (packet(&[0; 50], true), Ipv4Addr::new(10, 0, 0, 1));
        let bytes = icmp::fragmentation_needed(&ipv4::Packet::parse(&about).unwrap(), us, 1492);
        let error = ipv4::Packet::parse(&bytes).unwrap();
        // type 3, code 4, next-hop MTU 1492 = 0x05d4; header and 8 bytes quoted
        assert_eq!((error.payload()[..2].to_vec(), error.payload()[6..8].to_vec()), (vec![3, 4], vec![0x05, 0xd4]));
        assert_eq!((checksum(error.payload()), error.payload().len(), error.destination()), (0, 8 + 28, us));
    }
}
