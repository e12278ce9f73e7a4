//! Hostile input: no crash, bounded memory and answers, every drop counted by reason.

mod air;

use air::{ip, node};
use manet_dsdv::neighbours::MAX_NEIGHBOURS;
use manet_dsdv::sequence::Sequence;
use manet_dsdv::table::MAX_DESTINATIONS;
use manet_dsdv::wire::{self, Advert};
use manet_dsdv::{Dsdv, Options};
use manet_engine::{Duration, Instant, Timeline};
use manet_routing::trial::{at, packet, One};
use manet_routing::{Bytes, Input, Output, Protocol, Status, BROADCAST};
use proptest::prelude::*;
use std::net::Ipv4Addr;

fn dsdv() -> Timeline<Dsdv> {
    Timeline::new(Dsdv::new(node(0, 1), Options::with_feedback()).unwrap())
}

fn control(from: Ipv4Addr, adverts: &[Advert]) -> Input {
    Input::Control { from, to: BROADCAST, ttl: 1, bytes: wire::emit(adverts).into() }
}

fn status(line: &Timeline<Dsdv>) -> Status {
    line.machine().status(line.now())
}

#[test]
fn ten_thousand_updates_per_second_are_counted_and_cause_at_most_one_per_second() {
    let mut line = dsdv();
    let mut sent = 0;
    let mut put = |_: Instant, o: Output| sent += usize::from(matches!(o, Output::Control { .. }));
    line.run_until(at(5.0), &mut put);
    for i in 0..10_000u32 {
        // each declares us lost, forges a new sender, new destinations and a hundred more
        let from = Ipv4Addr::from(0x0a02_0000 + i);
        let mut adverts = vec![Advert { destination: ip(0), hops: 1, sequence: Sequence(2 * i + 1) }];
        adverts.push(Advert { destination: from, hops: 1, sequence: Sequence(2 * i) });
        adverts.extend((0..20).map(|k| Advert {
            destination: Ipv4Addr::from(0x0a03_0000 + i * 20 + k),
            hops: k,
            sequence: Sequence(i * (k % 3)),
        }));
        line.input(at(5.0) + Duration::from_micros(100) * u64::from(i), control(from, &adverts), &mut put);
    }
    line.run_until(at(6.0), &mut put);
    let s = status(&line);
    assert_eq!(s.counters.get("updates-heard") + s.counters.get("neighbours-full"), 10_000);
    assert_eq!((s.neighbours.len(), s.routes.len()), (MAX_NEIGHBOURS, MAX_DESTINATIONS));
    assert!(s.counters.get("table-full") > 0 && s.counters.get("bad-hops") > 0);
    assert!(s.counters.get("declared-lost") > 0);
    // the start's, and two in this second of 9 parts each ((1024 + 8) entries at 121 per datagram)
    assert!(sent <= 1 + 2 * 9, "{sent}");
}

#[test]
fn a_table_full_of_forged_routes_is_usable_again_when_the_attacker_is_silent() {
    let mut line = dsdv();
    let lies = |i: u32| Advert { destination: Ipv4Addr::from(0x0a03_0001 + i), hops: 2, sequence: Sequence(2) };
    let all: Vec<Advert> = (0..2000).map(lies).collect();
    line.input(at(5.0), control(ip(1), &all), &mut |_, _| {});
    assert_eq!(status(&line).routes.len(), MAX_DESTINATIONS);
    line.run_until(at(50.0), &mut |_, _| {}); // 5 + 3 x 15 s
    let mut set = 0;
    let honest = Advert { destination: ip(2), hops: 1, sequence: Sequence(2) };
    line.input(at(51.0), control(ip(2), &[honest]), &mut |_, o| set += usize::from(matches!(o, Output::SetRoute(_))));
    assert_eq!((set, status(&line).routes.len()), (1, MAX_DESTINATIONS));
}

#[test]
fn forged_senders_and_destinations_are_refused_by_reason() {
    let mut line = dsdv();
    line.run_until(at(5.0), &mut |_, _| {});
    let entry = |destination: Ipv4Addr| Advert { destination, hops: 2, sequence: Sequence(2) };
    let mut hear = |from: Ipv4Addr, adverts: &[Advert]| {
        line.input(at(5.0), control(from, adverts), &mut |_, o| panic!("{o:?}"));
    };
    hear(ip(0), &[entry(ip(5))]);
    for from in ["192.0.2.1", "0.0.0.0", "255.255.255.255", "10.255.255.255", "10.0.0.0", "224.0.0.1"] {
        hear(from.parse().unwrap(), &[entry(ip(5))]);
    }
    for destination in ["192.0.2.1", "0.0.0.0", "255.255.255.255", "10.255.255.255", "10.0.0.0", "127.0.0.1"] {
        hear(ip(1), &[entry(destination.parse().unwrap())]);
    }
    let c = status(&line).counters;
    assert_eq!((c.get("own-address"), c.get("foreign-source"), c.get("bad-destination")), (1, 6, 6));
}

