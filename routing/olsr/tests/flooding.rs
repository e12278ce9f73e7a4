//! The default forwarding algorithm and the senders of TCs (RFC 3626, sections 3.4, 9.3 and 15), counted on an ideal
//! radio.

mod net;

use manet_olsr::{wire, Options};
use manet_routing::trial::{at, ip, node};
use manet_routing::{Input, Node};
use net::{chain, check_shortest, grid, messages, net, Net};
use std::collections::{BTreeMap, BTreeSet};
use wire::{message, Message, Packet, Span};

fn options() -> Options {
    Options::with_feedback()
}

/// For each node and each message of other nodes, the number of transmissions.
fn relayed(net: &Net, from: f64) -> BTreeMap<(usize, std::net::Ipv4Addr, u16), u32> {
    let mut count = BTreeMap::new();
    for (_, n, m) in messages(net).iter().filter(|(t, n, m)| *t >= at(from) && m.originator != ip(*n)) {
        *count.entry((*n, m.originator, m.sequence)).or_default() += 1;
    }
    count
}

fn unknown(sequence: u16, ttl: u8) -> Message {
    let originator = std::net::Ipv4Addr::new(10, 0, 9, 9);
    Message { kind: 200, validity: Span(0xe7), originator, ttl, hops: 3, sequence, body: vec![1, 2, 3] }
}

/// `n` receives these messages from `from`.
fn hears(net: &mut Net, n: usize, from: usize, messages: Vec<Message>) {
    let bytes = Packet { sequence: 77, messages }.emit().into();
    net.input(n, Input::Control { from: ip(from), to: manet_routing::BROADCAST, ttl: 1, bytes });
}

#[test]
fn every_message_is_relayed_at_most_once_by_each_node() {
    let mut net = grid(5, 4, &options());
    net.run(at(120.0));
    let relayed = relayed(&net, 0.0);
    assert!(relayed.len() > 1000, "{}", relayed.len());
    assert!(relayed.values().all(|times| *times == 1));
}

#[test]
fn only_relays_relay() {
    // a star: the centre is the only MPR; no other node has anything to relay
    let mut net = net((1..=6).map(node), &options());
    (2..=6).for_each(|n| net.link(1, n));
    net.run(at(60.0));
    assert_eq!(relayed(&net, 0.0).keys().filter(|(n, ..)| *n != 1).count(), 0);
    let tc_senders: BTreeSet<_> =
        messages(&net).iter().filter(|(_, _, m)| m.kind == message::TC).map(|(_, n, _)| *n).collect();
    assert_eq!(tc_senders, BTreeSet::from([1]));
}

#[test]
fn in_a_full_mesh_no_node_relays_or_sends_tcs() {
    let mut net = net((1..=8).map(node), &options());
    for a in 1..8 {
        (a + 1..=8).for_each(|b| net.link(a, b));
    }
    // at first some nodes reach each other only over others, and choose relays for that time
    net.run(at(60.0));
    check_shortest(&net);
    assert!(messages(&net).iter().filter(|(t, ..)| *t > at(30.0)).all(|(_, _, m)| m.kind == message::HELLO));
}

#[test]
fn flooding_over_mprs_costs_fewer_transmissions_than_blind_flooding() {
    // 5 x 5 grid with diagonals: every node hears up to 8 others
    let mut net = grid(5, 5, &options());
    for n in 1..=20 {
        if n % 5 != 0 {
            net.link(n, n + 6);
        }
        if n % 5 != 1 {
            net.link(n, n + 4);
        }
    }
    net.run(at(30.0));
    check_shortest(&net);
    net.run(at(90.0));
    let tc = |(t, _, m): &&(manet_engine::Instant, usize, Message)| *t >= at(30.0) && m.kind == message::TC;
    let sent = messages(&net).iter().filter(tc).count();
    let original = messages(&net).iter().filter(tc).filter(|(_, n, m)| m.originator == ip(*n)).count();
    // blind flooding: each of 25 nodes sends each TC once
    assert!(sent < original * 25 * 3 / 4, "{sent} transmissions of {original} TCs");
}

#[test]
fn an_unknown_message_type_crosses_the_network() {
    let mut net = chain(5, &options());
    net.run(at(30.0));
    hears(&mut net, 2, 1, vec![unknown(1, 255)]);
    net.run(at(33.0));
    let seen: Vec<(usize, u8, u8)> =
        messages(&net).iter().filter(|(_, _, m)| m.kind == 200).map(|(_, n, m)| (*n, m.ttl, m.hops)).collect();
    // TTL down, hops up; no node chose 5 as a relay
    assert_eq!(seen, [(2, 254, 4), (3, 253, 5), (4, 252, 6)]);
    let body = &messages(&net).into_iter().find(|(_, n, m)| m.kind == 200 && *n == 4).unwrap().2.body;
    assert_eq!((body.as_slice(), net.counter(5, "unknown-received")), ([1, 2, 3].as_slice(), 1));
}

