//! Broken links: salvage, Route Errors, dropped packets and their reports, acknowledgements, shortening (RFC 4728, 8.3,
//! 3.4).

mod net;
use manet_dsr::datagram::Datagram;
use manet_dsr::options::Link;
use manet_dsr::wire::{Opt, What};
use manet_dsr::Options;
use manet_routing::packet::ipv4::{self, protocol};
use manet_routing::trial::{ip, mac, ms, node, udp};
use manet_routing::{Bytes, Input, Output};
use net::{chain, delivered, frames, net_of, path, route, routed, send, Net};

/// 1-2-3-4 with the detour 2-5-6-4, so that 1's first choice is 1-2-3-4 and node 2 knows both.
fn with_detour(options: &Options) -> Net {
    let mut net = chain(6, options);
    net.cut(4, 5);
    for (a, b) in [(2, 5), (6, 4)] {
        net.link(a, b);
    }
    // both paths are in node 2's cache: it sent a request for 4 itself, and 4 replied to each copy
    send(&mut net, 2, 4, 1);
    net.run(ms(1000));
    send(&mut net, 1, 4, 2);
    net.run(ms(2000));
    assert_eq!(delivered(&net, 4), [1, 2]);
    assert_eq!(path(&net, 1, 4), Some(vec![ip(2), ip(3), ip(4)]));
    net
}

#[test]
fn a_packet_is_salvaged_where_its_link_breaks_after_an_error_to_the_source() {
    let mut net = with_detour(&Options::default());
    net.cut(2, 3);
    send(&mut net, 1, 4, 3);
    net.run(ms(2010));
    assert_eq!(delivered(&net, 4), [1, 2, 3]);
    assert_eq!(net.notes(2, "salvage"), [(ip(4), 1)]);
    let frames = frames(&net, 2);
    let error = frames.iter().position(|(_, p)| p.options.iter().any(|o| matches!(o, Opt::Error(_)))).unwrap();
    let salvaged = frames.iter().position(|(_, p)| p.salvage() == 1).unwrap();
    assert!(error < salvaged, "8.3.6: the error goes first");
    // 8.3.6: address 1 is the salvaging node; 5 and 6 are still to be visited
    let route = frames[salvaged].1.source_route().unwrap();
    assert_eq!((route.addresses.as_slice(), route.segments_left), ([ip(2), ip(5), ip(6)].as_slice(), 2));
    assert!(frames[error]
        .1
        .options
        .iter()
        .any(|o| matches!(o, Opt::Error(e) if e.destination == ip(1) && e.what == What::NodeUnreachable(ip(3)))));
    // and the source has removed the link from its cache
    assert_ne!(path(&net, 1, 4), Some(vec![ip(2), ip(3), ip(4)]));
}

#[test]
fn without_salvage_the_packet_is_dropped_and_its_source_gets_icmp() {
    let mut net = with_detour(&Options { salvage: false, ..Options::default() });
    net.cut(2, 3);
    send(&mut net, 1, 4, 3);
    net.run(ms(2010));
    assert_eq!(delivered(&net, 4), [1, 2]);
    let icmp = net.outputs(1).find_map(|o| if let Output::Deliver { bytes } = o { Some(bytes.clone()) } else { None });
    let icmp = icmp.expect("an ICMP error");
    let error = ipv4::Packet::parse(&icmp).unwrap();
    assert_eq!((error.protocol(), error.source(), &error.payload()[..2]), (protocol::ICMP, ip(2), [3, 1].as_slice()));
    // the quoted packet has no DSR header: it is the stack's packet with the TTL one less
    let quoted = ipv4::Packet::parse(&error.payload()[8..]).unwrap();
    assert_eq!((quoted.protocol(), quoted.identification(), quoted.ttl()), (protocol::UDP, 3, 63));
    assert_eq!(net.notes(2, "unreachable"), [(ip(4), 17)]);
    // the note has the same packet, whole: the host notes its source, ports and sequence number (formats/routing.md)
    let dead = net.outputs(2).find_map(|o| if let Output::Note(n) = o { n.packet.clone() } else { None });
    assert_eq!(dead.as_ref().map(|d| d.0.as_slice()), Some(quoted.bytes()));
    let via = net.outputs(1).find_map(|o| if let Output::Note(n) = o { n.via } else { None });
    assert_eq!(via, Some(ip(2)));
}

