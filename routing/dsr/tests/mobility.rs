//! Many nodes with changing links: no source route visits a node twice, and packets with a possible path are delivered.

mod net;
use manet_dsr::options::Link;
use manet_dsr::Options;
use manet_engine::random::Purpose;
use manet_engine::Stream;
use manet_routing::trial::ms;
use net::{delivered, frames, send, Net};
use std::collections::BTreeSet;

const NODES: usize = 12;

/// 60 s; each second some links change and a random node sends to another.
fn shaken(seed: u64, options: &Options) -> Net {
    let mut rng = Stream::new(seed, 0, Purpose::Mobility);
    let mut net = net::net(NODES, options);
    let mut links: BTreeSet<(usize, usize)> = BTreeSet::new();
    for step in 0..600u64 {
        let mut random = |n: usize| 1 + rng.below(n as u64) as usize;
        let (a, b) = (random(NODES), random(NODES));
        let pair = (a.min(b), a.max(b));
        if a != b && links.len() > 30 && links.remove(&pair) {
            net.cut(a, b);
        } else if a != b && links.len() < 40 && links.insert(pair) {
            net.link(a, b);
        }
        let (from, to) = (random(3), 9 + random(3));
        send(&mut net, from, to, step as u16);
        net.run(ms((step + 1) * 100));
    }
    net.run(ms(120_000));
    net
}

#[test]
fn no_source_route_visits_a_node_twice_and_all_packets_arrive_or_are_dropped() {
    for seed in 1..=5 {
        for link in [Link::Feedback, Link::Ack] {
            let net = shaken(seed, &Options { link, ..Options::default() });
            for node in 1..=NODES {
                for (_, packet) in frames(&net, node) {
                    let Some(walk) = packet.walk() else { continue };
                    let nodes: BTreeSet<_> = walk.nodes.iter().collect();
                    assert_eq!(nodes.len(), walk.nodes.len(), "seed {seed}, node {node}: {packet}");
                }
            }
            let delivered: BTreeSet<u16> =
                (1..=NODES).flat_map(|n| delivered(&net, n)).filter(|id| *id < 600).collect();
            let share = delivered.len() as f64 / 600.0;
            assert!(share > 0.97, "seed {seed}, {link:?}: {share} delivered");
            assert_eq!(net.total("route-loop") + net.total("bad-route") + net.total("not-our-turn"), 0);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let outputs = || shaken(7, &Options::default()).log;
    assert!(outputs() == outputs());
}