#[test]
fn a_message_is_relayed_once_for_selectors_over_symmetric_links_with_ttl_left() {
    // 2 is the relay of 1 and 3; 4 hears 3 only
    let mut net = chain(4, &options());
    net.run(at(30.0));
    let relays = |net: &Net, n: usize| messages(net).iter().filter(|(_, by, m)| *by == n && m.kind == 200).count();
    hears(&mut net, 2, 1, vec![unknown(1, 255), unknown(1, 255)]);
    net.run(at(31.0));
    hears(&mut net, 2, 3, vec![unknown(1, 200)]);
    net.run(at(32.0));
    assert_eq!((relays(&net, 2), net.counter(2, "duplicate") > 1), (1, true));
    hears(&mut net, 2, 1, vec![unknown(2, 1)]);
    net.run(at(33.0));
    assert_eq!(relays(&net, 2), 1);
    // no node chose 1 as a relay
    hears(&mut net, 1, 2, vec![unknown(3, 255)]);
    // 9 is no neighbour
    hears(&mut net, 2, 9, vec![unknown(4, 255)]);
    net.run(at(34.0));
    assert_eq!((relays(&net, 1), relays(&net, 2)), (0, 1));
    assert_eq!(net.counter(2, "asymmetric-sender"), 1);
    // a message over an asymmetric link is not remembered: it is relayed when it arrives over a symmetric one
    hears(&mut net, 2, 1, vec![unknown(4, 255)]);
    net.run(at(35.0));
    assert_eq!(relays(&net, 2), 2);
}

#[test]
fn forwarded_messages_wait_and_share_packets() {
    let mut net = chain(3, &options());
    net.run(at(30.0));
    let before = net.counter(2, "packets-sent");
    for sequence in 0..5 {
        hears(&mut net, 2, 1, vec![unknown(sequence, 255)]);
    }
    // MAXJITTER is 0.5 s, and they may share the packet of an own message
    net.run(at(30.51));
    let packets = net.counter(2, "packets-sent") - before;
    assert_eq!(messages(&net).iter().filter(|(_, n, m)| *n == 2 && m.kind == 200).count(), 5);
    assert!(packets <= 2, "{packets} packets");
}

fn tc_senders(tc_redundancy: u8) -> BTreeMap<usize, BTreeSet<std::net::Ipv4Addr>> {
    let mut net = chain(4, &Options { tc_redundancy, ..options() });
    net.run(at(40.0));
    let all = messages(&net).into_iter();
    let own = all.filter(|(t, n, m)| *t > at(30.0) && m.kind == message::TC && m.originator == ip(*n));
    own.map(|(_, n, m)| (n, wire::Tc::parse(&m.body).unwrap().neighbours.into_iter().collect())).collect()
}

#[test]
fn tc_redundancy_selects_the_advertised_neighbours() {
    let set = |list: &[usize]| list.iter().map(|n| ip(*n)).collect::<BTreeSet<_>>();
    // 1 - 2 - 3 - 4: 2 is chosen by 1 and 3, 3 by 2 and 4
    assert_eq!(tc_senders(0), BTreeMap::from([(2, set(&[1, 3])), (3, set(&[2, 4]))]));
    // the ends chose 2 and 3
    let all = BTreeMap::from([(1, set(&[2])), (2, set(&[1, 3])), (3, set(&[2, 4])), (4, set(&[3]))]);
    assert_eq!(tc_senders(1), all);
    assert_eq!(tc_senders(2), all);
}

#[test]
fn a_node_without_selectors_sends_tcs_with_redundancy_2_only() {
    // two nodes: no MPRs at all; olsrd needs both TCs (reference: it ignores an edge without its reverse)
    for (tc_redundancy, senders) in [(0, vec![]), (1, vec![]), (2, vec![1, 2])] {
        let mut net = chain(2, &Options { tc_redundancy, ..options() });
        net.run(at(20.0));
        let by: BTreeSet<usize> =
            messages(&net).iter().filter(|(_, _, m)| m.kind == message::TC).map(|(_, n, _)| *n).collect();
        assert_eq!(by.into_iter().collect::<Vec<_>>(), senders, "redundancy {tc_redundancy}");
    }
}

