//! One node: inputs at given times, and its outputs.

mod air;

use air::{ip, node};
use manet_adv::sequence::Sequence;
use manet_adv::wire::{Advert, Body, Message, Response, INFINITE};
use manet_adv::Adv;
use manet_engine::Instant;
use manet_routing::packet::ipv4::protocol::{TCP, UDP};
use manet_routing::trial::{self, at, packet, packet_of};
use manet_routing::{Bytes, Flow, Input, Output, Route, BROADCAST};

const US: usize = 0;
const P: usize = 1;
const Q: usize = 2;
const D: usize = 8;

type One = trial::One<Adv>;

fn adv(options: &str) -> One {
    One::new(node(US, 1), serde_json::from_str(options).unwrap())
}

fn receive(one: &mut One, s: f64, from: usize, adverts: Vec<Advert>) {
    let adverts = [vec![entry(from, 0, 2, Response::None)], adverts].concat();
    let body = Body::Update { full: false, restarted: false, adverts };
    let bytes = Message { sender: Sequence(2), body }.emit().into();
    one.input(at(s), Input::Control { from: ip(from), to: BROADCAST, ttl: 1, bytes });
}

fn use_route(one: &mut One, s: f64, source: usize, destination: usize, packets: u32) {
    let flows = vec![Flow { source: ip(source), destination: ip(destination), packets }];
    one.input(at(s), Input::Used { flows });
}

fn send(one: &mut One, s: f64, destination: usize) {
    one.input(at(s), Input::Packet { bytes: packet(ip(US), ip(destination)) });
}

fn entry(destination: usize, hops: u8, sequence: u32, response: Response) -> Advert {
    let (destination, sequence) = (ip(destination), Sequence(sequence));
    Advert { destination, next_hop: destination, sequence, signer: destination, hops, receiver: true, response }
}

/// Times of the updates, and their entries except the first.
fn updates(out: &[(Instant, Output)]) -> Vec<(f64, Vec<Advert>)> {
    let read = |o: &Output| match o {
        Output::Control { bytes, .. } => Message::parse(bytes).ok(),
        _ => None,
    };
    let all = out.iter().filter_map(|(t, o)| read(o).map(|m| (t.as_secs_f64(), m.body)));
    all.filter_map(|(t, body)| match body {
        Body::Update { adverts, .. } => Some((t, adverts[1..].to_vec())),
        _ => None,
    })
    .collect()
}

fn inits(out: &[(Instant, Output)]) -> Vec<f64> {
    let is_init = |o: &Output| matches!(o, Output::Control { bytes, .. } if bytes[0] == 2);
    out.iter().filter(|(_, o)| is_init(o)).map(|(t, _)| t.as_secs_f64()).collect()
}

#[test]
fn two_updates_are_at_least_min_interval_apart() {
    let mut one = adv("{}");
    let mut times = Vec::new();
    for i in 0..100 {
        let s = 1.0 + f64::from(i) * 0.05;
        times.extend(updates(&one.until(at(s))));
        receive(&mut one, s, P, vec![entry(D, 2, 10, Response::High)]);
    }
    let times: Vec<f64> = times.into_iter().map(|(t, _)| t).collect();
    assert!(times.len() >= 9, "{times:?}");
    // and up to 10 ms of jitter, after at most 50 ms until the next request
    assert!(times.windows(2).all(|w| (0.5..=0.56).contains(&(w[1] - w[0]))), "{times:?}");
}

#[test]
fn packets_handled_raise_the_response_to_medium_and_are_halved_by_each_update() {
    let mut one = adv("{}");
    receive(&mut one, 1.0, P, vec![entry(D, 1, 10, Response::None)]);
    use_route(&mut one, 1.5, 5, D, 3);
    let mut responses = Vec::new();
    for i in 0..4 {
        let s = 2.0 + f64::from(i);
        receive(&mut one, s, Q, vec![entry(D, INFINITE, 9, Response::High)]);
        let sent = updates(&one.until(at(s + 0.9)));
        responses.extend(sent.iter().flat_map(|(_, a)| a).filter(|a| a.destination == ip(D)).map(|a| a.response));
    }
    // 3, 1, 0
    assert_eq!(responses, [Response::Medium, Response::Medium, Response::None, Response::None]);
}

