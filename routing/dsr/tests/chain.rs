//! Chains in memory: discovery, forwarding, contents of the packets on the path (RFC 4728, sections 8.1 and 8.2).

mod net;
use manet_dsr::wire::Opt;
use manet_dsr::Options;
use manet_routing::packet::ipv4::protocol;
use manet_routing::trial::{ip, mac, ms, udp};
use manet_routing::{Input, Output, BROADCAST_MAC};
use net::{chain, delivered, frames, path, route, routed, send};

#[test]
fn a_chain_of_three_delivers() {
    let mut net = chain(3, &Options::default());
    send(&mut net, 1, 3, 7);
    net.run(ms(1000));
    assert_eq!(delivered(&net, 3), [7]);
    assert_eq!(path(&net, 1, 3), Some(vec![ip(2), ip(3)]));
}

#[test]
fn packets_arrive_unchanged_except_for_the_ttl() {
    let mut net = chain(5, &Options::default());
    let sent = udp(ip(1), ip(5), 9, b"payload");
    net.input(1, Input::Packet { bytes: sent.clone() });
    net.run(ms(1000));
    let arrived =
        net.outputs(5).find_map(|o| if let Output::Deliver { bytes } = o { Some(bytes.clone()) } else { None });
    let mut expected = sent.0;
    expected[8] = 64 - 3; // three nodes forwarded it
    manet_routing::packet::ipv4::repair(&mut expected);
    assert_eq!(arrived.unwrap().0, expected);
}

#[test]
fn the_first_request_reaches_neighbours_only_and_the_second_30_ms_later_all_nodes() {
    let mut net = chain(4, &Options::default());
    send(&mut net, 1, 4, 1);
    net.run(ms(29));
    assert_eq!(net.total("requests-passed-on"), 0);
    assert_eq!(net.notes(1, "discovery"), [(ip(4), 1)]);
    net.run(ms(200));
    assert_eq!(net.notes(1, "discovery"), [(ip(4), 1), (ip(4), 15)]);
    assert_eq!(net.total("requests-passed-on"), 2); // by nodes 2 and 3
    assert_eq!(delivered(&net, 4), [1]);
}

#[test]
fn a_neighbour_gets_plain_packets_and_needs_no_dsr_header() {
    // section 8.1.1: a route of one hop without acknowledgement request
    let mut net = chain(2, &Options::default());
    send(&mut net, 1, 2, 1);
    net.run(ms(100));
    send(&mut net, 1, 2, 2);
    net.run(ms(200));
    let (to, packet) = frames(&net, 1).pop().unwrap();
    assert_eq!((to, packet.options.len(), packet.next()), (mac(2), 0, protocol::UDP));
    assert_eq!(delivered(&net, 2), [1, 2]);
}

#[test]
fn the_source_route_lists_the_intermediate_hops_and_counts_them_down() {
    let mut net = chain(4, &Options::default());
    send(&mut net, 1, 4, 1);
    net.run(ms(500));
    let left = |n: usize| {
        let frames = frames(&net, n);
        let (to, packet) = frames.iter().rev().find(|(_, p)| p.next() == protocol::UDP).unwrap().clone();
        let route = packet.source_route().unwrap();
        assert_eq!(route.addresses, [ip(2), ip(3)]);
        (to, route.segments_left, packet.ttl())
    };
    assert_eq!([left(1), left(2), left(3)], [(mac(2), 2, 64), (mac(3), 1, 63), (mac(4), 0, 62)]);
}

#[test]
fn replies_return_over_the_reversed_route_and_all_nodes_on_it_learn() {
    let options = Options { snoop: false, ..Options::default() };
    let mut net = chain(4, &options);
    send(&mut net, 1, 4, 1);
    net.run(ms(500));
    for (from, to, nodes) in [(4, 1, [3, 2, 1].as_slice()), (2, 4, &[3, 4]), (3, 1, &[2, 1]), (3, 4, &[4])] {
        assert_eq!(path(&net, from, to), Some(nodes.iter().map(|n| ip(*n)).collect()), "{from} to {to}");
    }
}

#[test]
fn packets_wait_in_order_for_the_route_and_only_64_of_them() {
    let mut net = chain(3, &Options::default());
    (0..70).for_each(|id| send(&mut net, 1, 3, id));
    net.run(ms(1000));
    assert_eq!(delivered(&net, 3), (6..70).collect::<Vec<u16>>());
    assert_eq!(net.counter(1, "held-full"), 6);
}

#[test]
fn a_packet_without_a_route_is_dropped_after_30_s() {
    let mut net = net::net(2, &Options::default());
    send(&mut net, 1, 2, 1);
    net.run(ms(29_999));
    assert!(!net.outputs(1).any(|o| matches!(o, Output::Unreachable { .. })));
    net.run(ms(30_000));
    let given_up = net.outputs(1).filter(|o| matches!(o, Output::Unreachable { .. })).count();
    assert_eq!((given_up, net.notes(1, "no-route")), (1, vec![(ip(2), 1)]));
}

