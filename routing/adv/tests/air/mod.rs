//! The nodes of these tests, counted from 0; node 0 has the address 10.0.0.1.

#![allow(dead_code)] // each test file uses its part

use manet_adv::{Adv, Options};
use manet_engine::{Duration, Instant};
use manet_routing::{trial, Node};
use std::net::Ipv4Addr;

pub type Air = trial::Air<Adv>;

pub fn ip(i: usize) -> Ipv4Addr {
    trial::ip(i + 1)
}

pub fn node(i: usize, seed: u64) -> Node {
    Node { seed, ..trial::node(i + 1) }
}

pub fn nodes(count: usize, options: &Options, seed: u64) -> Air {
    Air::new((0..count).map(|i| (i, node(i, seed))), options, seed)
}

pub fn chain(count: usize, options: &Options, seed: u64) -> Air {
    nodes(count, options, seed).chained()
}

/// Data packets from `from` to `to` every `gap_ms` up to `end`.
pub fn stream(air: &mut Air, from: usize, to: usize, gap_ms: u64, end: Instant) {
    while air.now < end {
        air.data(from, ip(to), b"data");
        air.run(end.min(air.now + Duration::from_millis(gap_ms)));
    }
}
