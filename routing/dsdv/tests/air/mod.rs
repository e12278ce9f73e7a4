//! The nodes of these tests, counted from 0; node 0 has the address 10.0.0.1.

#![allow(dead_code)] // each test file uses its part

use manet_dsdv::{Dsdv, Options};
use manet_routing::trial::{self, INTERNET};
use manet_routing::Node;
use std::net::Ipv4Addr;

pub type Air = trial::Air<Dsdv>;

pub fn ip(i: usize) -> Ipv4Addr {
    trial::ip(i + 1)
}

pub fn node(i: usize, seed: u64) -> Node {
    Node { seed, ..trial::node(i + 1) }
}

/// As [`node`], with a wire.
pub fn gateway(i: usize, seed: u64) -> Node {
    Node { seed, ..trial::gateway(i + 1) }
}

pub fn with_gateways(count: usize, gateways: &[usize], options: &Options, seed: u64) -> Air {
    let of = |i| if gateways.contains(&i) { gateway(i, seed) } else { node(i, seed) };
    Air::new((0..count).map(|i| (i, of(i))), options, seed)
}

pub fn nodes(count: usize, options: &Options, seed: u64) -> Air {
    with_gateways(count, &[], options, seed)
}

pub fn chain(count: usize, options: &Options, seed: u64) -> Air {
    nodes(count, options, seed).chained()
}

/// The gateway that packets of `from` reach.
pub fn gateway_of(air: &Air, from: usize) -> Option<usize> {
    air.reaches(from, INTERNET).then(|| *air.walk(from, INTERNET).0.last().unwrap())
}
