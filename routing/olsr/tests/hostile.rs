//! Forged, replayed, truncated and oversized control packets: no panic, no unbounded memory, every drop counted by
//! reason.

mod net;

use manet_engine::{Duration, Instant, Machine};
use manet_olsr::wire::hello::{Block, LinkType, NeighbourType};
use manet_olsr::wire::{message, Hello, Hna, Message, Mid, Packet, Span, Tc};
use manet_olsr::{Olsr, Options};
use manet_routing::trial::{at, follow, ip, node};
use manet_routing::{Bytes, Input, Output, Protocol};
use net::{chain, check_shortest, messages};
use proptest::prelude::*;
use std::net::Ipv4Addr;

const OWN: usize = 1;

fn machine() -> Olsr {
    Olsr::new(node(OWN), Options::with_feedback()).unwrap()
}

fn control(from: Ipv4Addr, messages: Vec<Message>) -> Input {
    let bytes = Packet { sequence: 5, messages }.emit();
    Input::Control { from, to: manet_routing::BROADCAST, ttl: 1, bytes: bytes.into() }
}

fn message(kind: u8, originator: Ipv4Addr, sequence: u16, body: Vec<u8>) -> Message {
    let validity = Span::of(Duration::from_secs(15));
    Message { kind, validity, originator, ttl: if kind == message::HELLO { 1 } else { 255 }, hops: 0, sequence, body }
}

fn hello(blocks: Vec<Block>) -> Vec<u8> {
    Hello { interval: Span(5), willingness: 3, blocks }.emit()
}

/// A block that lists us as a symmetric MPR.
fn chosen() -> Block {
    Block::new(LinkType::Symmetric, NeighbourType::Mpr, vec![ip(OWN)])
}

fn handle(machine: &mut Olsr, now: Instant, input: Input) -> Vec<Output> {
    machine.handle(now, input);
    std::iter::from_fn(|| machine.poll_output()).collect()
}

/// A machine with the symmetric neighbour and selector 10.0.0.2.
fn with_neighbour() -> Olsr {
    let mut machine = machine();
    handle(&mut machine, at(0.0), control(ip(2), vec![message(message::HELLO, ip(2), 1, hello(vec![chosen()]))]));
    machine
}

fn count(machine: &Olsr, name: &str) -> u64 {
    machine.status(at(0.0)).counters.get(name)
}

#[test]
fn each_reason_is_counted() {
    let mut m = with_neighbour();
    let tc = |sequence, ansn| message(message::TC, ip(3), sequence, Tc { ansn, neighbours: vec![ip(4)] }.emit());
    let with = |m: Message, ttl, hops| Message { ttl, hops, ..m };
    let cases: Vec<(&str, Ipv4Addr, Message)> = vec![
        ("ttl-zero", ip(2), with(tc(1, 1), 0, 0)),
        ("own-message", ip(2), message(message::TC, ip(OWN), 1, vec![0; 4])),
        ("bad-originator", ip(2), message(message::TC, Ipv4Addr::new(224, 0, 0, 1), 1, vec![0; 4])),
        ("bad-originator", ip(2), message(message::TC, Ipv4Addr::new(10, 255, 255, 255), 1, vec![0; 4])),
        ("bad-originator", ip(2), message(message::TC, Ipv4Addr::LOCALHOST, 1, vec![0; 4])),
        ("asymmetric-sender", ip(7), tc(2, 1)),
        ("malformed-message", ip(2), message(message::TC, ip(3), 3, vec![0; 3])),
        ("malformed-message", ip(2), message(message::MID, ip(3), 4, vec![0; 3])),
        ("malformed-message", ip(2), message(message::HNA, ip(3), 5, vec![0; 4])),
        ("malformed-message", ip(2), message(message::HELLO, ip(2), 6, vec![0; 3])),
        ("malformed-message", ip(2), with(message(message::HELLO, ip(2), 6, hello(vec![])), 1, 1)),
        (
            "bad-link-code",
            ip(2),
            message(message::HELLO, ip(2), 7, hello(vec![Block { code: 2, addresses: vec![ip(3)] }])),
        ),
        ("tc-received", ip(2), tc(8, 5)),
        ("duplicate", ip(2), tc(8, 5)),
        ("stale-tc", ip(2), tc(9, 4)),
        ("bad-network", ip(2), message(message::HNA, ip(3), 10, vec![10, 1, 0, 0, 255, 0, 255, 0])),
        ("bad-network", ip(2), message(message::HNA, ip(3), 11, vec![127, 0, 0, 0, 255, 0, 0, 0])),
    ];
    for (n, (reason, from, message)) in cases.into_iter().enumerate() {
        let before = count(&m, reason);
        handle(&mut m, at(0.1), control(from, vec![message]));
        assert_eq!(count(&m, reason), before + 1, "case {n}: {reason}");
    }
    let raw = |bytes: Vec<u8>, from| Input::Control { from, to: ip(OWN), ttl: 1, bytes: Bytes(bytes) };
    handle(&mut m, at(0.2), raw(vec![0, 4, 0, 0], ip(2)));
    handle(&mut m, at(0.2), raw(vec![], ip(OWN)));
    assert_eq!((count(&m, "malformed-packet"), count(&m, "bad-sender")), (1, 1));
}