#[test]
fn numbers_at_the_wrap_do_no_harm() {
    let mut line = dsdv();
    line.run_until(at(5.0), &mut |_, _| {});
    let lost = |n| [Advert { destination: ip(0), hops: 1, sequence: Sequence(n) }];
    line.input(at(5.0), control(ip(1), &lost(0x7fff_ffff)), &mut |_, _| {});
    line.run_until(at(7.0), &mut |_, _| {});
    assert_eq!(status(&line).sequence, Some(0x8000_0000));
    line.input(at(7.0), control(ip(1), &lost(u32::MAX)), &mut |_, _| {});
    line.run_until(at(9.0), &mut |_, _| {});
    assert_eq!(status(&line).sequence, Some(0));
}

#[test]
fn a_datagram_of_the_largest_size_and_one_of_no_whole_entry() {
    let mut line = dsdv();
    let all: Vec<Advert> = (0..5458)
        .map(|i| Advert { destination: Ipv4Addr::from(0x0a03_0001 + i), hops: 2, sequence: Sequence(2) })
        .collect();
    line.input(at(5.0), control(ip(1), &all), &mut |_, _| {});
    assert_eq!(status(&line).counters.get("table-full"), 5458 - MAX_DESTINATIONS as u64);
    for len in [0, 1, 11, 13] {
        let bytes = vec![0; len].into();
        line.input(at(5.0), Input::Control { from: ip(1), to: BROADCAST, ttl: 1, bytes }, &mut |_, o| panic!("{o:?}"));
    }
    assert_eq!(status(&line).counters.get("malformed"), 4);
}

#[test]
fn packets_to_many_destinations_do_not_exceed_the_buffer() {
    let mut line = dsdv();
    let mut given_up = 0;
    for i in 0..1000 {
        let bytes = packet(ip(0), ip(10 + i));
        line.input(at(5.0), Input::Packet { bytes }, &mut |_, o| {
            given_up += usize::from(matches!(o, Output::Unreachable { .. }));
        });
    }
    assert_eq!((status(&line).held, given_up), (64, 1000 - 64));
}

#[derive(Clone, Debug)]
enum Step {
    Hear(u8, Vec<(u8, u32, u32)>),
    Noise(u8, Vec<u8>),
    Failed(u8),
    Packet(u8, u8),
    Purged(Vec<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    let sequence = prop_oneof![0u32..8, any::<u32>()];
    let entry = (0u8..12, prop_oneof![0u32..5, any::<u32>()], sequence);
    prop_oneof![
        4 => (0u8..6, proptest::collection::vec(entry, 1..8)).prop_map(|(f, e)| Step::Hear(f, e)),
        1 => (any::<u8>(), proptest::collection::vec(any::<u8>(), 0..60)).prop_map(|(f, b)| Step::Noise(f, b)),
        1 => (0u8..6).prop_map(Step::Failed),
        2 => (0u8..12, 0u8..12).prop_map(|(s, d)| Step::Packet(s, d)),
        1 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(Step::Purged),
    ]
}

proptest! {
    /// The host's table equals the machine's status for any input; and no deadline is left behind (Timeline).
    #[test]
    fn the_kernel_has_the_usable_routes_of_the_table(steps in proptest::collection::vec((step(), 0u64..4000), 1..60), check: bool) {
        let options = Options { bidirectional_check: check, ..Options::with_feedback() };
        let mut one = One::<Dsdv>::new(node(0, 1), options);
        for (step, pause_ms) in steps {
            let address = |i: u8| ip(usize::from(i));
            let input = match step {
                Step::Hear(from, entries) => {
                    let adverts: Vec<Advert> = entries
                        .iter()
                        .map(|(d, hops, n)| Advert { destination: address(*d), hops: *hops, sequence: Sequence(*n) })
                        .collect();
                    control(address(from), &adverts)
                }
                Step::Noise(from, bytes) => {
                    Input::Control { from: Ipv4Addr::new(from, 0, 0, from), to: BROADCAST, ttl: 1, bytes: bytes.into() }
                }
                Step::Failed(n) => Input::LinkFailed { neighbour: address(n), bytes: Bytes::default() },
                Step::Packet(s, d) => Input::Packet { bytes: packet(address(s), address(d)) },
                Step::Purged(bytes) => Input::Purged { neighbour: ip(1), packets: vec![bytes.into()] },
            };
            one.after(Duration::from_millis(pause_ms), input);
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
