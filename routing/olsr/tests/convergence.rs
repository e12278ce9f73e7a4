//! Networks that converge, break and merge (RFC 3626, sections 7 to 10), over an ideal radio.

mod net;

use manet_engine::Duration;
use manet_olsr::{Link, Options};
use manet_routing::trial::{at, ip, node, packet};
use manet_routing::{Bytes, Input, Node, Output};
use net::{chain, check_shortest, grid, messages, net, send, Net};
use std::net::Ipv4Addr;

fn options() -> Options {
    Options::with_feedback()
}

#[test]
fn a_chain_of_three_finds_its_routes() {
    let mut net = chain(3, &options());
    net.run(at(15.0));
    check_shortest(&net);
    assert_eq!(net.path(1, ip(3)), Some(vec![1, 2, 3]));
}

#[test]
fn a_chain_of_ten_converges_within_the_time_that_messages_need() {
    // symmetric after two HELLOs, MPR after the third (3 x 2 s), then a TC (5 s), delayed up to 0.5 s per hop for 8 hops
    let mut net = chain(10, &options());
    net.run(at(6.0 + 5.0 + 8.0 * 0.5 + 1.0));
    check_shortest(&net);
}

#[test]
fn grids_converge_to_shortest_paths_with_every_redundancy_and_coverage() {
    for tc_redundancy in 0..=2 {
        for mpr_coverage in [1, 3] {
            let mut net = grid(5, 5, &Options { tc_redundancy, mpr_coverage, ..options() });
            net.run(at(40.0));
            check_shortest(&net);
        }
    }
}

#[test]
fn no_route_changes_after_convergence() {
    let mut net = grid(4, 4, &options());
    net.run(at(40.0));
    let before = net.log.len();
    net.run(at(200.0));
    let is_change = |o: &Output| matches!(o, Output::SetRoute(_) | Output::ClearRoute { .. });
    assert!(!net.log[before..].iter().any(|(.., output)| is_change(output)));
}

#[test]
fn two_networks_merge_and_separate() {
    let mut net = chain(6, &options());
    net.cut(3, 4);
    net.run(at(30.0));
    check_shortest(&net);
    net.link(3, 4);
    net.run(at(60.0));
    check_shortest(&net);
    net.cut(3, 4);
    // NEIGHB_HOLD_TIME 6 s, then the ends learn of it by TCs of the middle (5 s and delays), or TOP_HOLD_TIME expires
    net.run(at(60.0 + 6.0 + 15.0 + 1.0));
    check_shortest(&net);
}

#[test]
fn without_feedback_a_break_is_detected_after_the_hold_time() {
    let mut net = chain(3, &Options { link: Link::Hello, ..options() });
    net.run(at(30.0));
    net.cut(2, 3);
    net.run(at(30.0 + 3.0));
    assert_eq!(net.path(2, ip(3)), Some(vec![2, 3]));
    net.run(at(30.0 + 6.1));
    assert_eq!(net.path(2, ip(3)), None);
    let (when, about, how) = net.notes_at(2, "link-broken").pop().unwrap();
    assert_eq!((about, how), (ip(3), 2));
    assert!(when > at(30.0 + 4.0) && when <= at(30.0 + 6.0), "{when:?}");
}

/// 1 - 2 - 4 and 1 - 3 - 4.
fn diamond(options: &Options) -> Net {
    let mut net = net((1..=4).map(node), options);
    for (a, b) in [(1, 2), (2, 4), (1, 3), (3, 4)] {
        net.link(a, b);
    }
    net
}

#[test]
fn a_failed_link_moves_the_route_at_once_and_the_packet_is_not_lost() {
    let mut net = diamond(&options());
    net.run(at(30.0));
    let via = net.path(1, ip(4)).unwrap()[1];
    net.cut(1, via);
    send(&mut net, 1, packet(ip(1), ip(4)));
    // no time has passed
    assert_eq!(net.path(1, ip(4)), Some(vec![1, 5 - via, 4]));
    assert_eq!(net.stations[&4].delivered.len(), 1);
    assert_eq!(net.notes_at(1, "link-broken").pop(), Some((at(30.0), ip(via), 1)));
}