/// TCP from port 5001 to 80, sequence number 258.
fn tcp(from: usize, to: usize, id: u16) -> Bytes {
    let mut bytes = udp(ip(from), ip(to), id, b"hello, TCP");
    bytes.0[9] = protocol::TCP;
    bytes.0[20..28].copy_from_slice(&[0x13, 0x89, 0, 80, 0, 0, 1, 2]);
    ipv4::repair(&mut bytes.0);
    bytes
}

fn with_error_notices() -> Options {
    Options { error_notices: true, ..Options::default() }
}

/// The ICMP messages that a node's stack gets: type, code and quoted packet.
fn icmp_at(net: &Net, n: usize) -> Vec<([u8; 2], Vec<u8>)> {
    let of = |o: &Output| {
        let Output::Deliver { bytes } = o else { return None };
        let message = ipv4::Packet::parse(bytes).filter(|p| p.protocol() == protocol::ICMP)?;
        let payload = message.payload();
        assert_eq!((message.destination(), manet_routing::packet::checksum(payload)), (ip(n), 0));
        Some(([payload[0], payload[1]], payload[8..].to_vec()))
    };
    net.outputs(n).filter_map(of).collect()
}

#[test]
fn the_source_of_a_salvaged_packet_gets_a_notice_in_the_route_error_and_no_other_node_does() {
    // Holland and Vaidya, section 6: the route failure message carries the addresses, ports and sequence number
    let mut net = with_detour(&with_error_notices());
    net.cut(2, 3);
    net.input(1, Input::Packet { bytes: tcp(1, 4, 3) });
    net.run(ms(2010));
    assert_eq!((delivered(&net, 4), net.notes(2, "salvage")), (vec![1, 2, 3], vec![(ip(4), 1)]));
    let notices = icmp_at(&net, 1);
    let [([253, 2], quoted)] = notices.as_slice() else { panic!("{notices:?}") };
    let header_and_ports = [&quoted[12..20], &quoted[20..]].concat();
    assert_eq!(header_and_ports, [10, 0, 0, 1, 10, 0, 0, 4, 0x13, 0x89, 0, 80, 0, 0, 1, 2]);
    assert!((2..=6).all(|n| icmp_at(&net, n).is_empty()));
    assert_eq!((net.counter(1, "errors-received"), net.counter(2, "error-notices-sent")), (1, 1));
    assert_eq!((net.notes(2, "route-error"), net.total("icmp-sent")), (vec![(ip(4), 6)], 0));
    assert_ne!(path(&net, 1, 4), Some(vec![ip(2), ip(3), ip(4)]));
}

#[test]
fn a_route_error_is_without_notice_by_default_and_for_other_protocols_than_tcp() {
    for (options, bytes) in [(Options::default(), tcp(1, 4, 3)), (with_error_notices(), udp(ip(1), ip(4), 3, b"x"))] {
        let mut net = with_detour(&options);
        net.cut(2, 3);
        net.input(1, Input::Packet { bytes });
        net.run(ms(2010));
        assert_eq!((net.counter(1, "errors-received"), icmp_at(&net, 1).len()), (1, 0));
        assert_eq!(net.total("error-notices-sent"), 0);
    }
}

