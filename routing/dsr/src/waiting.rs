//! TCP packets of other stations that wait here, where their route broke, for another one, where sources get notices of it
//! ([`manet_routing::notices`]).
//!
//! RFC 4728 lets a node that cannot salvage a packet drop it (8.3.6). The pivoting node of TCP-BuS looks for a way from
//! where it is; here the packet is kept with its source route, a discovery is begun, and what was found becomes the
//! packet's salvage route, so that a packet waits no more often than it may be salvaged.

use crate::cache::Route;
use crate::datagram::Datagram;
use crate::machine::Dsr;
use crate::reported::Reported;
use manet_engine::Instant;
use manet_routing::packet::icmp::{self, Notice};
use manet_routing::{Bytes, Output};

impl Dsr {
    /// A packet whose next hop is gone, and for which there is no other route. False: it cannot wait.
    pub(crate) fn wait_here(&mut self, now: Instant, packet: &Datagram) -> bool {
        let plain = packet.plain();
        let often = packet.salvage() >= self.options.max_salvage;
        if packet.is_control() || often || !self.options.salvage || !self.notices.concern(&plain) {
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

    /// Whether a held packet is one of those.
    pub(crate) fn is_waiting_for_another(&self, packet: &Datagram) -> bool {
        packet.source() != self.own() && self.node.in_network(packet.source())
    }

    /// There is a route for a packet that waited.
    pub(crate) fn go_on(&mut self, now: Instant, mut packet: Datagram) {
        let notice = self.notices.released(&packet.plain());
        let before = packet.clone();
        let count = packet.salvage() + 1;
        let Some(Route { hops, external }) = self.cache.find(now, packet.destination()) else {
            return self.die(now, &packet, &mut Reported::default());
        };
        self.put_salvage_route(&mut packet, &hops, external, count);
        self.count("held-released");
        self.note("salvage", packet.destination(), u64::from(count));
        self.transmit(now, packet, hops[0]);
        self.give_notice(now, &before, notice);
    }

    /// A held packet, our own or another's, goes no further; `reported`: who knows already.
    pub(crate) fn give_up_held(&mut self, now: Instant, bytes: Bytes, reported: &mut Reported) {
        match Datagram::parse(&bytes) {
            Ok(packet) if self.is_waiting_for_another(&packet) => {
                self.notices.dropped(&packet.plain());
                self.die(now, &packet, reported);
            }
            _ => self.put(Output::Unreachable { bytes }),
        }
    }

    /// Over the packet's own way back, or a cached route.
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
