//! The filter of overheard frames (`Protocol::overheard_filter`): it drops only frames without effect.

mod net;

use manet_dsr::datagram::Datagram;
use manet_dsr::options::Link;
use manet_dsr::wire::{AckRequest, Opt, Reply};
use manet_dsr::{Dsr, Options};
use manet_engine::Machine;
use manet_routing::trial::{ip, is_dull, mac, ms, node, udp};
use manet_routing::{Bytes, Input, Protocol};
use net::{chain, delivered, route, send};
use proptest::prelude::*;

fn quiet() -> Options {
    Options { learn_from_data: false, ..Options::default() }
}

/// A data packet from 2 to 6, with these options, as 4 overhears it from 3.
fn data(options: Vec<Opt>) -> Bytes {
    let mut packet = Datagram::parse(&udp(ip(2), ip(6), 1, &[7; 9])).unwrap();
    packet.options = options;
    packet.to_bytes()
}

/// Node 4, which has heard a request from 3.
fn acquainted(options: Options) -> Dsr {
    let mut machine = Dsr::new(node(4), options).unwrap();
    let request = manet_dsr::wire::Request { identification: 1, target: ip(9), addresses: Vec::new() };
    let bytes = Datagram::control(ip(3), ip(9), 1, vec![Opt::Request(request)]).to_bytes();
    machine.handle(ms(0), Input::Frame { from: mac(3), to: manet_routing::BROADCAST_MAC, bytes });
    machine
}

#[test]
fn data_on_a_route_without_us_is_dropped() {
    let machine = acquainted(quiet());
    let dull = |options| is_dull(&machine, mac(3), mac(5), &data(options));
    assert!(dull(vec![route(0, 1, &[3, 5])]));
    assert!(dull(Vec::new()));
    assert!(dull(vec![route(0, 9, &[3, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18])]));
    assert!(!dull(vec![route(0, 2, &[3, 5, 4])]), "it could be shorter");
    assert!(!dull(vec![route(0, 1, &[3, 5]), Opt::AckRequest(AckRequest { identification: 1 })]));
    assert!(!dull(vec![route(0, 1, &[3, 5]), Opt::Reply(Reply { last_external: false, addresses: vec![ip(5)] })]));
    assert!(!dull(vec![route(0, 30, &(10..40).collect::<Vec<_>>())]), "longer than the program looks");
    let control = Datagram::control(ip(2), ip(6), 1, vec![route(0, 1, &[3, 5])]).to_bytes();
    assert!(!is_dull(&machine, mac(3), mac(5), &control));
}

#[test]
fn a_frame_of_an_unknown_neighbour_passes() {
    let mut machine = acquainted(quiet());
    let bytes = data(vec![route(0, 2, &[5, 7])]);
    let version = machine.overheard_version();
    assert!(!is_dull(&machine, mac(2), mac(5), &bytes));
    machine.handle(ms(1), Input::Overheard { from: mac(2), to: mac(5), bytes: bytes.clone() });
    assert_ne!(machine.overheard_version(), version);
    assert!(is_dull(&machine, mac(2), mac(5), &bytes));
}

#[test]
fn a_node_that_learns_from_data_or_needs_passive_acks_drops_nothing() {
    for options in [Options::default(), Options { link: Link::Ack, ..quiet() }] {
        let machine = acquainted(options);
        assert_eq!((machine.overheard_version(), machine.overheard_filter().len()), (0, 0));
    }
    assert!(acquainted(Options { snoop: false, ..Options::default() }).overheard_version() > 0);
}

/// The status of a node; counters that are 0 or missing are equal.
fn known(node: &Dsr, now: manet_engine::Instant) -> String {
    let status = node.status(now);
    let mut counters = serde_json::to_value(&status.counters).unwrap();
    counters.as_object_mut().unwrap().retain(|_, count| count != 0);
    let neighbours: Vec<_> = status.neighbours.iter().map(|n| n.address).collect();
    format!("{} {counters} {neighbours:?}", status.details)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Two networks that differ only in the filter send and deliver the same at the same instants, while links change.
    #[test]
    fn dropped_frames_have_no_effect(
        links in proptest::collection::vec((1..9usize, 1..9usize), 8..24),
        steps in proptest::collection::vec((1..9usize, 1..9usize, 0..4u8), 10..80),
    ) {
        let play = |filters: bool| {
            let mut net = net::net(8, &quiet());
            net.filters = filters;
            links.iter().filter(|(a, b)| a != b).for_each(|(a, b)| net.link(*a, *b));
            for (i, (a, b, what)) in steps.iter().filter(|(a, b, _)| a != b).enumerate() {
                match what {
                    0 => net.cut(*a, *b),
                    1 => net.link(*a, *b),
                    _ => (0..3).for_each(|n| send(&mut net, *a, *b, (10 * i + n) as u16)),
                }
                net.run(ms(40 * (i as u64 + 1)));
            }
            net.run(ms(10_000));
            let said: Vec<String> = net.log.iter().map(|output| format!("{output:?}")).collect();
            let known: Vec<_> = net.stations.values().map(|s| known(&s.machine, net.now)).collect();
            (said, format!("{known:?}"))
        };
        let (with, without) = (play(true), play(false));
        prop_assert_eq!(&with.0, &without.0);
        prop_assert_eq!(&with.1, &without.1);
    }
}

#[test]
fn near_a_loaded_route_most_frames_are_dropped() {
    // 7 and 8 hear the middle of a chain of six
    let mut net = chain(8, &quiet());
    net.filters = true;
    net.cut(6, 7);
    net.cut(7, 8);
    [3, 4].iter().for_each(|n| net.link(*n, 7));
    (1..=200).for_each(|i| {
        send(&mut net, 1, 6, i);
        net.run(ms(20 * u64::from(i)));
    });
    assert_eq!(delivered(&net, 6).len(), 200);
    assert!(net.filtered > 300, "{}", net.filtered);
}