#[test]
fn the_second_break_of_a_salvaged_packet_is_reported_to_the_salvaging_node_only() {
    let mut net = with_detour(&with_error_notices());
    net.cut(2, 3);
    net.cut(5, 6);
    net.input(1, Input::Packet { bytes: tcp(1, 4, 3) });
    net.run(ms(2020));
    assert_eq!((net.counter(1, "errors-received"), net.counter(2, "errors-received")), (1, 1));
    assert_eq!((net.total("error-notices-sent"), icmp_at(&net, 2).len()), (1, 0));
    // the packet is lost at node 5, which answers as without notices (8.3.6: no further salvage)
    let kinds: Vec<[u8; 2]> = icmp_at(&net, 1).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, [[253, 2], [3, 1]]);
}

#[test]
fn a_route_error_with_a_notice_that_cannot_be_sent_starts_no_discovery() {
    let mut net = with_detour(&with_error_notices());
    net.cut(2, 3);
    net.cut(1, 2);
    let requests = net.total("requests-to-neighbours");
    net.input(2, Input::FrameFailed { to: mac(3), bytes: routed(&tcp(1, 4, 3), route(0, 1, &[2, 3])) });
    net.run(ms(2500));
    assert_eq!((delivered(&net, 4), net.counter(2, "error-notices-sent")), (vec![1, 2, 3], 1));
    assert_eq!((net.counter(2, "control-lost"), net.total("requests-to-neighbours")), (1, requests));
    assert!(icmp_at(&net, 1).is_empty());
}

#[test]
fn our_own_packet_takes_another_route_or_waits_for_one() {
    let mut net = net::net(4, &Options::default());
    for (a, b) in [(1, 2), (2, 4)] {
        net.link(a, b);
    }
    send(&mut net, 1, 4, 1);
    net.run(ms(1000));
    net.cut(1, 2);
    net.link(1, 3);
    net.link(3, 4);
    send(&mut net, 1, 4, 2);
    net.run(ms(2000));
    assert_eq!(delivered(&net, 4), [1, 2]);
    assert_eq!((net.counter(1, "resent"), net.notes(1, "link-broken")), (1, vec![(ip(2), 1)]));
}

#[test]
fn packets_purged_for_a_broken_link_are_treated_like_the_first_without_second_reports() {
    let mut net = with_detour(&Options { salvage: false, ..Options::default() });
    let waiting: Vec<Bytes> = (10..30).map(|id| routed(&udp(ip(1), ip(4), id, b"x"), route(0, 1, &[2, 3]))).collect();
    net.input(2, Input::FrameFailed { to: mac(3), bytes: waiting[0].clone() });
    assert!(net.outputs(2).any(|o| *o == Output::PurgeFrames { to: mac(3) }));
    net.input(2, Input::FramesPurged { to: mac(3), packets: waiting[1..].to_vec() });
    assert_eq!((net.counter(2, "lost"), net.counter(2, "errors-sent"), net.counter(2, "icmp-sent")), (20, 1, 1));
}

#[test]
fn a_packet_is_salvaged_at_most_fifteen_times_and_a_lone_reply_never() {
    for (salvage, only_reply, saved) in [(14, false, 1), (15, false, 0), (0, true, 0)] {
        let mut net = with_detour(&Options::default());
        let packet = if only_reply {
            let reply = manet_dsr::wire::Reply { last_external: false, addresses: vec![ip(1)] };
            Datagram::control(ip(1), ip(4), 9, vec![Opt::Reply(reply)]).to_bytes()
        } else {
            udp(ip(1), ip(4), 9, b"x")
        };
        let hops: &[usize] = if salvage > 0 { &[7, 2, 3] } else { &[2, 3] };
        net.input(2, Input::FrameFailed { to: mac(3), bytes: routed(&packet, route(salvage, 1, hops)) });
        assert_eq!(net.counter(2, "salvaged"), saved, "salvage {salvage}, only a reply: {only_reply}");
    }
}

