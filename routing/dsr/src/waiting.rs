//! TCP packets of other stations that wait here, where their route broke, for another route. Their sources get notices
//! ([`manet_routing::notices`]).
//!
//! In RFC 4728 a node drops a packet that it cannot salvage (8.3.6). The pivoting node of TCP-BuS searches for a partial
//! path to the destination; here the packet is held with its source route, a discovery starts, and the route found becomes
//! the packet's salvage route, so that a packet waits no more often than it may be salvaged.

use crate::cache::Route;
use crate::datagram::Datagram;
use crate::machine::Dsr;
use crate::reported::Reported;
use manet_engine::Instant;
use manet_routing::packet::icmp::{self, Notice};
use manet_routing::{Bytes, Output};

impl Dsr {
    /// Holds a packet whose next hop is lost and for which no other route is known. False: it may not wait.
    pub(crate) fn wait_here(&mut self, now: Instant, packet: &Datagram) -> bool {
        let plain = packet.plain();
        let often = packet.salvage() >= self.options.max_salvage;
        if packet.is_control() || often || !self.options.salvage || !self.notices.concerns(&plain) {
            return false;
        }
        self.count("held");
        let destination = packet.destination();
        let notice = self.notices.held(now, &plain);
        if let Some(oldest) = self.held.hold(now, destination, packet.to_bytes()) {
            self.count("held-full");
            self.give_up_held(now, oldest, &mut Reported::default());
        }
        self.give_notice(now, packet, notice);
        if let Some(step) = self.discoveries.start(now, destination) {
            self.discover(now, destination, step);
        }
        true
    }

    /// Whether a held packet is from another node.
    pub(crate) fn is_waiting_for_another(&self, packet: &Datagram) -> bool {
        packet.source() != self.own() && self.node.in_network(packet.source())
    }

    /// Sends a packet of another node over the new route.
    pub(crate) fn release_waiting(&mut self, now: Instant, mut packet: Datagram) {
        let notice = self.notices.released(&packet.plain());
        let before = packet.clone();
        let count = packet.salvage() + 1;
        let Some(Route { hops, external }) = self.cache.find(now, packet.destination()) else {
            return self.drop_packet(now, &packet, &mut Reported::default());
        };
        self.put_salvage_route(&mut packet, &hops, external, count);
        self.count("held-released");
        self.note("salvage", packet.destination(), u64::from(count));
        self.transmit(now, packet, hops[0]);
        self.give_notice(now, &before, notice);
    }

    /// Drops a held packet of this or another node. `reported`: the informed nodes.
    pub(crate) fn give_up_held(&mut self, now: Instant, bytes: Bytes, reported: &mut Reported) {
        match Datagram::parse(&bytes) {
            Ok(packet) if self.is_waiting_for_another(&packet) => {
                self.notices.dropped(&packet.plain());
                self.drop_packet(now, &packet, reported);
            }
            _ => self.put(Output::Unreachable { bytes }),
        }
    }

    /// Sends a notice over the packet's reverse path or a cached route.
    fn give_notice(&mut self, now: Instant, packet: &Datagram, notice: Option<Notice>) {
        let Some(kind) = notice else { return };
        let (event, counter) = match kind {
            Notice::Held => ("held", "held-sent"),
            Notice::Restored(_) => ("restored", "restored-sent"),
            Notice::Unreachable => ("unreachable-while-held", "unreachable-sent"),
        };
        let message = icmp::notice(&kind, &packet.plain(), self.own());
        self.notify_source(now, packet, message, event, counter);
    }
}
