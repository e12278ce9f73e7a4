//! A ADV node: steps of kind, neighbour, milliseconds (16 bits), length, that many bytes. Nothing panics, no deadline is left
//! behind (Timeline), the routes installed are those of the status, and no table exceeds its bound.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_adv::neighbours::MAX_NEIGHBOURS;
use manet_adv::options::Link;
use manet_adv::table::MAX_DESTINATIONS;
use manet_adv::{Adv, Options};
use manet_engine::{Duration, Timeline};
use manet_routing::{Bytes, Flow, Input, Node, Output, Protocol, Routes, BROADCAST};
use std::net::Ipv4Addr;

fn station(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number)
}

fn node() -> Node {
    Node { mtu: 576, notices: true, ..Node::new(1, station(1), (station(0), 8), [2, 0, 0, 0, 0, 1]) }
}

fn input(what: u8, who: u8, bytes: Bytes) -> Input {
    match what % 8 {
        0..=3 => Input::Control { from: station(who % 8), to: BROADCAST, ttl: 1, bytes },
        4 => Input::Packet { bytes },
        5 => Input::LinkFailed { neighbour: station(who % 8), bytes },
        6 => Input::Purged { neighbour: station(who % 8), packets: vec![bytes] },
        _ if who == 0 => Input::Stop,
        _ => Input::Used { flows: vec![Flow { source: station(who % 8), destination: station(who >> 4), packets: 1 }] },
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((first, mut rest)) = data.split_first() else { return };
    let link = if first & 1 != 0 { Link::Hello } else { Link::Feedback };
    let options =
        Options { link, connection_idle: Duration::from_secs(u64::from(first >> 1) + 1), ..Options::default() };
    let mut line = Timeline::new(Adv::new(node(), options).unwrap());
    let mut kernel = Routes::default();
    while let [what, who, high, low, len, more @ ..] = rest {
        let (bytes, after) = more.split_at(usize::from(*len).min(more.len()));
        rest = after;
        let at = line.now() + Duration::from_millis(u64::from(u16::from_be_bytes([*high, *low])));
        let mut put = |_, output: Output| match output {
            Output::SetRoute(route) => kernel.set(route),
            Output::ClearRoute { destination, prefix } => {
                kernel.clear(destination, prefix).expect("only a route that is there is cleared");
            }
            Output::Control { bytes, .. } => assert!(bytes.len() <= 576 - 28),
            _ => {}
        };
        line.input(at, input(*what, *who, bytes.to_vec().into()), &mut put);
    }
    let status = line.machine().status(line.now());
    assert_eq!(status.routes.iter().filter(|r| r.state != "broken").count(), kernel.len());
    assert!(status.routes.len() <= MAX_DESTINATIONS && status.neighbours.len() <= MAX_NEIGHBOURS && status.held <= 64);
});
