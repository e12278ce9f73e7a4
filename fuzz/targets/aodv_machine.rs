//! The AODV machine under any inputs and times: it never panics, keeps its deadlines, and its tables stay bounded.
//!
//! First byte: options. Then inputs: kind, delay in ms (2 bytes), an address byte, a length, that many bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_aodv::options::{Internet, Link, Options, Style};
use manet_aodv::{table, Aodv};
use manet_engine::{Duration, Instant, Machine};
use manet_routing::packet::ipv4;
use manet_routing::{Bytes, Flow, Input, Node, Output, Protocol, BROADCAST};
use std::net::Ipv4Addr;

const US: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn machine(bits: u8) -> Aodv {
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
    let node = Node {
        wires: if on(32) { vec![(Ipv4Addr::new(192, 168, 1, 0), 30)] } else { Vec::new() },
        mtu: 300,
        feedback: !on(2),
        restarted: on(64),
        notices: on(128),
        ..Node::new(2, US, (Ipv4Addr::new(10, 0, 0, 0), 8), [2, 0, 0, 0, 0, 2])
    };
    Aodv::new(node, options).expect("these options are right")
}

/// Few neighbours, so that messages meet each other's routes.
fn neighbour(byte: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, byte % 8)
}

fn host(byte: u8) -> Ipv4Addr {
    if byte & 0x80 == 0 {
        Ipv4Addr::new(10, 0, 0, byte % 16)
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

fn drain(machine: &mut Aodv) {
    while let Some(output) = machine.poll_output() {
        if let Output::Control { bytes, .. } = output {
            assert!(manet_aodv::wire::Message::parse(&bytes).is_ok(), "what we send can be read");
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((bits, mut rest)) = data.split_first() else { return };
    let (mut machine, mut now) = (machine(*bits), Instant::ZERO);
    while let [what, high, low, who, len, tail @ ..] = rest {
        let (bytes, next) = tail.split_at(tail.len().min(usize::from(*len)));
        rest = next;
        let target = now + Duration::from_millis(u64::from(u16::from_be_bytes([*high, *low])));
        // a long pause with hellos has many deadlines; each must be removed when it is handled
        while let Some(due) = machine.next_timeout().filter(|t| *t <= target) {
            assert!(due >= now, "a deadline in the past");
            now = due;
            machine.handle_timeout(now);
            assert!(machine.next_timeout().is_none_or(|t| t > now), "a deadline that stays");
            drain(&mut machine);
        }
        now = target;
        machine.handle(now, input(*what, *who, bytes));
        drain(&mut machine);
    }
    let status = machine.status(now);
    assert!(status.held <= 8 && status.routes.len() <= table::MAX_ROUTES + manet_aodv::gateway::MAX_DESTINATIONS);
});