#[test]
fn no_message_creates_a_route_to_ourselves_or_to_a_non_host() {
    let mut m = with_neighbour();
    let bad =
        [ip(OWN), Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, Ipv4Addr::new(10, 255, 255, 255), Ipv4Addr::LOCALHOST];
    let block = Block::new(LinkType::Symmetric, NeighbourType::Symmetric, bad.to_vec());
    let mut outputs = Vec::new();
    let host = |address: Ipv4Addr| (address, Ipv4Addr::BROADCAST);
    for (kind, body) in [
        (message::HELLO, hello(vec![chosen(), block])),
        (message::TC, Tc { ansn: 1, neighbours: bad.to_vec() }.emit()),
        (message::MID, Mid { interfaces: bad.to_vec() }.emit()),
        (message::HNA, Hna { networks: bad.iter().map(|a| host(*a)).collect() }.emit()),
    ] {
        outputs.extend(handle(&mut m, at(0.1), control(ip(2), vec![message(kind, ip(2), u16::from(kind), body)])));
    }
    while m.next_timeout().is_some_and(|t| t < at(1.0)) {
        let t = m.next_timeout().unwrap();
        m.handle_timeout(t);
        outputs.extend(std::iter::from_fn(|| m.poll_output()));
    }
    assert!(outputs.iter().all(|o| !matches!(o, Output::SetRoute(_))), "{outputs:?}");
}

#[test]
fn a_flood_of_forged_messages_does_not_exceed_the_tables() {
    let mut m = with_neighbour();
    let far = |n: u32| Ipv4Addr::from(0x0b00_0000 + n);
    let mut now = at(1.0);
    // 10,000 messages in a second, each with 20 addresses of no node
    for n in 0..10_000u32 {
        now += Duration::from_micros(100);
        let list: Vec<Ipv4Addr> = (0..20).map(|k| far(n * 20 + k)).collect();
        let (kind, body) = match n % 4 {
            0 => (message::TC, Tc { ansn: 1, neighbours: list }.emit()),
            1 => (message::MID, Mid { interfaces: list }.emit()),
            2 => (message::HNA, Hna { networks: list.iter().map(|a| (*a, Ipv4Addr::BROADCAST)).collect() }.emit()),
            _ => {
                (message::HELLO, hello(vec![chosen(), Block::new(LinkType::Symmetric, NeighbourType::Symmetric, list)]))
            }
        };
        // HELLOs of a new neighbour each time, as the others come over the one link
        let from = if kind == message::HELLO { far(n) } else { ip(2) };
        while m.next_timeout().is_some_and(|t| t <= now) {
            let t = m.next_timeout().unwrap();
            m.handle_timeout(t);
        }
        handle(&mut m, now, control(from, vec![message(kind, far(n), n as u16, body)]));
    }
    let status = m.status(now);
    for reason in ["topology-full", "aliases-full", "networks-full", "links-full"] {
        assert!(status.counters.get(reason) > 100, "{reason}: {:?}", status.counters);
    }
    assert!(status.neighbours.len() <= 512 && status.routes.len() <= 512 + 3 * 16_384);
    // 50 ms between calculations, and one per second more as a margin
    assert!(status.counters.get("routes-calculated") <= 22, "{:?}", status.counters);
}

#[test]
fn replayed_packets_change_nothing() {
    let mut net = chain(4, &Options::with_feedback());
    net.run(at(40.0));
    let old: Vec<Message> = messages(&net)
        .into_iter()
        .filter(|(t, n, m)| *n == 2 && *t < at(10.0) && m.kind != 1)
        .map(|(.., m)| m)
        .collect();
    assert!(!old.is_empty());
    let routes = net.stations[&1].routes.clone();
    for m in old {
        net.input(1, control(ip(2), vec![m]));
    }
    assert_eq!(net.stations[&1].routes, routes);
    net.run(at(45.0));
    check_shortest(&net);
}

/// Shape of the input, neighbour, message type, bytes, milliseconds to wait.
fn any_step() -> impl Strategy<Value = (u8, usize, u8, Vec<u8>, u64)> {
    (0u8..4, 1usize..6, 0u8..6, proptest::collection::vec(any::<u8>(), 0..64), 0u64..4_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Noise in the shape of messages from neighbours, over time: no panic, no deadline left behind, no second
    /// SetRoute.
    #[test]
    fn noise_breaks_no_contract(
        steps in proptest::collection::vec(any_step(), 1..60),
        hysteresis: bool,
    ) {
        let mut m = Olsr::new(node(OWN), Options { hysteresis, held_packets: 3, ..Options::with_feedback() }).unwrap();
        let mut routes = manet_routing::Routes::default();
        let mut now = Instant::ZERO;
        let (mut sequence, mut outputs) = (0u16, Vec::new());
        for (shape, from, kind, mut body, wait) in steps {
            let end = now + Duration::from_millis(wait);
            while let Some(t) = m.next_timeout().filter(|t| *t <= end) {
                m.handle_timeout(t);
                prop_assert!(m.next_timeout().is_none_or(|next| next > t));
                outputs.extend(std::iter::from_fn(|| m.poll_output()));
            }
            now = end;
            sequence += 1;
            // few addresses, so that different messages concern the same ones
            body.chunks_exact_mut(4).skip(1).for_each(|a| a.copy_from_slice(&[10, 0, 0, a[3] % 8]));
            let input = match shape {
                0 => Input::Control { from: ip(from), to: ip(OWN), ttl: 1, bytes: Bytes(body) },
                1 => Input::LinkFailed { neighbour: ip(from), bytes: Bytes(body) },
                2 => {
                    let other = Block { code: kind * 2, addresses: vec![ip(from + 3)] };
                    let body = hello(vec![chosen(), other]);
                    control(ip(from), vec![message(message::HELLO, ip(from), sequence, body)])
                }
                _ => control(ip(from), vec![message(kind, ip(from + 1), sequence, body)]),
            };
            outputs.extend(handle(&mut m, now, input));
        }
        for output in outputs {
            prop_assert!(!follow(&mut routes, &output));
        }
        prop_assert!(routes.iter().all(|r| r.destination != ip(OWN) && r.hops > 0));
        prop_assert_eq!(m.status(now).routes.len(), routes.len());
    }
}
