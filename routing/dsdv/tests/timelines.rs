//! One node: inputs at given times, and its outputs.

mod air;

use air::{ip, node};
use manet_dsdv::sequence::Sequence;
use manet_dsdv::wire::{self, Advert};
use manet_dsdv::{Dsdv, Options};
use manet_engine::{Duration, Instant};
use manet_routing::trial::{self, at, packet};
use manet_routing::{Bytes, Input, Node, Output, Protocol, Route, BROADCAST};

const US: usize = 0;
const P: usize = 1;
const Q: usize = 2;
const D: usize = 8;

type One = trial::One<Dsdv>;

fn usual() -> One {
    One::new(node(US, 1), Options::with_feedback())
}

/// An update of `from`: entries of destination, hops for us, number.
fn receive(one: &mut One, s: f64, from: usize, entries: &[(usize, u32, u32)]) -> Vec<Output> {
    let adverts: Vec<Advert> = entries.iter().map(|(d, hops, n)| advert(*d, *hops, *n)).collect();
    let bytes = wire::emit(&adverts).into();
    one.input(at(s), Input::Control { from: ip(from), to: BROADCAST, ttl: 1, bytes })
}

fn advert(destination: usize, hops: u32, sequence: u32) -> Advert {
    Advert { destination: ip(destination), hops, sequence: Sequence(sequence) }
}

fn updates(out: &[(Instant, Output)]) -> Vec<(Instant, Vec<Advert>)> {
    let read = |o: &Output| match o {
        Output::Control { to: BROADCAST, ttl: 1, bytes } => Some(wire::parse(bytes).unwrap()),
        _ => None,
    };
    out.iter().filter_map(|(t, o)| read(o).map(|u| (*t, u))).collect()
}

fn set(destination: usize, via: usize, hops: u8) -> Output {
    Output::SetRoute(Route::host(ip(destination), ip(via), hops))
}

fn clear(destination: usize) -> Output {
    Output::ClearRoute { destination: ip(destination), prefix: 32 }
}

fn no_route(destination: usize, bytes: &Bytes) -> Vec<Output> {
    vec![Output::note("no-route", ip(destination), 1), Output::Unreachable { bytes: bytes.clone() }]
}

#[test]
fn full_updates_come_within_2_s_of_the_start_and_then_every_11_25_to_15_s() {
    let out = usual().until(at(600.0));
    let times: Vec<f64> = updates(&out).iter().map(|(t, _)| t.as_secs_f64()).collect();
    assert!(times[0] <= 2.01, "{times:?}");
    // planned every 15 x (0.75 to 1) s, sent up to 10 ms later
    assert!(times.windows(2).all(|w| (11.24..=15.01).contains(&(w[1] - w[0]))), "{times:?}");
    let numbers: Vec<u32> = updates(&out).iter().map(|(_, u)| u[0].sequence.0).collect();
    assert_eq!(numbers, (1..=times.len() as u32).map(|i| 2 * i).collect::<Vec<_>>());
    assert_eq!(updates(&out)[0].1, [advert(US, 1, 2)]);
}

#[test]
fn a_route_is_used_at_once_and_advertised_when_it_has_settled() {
    let mut one = usual();
    assert_eq!(receive(&mut one, 3.0, P, &[(P, 1, 10), (D, 3, 100)]), [set(P, P, 1), set(D, P, 3)]);
    let sent = |u: &Vec<Advert>| u.contains(&advert(D, 4, 100));
    let out = one.until(at(40.0));
    let first = updates(&out).into_iter().find(|(_, u)| sent(u)).unwrap().0;
    // 3 + 2 x 6, then the jitter of 10 ms if no other update was sent in the second before
    assert!(first >= at(15.0) && first <= at(16.02), "{first:?}");
}

#[test]
fn the_kernel_is_updated_only_when_its_route_changes() {
    let mut one = usual();
    receive(&mut one, 3.0, P, &[(P, 1, 10), (D, 3, 100)]);
    assert_eq!(receive(&mut one, 4.0, P, &[(P, 1, 12), (D, 3, 102)]), []);
    assert_eq!(receive(&mut one, 5.0, P, &[(P, 1, 12), (D, 5, 104)]), [], "more hops over the same neighbour");
    assert_eq!(receive(&mut one, 6.0, Q, &[(Q, 1, 2), (D, 4, 104)]), [set(Q, Q, 1), set(D, Q, 4)]);
    assert_eq!(receive(&mut one, 7.0, Q, &[(D, 9, 105)]), [clear(D)]);
    assert_eq!(receive(&mut one, 8.0, P, &[(D, 9, 105)]), []);
}