#[test]
fn an_error_is_included_in_the_next_request() {
    // section 3.4.4; 2-3 breaks, 1 gets an error and sends a new request
    let mut net = chain(3, &Options::default());
    send(&mut net, 1, 3, 1);
    net.run(ms(1000));
    net.cut(2, 3);
    send(&mut net, 1, 3, 2);
    net.run(ms(1010));
    send(&mut net, 1, 3, 3);
    net.run(ms(1100));
    let requests: Vec<_> = frames(&net, 1).into_iter().filter(|(_, p)| p.request().is_some()).collect();
    let reported =
        |p: &Datagram| p.options.iter().any(|o| matches!(o, Opt::Error(e) if e.what == What::NodeUnreachable(ip(3))));
    let reported: Vec<bool> = requests.iter().map(|(_, p)| reported(p)).collect();
    assert_eq!(reported[reported.len() - 2..], [true, true], "the request to neighbours and the one to all");
    assert!(!reported[0]);
    // its copy from node 2 does not make it pending again
    net.run(ms(3000));
    let later: Vec<_> =
        frames(&net, 1).into_iter().filter(|(_, p)| p.request().is_some()).skip(requests.len()).collect();
    assert!(later.len() >= 2 && later.iter().all(|(_, p)| p.options.len() == 1));
}

#[test]
fn a_node_that_overhears_a_packet_early_shortens_the_route_once_per_second() {
    let mut net = chain(4, &Options::default());
    send(&mut net, 1, 4, 1);
    net.run(ms(1000));
    net.link(1, 3); // 3 has come into range of 1
    for id in 2..6 {
        send(&mut net, 1, 4, id);
        net.run(ms(1000 + u64::from(id)));
    }
    net.run(ms(1500));
    assert_eq!(path(&net, 1, 4), Some(vec![ip(3), ip(4)]));
    assert_eq!(net.notes(3, "shortened"), [(ip(4), 1)]);
    assert_eq!(delivered(&net, 4), [1, 2, 3, 4, 5]);
}

#[test]
fn without_shortening_the_long_route_stays() {
    let mut net = chain(4, &Options { shortening: false, snoop: false, ..Options::default() });
    send(&mut net, 1, 4, 1);
    net.run(ms(1000));
    net.link(1, 3);
    send(&mut net, 1, 4, 2);
    net.run(ms(1500));
    assert_eq!(path(&net, 1, 4).unwrap().len(), 3);
}

fn by_acks() -> Options {
    Options { link: Link::Ack, ..Options::default() }
}

fn deaf(count: usize, options: &Options) -> Net {
    net_of((1..=count).map(|n| manet_routing::Node { feedback: false, ..node(n) }), options).chained()
}

#[test]
fn a_next_hop_is_confirmed_by_its_forwarding_and_the_last_one_by_a_request() {
    let mut net = deaf(3, &by_acks());
    send(&mut net, 1, 3, 1);
    net.run(ms(2000));
    assert_eq!(delivered(&net, 3), [1]);
    assert!(net.counter(1, "passive-acks") >= 1 && net.counter(1, "asked-for-ack") == 0);
    assert!(net.counter(3, "acks-sent") >= 1 && net.counter(2, "acks-received") >= 1);
    assert_eq!(net.total("links-broken"), 0);
}

#[test]
fn a_silent_next_hop_gets_three_requests_before_the_link_is_broken() {
    // 8.3.2, 8.3.3: 100 ms for the passive acknowledgement, then a request and two retransmissions (MaxMaintRexmt)
    let mut net = deaf(3, &by_acks());
    send(&mut net, 1, 3, 1);
    net.run(ms(2000));
    net.cut(1, 2);
    send(&mut net, 1, 3, 2);
    net.run(ms(2099));
    assert_eq!(net.counter(1, "asked-for-ack"), 0);
    net.run(ms(3500));
    assert_eq!((net.counter(1, "asked-for-ack"), net.notes(1, "link-broken")), (3, vec![(ip(2), 2)]));
    net.link(1, 2);
    net.run(ms(20_000));
    assert_eq!(delivered(&net, 3), [1, 2]);
}

