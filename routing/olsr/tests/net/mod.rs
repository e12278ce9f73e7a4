//! OLSR nodes, counted from 1. A data packet takes no time: a test sees at once how the machines react to it.

#![allow(dead_code)] // each test file uses its part

use manet_engine::Instant;
use manet_olsr::{wire, Olsr, Options};
use manet_routing::trial::{self, ip, node};
use manet_routing::{Bytes, Node, Output, BROADCAST};
use std::collections::{BTreeMap, BTreeSet};

pub type Net = trial::Air<Olsr>;

pub fn net(nodes: impl IntoIterator<Item = Node>, options: &Options) -> Net {
    Net::new(nodes.into_iter().map(|node| (node.number as usize, node)), options, 1)
}

/// 1 - 2 - 3 - ...
pub fn chain(count: usize, options: &Options) -> Net {
    net((1..=count).map(node), options).chained()
}

/// Rows of `width`, neighbours at right angles.
pub fn grid(width: usize, height: usize, options: &Options) -> Net {
    let mut net = net((1..=width * height).map(node), options);
    for n in 1..=width * height {
        if n % width != 0 {
            net.link(n, n + 1);
        }
        if n + width <= width * height {
            net.link(n, n + width);
        }
    }
    net
}

/// A packet leaves the kernel of `n`; its effects take no time.
pub fn send(net: &mut Net, n: usize, bytes: Bytes) {
    let airtime = std::mem::take(&mut net.airtime);
    let retries = std::mem::take(&mut net.retries);
    net.send(n, bytes);
    net.run(net.now);
    (net.airtime, net.retries) = (airtime, retries);
}

/// Every message on the air: time, sender, contents.
pub fn messages(net: &Net) -> Vec<(Instant, usize, wire::Message)> {
    let read = |(t, n, output): &(Instant, usize, Output)| {
        let Output::Control { to, bytes, .. } = output else { return Vec::new() };
        let (packet, cut) = wire::Packet::parse(bytes).expect("what a node sends is well-formed");
        assert!(!cut && *to == BROADCAST);
        packet.messages.into_iter().map(|m| (*t, *n, m)).collect()
    };
    net.log.iter().flat_map(read).collect()
}

/// Shortest distance in hops from each node to each other.
fn distances(net: &Net) -> BTreeMap<(usize, usize), usize> {
    let mut distance = BTreeMap::new();
    for from in net.stations.keys() {
        let (mut frontier, mut hops) = (BTreeSet::from([*from]), 0);
        while !frontier.is_empty() {
            distance.extend(frontier.iter().map(|n| ((*from, *n), hops)));
            let next: BTreeSet<usize> =
                net.links.iter().filter(|(a, _)| frontier.contains(a)).map(|(_, b)| *b).collect();
            frontier = next.into_iter().filter(|n| !distance.contains_key(&(*from, *n))).collect();
            hops += 1;
        }
    }
    distance
}

/// Asserts that every node has a shortest route to exactly the nodes it can reach, that following it arrives, and that no
/// route was set twice.
pub fn check_shortest(net: &Net) {
    assert_eq!(net.set_again, 0);
    let distances = distances(net);
    for from in net.stations.keys() {
        for to in net.stations.keys().filter(|to| *to != from) {
            let route = net.stations[from].routes.lookup(ip(*to));
            let must = distances.get(&(*from, *to)).copied();
            assert_eq!(route.map(|r| usize::from(r.hops)), must, "{from} to {to} at {:?}", net.now);
            if let Some(hops) = must {
                assert_eq!(net.path(*from, ip(*to)).map(|p| p.len() - 1), Some(hops), "{from} to {to}");
            }
        }
    }
}
