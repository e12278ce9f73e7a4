//! Automatic route shortening (RFC 4728, sections 3.4.3 and 4.4): a node that overhears a packet before its turn
//! reports to the origin that the hops in between are not needed.

use crate::datagram::{Datagram, Walk};
use crate::machine::Dsr;
use crate::wire::{Opt, Reply};
use manet_engine::Instant;
use std::net::Ipv4Addr;

impl Dsr {
    pub(crate) fn shorten(&mut self, now: Instant, packet: &Datagram, walk: &Walk) {
        let Some(own) = walk.nodes.iter().position(|n| *n == self.own()) else { return };
        // the intended next hop does not overhear; a node before the transmitter has nothing to shorten
        if !self.options.shortening || own <= walk.transmitter + 1 {
            return;
        }
        let origin = packet.origin();
        let Some(first) = walk.nodes.iter().position(|n| *n == origin) else { return };
        let transmitter = walk.nodes[walk.transmitter];
        if origin == self.own() || first > walk.transmitter || !self.gratuitous.may(now, origin, transmitter) {
            return;
        }
        // origin (not listed) .. transmitter, this node, the rest
        let mut addresses = walk.nodes[first + 1..=walk.transmitter].to_vec();
        addresses.extend(&walk.nodes[own..]);
        let hops: Vec<Ipv4Addr> = walk.nodes[first..=walk.transmitter].iter().rev().copied().collect();
        self.count("gratuitous-replies");
        self.note("shortened", packet.destination(), (own - walk.transmitter - 1) as u64);
        let reply = Reply { last_external: walk.last_external, addresses };
        self.send_control(now, vec![Opt::Reply(reply)], hops);
    }
}
