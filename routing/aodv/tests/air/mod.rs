//! AODV nodes, counted from 1, whose routes must never form a loop. Packets are told apart by the first byte of their payload.

#![allow(dead_code)] // each test file uses its part

use manet_aodv::{Aodv, Options};
use manet_engine::Duration;
use manet_routing::packet::ipv4;
use manet_routing::trial::{self, gateway, node, udp, INTERNET};
use manet_routing::{Bytes, Output};
use std::net::Ipv4Addr;

pub type Air = trial::Air<Aodv>;

/// Nodes 1 to `n`, those in `gateways` with a wire.
pub fn nodes(n: usize, options: &Options, gateways: &[usize]) -> Air {
    let of = |n: usize| if gateways.contains(&n) { gateway(n) } else { node(n) };
    let mut air = Air::new((1..=n).map(|n| (n, of(n))), options, 1);
    air.retries = Duration::from_millis(4);
    air.feedback = !options.hellos();
    air.loop_free = true;
    air
}

pub fn chain(n: usize, options: &Options) -> Air {
    nodes(n, options, &[]).chained()
}

/// The local stack of `from` sends a packet.
pub fn data(air: &mut Air, from: usize, destination: Ipv4Addr, tag: u8) {
    air.data(from, destination, &[tag]);
}

/// A packet arrives over the wire of gateway `n`.
pub fn data_from_wire(air: &mut Air, n: usize, destination: Ipv4Addr, tag: u8) {
    air.send(n, udp(INTERNET, destination, 1, &[tag]));
}

pub fn tag(packet: &Bytes) -> u8 {
    ipv4::Packet::parse(packet).unwrap().payload()[8]
}

/// The packets for the node itself.
pub fn tags(air: &Air, n: usize) -> Vec<u8> {
    air.stations[&n].delivered.iter().map(|(_, bytes)| tag(bytes)).collect()
}

pub fn has_route(air: &Air, n: usize, destination: Ipv4Addr) -> bool {
    air.stations[&n].routes.lookup(destination).is_some()
}

/// The control messages of a node: TTL, destination, bytes.
pub fn sent(air: &Air, n: usize) -> Vec<(u8, Ipv4Addr, Bytes)> {
    let control = |output: &Output| match output {
        Output::Control { to, ttl, bytes } => Some((*ttl, *to, bytes.clone())),
        _ => None,
    };
    air.outputs(n).filter_map(control).collect()
}