#[test]
fn a_further_packet_for_a_destination_raises_the_meter_from_the_threshold_on() {
    for (threshold, packets) in [(1, 3), (2, 4), (4, 6)] {
        // the rise is 8 for each packet from the threshold on; 3 x 8 >= 20
        let mut one = adv(&format!(r#"{{"buffer_threshold":{threshold}}}"#));
        for i in 1..packets {
            send(&mut one, 1.0, D);
            assert_eq!(updates(&one.until(at(1.0))).len(), 0, "{threshold}: {i} packets");
        }
        send(&mut one, 1.0, D);
        let sent = updates(&one.until(at(1.1)));
        assert_eq!((sent.len(), sent[0].1[0].response), (1, Response::High), "{threshold}");
    }
}

#[test]
fn a_broken_route_is_advertised_for_its_lifetime_or_as_long_as_packets_wait() {
    for waits in [false, true] {
        let mut one = adv(r#"{"broken_lifetime":3,"init_interval":100}"#);
        receive(&mut one, 1.0, P, vec![entry(D, 1, 10, Response::None)]);
        let bytes = if waits { packet(ip(5), ip(D)) } else { Bytes::default() };
        one.input(at(2.0), Input::LinkFailed { neighbour: ip(P), bytes });
        let mut listed = Vec::new();
        for s in [2.5, 4.0, 5.5, 7.0] {
            // requests for another node raise the meter
            receive(&mut one, s, Q, vec![entry(7, 2, 10, Response::High)]);
            let sent = updates(&one.until(at(s + 0.9)));
            listed.push(sent[0].1.iter().any(|a| a.destination == ip(D) && a.hops == INFINITE));
        }
        assert_eq!(listed, [true, true, waits, waits]);
    }
}

#[test]
fn a_source_floods_at_once_without_a_connection_and_after_a_break_when_updates_had_their_time() {
    let mut one = adv("{}");
    send(&mut one, 1.0, D);
    assert_eq!(inits(&one.until(at(1.02))).len(), 1);
    let mut one = adv("{}");
    receive(&mut one, 1.0, P, vec![entry(D, 1, 10, Response::None)]);
    use_route(&mut one, 1.5, US, D, 3);
    one.input(at(2.0), Input::LinkFailed { neighbour: ip(P), bytes: packet(ip(US), ip(D)) });
    let times = inits(&one.until(at(10.0)));
    // 2 + 3, then 1, 2 s later, with up to 10 ms of jitter
    let expected = [5.0, 6.0, 8.0];
    assert_eq!(times.len(), 3, "{times:?}");
    assert!(times.iter().zip(expected).all(|(t, e)| (e..e + 0.011).contains(t)), "{times:?}");
}

#[test]
fn a_route_to_a_neighbour_that_is_no_receiver_is_used_and_then_maintained() {
    let mut one = adv("{}");
    let set = Output::SetRoute(Route::host(ip(P), ip(P), 1));
    let mut quiet = entry(P, 0, 4, Response::None);
    quiet.receiver = false;
    let body = Body::Update { full: false, restarted: false, adverts: vec![quiet] };
    let bytes = Message { sender: Sequence(4), body }.emit().into();
    assert_eq!(one.input(at(1.0), Input::Control { from: ip(P), to: BROADCAST, ttl: 1, bytes }), [set]);
    use_route(&mut one, 2.0, US, P, 1);
    use_route(&mut one, 2.04, US, P, 1);
    one.until(at(2.9));
    assert_eq!(one.count("init-sent"), 1, "one flood for both reports of use");
}

#[test]
fn a_receiver_that_keeps_alive_sends_full_updates_in_an_idle_network() {
    let mut one = adv(r#"{"keep_alive":5,"connection_idle":1000}"#);
    use_route(&mut one, 1.0, P, US, 1);
    let times: Vec<f64> = updates(&one.until(at(31.0))).into_iter().map(|(t, _)| t).collect();
    assert_eq!((times.len(), one.count("full-sent")), (6, 6), "{times:?}");
    let mut quiet = adv("{}");
    use_route(&mut quiet, 1.0, P, US, 1);
    assert_eq!(updates(&quiet.until(at(29.0))), []);
}

#[test]
fn udp_and_tcp_packets_wait_for_their_own_times() {
    let mut one = adv(r#"{"buffer_tcp":5,"buffer_udp":2}"#);
    one.input(at(1.0), Input::Packet { bytes: packet_of(TCP, ip(US), ip(D), 1, b"data") });
    one.input(at(1.0), Input::Packet { bytes: packet_of(UDP, ip(US), ip(D), 1, b"data") });
    let gone = |out: Vec<(Instant, Output)>| -> Vec<(f64, u8)> {
        let dropped = out.into_iter().filter_map(|(t, o)| match o {
            Output::Unreachable { bytes } => Some((t.as_secs_f64(), bytes[9])),
            _ => None,
        });
        dropped.collect()
    };
    assert_eq!(gone(one.until(at(10.0))), [(3.0, UDP), (6.0, TCP)]);
}
