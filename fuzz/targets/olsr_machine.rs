//! The OLSR machine: control packets, failed links and packets without a route, over time. No panic, no deadline left
//! behind, no route set twice or cleared without having been set, none to the node itself.
//!
//! A step is: kind, neighbour, time in 50 ms, length, that many bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_engine::{Duration, Instant, Machine};
use manet_olsr::{Olsr, Options};
use manet_routing::{Bytes, Input, Node, Output, Protocol, Routes};
use std::net::Ipv4Addr;

const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

fuzz_target!(|data: &[u8]| {
    let Some((options, mut rest)) = data.split_first() else { return };
    let node = Node {
        wires: vec![(Ipv4Addr::new(192, 168, 1, 0), 30)],
        mtu: 200,
        notices: true,
        ..Node::new(1, OWN, (Ipv4Addr::new(10, 0, 0, 0), 8), [2, 0, 0, 0, 0, 1])
    };
    let options = Options {
        hysteresis: options & 1 != 0,
        tc_redundancy: (options >> 1 & 3).min(2),
        held_packets: 3,
        mpr_coverage: 1 + (options >> 3 & 3),
        ..Options::default()
    };
    let mut machine = Olsr::new(node, options).expect("the options are right");
    let (mut now, mut routes) = (Instant::ZERO, Routes::default());
    while let [kind, neighbour, wait, len, body @ ..] = rest {
        let (body, next) = body.split_at(usize::from(*len).min(body.len()));
        rest = next;
        now += Duration::from_millis(u64::from(*wait) * 50);
        while let Some(due) = machine.next_timeout().filter(|t| *t <= now) {
            machine.handle_timeout(due);
            assert!(machine.next_timeout().is_none_or(|t| t > due));
            drain(&mut machine, &mut routes);
        }
        let (from, bytes) = (Ipv4Addr::new(10, 0, 0, *neighbour), Bytes(body.to_vec()));
        let input = match kind % 8 {
            0 => Input::LinkFailed { neighbour: from, bytes },
            1 => Input::Packet { bytes },
            2 => Input::Purged { neighbour: from, packets: vec![bytes] },
            _ => Input::Control { from, to: Ipv4Addr::BROADCAST, ttl: 1, bytes },
        };
        machine.handle(now, input);
        drain(&mut machine, &mut routes);
    }
    assert_eq!(machine.status(now).routes.len(), routes.len());
});

fn drain(machine: &mut Olsr, routes: &mut Routes) {
    while let Some(output) = machine.poll_output() {
        match output {
            Output::SetRoute(route) => {
                assert!(route.destination != OWN && route.hops > 0 && routes.iter().all(|r| *r != route));
                routes.set(route);
            }
            Output::ClearRoute { destination, prefix } => assert!(routes.clear(destination, prefix).is_some()),
            _ => {}
        }
    }
}