#[test]
fn triggered_updates_keep_a_second_apart() {
    let mut one = usual();
    let mut out = Vec::new();
    for i in 0..200u32 {
        // D is lost and found every 50 ms: each change is to be advertised at once
        let t = 3.0 + f64::from(i) * 0.05;
        out.extend(one.until(at(t)));
        receive(&mut one, t, P, &[(D, 3, 100 + i)]);
    }
    out.extend(one.until(at(20.0)));
    let times: Vec<f64> = updates(&out).iter().map(|(t, _)| t.as_secs_f64()).collect();
    assert!((10..=16).contains(&times.len()), "{times:?}");
    // a full update keeps no interval, and the last one may have had more jitter
    let close = times.windows(2).filter(|w| w[1] - w[0] < 1.0).count();
    assert!(close <= 2, "{times:?}");
}

#[test]
fn many_changes_cause_a_full_update_and_few_do_not() {
    // 12 destinations and us: a third of 13 is 4.33
    for (lost, full) in [(3, false), (4, false), (5, true)] {
        let mut one = usual();
        let all: Vec<_> = (0..12).map(|d| (20 + d, 3, 100)).collect();
        receive(&mut one, 3.0, P, &all);
        one.until(at(43.0));
        let before = one.status().sequence.unwrap();
        let some: Vec<_> = (0..lost).map(|d| (20 + d, 3, 101)).collect();
        // at a time when no full update is due: the time of the next is known
        let next = one.status().details["next_full_s"].as_f64().unwrap();
        let t = if next < 3.0 { 43.0 + next + 2.0 } else { 43.0 };
        one.until(at(t));
        let before = before.max(one.status().sequence.unwrap());
        receive(&mut one, t, P, &some);
        let sent = updates(&one.until(at(t + 1.02)));
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0].1.len(), if full { 13 } else { lost + 1 });
        assert_eq!(one.status().sequence.unwrap() - before, if full { 2 } else { 0 });
    }
}

#[test]
fn a_failed_link_removes_its_routes_purges_the_queue_and_is_advertised_at_once() {
    let mut one = usual();
    receive(&mut one, 3.0, P, &[(P, 1, 10), (D, 3, 100)]);
    receive(&mut one, 3.0, Q, &[(Q, 1, 4)]);
    one.until(at(30.0));
    let out = one.input(at(30.0), Input::LinkFailed { neighbour: ip(P), bytes: Bytes::default() });
    let broken = Output::note("link-broken", ip(P), 1);
    assert_eq!(out, [clear(P), clear(D), broken, Output::Purge { neighbour: ip(P) }]);
    let sent = updates(&one.until(at(31.02)));
    assert!(sent[0].1.contains(&advert(P, 250, 11)) && sent[0].1.contains(&advert(D, 250, 101)), "{sent:?}");
    assert_eq!(one.input(at(32.0), Input::LinkFailed { neighbour: ip(P), bytes: Bytes::default() }), []);
}

#[test]
fn feedback_is_ignored_unless_the_options_select_it() {
    let hello = Options { link: manet_dsdv::options::Link::Hello, ..Options::with_feedback() };
    for (node, options) in [(node(US, 1), hello), (Node { feedback: false, ..node(US, 1) }, Options::with_feedback())] {
        let mut one = One::new(node, options);
        receive(&mut one, 3.0, P, &[(P, 1, 10)]);
        assert_eq!(one.input(at(4.0), Input::LinkFailed { neighbour: ip(P), bytes: Bytes::default() }), []);
        assert_eq!(one.count("feedback-ignored"), 1);
    }
}

#[test]
fn a_neighbour_is_lost_45_s_after_its_last_update() {
    let mut one = usual();
    receive(&mut one, 3.0, P, &[(P, 1, 10), (D, 3, 100)]);
    receive(&mut one, 10.0, P, &[(P, 1, 10)]);
    let gone = |out: &[(Instant, Output)]| out.iter().any(|(_, o)| *o == clear(D));
    assert!(!gone(&one.until(at(54.999))));
    let out = one.until(at(55.0));
    assert!(gone(&out) && out.contains(&(at(55.0), Output::note("link-broken", ip(P), 2))));
}

#[test]
fn a_node_declared_lost_answers_with_a_newer_number_at_once() {
    let mut one = usual();
    one.until(at(5.0));
    assert_eq!(one.status().sequence.unwrap(), 2);
    receive(&mut one, 5.0, P, &[(P, 1, 10), (US, 3, 3)]);
    let sent = updates(&one.until(at(5.02)));
    assert_eq!(sent[0].1[0], advert(US, 1, 4));
    // repeatedly declared lost: one answer per second
    for i in 0..1000 {
        receive(&mut one, 5.02 + f64::from(i) * 0.001, P, &[(US, 3, 3)]);
    }
    one.until(at(6.1));
    assert_eq!(one.status().sequence.unwrap(), 6);
}