#[test]
fn routes_longer_than_max_hops_are_not_found() {
    let options = Options { max_hops: 3, ..Options::default() };
    let mut net = chain(5, &options);
    send(&mut net, 1, 4, 1);
    send(&mut net, 1, 5, 2);
    net.run(ms(5000));
    assert_eq!((delivered(&net, 4), delivered(&net, 5)), (vec![1], vec![]));
}

#[test]
fn a_full_size_packet_fits_the_frame_over_the_longest_route() {
    // 16 nodes, 15 hops; the TUN's MTU is 1500 - 8 - 4 x 15 - 4 = 1428 (the net asserts that frames have 1500 at most)
    let mut net = chain(16, &Options::default());
    let bytes = udp(ip(1), ip(16), 3, &[7; 1400]);
    assert_eq!(bytes.len(), 1428);
    net.input(1, Input::Packet { bytes });
    net.run(ms(5000));
    assert_eq!(delivered(&net, 16), [3]);
}

#[test]
fn a_packet_that_does_not_fit_with_its_route_is_counted_and_not_sent() {
    let mut net = chain(5, &Options::default());
    net.input(1, Input::Packet { bytes: udp(ip(1), ip(5), 3, &[7; 1472]) });
    net.run(ms(1000));
    assert_eq!((delivered(&net, 5).len(), net.counter(1, "too-big")), (0, 1));
}

#[test]
fn frames_with_options_only_are_control_and_frames_with_payload_are_not() {
    let mut net = chain(3, &Options::default());
    send(&mut net, 1, 3, 1);
    net.run(ms(500));
    let all = (1..=3).flat_map(|n| net.outputs(n).cloned().collect::<Vec<_>>());
    for output in all {
        if let Output::Frame { bytes, control, .. } = output {
            let packet = manet_dsr::datagram::Datagram::parse(&bytes).unwrap();
            assert_eq!(control, packet.payload().is_empty());
        }
    }
}

#[test]
fn data_for_all_is_not_flooded() {
    let mut net = chain(2, &Options::default());
    for to in [[10, 255, 255, 255], [255, 255, 255, 255], [224, 0, 0, 251]] {
        net.input(1, Input::Packet { bytes: udp(ip(1), to.into(), 1, b"x") });
    }
    net.run(ms(1000));
    assert_eq!((net.counter(1, "multicast"), frames(&net, 1).len()), (3, 0));
}

#[test]
fn intermediate_nodes_reply_from_their_caches_unless_that_is_off() {
    for cache_replies in [true, false] {
        let options = Options { cache_replies, ..Options::default() };
        let mut net = chain(5, &options);
        // 5 is isolated at first
        net.cut(4, 5);
        send(&mut net, 1, 4, 1);
        net.run(ms(1000));
        net.link(2, 5);
        send(&mut net, 5, 4, 2);
        net.run(ms(2000));
        assert_eq!(delivered(&net, 4), [1, 2]);
        // with the cache node 2 answers the neighbours' request; without it the request goes to node 4
        assert_eq!(net.total("cached-replies") > 0, cache_replies);
        assert_eq!(net.notes(5, "discovery").len(), if cache_replies { 1 } else { 2 });
    }
}

#[test]
fn of_several_cached_replies_the_shorter_is_sent_first_and_cancels_the_longer() {
    // 1 sends a request; 2 knows 2-9, 3 knows 3-4-9; all three hear each other then
    let mut net = net::net(9, &Options::default());
    for (a, b) in [(2, 9), (3, 4), (4, 9)] {
        net.link(a, b);
    }
    send(&mut net, 2, 9, 1);
    send(&mut net, 3, 9, 2);
    net.run(ms(1000));
    assert_eq!((path(&net, 2, 9).unwrap().len(), path(&net, 3, 9).unwrap().len()), (1, 2));
    net.link(2, 3);
    net.link(1, 2);
    net.link(1, 3);
    send(&mut net, 1, 9, 3);
    net.run(ms(2000));
    assert_eq!(path(&net, 1, 9), Some(vec![ip(2), ip(9)]));
    assert_eq!(net.total("replies-cancelled"), 1);
}

#[test]
fn requests_are_forwarded_once_by_each_node_and_within_the_jitter() {
    // a full mesh of 6 and the target out of range
    let mut net = net::net(7, &Options { nonpropagating: false, ..Options::default() });
    for a in 1..=6 {
        (1..a).for_each(|b| net.link(a, b));
    }
    send(&mut net, 1, 7, 1);
    net.run(ms(400));
    let mut times = Vec::new();
    for (at, node, output) in &net.log {
        if matches!(output, Output::Frame { to, .. } if *to == BROADCAST_MAC) && *node != 1 {
            times.push(*at);
        }
    }
    // heard at 1 ms, jitter up to 10 ms
    assert_eq!(times.len(), 5);
    assert!(times.iter().all(|t| (ms(1)..ms(11)).contains(t)));
}

