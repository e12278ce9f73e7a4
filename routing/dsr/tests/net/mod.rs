//! DSR nodes, counted from 1.

#![allow(dead_code)] // each test file uses its part

use manet_dsr::datagram::Datagram;
use manet_dsr::wire::{Opt, SourceRoute};
use manet_dsr::{Dsr, Options};
use manet_routing::packet::ipv4;
use manet_routing::trial::{self, ip, node, udp};
use manet_routing::{Bytes, Mac, Node, Output};
use std::net::Ipv4Addr;

pub type Net = trial::Air<Dsr>;

pub fn net_of(nodes: impl IntoIterator<Item = Node>, options: &Options) -> Net {
    Net::new(nodes.into_iter().map(|node| (node.number as usize, node)), options, 1)
}

/// Nodes 1 to `count`, without links.
pub fn net(count: usize, options: &Options) -> Net {
    net_of((1..=count).map(node), options)
}

pub fn chain(count: usize, options: &Options) -> Net {
    net(count, options).chained()
}

pub fn send(net: &mut Net, from: usize, to: usize, id: u16) {
    net.send(from, udp(ip(from), ip(to), id, b"hello"));
}

/// A source route inside the network.
pub fn route(salvage: u8, segments_left: u8, hops: &[usize]) -> Opt {
    Opt::SourceRoute(SourceRoute::internal(salvage, segments_left, hops.iter().map(|n| ip(*n)).collect()))
}

/// A packet of another protocol than DSR's with a source route.
pub fn routed(packet: &[u8], route: Opt) -> Bytes {
    let mut packet = Datagram::parse(packet).unwrap();
    packet.options.push(route);
    packet.to_bytes()
}

/// IP identifications of the packets handed to a node's stack.
pub fn delivered(net: &Net, n: usize) -> Vec<u16> {
    let packets = net.stations[&n].delivered.iter();
    packets.filter_map(|(_, bytes)| ipv4::Packet::parse(bytes).map(|p| p.identification())).collect()
}

/// The packets of the frames that a node sent.
pub fn frames(net: &Net, n: usize) -> Vec<(Mac, Datagram)> {
    let frame = |output: &Output| match output {
        Output::Frame { to, bytes, .. } => Some((*to, Datagram::parse(bytes).unwrap())),
        _ => None,
    };
    net.outputs(n).filter_map(frame).collect()
}

pub fn path(net: &Net, from: usize, to: usize) -> Option<Vec<Ipv4Addr>> {
    net.status(from).routes.into_iter().find(|r| r.destination == ip(to)).map(|r| r.path)
}