#[test]
fn a_restarted_node_starts_at_once_and_learns_its_number() {
    let mut one = One::new(Node { restarted: true, ..node(US, 1) }, Options::with_feedback());
    assert_eq!(updates(&one.until(at(0.01)))[0].1, [advert(US, 1, 2)]);
    receive(&mut one, 0.5, P, &[(P, 1, 10), (US, 2, 500)]);
    let sent = updates(&one.until(at(1.03)));
    assert_eq!(sent[0].1[0], advert(US, 1, 502));
    assert_eq!(one.count("own-number-learnt"), 1);
    receive(&mut one, 2.0, P, &[(US, 2, 498)]);
    assert_eq!(one.status().sequence.unwrap(), 502, "an older number teaches nothing");
}

#[test]
fn a_neighbour_with_an_older_number_has_lost_its_routes() {
    let mut one = usual();
    receive(&mut one, 3.0, P, &[(P, 1, 500), (D, 3, 100)]);
    one.until(at(20.0));
    assert_eq!(receive(&mut one, 20.0, P, &[(P, 1, 2)]), [clear(P), clear(D)]);
    // it gets the number that it must exceed
    let sent = updates(&one.until(at(21.02)));
    assert!(sent[0].1.contains(&advert(P, 250, 501)), "{sent:?}");
    assert_eq!(receive(&mut one, 22.0, P, &[(P, 1, 502), (D, 3, 102)]), [set(P, P, 1), set(D, P, 3)]);
}

#[test]
fn a_neighbour_that_lost_a_destination_we_reach_is_informed_at_once() {
    let mut one = usual();
    receive(&mut one, 3.0, P, &[(P, 1, 10), (D, 3, 100)]);
    receive(&mut one, 4.0, Q, &[(Q, 1, 4), (D, 9, 99)]);
    let sent = updates(&one.until(at(5.1)));
    assert!(sent[0].1.contains(&advert(D, 4, 100)), "{sent:?}");
}

#[test]
fn the_routes_over_a_neighbour_that_ends_are_removed() {
    let mut one = usual();
    receive(&mut one, 3.0, P, &[(P, 1, 10), (D, 3, 100)]);
    assert_eq!(receive(&mut one, 4.0, P, &[(P, 250, 11)]), [clear(P), clear(D)]);
    assert!(one.status().neighbours.is_empty());
}

#[test]
fn stop_sends_a_farewell_and_nothing_afterwards() {
    let mut one = usual();
    one.until(at(5.0));
    let bytes = wire::emit(&[advert(US, 250, 3)]).into();
    assert_eq!(one.input(at(5.0), Input::Stop), [Output::Control { to: BROADCAST, ttl: 1, bytes }]);
    receive(&mut one, 6.0, P, &[(P, 1, 10)]);
    assert_eq!(one.until(at(100.0)), []);
}

#[test]
fn own_packets_wait_for_a_route_five_per_destination() {
    let mut one = usual();
    let p = |n: usize| packet(ip(US), ip(n));
    for _ in 0..5 {
        assert_eq!(one.input(at(3.0), Input::Packet { bytes: p(D) }), []);
    }
    assert_eq!(one.input(at(3.0), Input::Packet { bytes: p(D) }), no_route(D, &p(D)));
    let out = receive(&mut one, 4.0, P, &[(P, 1, 10), (D, 3, 100)]);
    assert_eq!(out[..2], [set(P, P, 1), set(D, P, 3)]);
    assert_eq!(out[2..], vec![Output::Send { bytes: p(D) }; 5]);
    assert_eq!(one.input(at(5.0), Input::Packet { bytes: p(D) }), [Output::Send { bytes: p(D) }]);
}

#[test]
fn a_held_packet_is_dropped_after_30_s() {
    let mut one = usual();
    let bytes = packet(ip(US), ip(D));
    one.input(at(3.0), Input::Packet { bytes: bytes.clone() });
    let unreachable = |out: Vec<(Instant, Output)>| out.into_iter().any(|(_, o)| o == no_route(D, &bytes)[1]);
    assert!(!unreachable(one.until(at(32.999))));
    assert!(unreachable(one.until(at(33.0))));
}

#[test]
fn a_forwarded_packet_without_a_route_is_unreachable() {
    let mut one = usual();
    let bytes = packet(ip(P), ip(D));
    assert_eq!(one.input(at(3.0), Input::Packet { bytes: bytes.clone() }), no_route(D, &bytes));
    assert_eq!(one.status().held, 0);
}

#[test]
fn packets_to_no_host_and_malformed_ones_do_not_wait() {
    let mut one = usual();
    let name = packet(ip(US), "0.0.0.9".parse().unwrap());
    assert_eq!(one.input(at(3.0), Input::Packet { bytes: name.clone() }), [Output::Unreachable { bytes: name }]);
    assert_eq!(one.input(at(3.0), Input::Packet { bytes: packet(ip(US), BROADCAST) }), []);
    assert_eq!(one.input(at(3.0), Input::Packet { bytes: vec![0x45, 0].into() }), []);
    assert_eq!((one.count("outside"), one.count("not-unicast"), one.count("malformed-packet")), (1, 1, 1));
}