#[test]
fn the_target_replies_over_each_path_of_a_request() {
    // two disjoint paths 1-2-4 and 1-3-4: section 8.2.2, the target replies to every copy
    let mut net = net::net(4, &Options { nonpropagating: false, ..Options::default() });
    for (a, b) in [(1, 2), (1, 3), (2, 4), (3, 4)] {
        net.link(a, b);
    }
    send(&mut net, 1, 4, 1);
    net.run(ms(400));
    assert_eq!(net.counter(4, "replies-sent"), 2);
}

#[test]
fn overheard_routes_are_learnt_if_the_option_is_on() {
    for snoop in [true, false] {
        let options = Options { snoop, ..Options::default() };
        let mut net = chain(5, &options);
        net.cut(4, 5);
        net.link(5, 3); // 5 only hears 3
        send(&mut net, 1, 4, 1);
        net.run(ms(1000));
        assert_eq!(path(&net, 5, 4), snoop.then(|| vec![ip(3), ip(4)]));
    }
}

#[test]
fn forwarded_data_restores_a_cut_route_if_the_option_is_on() {
    for learn_from_data in [true, false] {
        let mut net = chain(4, &Options { learn_from_data, ..Options::default() });
        send(&mut net, 1, 4, 1);
        net.run(ms(500));
        assert_eq!(path(&net, 3, 1), Some(vec![ip(2), ip(1)]));
        // a loss to contention: 4's packet for 1 fails at 3
        let bytes = routed(&udp(ip(4), ip(1), 7, b"x"), route(0, 1, &[3, 2]));
        net.input(3, Input::FrameFailed { to: mac(2), bytes });
        net.run(ms(600));
        assert_eq!((path(&net, 3, 1), path(&net, 4, 1)), (None, None));
        send(&mut net, 1, 4, 2);
        net.run(ms(700));
        // between them the ICMP error about 7, from node 3
        assert_eq!(delivered(&net, 4), [1, 0, 2]);
        assert_eq!(path(&net, 3, 1), learn_from_data.then(|| vec![ip(2), ip(1)]));
        assert_eq!(path(&net, 4, 1), learn_from_data.then(|| vec![ip(3), ip(2), ip(1)]));
    }
}

#[test]
fn a_packet_sent_before_the_request_does_not_cancel_the_reply() {
    use manet_dsr::wire::Request;
    // 2 forwards a packet of 1 to 3, hears a request of 1 for 4, and then hears 3 forward the packet
    let mut net = chain(4, &Options::default());
    send(&mut net, 1, 4, 1);
    net.run(ms(500));
    let cut = frames(&net, 1).len();
    send(&mut net, 1, 4, 2);
    net.run(ms(501));
    let request = Request { identification: 999, target: ip(4), addresses: Vec::new() };
    let request =
        manet_dsr::datagram::Datagram::control(ip(1), std::net::Ipv4Addr::BROADCAST, 9, vec![Opt::Request(request)]);
    net.input(2, Input::Frame { from: mac(1), to: BROADCAST_MAC, bytes: request.to_bytes() });
    net.run(ms(600));
    assert_eq!((frames(&net, 1).len() - cut, delivered(&net, 4)), (1, vec![1, 2]));
    assert_eq!((net.counter(2, "cached-replies"), net.counter(2, "replies-cancelled")), (1, 0));
    assert_eq!(net.counter(2, "replies-sent"), 1);
}

#[test]
fn a_fragment_in_ip_in_ip_is_unwrapped_and_a_tunnelled_packet_is_not() {
    use manet_routing::packet::ipv4;
    let mut piece = udp(ip(1), ip(3), 5, &[1; 16]).0;
    piece[6] = 0x20; // more fragments follow
    ipv4::repair(&mut piece);
    let tunnelled = udp(ip(1), ip(3), 6, &[1; 16]).0;
    let mut net = chain(3, &Options::default());
    for inner in [&piece, &tunnelled] {
        let (source, destination) = (ip(1), ip(3));
        let protocol = protocol::IP_IN_IP;
        let outer =
            ipv4::Repr { tos: 0, identification: 77, dont_fragment: false, ttl: 60, protocol, source, destination };
        let bytes = routed(&outer.packet(inner), route(0, 0, &[2]));
        net.input(3, Input::Frame { from: mac(2), to: mac(3), bytes });
    }
    assert_eq!(delivered(&net, 3), [5, 77]);
}
