//! Any sequence of packets, failures and data: nothing panics, no deadline is left behind, the kernel's routes are those of the
//! status, no packet is longer than the MTU, no table exceeds its bound.

use manet_engine::{Duration, Timeline};
use manet_routing::trial::{self, fits, ip, packet, One};
use manet_routing::{Bytes, Input, Node, Output, Protocol, BROADCAST};
use manet_tora::height::{Height, Level};
use manet_tora::machine::MAX_DESTINATIONS;
use manet_tora::neighbours::MAX_NEIGHBOURS;
use manet_tora::wire::{Ack, Block, Body, Heard, Message, Packet, Response};
use manet_tora::{Link, Options, Tora};
use proptest::collection::vec;
use proptest::prelude::*;
use std::net::Ipv4Addr;

const MTU: u16 = manet_routing::MIN_MTU;

fn station(number: u8) -> Ipv4Addr {
    ip(usize::from(number))
}

fn node() -> Node {
    Node { mtu: MTU, notices: true, ..trial::node(1) }
}

fn data(source: u8, destination: u8) -> Bytes {
    packet(station(source), station(destination))
}

/// A message of few destinations, levels and nodes, so that the rules of maintenance meet.
fn message(from: u8) -> impl Strategy<Value = Message> {
    (7..10u8, 0..4, 0..4u64, 1..4u8, any::<bool>(), -3..4i32).prop_map(
        move |(destination, kind, tau, oid, reflected, delta)| {
            let level = Level { tau, oid: station(oid), reflected: reflected || kind == 3 };
            let body = match kind {
                0 => Body::Query,
                1 => Body::Update(None),
                2 => Body::Update(Some(Height { level, delta, id: station(from) })),
                _ => Body::Clear(level),
            };
            Message { destination: station(destination), body }
        },
    )
}

/// An event of one of four neighbours; `packets` counts its blocks.
fn input() -> impl Strategy<Value = Input> {
    (2..6u8).prop_flat_map(|from| {
        let control = move |packet: Packet| Input::Control {
            from: station(from),
            to: BROADCAST,
            ttl: 1,
            bytes: packet.emit().into(),
        };
        let peer = move |echo| Heard { address: station(1), number: u16::from(from), echo };
        let hello =
            (0..9u16).prop_map(move |echo| control(Packet { hello: Some(vec![peer(echo)]), ..Packet::default() }));
        let block = (1..9u16, 0..4u16, vec(message(from), 1..4)).prop_map(move |(echo, sequence, messages)| {
            let responses = vec![Response { peer: peer(echo), first: 0 }];
            control(Packet { block: Some(Block { sequence, responses, messages }), ..Packet::default() })
        });
        let ack = (1..9u16, 0..9u16).prop_map(move |(number, sequence)| {
            control(Packet { acks: vec![Ack { address: station(1), number, sequence }], ..Packet::default() })
        });
        let noise = vec(any::<u8>(), 0..60).prop_map(move |bytes| Input::Control {
            from: station(from),
            to: BROADCAST,
            ttl: 1,
            bytes: bytes.into(),
        });
        let packet =
            (1..6u8, 1..11u8).prop_map(|(source, destination)| Input::Packet { bytes: data(source, destination) });
        let failed = (7..10u8).prop_map(move |to| Input::LinkFailed { neighbour: station(from), bytes: data(1, to) });
        prop_oneof![4 => hello, 8 => block, 4 => ack, 1 => noise, 3 => packet, 1 => failed]
    })
}

proptest! {
    #[test]
    fn any_sequence_of_inputs_keeps_the_kernel_and_the_bounds(
        steps in vec((0..400u64, input()), 1..120),
        feedback in any::<bool>(),
        careful in any::<bool>(),
    ) {
        let link = if feedback { Link::Feedback } else { Link::Hello };
        let options = Options { link, await_acknowledgement: careful, announce_heights: !careful, ..Options::default() };
        let mut one = One::<Tora>::new(node(), options);
        for (wait_ms, input) in steps {
            for output in one.after(Duration::from_millis(wait_ms), input) {
                assert!(fits(&output, MTU));
                if let Output::Control { bytes, .. } = output {
                    Packet::parse(&bytes).expect("our own packets parse");
                }
            }
            let (status, kernel) = (one.status(), &one.routes);
            let used: Vec<_> = status.routes.iter().filter(|r| r.state != "required").collect();
            // a route may wait for an acknowledgement before the kernel has it
            prop_assert!(kernel.iter().all(|k| k.via != station(1)));
            prop_assert!(kernel.iter().all(|k| used.iter().any(|r| r.destination == k.destination)));
            prop_assert!(careful || kernel.iter().count() == used.len());
            let up = |via| status.neighbours.iter().any(|n| n.address == via && n.state == "symmetric");
            prop_assert!(kernel.iter().all(|route| up(route.via)), "{:?}", kernel);
            prop_assert!(status.routes.len() <= MAX_DESTINATIONS && status.neighbours.len() <= MAX_NEIGHBOURS);
            prop_assert!(status.held <= 64);
        }
    }
}

#[test]
fn forged_senders_and_destinations_fill_no_table() {
    let mut line = Timeline::new(Tora::new(Node { mtu: 1500, ..node() }, Options::default()).unwrap());
    let mut put = |_, _: Output| {};
    let forged = |n: u32| Ipv4Addr::from(0x0a01_0000 + n);
    for n in 0..3000 {
        let bytes = Packet { hello: Some(Vec::new()), ..Packet::default() }.emit().into();
        line.input(line.now(), Input::Control { from: forged(n), to: BROADCAST, ttl: 1, bytes }, &mut put);
    }
    assert_eq!(line.machine().status(line.now()).neighbours.len(), MAX_NEIGHBOURS);
    let peer = |echo| Heard { address: station(1), number: 7, echo };
    let at = line.now() + Duration::from_secs(4);
    // the number after those of the forged neighbours
    let echo = MAX_NEIGHBOURS as u16 + 1;
    let bytes = Packet { hello: Some(vec![peer(echo)]), ..Packet::default() }.emit().into();
    line.input(at, Input::Control { from: station(2), to: BROADCAST, ttl: 1, bytes }, &mut put);
    for sequence in 0..100 {
        let query = |n| Message { destination: forged(u32::from(sequence) * 40 + n), body: Body::Query };
        let responses = vec![Response { peer: peer(echo), first: 0 }];
        let block = Block { sequence, responses, messages: (0..40).map(query).collect() };
        let bytes = Packet { block: Some(block), ..Packet::default() }.emit().into();
        line.input(at, Input::Control { from: station(2), to: BROADCAST, ttl: 1, bytes }, &mut put);
    }
    let status = line.machine().status(at);
    assert_eq!(status.routes.len(), MAX_DESTINATIONS - 1, "one is the neighbour itself");
    assert!(status.counters.get("destinations-full") > 0);
}
