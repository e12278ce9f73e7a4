//! Frames to neighbours, and their link addresses: learnt from any frame of a neighbour (`neighbours`), or resolved by ARP
//! ([`manet_routing::arp`]).
//!
//! With ARP every unicast packet waits for the address of its next hop, DSR's own too, and the next one takes its place. A
//! failure is a broken link with both packets, as of ns-2's DSRAgent, whose `xmit_failure_` ARP calls. What is dropped
//! silently is noted, for the reader of the run; the protocol does not learn of it.

use crate::datagram::Datagram;
use crate::machine::Dsr;
use manet_engine::Instant;
use manet_routing::arp::{Learnt, Sent};
use manet_routing::packet::arp::Message;
use manet_routing::{Bytes, Mac, Note, Output, BROADCAST_MAC};
use std::net::Ipv4Addr;

impl Dsr {
    /// Sends a packet in a frame to a neighbour, now or when its link address is resolved.
    pub(crate) fn frame(&mut self, packet: Datagram, next: Ipv4Addr) {
        let bytes = packet.to_bytes();
        if bytes.len() > usize::from(self.node.mtu) {
            return self.count("too-big");
        }
        let Some(table) = &mut self.arp else {
            let Some(to) = self.neighbours.mac(next) else { return };
            return self.frame_to(to, bytes, packet.is_control());
        };
        match table.send(next, (next, packet.clone())) {
            Sent::Known(to, _) => self.frame_to(to, bytes, packet.is_control()),
            Sent::Waits { request, displaced } => {
                self.displaced(displaced);
                self.count("arp-requests");
                self.note_hop("resolving", next, &packet);
                self.put(Output::Arp { to: BROADCAST_MAC, bytes: Bytes(request.to_bytes()) });
            }
            Sent::Failed(hops) => {
                self.counters.add("arp-failed", hops.len() as u64);
                let packets = hops.into_iter().map(|(_, packet)| packet).collect();
                self.unsendable.push_back((next, packets));
            }
        }
    }

    fn frame_to(&mut self, to: Mac, bytes: Bytes, control: bool) {
        self.count(if control { "control-sent" } else { "data-sent" });
        self.put(Output::Frame { to, bytes, control });
    }

    /// Handles an ARP message for this node or all.
    pub(crate) fn receive_arp(&mut self, now: Instant, bytes: &[u8]) {
        let Some(table) = &mut self.arp else { return self.count("arp-unused") };
        let Some(message) = Message::parse(bytes) else { return self.count("arp-malformed") };
        let Learnt { released, reply, displaced } = match table.receive(&message) {
            Ok(learnt) => learnt,
            Err(reason) => return self.count(reason),
        };
        self.neighbours.heard(now, message.sender, message.sender_mac);
        self.displaced(displaced);
        if let Some((_, packet)) = released {
            self.frame_to(message.sender_mac, packet.to_bytes(), packet.is_control());
        }
        if let Some(reply) = reply {
            self.count("arp-replies");
            self.put(Output::Arp { to: message.sender_mac, bytes: Bytes(reply.to_bytes()) });
        }
    }

    fn displaced(&mut self, hops: Vec<(Ipv4Addr, Datagram)>) {
        for (next, packet) in hops {
            self.count("arp-displaced");
            // an unconfirmed packet is repeated, or returned with its broken link
            if !self.maintenance.as_ref().is_some_and(|m| m.has(next, &packet)) {
                self.note_hop("displaced", next, &packet);
            }
        }
    }

    fn note_hop(&mut self, event: &str, next: Ipv4Addr, packet: &Datagram) {
        let (event, about, value) = (event.to_owned(), packet.destination(), u64::from(packet.next()));
        self.put(Output::Note(Note { event, about, value, via: Some(next), packet: Some(packet.plain()) }));
    }
}
