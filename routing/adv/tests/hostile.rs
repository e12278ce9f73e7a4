//! Hostile input: no crash, bounded memory and answers, every drop counted by reason.

mod air;

use air::{ip, node};
use manet_adv::connections::MAX_CONNECTIONS;
use manet_adv::neighbours::MAX_NEIGHBOURS;
use manet_adv::sequence::Sequence;
use manet_adv::table::MAX_DESTINATIONS;
use manet_adv::wire::{Advert, Body, Init, Message, Response};
use manet_adv::{Adv, Options};
use manet_engine::{Duration, Instant, Timeline};
use manet_routing::trial::{at, packet, One};
use manet_routing::{Bytes, Flow, Input, Output, Protocol, Status, BROADCAST};
use proptest::prelude::*;
use std::net::Ipv4Addr;

fn adv() -> Timeline<Adv> {
    Timeline::new(Adv::new(node(0, 1), Options::default()).unwrap())
}

fn control(from: Ipv4Addr, sender: u32, body: Body) -> Input {
    let bytes = Message { sender: Sequence(sender), body }.emit().into();
    Input::Control { from, to: BROADCAST, ttl: 1, bytes }
}

fn update(adverts: Vec<Advert>) -> Body {
    Body::Update { full: false, restarted: false, adverts }
}

fn entry(destination: Ipv4Addr, hops: u8, sequence: u32, response: Response) -> Advert {
    let (next_hop, signer) = (destination, destination);
    Advert { destination, next_hop, sequence: Sequence(sequence), signer, hops, receiver: true, response }
}

fn init(source: Ipv4Addr, id: u32, wanted: Ipv4Addr) -> Body {
    Body::Init(Init { source, sequence: Sequence(2), hops: 1, id, wanted, known: None, destination_only: false })
}

fn status(line: &Timeline<Adv>) -> Status {
    line.machine().status(line.now())
}

#[test]
fn ten_thousand_updates_per_second_are_counted_and_cause_two_per_second() {
    let mut line = adv();
    let mut sent = 0;
    let mut put = |_: Instant, o: Output| sent += usize::from(matches!(o, Output::Control { .. }));
    for i in 0..10_000u32 {
        // each asks for us with a new number, forges a new sender and new destinations
        let from = Ipv4Addr::from(0x0a02_0000 + i);
        let mut adverts = vec![entry(from, 0, 2 * i, Response::None), entry(ip(0), 255, 2 * i + 1, Response::High)];
        adverts.extend((0..20).map(|k| entry((0x0a03_0000 + i * 20 + k).into(), k as u8, i * (k % 3), Response::High)));
        let now = at(5.0) + Duration::from_micros(100) * u64::from(i);
        line.input(now, control(from, 2 * i, update(adverts)), &mut put);
    }
    line.run_until(at(6.0), &mut put);
    let s = status(&line);
    assert_eq!(s.counters.get("updates-heard") + s.counters.get("neighbours-full"), 10_000);
    assert_eq!((s.neighbours.len(), s.routes.len()), (MAX_NEIGHBOURS, MAX_DESTINATIONS));
    assert!(s.counters.get("table-full") > 0 && s.counters.get("bad-hops") > 0);
    // at 5, 5.5 and perhaps 6 s, each of 13 parts (1024 entries at 80 per datagram)
    assert!((1..=3 * 13).contains(&sent), "{sent}");
}

#[test]
fn a_thousand_floods_are_forwarded_or_answered_fifty_times_a_second() {
    for wanted in [ip(0), ip(9)] {
        let mut line = adv();
        let mut sent = 0;
        let mut put = |_: Instant, o: Output| sent += usize::from(matches!(o, Output::Control { .. }));
        for i in 0..1000 {
            let body = init(Ipv4Addr::from(0x0a03_0000 + i), i, wanted);
            line.input(at(5.0) + Duration::from_micros(100) * u64::from(i), control(ip(1), 2, body), &mut put);
        }
        line.run_until(at(5.9), &mut put);
        assert_eq!(status(&line).counters.get("flood-limited"), 1000 - 50);
        assert_eq!(sent, 50);
    }
}