#[test]
fn with_all_links_in_the_tcs_even_the_lost_neighbour_is_reached_over_a_detour() {
    let mut net = diamond(&Options { tc_redundancy: 2, ..options() });
    net.run(at(30.0));
    net.cut(1, 2);
    send(&mut net, 1, packet(ip(1), ip(2)));
    // that packet may reach 3 while its route to 2 still leads over 1; the HELLO about it is in transit
    net.run(at(30.15));
    let before = net.stations[&2].delivered.len();
    send(&mut net, 1, packet(ip(1), ip(2)));
    assert_eq!((net.path(1, ip(2)), net.stations[&2].delivered.len()), (Some(vec![1, 3, 4, 2]), before + 1));
}

#[test]
fn a_failed_link_is_announced_as_lost_at_once_or_as_soon_as_the_pace_allows() {
    let mut net = diamond(&options());
    net.run(at(30.0));
    let before = messages(&net).len();
    net.cut(1, 2);
    send(&mut net, 1, packet(ip(1), ip(2)));
    // a twentieth of the HELLO interval after the last one
    net.run(at(30.0 + 0.1));
    let air = messages(&net);
    let hello = air[before..].iter().find(|(_, n, m)| *n == 1 && m.kind == 1).expect("an early HELLO");
    let hello = manet_olsr::wire::Hello::parse(&hello.2.body).unwrap();
    // LOST_LINK and NOT_NEIGH
    assert!(hello.blocks.iter().any(|b| b.code == 3 && b.addresses == [ip(2)]), "{hello:?}");
}

#[test]
fn without_another_path_packets_on_a_failed_link_are_dropped() {
    let mut net = chain(3, &options());
    net.run(at(30.0));
    net.cut(2, 3);
    send(&mut net, 1, packet(ip(1), ip(3)));
    assert_eq!(net.unreachable(2), 1);
    net.input(2, Input::Purged { neighbour: ip(3), packets: vec![packet(ip(1), ip(3)), Bytes(vec![1, 2])] });
    assert_eq!(net.unreachable(2), 2);
    assert_eq!(net.counter(2, "malformed-data"), 1);
}

#[test]
fn with_link_hello_reports_of_the_radio_are_ignored() {
    let mut net = chain(2, &Options { link: Link::Hello, ..options() });
    net.run(at(10.0));
    net.input(1, Input::LinkFailed { neighbour: ip(2), bytes: packet(ip(1), ip(2)) });
    assert_eq!(net.path(1, ip(2)), Some(vec![1, 2]));
    assert_eq!(net.counter(1, "feedback-ignored"), 1);
}

#[test]
fn a_packet_without_a_route_is_dropped_or_held_until_there_is_one() {
    let mut net = chain(2, &options());
    net.input(1, Input::Packet { bytes: packet(ip(1), ip(2)) });
    assert_eq!(net.unreachable(1), 1);

    let mut net = chain(2, &Options { held_packets: 2, ..options() });
    for _ in 0..3 {
        net.input(1, Input::Packet { bytes: packet(ip(1), ip(2)) });
    }
    net.input(2, Input::Packet { bytes: packet(ip(2), ip(9)) });
    assert_eq!((net.unreachable(1), net.counter(1, "held-full")), (1, 1));
    net.run(at(5.9));
    assert_eq!((net.stations[&2].delivered.len(), net.unreachable(2)), (2, 0));
    net.run(at(6.0));
    assert_eq!(net.unreachable(2), 1);
}

#[test]
fn the_routes_to_a_daemon_that_ends_are_removed_at_once() {
    let mut net = chain(3, &options());
    net.run(at(30.0));
    net.input(3, Input::Stop);
    net.run(at(30.01));
    assert_eq!(net.path(2, ip(3)), None);
    let before = messages(&net).len();
    net.run(at(60.0));
    assert!(messages(&net)[before..].iter().all(|(_, n, _)| *n != 3));
}

#[test]
fn messages_of_a_restarted_node_are_accepted_despite_new_numbers() {
    let mut net = chain(4, &options());
    net.run(at(30.0));
    net.start(2, Node { restarted: true, ..node(2) }, options());
    net.run(at(50.0));
    check_shortest(&net);
    assert_eq!(net.counter(1, "stale-tc") + net.counter(3, "stale-tc") + net.counter(4, "stale-tc"), 0);
}

