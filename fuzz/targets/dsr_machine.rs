//! The DSR machine: received and overheard frames, ARP messages, frames that failed or were purged, packets of the stack, over
//! time. No panic, no deadline left behind, no frame beyond the MTU, no route that visits a node twice.
//!
//! A step is: kind, neighbour, time in ms, length, that many bytes: a DSR header with payload, put into an IPv4 packet
//! whose last address bytes are the first two.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_dsr::datagram::Datagram;
use manet_dsr::{options::Link, Dsr, Options};
use manet_engine::Duration;
use manet_fuzz::steps;
use manet_routing::arp::Resolution;
use manet_routing::packet::ipv4::{protocol, Repr};
use manet_routing::trial::{self, fits, ip, mac, One};
use manet_routing::{Bytes, Input, Node, Output};

const MTU: u16 = 700;

fuzz_target!(|data: &[u8]| {
    let Some((options, rest)) = data.split_first() else { return };
    let node = if options & 1 != 0 { trial::gateway(1) } else { trial::node(1) };
    let node = Node { mtu: MTU, network: (ip(0), 24), notices: true, ..node };
    let mut one = One::<Dsr>::new(node, options_of(*options));
    steps(rest, |[kind, neighbour, wait, _], body| {
        for output in one.after(Duration::from_millis(u64::from(*wait)), input(*kind, *neighbour, body)) {
            assert!(fits(&output, MTU));
            if let Output::Frame { bytes, .. } = output {
                let packet = Datagram::parse(&bytes).expect("what is sent can be read");
                assert!(packet.is_sound(), "{packet}");
            }
        }
    });
    for route in one.status().routes {
        assert!(route.path.iter().enumerate().all(|(i, hop)| *hop != ip(1) && !route.path[..i].contains(hop)));
    }
});

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
        [source, destination, dsr @ ..] => (ip(usize::from(*source)), ip(usize::from(*destination)), dsr),
        _ => (ip(usize::from(neighbour)), ip(1), body),
    };
    let protocol = if kind & 8 != 0 { protocol::UDP } else { protocol::DSR };
    let header =
        Repr { tos: 0, identification: 7, dont_fragment: false, ttl: kind >> 4, protocol, source, destination };
    let bytes = Bytes(header.packet(dsr));
    let (from, to) = (mac(usize::from(neighbour)), mac(1));
    match kind % 8 {
        0 => Input::FrameFailed { to: from, bytes },
        1 => Input::FramesPurged { to: from, packets: vec![bytes] },
        2 => Input::FrameDelivered { to: from },
        3 => Input::Packet { bytes },
        4 => Input::Overheard { from, to: mac(9), bytes },
        5 => Input::Frame { from, to, bytes: Bytes(body.to_vec()) },
        6 if kind & 8 == 0 => Input::Arp { from, bytes: Bytes(body.to_vec()) },
        _ => Input::Frame { from, to, bytes },
    }
}