#[test]
fn forged_sources_that_ask_for_us_do_not_fill_the_memory() {
    let mut line = adv();
    for i in 0..5000 {
        let body = init(Ipv4Addr::from(0x0a03_0000 + i), i, ip(0));
        line.input(at(5.0), control(ip(1), 2, body), &mut |_, _| {});
    }
    let s = status(&line);
    assert_eq!(s.details["connections"].as_array().unwrap().len(), MAX_CONNECTIONS);
    assert_eq!(s.routes.len(), MAX_DESTINATIONS);
}

#[test]
fn a_table_full_of_forged_receivers_is_usable_again_when_their_neighbour_is_lost() {
    let mut line = adv();
    let lies = (0..2000).map(|i| entry((0x0a03_0001 + i).into(), 2, 2, Response::None));
    let all: Vec<Advert> = std::iter::once(entry(ip(1), 0, 2, Response::None)).chain(lies).collect();
    line.input(at(5.0), control(ip(1), 2, update(all)), &mut |_, _| {});
    assert_eq!(status(&line).routes.len(), MAX_DESTINATIONS);
    line.input(at(6.0), Input::LinkFailed { neighbour: ip(1), bytes: Bytes::default() }, &mut |_, _| {});
    let mut set = 0;
    let honest = update(vec![entry(ip(2), 0, 2, Response::None)]);
    line.input(at(7.0), control(ip(2), 2, honest), &mut |_, o| set += usize::from(matches!(o, Output::SetRoute(_))));
    assert_eq!((set, status(&line).routes.len()), (1, MAX_DESTINATIONS));
}

#[test]
fn numbers_at_the_wrap_do_no_harm() {
    let mut line = adv();
    let asks = |n| update(vec![entry(ip(1), 0, 2, Response::None), entry(ip(0), 255, n, Response::High)]);
    for (s, asked, answered) in [(5.0, 0x7fff_ffff, 0x8000_0000u32), (7.0, u32::MAX, 0)] {
        line.input(at(s), control(ip(1), 2, asks(asked)), &mut |_, _| {});
        line.run_until(at(s + 1.0), &mut |_, _| {});
        assert_eq!(status(&line).sequence, Some(answered));
    }
}

#[test]
fn packets_to_many_destinations_do_not_exceed_the_buffer() {
    let mut line = adv();
    let mut given_up = 0;
    for i in 0..1000 {
        line.input(at(5.0), Input::Packet { bytes: packet(ip(0), ip(10 + i)) }, &mut |_, o| {
            given_up += usize::from(matches!(o, Output::Unreachable { .. }));
        });
    }
    assert_eq!((status(&line).held, given_up), (64, 1000 - 64));
}