#[test]
fn returned_packets_use_another_route_wait_or_are_dropped() {
    let mut one = usual();
    receive(&mut one, 3.0, P, &[(P, 1, 10)]);
    receive(&mut one, 3.0, Q, &[(Q, 1, 4), (D, 3, 100)]);
    let (over_q, own, others) = (packet(ip(5), ip(D)), packet(ip(US), ip(P)), packet(ip(5), ip(P)));
    let out = one.input(at(4.0), Input::LinkFailed { neighbour: ip(P), bytes: own.clone() });
    assert_eq!(out.last(), Some(&Output::Purge { neighbour: ip(P) }), "our own packet waits");
    let packets = vec![over_q.clone(), others.clone()];
    let out = one.input(at(4.0), Input::Purged { neighbour: ip(P), packets });
    assert_eq!(out[0], Output::Send { bytes: over_q });
    assert_eq!(out[1..], no_route(P, &others));
    let back = receive(&mut one, 5.0, P, &[(P, 1, 12)]);
    assert_eq!(back, [set(P, P, 1), Output::Send { bytes: own }]);
}

#[test]
fn an_update_longer_than_the_mtu_is_split_and_each_part_has_its_senders_entry() {
    // (500 - 28) / 12 = 39 entries per datagram, 38 besides our own; 101 destinations: 38 + 38 + 25
    let mut one = One::new(Node { mtu: 500, ..node(US, 1) }, Options::with_feedback());
    let all: Vec<_> = (0..100).map(|d| (20 + d, 3, 100)).chain([(P, 1, 10)]).collect();
    receive(&mut one, 3.0, P, &all);
    let out = one.until(at(16.1));
    let sent: Vec<_> = updates(&out).into_iter().filter(|(t, _)| *t >= at(15.0)).map(|(_, u)| u).collect();
    assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [39, 39, 26]);
    assert!(sent.iter().all(|u| u[0].destination == ip(US)));
}

#[test]
fn a_radio_too_small_for_an_update_is_refused() {
    assert!(Dsdv::new(Node { mtu: 51, ..node(US, 1) }, Options::with_feedback()).err().unwrap().0.contains("node.mtu"));
    // 28 + 2 x 12, with wires 28 + 3 x 12
    assert!(Dsdv::new(Node { mtu: 52, ..node(US, 1) }, Options::with_feedback()).is_ok());
    assert!(Dsdv::new(Node { mtu: 63, ..air::gateway(US, 1) }, Options::with_feedback()).is_err());
    assert!(Dsdv::new(Node { mtu: 64, ..air::gateway(US, 1) }, Options::with_feedback()).is_ok());
}

#[test]
fn an_unconfirmed_neighbour_is_informed_that_we_hear_it_and_its_updates_are_ignored() {
    let options = Options { bidirectional_check: true, ..Options::with_feedback() };
    let mut one = One::new(node(US, 1), options);
    one.until(at(3.0));
    assert_eq!(receive(&mut one, 3.0, P, &[(P, 1, 10), (D, 3, 100)]), []);
    assert_eq!(updates(&one.until(at(4.1)))[0].1[1], advert(P, 250, 10), "a count that no node accepts");
    // P lists us: as its neighbour, or as heard
    assert_eq!(receive(&mut one, 5.0, P, &[(P, 1, 10), (US, 250, 2), (D, 3, 100)]), [set(P, P, 1), set(D, P, 3)]);
    // and after 45 s without that confirmation the routes are lost, although P is heard
    receive(&mut one, 40.0, P, &[(P, 1, 12)]);
    let out = one.until(at(50.0));
    assert!(out.contains(&(at(50.0), clear(D))), "5 + 3 x 15 s");
}

#[test]
fn a_hop_count_of_250_is_refused() {
    let mut one = usual();
    assert_eq!(receive(&mut one, 3.0, P, &[(D, 250, 100), (Q, 0, 100), (9, 249, 100)]), [set(9, P, 249)]);
    assert_eq!(receive(&mut one, 3.0, P, &[(P, 2, 100)]), [], "a neighbour is one hop from us");
    assert_eq!(one.count("bad-hops"), 3);
}

#[test]
fn the_silence_before_the_first_update_is_shorter_with_a_shorter_period() {
    let options = Options { period: Duration::from_secs(5), ..Options::with_feedback() };
    let out = One::new(node(US, 1), options).until(at(100.0));
    let n = updates(&out).len();
    // 98 to 100 s in steps of 3.75 to 5 s
    assert!((19..=27).contains(&n), "{n}");
}
