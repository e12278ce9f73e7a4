//! The DSR machine: received and overheard frames, ARP messages, frames that failed or were purged, packets of the stack, over
//! time. No panic,
//! no deadline left behind, no frame beyond the MTU, no route that visits a node twice.
//!
//! A step is: kind, neighbour, time in ms, length, that many bytes: a DSR header with payload, put into an IPv4 packet
//! whose last address bytes are the first two.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_dsr::datagram::Datagram;
use manet_dsr::{options::Link, Dsr, Options};
use manet_engine::{Duration, Instant, Machine};
use manet_routing::arp::Resolution;
use manet_routing::packet::ipv4::{protocol, Repr};
use manet_routing::{Bytes, Input, Node, Output, Protocol};
use std::net::Ipv4Addr;

const MTU: usize = 700;

fuzz_target!(|data: &[u8]| {
    let Some((options, mut rest)) = data.split_first() else { return };
    let mut machine = Dsr::new(node(options & 1 != 0), options_of(*options)).expect("the options are right");
    let mut now = Instant::ZERO;
    while let [kind, neighbour, wait, len, body @ ..] = rest {
        let (body, next) = body.split_at(usize::from(*len).min(body.len()));
        rest = next;
        now += Duration::from_millis(u64::from(*wait));
        while let Some(due) = machine.next_timeout().filter(|t| *t <= now) {
            machine.handle_timeout(due);
            assert!(machine.next_timeout().is_none_or(|t| t > due));
            drain(&mut machine);
        }
        machine.handle(now, input(*kind, *neighbour, body));
        drain(&mut machine);
    }
    for route in machine.status(now).routes {
        assert!(route.path.iter().enumerate().all(|(i, hop)| *hop != ip(1) && !route.path[..i].contains(hop)));
    }
});

fn ip(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, n)
}

fn node(gateway: bool) -> Node {
    Node {
        wires: if gateway { vec![(Ipv4Addr::new(192, 168, 1, 0), 30)] } else { Vec::new() },
        mtu: MTU as u16,
        notices: true,
        ..Node::new(1, ip(1), (ip(0), 24), [2, 0, 0, 0, 0, 1])
    }
}

fn options_of(bits: u8) -> Options {
    Options {
        arp: [Resolution::None, Resolution::Cmu, Resolution::Silent][usize::from(bits >> 6) % 3],
        link: if bits & 2 != 0 { Link::Ack } else { Link::Feedback },
        cache_replies: bits & 4 != 0,
        cache_paths: 1 + usize::from(bits >> 3),
        send_buffer: 3,
        error_notices: bits & 1 != 0,
        ..Options::default()
    }
}

fn input(kind: u8, neighbour: u8, body: &[u8]) -> Input {
    let (source, destination, dsr) = match body {
        [source, destination, dsr @ ..] => (ip(*source), ip(*destination), dsr),
        _ => (ip(neighbour), ip(1), body),
    };
    let protocol = if kind & 8 != 0 { protocol::UDP } else { protocol::DSR };
    let header =
        Repr { tos: 0, identification: 7, dont_fragment: false, ttl: kind >> 4, protocol, source, destination };
    let bytes = Bytes(header.packet(dsr));
    let (from, to) = ([2, 0, 0, 0, 0, neighbour], [2, 0, 0, 0, 0, 1]);
    match kind % 8 {
        0 => Input::FrameFailed { to: from, bytes },
        1 => Input::FramesPurged { to: from, packets: vec![bytes] },
        2 => Input::FrameDelivered { to: from },
        3 => Input::Packet { bytes },
        4 => Input::Overheard { from, to: [2, 0, 0, 0, 0, 9], bytes },
        5 => Input::Frame { from, to, bytes: Bytes(body.to_vec()) },
        6 if kind & 8 == 0 => Input::Arp { from, bytes: Bytes(body.to_vec()) },
        _ => Input::Frame { from, to, bytes },
    }
}

fn drain(machine: &mut Dsr) {
    while let Some(output) = machine.poll_output() {
        if let Output::Frame { bytes, .. } = output {
            assert!(bytes.len() <= MTU);
            let packet = Datagram::parse(&bytes).expect("what is sent can be read");
            assert!(packet.is_sound(), "{packet}");
        }
    }
}