#[test]
fn after_the_last_selector_empty_tcs_are_sent_for_the_hold_time() {
    let mut net = chain(3, &options());
    net.run(at(30.0));
    net.cut(2, 3);
    net.cut(1, 2);
    net.run(at(90.0));
    let tcs: Vec<_> = messages(&net).into_iter().filter(|(_, n, m)| *n == 2 && m.kind == message::TC).collect();
    let read = |m: &Message| wire::Tc::parse(&m.body).unwrap();
    let first = tcs.iter().position(|(t, _, m)| *t > at(30.0) && read(m).neighbours.is_empty()).expect("an empty TC");
    assert!(tcs[first..].iter().all(|(_, _, m)| read(m).neighbours.is_empty()));
    // 15 s in steps of 3.75 to 5 s: three to five of them
    assert!((3..=5).contains(&(tcs.len() - first)), "{}", tcs.len() - first);
    assert_ne!(read(&tcs[first - 1].2).ansn, read(&tcs[first].2).ansn);
    // selectors are lost with the link 6 s after its last HELLO
    assert!(tcs.last().unwrap().0 < at(30.0 + 6.0 + 15.0 + 0.1));
}

#[test]
fn a_list_too_long_for_one_message_is_split() {
    // 96 bytes of messages per packet; 60 neighbours are 240 bytes
    let mut net = net([], &options());
    for n in 1..=61 {
        net.start(n, Node { mtu: 128, ..node(n) }, Options { tc_redundancy: 2, ..options() });
    }
    (2..=61).for_each(|n| net.link(1, n));
    net.run(at(30.0));
    check_shortest(&net);
    let air = messages(&net);
    assert!(air.iter().all(|(_, _, m)| m.buffer_len() <= 96));
    let last = air.iter().rev().find(|(_, n, m)| *n == 1 && m.originator == ip(1) && m.kind == message::TC).unwrap();
    let same = air.iter().filter(|(t, n, m)| *t == last.0 && *n == 1 && m.originator == ip(1) && m.kind == message::TC);
    let tcs: Vec<wire::Tc> = same.map(|(.., m)| wire::Tc::parse(&m.body).unwrap()).collect();
    // 80 bytes of addresses per message
    assert_eq!((tcs.len(), tcs.iter().map(|t| t.neighbours.len()).sum::<usize>()), (3, 60));
    assert!(tcs.iter().all(|t| t.ansn == tcs[0].ansn));
}

#[test]
fn the_same_seed_gives_the_same_messages_and_another_does_not() {
    let air = |seed| {
        let mut net = net((1..=4).map(|n| Node { seed, ..node(n) }), &options()).chained();
        net.run(at(30.0));
        messages(&net)
    };
    assert!(air(1) == air(1) && air(1) != air(2));
}

/// Intervals of node 1's messages from 40 s on, when no change of a link advances a message.
fn gaps(net: &Net, kind: u8) -> Vec<f64> {
    let of_kind =
        |(t, n, m): &&(_, usize, Message)| *n == 1 && m.kind == kind && m.originator == ip(1) && *t > at(40.0);
    let times: Vec<_> = messages(net).iter().filter(of_kind).map(|(t, ..)| *t).collect();
    times.windows(2).map(|w| (w[1] - w[0]).as_secs_f64()).collect()
}

#[test]
fn all_intervals_are_shortened_by_at_most_a_quarter_of_the_hello_interval() {
    // all kinds of messages: all neighbours, a further address, a network
    let own = Options {
        mid: vec![std::net::Ipv4Addr::new(10, 0, 1, 1)],
        hna: vec![(ip(0), 24)],
        tc_redundancy: 2,
        ..options()
    };
    let mut net = chain(2, &own);
    net.run(at(640.0));
    // RFC 3626, 18.9: MAXJITTER = HELLO_INTERVAL / 4 = 0.5 s, for every kind of message (3.4.1)
    for (kind, interval) in [(message::HELLO, 2.0), (message::TC, 5.0), (message::MID, 5.0), (message::HNA, 5.0)] {
        let gaps = gaps(&net, kind);
        assert!(gaps.iter().all(|g| (interval - 0.5..=interval).contains(g)), "{kind}: {gaps:?}");
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // uniform over 0.5 s: the mean is 0.25 s less than the interval, standard error 0.144 / sqrt(120) = 0.013
        assert!(gaps.len() > 100 && (mean - (interval - 0.25)).abs() < 0.05, "{kind}: {mean}");
    }
}