#[derive(Clone, Debug)]
enum Step {
    Update(u8, u32, Vec<(u8, u8, u8, u32, u8, bool, u8)>),
    Init(u8, u8, u32, u8, u32, u8, Option<(u32, u8)>, bool),
    Alert(u8, u8, u32, u8, bool),
    End(u8, u8, u32, u8),
    Noise(u8, Vec<u8>),
    Failed(u8),
    Packet(u8, u8),
    Used(u8, u8),
    Purged(Vec<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    let number = || prop_oneof![0u32..8, any::<u32>()];
    let hops = || prop_oneof![0u8..5, any::<u8>()];
    let address = || 0u8..10;
    let entry = (address(), address(), address(), number(), hops(), any::<bool>(), 0u8..4);
    let known = proptest::option::of((number(), hops()));
    prop_oneof![
        4 => (address(), number(), proptest::collection::vec(entry, 1..8)).prop_map(|(f, n, e)| Step::Update(f, n, e)),
        3 => (address(), address(), number(), hops(), any::<u32>(), address(), known, any::<bool>())
            .prop_map(|(f, s, n, h, i, w, k, o)| Step::Init(f, s, n, h, i, w, k, o)),
        2 => (address(), address(), number(), hops(), any::<bool>()).prop_map(|(f, d, n, h, r)| Step::Alert(f, d, n, h, r)),
        1 => (address(), address(), any::<u32>(), address()).prop_map(|(f, s, i, d)| Step::End(f, s, i, d)),
        1 => (any::<u8>(), proptest::collection::vec(any::<u8>(), 0..60)).prop_map(|(f, b)| Step::Noise(f, b)),
        1 => address().prop_map(Step::Failed),
        2 => (address(), address()).prop_map(|(s, d)| Step::Packet(s, d)),
        2 => (address(), address()).prop_map(|(s, d)| Step::Used(s, d)),
        1 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(Step::Purged),
    ]
}

fn address(i: u8) -> Ipv4Addr {
    ip(usize::from(i))
}

fn input(step: Step) -> Input {
    match step {
        Step::Update(from, sender, entries) => {
            let advert = |e: &(u8, u8, u8, u32, u8, bool, u8)| Advert {
                destination: address(e.0),
                next_hop: address(e.1),
                signer: address(e.2 % 3 * 5),
                sequence: Sequence(e.3),
                hops: e.4,
                receiver: e.5,
                response: [Response::None, Response::Low, Response::Medium, Response::High][usize::from(e.6)],
            };
            control(address(from), sender, update(entries.iter().map(advert).collect()))
        }
        Step::Init(from, source, n, hops, id, wanted, known, destination_only) => {
            let known = known.map(|(n, hops)| (Sequence(n), hops));
            let (source, wanted, sequence) = (address(source), address(wanted), Sequence(n));
            let init = Init { source, sequence, hops, id, wanted, known, destination_only };
            control(address(from), n, Body::Init(init))
        }
        Step::Alert(from, destination, n, hops, receiver) => {
            let (destination, sequence) = (address(destination), Sequence(n));
            control(address(from), n, Body::Alert { receiver, destination, sequence, hops })
        }
        Step::End(from, source, id, destination) => {
            control(address(from), id, Body::End { source: address(source), id, destination: address(destination) })
        }
        Step::Noise(from, bytes) => {
            Input::Control { from: Ipv4Addr::new(from, 0, 0, from), to: BROADCAST, ttl: 1, bytes: bytes.into() }
        }
        Step::Failed(n) => Input::LinkFailed { neighbour: address(n), bytes: Bytes::default() },
        Step::Packet(s, d) => Input::Packet { bytes: packet(address(s), address(d)) },
        Step::Used(s, d) => {
            Input::Used { flows: vec![Flow { source: address(s), destination: address(d), packets: 3 }] }
        }
        Step::Purged(bytes) => Input::Purged { neighbour: ip(1), packets: vec![bytes.into()] },
    }
}

proptest! {
    /// The host's table equals the machine's status for any input; and no deadline is left behind (Timeline).
    #[test]
    fn the_kernel_has_the_usable_routes_of_the_table(
        steps in proptest::collection::vec((step(), 0u64..4000), 1..60), hellos: bool,
    ) {
        let json = format!(r#"{{"link":"{}"}}"#, if hellos { "hello" } else { "feedback" });
        let mut one = One::<Adv>::new(node(0, 1), serde_json::from_str(&json).unwrap());
        for (step, pause_ms) in steps {
            one.after(Duration::from_millis(pause_ms), input(step));
        }
        let s = one.status();
        let usable: Vec<(Ipv4Addr, Ipv4Addr)> =
            s.routes.iter().filter(|r| r.state != "broken").map(|r| (r.destination, r.via)).collect();
        let installed: Vec<(Ipv4Addr, Ipv4Addr)> = one.routes.iter().map(|r| (r.destination, r.via)).collect();
        prop_assert_eq!(usable, installed);
        prop_assert!(!s.routes.iter().any(|r| r.destination == ip(0)), "no route to ourselves");
        prop_assert!(s.held <= 64);
    }
}