#[test]
fn gateways_announce_their_wires_and_the_nearer_one_is_used() {
    let wire = (Ipv4Addr::new(192, 168, 1, 0), 30);
    let mut net = net([], &options());
    for n in 1..=5 {
        let wires = if n == 1 || n == 5 { vec![wire] } else { vec![] };
        let hna = if n == 5 { vec![(Ipv4Addr::UNSPECIFIED, 0)] } else { vec![] };
        net.start(n, Node { wires, ..node(n) }, Options { hna, ..options() });
    }
    (1..5).for_each(|n| net.link(n, n + 1));
    net.run(at(30.0));
    let host = Ipv4Addr::new(192, 168, 1, 2);
    let towards = |net: &Net, n: usize, host| net.stations[&n].routes.lookup(host).map(|r| (r.via, r.prefix, r.hops));
    assert_eq!(towards(&net, 2, host), Some((ip(1), 30, 1)));
    assert_eq!(towards(&net, 4, host), Some((ip(5), 30, 1)));
    assert_eq!(towards(&net, 2, Ipv4Addr::new(8, 8, 8, 8)), Some((ip(3), 0, 3)));
    // a gateway does not route to its attached networks
    assert_eq!(towards(&net, 1, host), Some((ip(2), 0, 4)));
    // the near gateway fails: the other replaces it
    net.kill(1);
    net.run(at(60.0));
    assert_eq!(towards(&net, 2, host), Some((ip(3), 30, 3)));
}

#[test]
fn further_addresses_are_announced_and_routed_to() {
    let alias = Ipv4Addr::new(10, 99, 0, 4);
    let mut net = net((1..=3).map(node), &options());
    net.start(4, node(4), Options { mid: vec![alias], ..options() });
    (1..4).for_each(|n| net.link(n, n + 1));
    net.run(at(30.0));
    let route = *net.stations[&1].routes.lookup(alias).unwrap();
    assert_eq!((route.via, route.hops, route.prefix), (ip(2), 3, 32));
    assert!(messages(&net).iter().any(|(_, n, m)| *n == 2 && m.kind == 3 && m.originator == ip(4)));
    // a node with one address sends no MID
    assert!(messages(&net).iter().all(|(_, _, m)| m.kind != 3 || m.originator == ip(4)));
}

#[test]
fn an_unwilling_node_is_no_relay_and_no_next_hop() {
    let mut net = net([], &options());
    for n in 1..=4 {
        net.start(n, node(n), Options { willingness: if n == 2 { 0 } else { 3 }, ..options() });
    }
    for (a, b) in [(1, 2), (2, 4), (1, 3), (3, 4)] {
        net.link(a, b);
    }
    net.run(at(30.0));
    assert_eq!((net.path(1, ip(4)), net.path(4, ip(1))), (Some(vec![1, 3, 4]), Some(vec![4, 3, 1])));
    net.cut(3, 4);
    net.run(at(60.0));
    assert_eq!(net.path(1, ip(4)), None);
}

#[test]
fn hysteresis_delays_a_link_but_establishes_it() {
    // without hysteresis: symmetric with the second HELLO, 2.5 s at most; with it: the third packet, 3 s at least
    let mut plain = chain(3, &options());
    plain.run(at(2.6));
    assert_eq!(plain.path(1, ip(2)), Some(vec![1, 2]));
    let mut net = chain(3, &Options { hysteresis: true, ..options() });
    net.run(at(2.99));
    assert_eq!(net.path(1, ip(2)), None);
    net.run(at(40.0));
    check_shortest(&net);
}

#[test]
fn times_can_be_set_and_convergence_follows_them() {
    let ms = Duration::from_millis;
    let fast = Options {
        hello_interval: ms(200),
        tc_interval: ms(500),
        neighbour_hold: ms(600),
        topology_hold: ms(1500),
        ..options()
    };
    let mut net = chain(10, &fast);
    net.run(at(1.6));
    check_shortest(&net);
}