#[test]
fn a_silent_neighbour_is_not_tried_again_before_it_is_heard() {
    let mut net = deaf(3, &by_acks());
    send(&mut net, 1, 3, 1);
    net.run(ms(2000));
    net.cut(1, 2);
    send(&mut net, 1, 3, 2);
    net.run(ms(3500));
    assert_eq!(net.notes(1, "link-broken"), [(ip(2), 2)]);
    // another node's old route over 2 is not learnt: 2 has no known link address
    let old = routed(&udp(ip(8), ip(3), 9, b"x"), route(0, 2, &[1, 2]));
    let sent = frames(&net, 1).iter().filter(|(to, _)| *to == mac(2)).count();
    net.input(1, Input::Frame { from: mac(8), to: mac(1), bytes: old });
    assert_eq!((path(&net, 1, 3), net.counter(1, "no-mac")), (None, 1));
    let frames = frames(&net, 1);
    assert_eq!(frames.iter().filter(|(to, _)| *to == mac(2)).count(), sent);
    let reported = |p: &Datagram| {
        p.options
            .iter()
            .any(|o| matches!(o, Opt::Error(e) if e.destination == ip(8) && e.what == What::NodeUnreachable(ip(2))))
    };
    assert!(frames.iter().any(|(to, p)| *to == mac(8) && reported(p)));
}

#[test]
fn without_feedback_a_packet_is_salvaged_once_by_a_node() {
    for (options, times) in [(by_acks(), 1), (Options::default(), 2)] {
        let mut net = with_detour(&options);
        for _ in 0..2 {
            let bytes = routed(&udp(ip(1), ip(4), 9, b"x"), route(0, 1, &[2, 3]));
            net.input(2, Input::FrameFailed { to: mac(3), bytes });
        }
        assert_eq!((net.counter(2, "salvaged"), net.counter(2, "salvaged-before")), (times, 2 - times));
        assert_eq!(net.counter(2, "icmp-sent"), 0);
    }
}

#[test]
fn a_request_next_to_an_acknowledgement_for_another_node_is_ignored() {
    // RFC 4728, 8.3.3
    for (destination, answers) in [(ip(1), 1), (ip(7), 0)] {
        let mut net = deaf(2, &by_acks());
        let ack = manet_dsr::wire::Ack { identification: 5, source: ip(2), destination };
        let request = manet_dsr::wire::AckRequest { identification: 6 };
        let both = vec![Opt::Ack(ack), Opt::AckRequest(request)];
        let packet = Datagram::control(ip(2), ip(1), 9, both);
        net.input(1, Input::Frame { from: mac(2), to: mac(1), bytes: packet.to_bytes() });
        assert_eq!(net.counter(1, "acks-sent"), answers);
    }
}

#[test]
fn acknowledgements_are_used_with_a_radio_without_feedback() {
    let mut net = deaf(2, &Options::default());
    send(&mut net, 1, 2, 1);
    net.run(ms(1000));
    assert_eq!(net.counter(2, "acks-sent"), 1);
}

#[test]
fn an_undelivered_error_is_relayed_behind_the_error_about_it() {
    // section 8.3.4 and 8.3.5: 3 reported its broken link to 1 over 2; 2 cannot reach 1 and reports that to 3, with the
    // lost error
    let mut net = chain(4, &Options::default());
    send(&mut net, 1, 4, 1);
    net.run(ms(1000));
    net.cut(3, 4);
    send(&mut net, 1, 4, 2);
    net.run(ms(1001));
    net.cut(1, 2);
    net.run(ms(1100));
    let nested: Vec<usize> = frames(&net, 2)
        .iter()
        .map(|(_, p)| p.options.iter().filter(|o| matches!(o, Opt::Error(_))).count())
        .filter(|n| *n > 1)
        .collect();
    assert_eq!(nested, [2]);
}
