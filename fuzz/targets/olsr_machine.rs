//! The OLSR machine: control packets, failed links and packets without a route, over time. No panic, no deadline left
//! behind, no route set twice or cleared without having been set, none to the node itself.
//!
//! A step is: kind, neighbour, time in 50 ms, length, that many bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_engine::Duration;
use manet_fuzz::steps;
use manet_olsr::{Olsr, Options};
use manet_routing::trial::{self, ip, One};
use manet_routing::{Bytes, Input, Node, Output, BROADCAST};

fuzz_target!(|data: &[u8]| {
    let Some((options, rest)) = data.split_first() else { return };
    let options = Options {
        hysteresis: options & 1 != 0,
        tc_redundancy: (options >> 1 & 3).min(2),
        held_packets: 3,
        mpr_coverage: 1 + (options >> 3 & 3),
        ..Options::default()
    };
    let mut one = One::<Olsr>::new(Node { mtu: 200, notices: true, ..trial::gateway(1) }, options);
    steps(rest, |[kind, neighbour, wait, _], body| {
        let (from, bytes) = (ip(usize::from(*neighbour)), Bytes(body.to_vec()));
        let input = match kind % 8 {
            0 => Input::LinkFailed { neighbour: from, bytes },
            1 => Input::Packet { bytes },
            2 => Input::Purged { neighbour: from, packets: vec![bytes] },
            _ => Input::Control { from, to: BROADCAST, ttl: 1, bytes },
        };
        for output in one.after(Duration::from_millis(u64::from(*wait) * 50), input) {
            assert!(!matches!(output, Output::SetRoute(route) if route.destination == ip(1) || route.hops == 0));
        }
    });
    assert_eq!((one.status().routes.len(), one.set_again), (one.routes.len(), 0));
});
