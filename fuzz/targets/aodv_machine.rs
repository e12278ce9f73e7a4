//! The AODV machine under any inputs and times: it never panics, keeps its deadlines, and its tables stay bounded.
//!
//! First byte: options. Then inputs: kind, delay in ms (2 bytes), an address byte, a length, that many bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_aodv::options::{Internet, Link, Options, Style};
use manet_aodv::{table, Aodv};
use manet_fuzz::{milliseconds, steps};
use manet_routing::packet::ipv4;
use manet_routing::trial::{self, ip, One};
use manet_routing::{Bytes, Flow, Input, Node, Output, BROADCAST};
use std::net::Ipv4Addr;

const US: Ipv4Addr = ip(2);

fn machine(bits: u8) -> One<Aodv> {
    let on = |bit: u8| bits & bit != 0;
    let options = Options {
        style: if on(1) { Style::Uu } else { Style::Rfc },
        link: if on(2) { Link::Hello } else { Link::Feedback },
        unidirectional: on(4),
        internet: if on(4) { Internet::DefaultRoute } else { Internet::Tunnel },
        hello_while_active: Some(on(8)),
        local_repair: Some(!on(16)),
        held_packets: 8,
        ..Options::default()
    };
    let node = if on(32) { trial::gateway(2) } else { trial::node(2) };
    One::new(Node { mtu: 300, feedback: !on(2), restarted: on(64), notices: on(128), ..node }, options)
}

/// Few neighbours, so that messages meet each other's routes.
fn neighbour(byte: u8) -> Ipv4Addr {
    ip(usize::from(byte % 8))
}

fn host(byte: u8) -> Ipv4Addr {
    if byte & 0x80 == 0 {
        ip(usize::from(byte % 16))
    } else {
        Ipv4Addr::new(192, 0, 2, byte % 16)
    }
}

fn packet(who: u8, data: &[u8]) -> Bytes {
    let byte = |i: usize| data.get(i).copied().unwrap_or(0);
    let protocol = if byte(2) & 1 == 0 { 17 } else { ipv4::protocol::MINIMAL };
    let (source, destination) = (host(who), host(byte(0)));
    let header = ipv4::Repr {
        tos: 0,
        identification: byte(1).into(),
        dont_fragment: byte(2) & 2 != 0,
        ttl: byte(3),
        protocol,
        source,
        destination,
    };
    Bytes(header.packet(data.get(4..).unwrap_or(&[])))
}

fn input(what: u8, who: u8, data: &[u8]) -> Input {
    let bytes = || Bytes(data.to_vec());
    match what % 12 {
        0..=3 => Input::Control { from: neighbour(who), to: US, ttl: who / 8, bytes: bytes() },
        4 => Input::Control { from: neighbour(who), to: BROADCAST, ttl: 1, bytes: bytes() },
        5 => Input::Packet { bytes: packet(who, data) },
        6 => Input::Packet { bytes: bytes() },
        7 => Input::Used { flows: vec![Flow { source: host(who), destination: host(what / 12), packets: 1 }] },
        8 => Input::LinkFailed { neighbour: neighbour(who), bytes: packet(who / 8, data) },
        9 => Input::Purged { neighbour: neighbour(who), packets: vec![packet(who / 8, data), bytes()] },
        10 => Input::Tunnelled { bytes: packet(who, data) },
        _ => Input::LinkFailed { neighbour: neighbour(who), bytes: bytes() },
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((bits, rest)) = data.split_first() else { return };
    let mut one = machine(*bits);
    steps(rest, |[what, high, low, who, _], bytes| {
        for output in one.after(milliseconds(*high, *low), input(*what, *who, bytes)) {
            if let Output::Control { bytes, .. } = output {
                assert!(manet_aodv::wire::Message::parse(&bytes).is_ok(), "what we send can be read");
            }
        }
    });
    let status = one.status();
    assert!(status.held <= 8 && status.routes.len() <= table::MAX_ROUTES + manet_aodv::gateway::MAX_DESTINATIONS);
});
