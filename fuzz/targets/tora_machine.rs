//! A TORA node: steps of kind, neighbour, milliseconds (16 bits), length, that many bytes. Control bytes of a neighbour follow a
//! list that brings its link up if the first bit of the kind is set. Nothing panics, no deadline is left behind (Timeline), only
//! routes that exist are cleared, and no table exceeds its bound.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_engine::{Duration, Timeline};
use manet_routing::{Bytes, Input, Node, Output, Protocol, Routes, BROADCAST};
use manet_tora::machine::MAX_DESTINATIONS;
use manet_tora::neighbours::MAX_NEIGHBOURS;
use manet_tora::wire::{Heard, Packet};
use manet_tora::{Link, Options, Tora};
use std::net::Ipv4Addr;

fn station(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number)
}

fn node() -> Node {
    Node { mtu: 576, notices: true, ..Node::new(1, station(1), (station(0), 8), [2, 0, 0, 0, 0, 1]) }
}

fn input(what: u8, who: u8, bytes: Bytes) -> Input {
    let control = |bytes| Input::Control { from: station(who % 8), to: BROADCAST, ttl: 1, bytes };
    match what % 8 {
        0..=2 => control(bytes),
        3 => {
            // the first neighbours in order of arrival have the numbers from 1 on
            let number = bytes.first().map_or(1, |b| u16::from(*b % 8));
            let us = Heard { address: station(1), number: u16::from(who) + 1, echo: number };
            control(Packet { hello: Some(vec![us]), ..Packet::default() }.emit().into())
        }
        4 => Input::Packet { bytes },
        5 => Input::LinkFailed { neighbour: station(who % 8), bytes },
        6 => Input::Purged { neighbour: station(who % 8), packets: vec![bytes] },
        _ if who == 0 => Input::Stop,
        _ => Input::Used { flows: Vec::new() },
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((first, mut rest)) = data.split_first() else { return };
    let flag = |bit: u8| first & bit != 0;
    let options = Options {
        link: if flag(1) { Link::Feedback } else { Link::Hello },
        announce_heights: flag(2),
        await_acknowledgement: flag(4),
        hold_forwarded: flag(8),
        ..Options::default()
    };
    let mut line = Timeline::new(Tora::new(node(), options).unwrap());
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
            Output::Control { bytes, .. } => {
                assert!(bytes.len() <= 576 - 28);
                Packet::parse(&bytes).expect("our own packets parse");
            }
            _ => {}
        };
        line.input(at, input(*what, *who, bytes.to_vec().into()), &mut put);
    }
    let status = line.machine().status(line.now());
    let used = status.routes.iter().filter(|r| r.state != "required").count();
    // a route waits for an acknowledgement before the kernel has it
    assert!(kernel.len() <= used);
    assert!(status.routes.len() <= MAX_DESTINATIONS && status.neighbours.len() <= MAX_NEIGHBOURS && status.held <= 64);
});
