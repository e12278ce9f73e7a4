//! Forged, replayed, cut and flooding frames: they are counted, and all tables stay bounded.

mod net;
use manet_dsr::datagram::Datagram;
use manet_dsr::wire::{Opt, Reply, Request, RouteError, SourceRoute, Unknown, What};
use manet_dsr::{Dsr, Options};
use manet_engine::{Instant, Machine};
use manet_routing::arp::Resolution;
use manet_routing::packet::arp::{Message, Operation};
use manet_routing::packet::ipv4;
use manet_routing::trial::{ip, mac, ms, node, udp};
use manet_routing::{Bytes, Input, Output, Protocol, BROADCAST};
use net::{chain, frames, path, route, routed, send};
use proptest::prelude::*;
use std::net::Ipv4Addr;

fn data(from: usize, to: usize, option: Opt) -> Bytes {
    routed(&udp(ip(from), ip(to), 1, b"x"), option)
}

/// Asserts that node 3 counts this packet of its neighbour 2 as `reason`, and neither sends nor delivers anything.
fn counted(bytes: Bytes, reason: &str) {
    let mut net = chain(4, &Options::default());
    net.input(2, Input::Packet { bytes: udp(ip(2), ip(4), 9, b"x") });
    net.run(ms(1000));
    let before = net.log.len();
    net.input(3, Input::Frame { from: mac(2), to: mac(3), bytes });
    assert_eq!(net.counter(3, reason), 1, "{reason}: {:?}", net.status(3).counters);
    let after: Vec<_> = net.log[before..].iter().map(|(.., output)| output).collect();
    assert!(after.iter().all(|o| matches!(o, Output::Note(_))), "{reason}: {after:?}");
}

#[test]
fn inconsistent_routes_are_dropped_by_their_reason() {
    counted(data(1, 4, route(0, 3, &[2, 3])), "bad-route"); // more segments left than hops
    counted(data(1, 4, route(0, 2, &[2, 3, 3])), "route-loop"); // we twice
    counted(data(1, 4, route(0, 1, &[2, 1])), "route-loop"); // back to the source
    counted(data(1, 4, route(0, 1, &[2, 4])), "route-loop"); // the destination in the middle
    counted(data(1, 4, route(0, 2, &[2, 3])), "not-our-turn"); // 2's turn
    counted(data(1, 4, route(0, 0, &[2, 3])), "own-source"); // as if we had sent it
    counted(data(1, 4, route(1, 2, &[2, 3])), "bad-route"); // salvaged by 2, but 2 has still to be visited
    counted(data(3, 4, route(0, 1, &[2])), "own-source"); // our own, which we never sent
    counted(data(3, 3, route(0, 0, &[2])), "own-source"); // from us to us
    counted(udp(ip(2), ip(9), 1, b"x"), "no-source-route");
    counted(Bytes(vec![0x45; 10]), "not-ip");
}

#[test]
fn wrong_lengths_are_dropped_by_their_reason() {
    let good = data(1, 4, route(0, 1, &[2, 3]));
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes.0[at] = value;
        bytes
    };
    counted(with(23, 200), "truncated"); // payload length of the DSR header, 200 > the bytes after it
    counted(with(25, 200), "truncated"); // length of the option
    counted(with(25, 9), "bad-length"); // not whole addresses: 2 + 7
    counted(with(25, 1), "bad-length"); // not even the fixed part
    counted(with(21, 0x80), "flow-state");
    counted(with(3, 255), "not-ip"); // total length beyond the frame
}

#[test]
fn every_truncation_of_a_forwarded_packet_is_survived() {
    let good = data(1, 4, route(0, 1, &[2, 3]));
    let mut machine = Dsr::new(node(3), Options::default()).unwrap();
    for len in 0..good.len() {
        let bytes = Bytes(good[..len].to_vec());
        machine.handle(Instant::ZERO, Input::Frame { from: mac(2), to: mac(3), bytes });
        assert!(machine.poll_output().is_none());
    }
    assert_eq!(machine.status(Instant::ZERO).counters.get("not-ip"), good.len() as u64);
}

#[test]
fn a_packet_is_dropped_when_its_ttl_expires() {
    let mut packet = Datagram::parse(&data(1, 4, route(0, 1, &[2, 3]))).unwrap();
    packet.set_ttl(1);
    counted(packet.to_bytes(), "ttl-expired");
}

#[test]
fn inconsistent_requests_are_dropped() {
    let request = |source: usize, target: usize, by: &[usize]| {
        let addresses = by.iter().map(|n| ip(*n)).collect();
        let request = Request { identification: 77, target: ip(target), addresses };
        Datagram::control(ip(source), BROADCAST, 1, vec![Opt::Request(request)]).to_bytes()
    };
    counted(request(1, 9, &[2, 5, 2]), "request-loop");
    counted(request(1, 9, &[5, 3, 2]), "request-returned"); // we have already forwarded it
    counted(request(1, 9, &[9, 2]), "request-loop"); // the target has forwarded a request for itself
    counted(request(9, 9, &[2]), "request-loop");
    counted(request(3, 9, &[2]), "request-own");
}

#[test]
fn a_forged_reply_cannot_name_a_neighbour_that_was_never_heard() {
    let mut net = chain(3, &Options::default());
    send(&mut net, 2, 3, 1);
    net.run(ms(100));
    let reply = Reply { last_external: false, addresses: vec![ip(99), ip(50)] };
    let bytes = Datagram::control(ip(3), ip(2), 1, vec![Opt::Reply(reply)]).to_bytes();
    net.input(2, Input::Frame { from: mac(3), to: mac(2), bytes });
    assert_eq!((path(&net, 2, 50), net.counter(2, "reply-elsewhere")), (None, 1));
}

#[test]
fn unknown_options_are_treated_by_their_types() {
    // section 8.1.6, at node 3 on the path from 1 to 4: ignore, remove, mark, drop; with bit 0x80 the source gets an error
    let unknown = |kind: u8| Opt::Unknown(Unknown { kind, data: vec![1, 2] });
    let passed_on = |kind: u8| {
        let mut net = chain(4, &Options::default());
        send(&mut net, 1, 4, 1);
        net.run(ms(1000));
        let mut packet = Datagram::parse(&data(1, 4, route(0, 1, &[2, 3]))).unwrap();
        packet.options.push(unknown(kind));
        net.input(3, Input::Frame { from: mac(2), to: mac(3), bytes: packet.to_bytes() });
        let sent = frames(&net, 3).into_iter().rev().find(|(_, p)| p.destination() == ip(4) && p.salvage() == 0);
        let kinds = sent.filter(|_| net.counter(3, "unknown-option") == 0).map(|(_, p)| {
            let unknown = |o: &Opt| if let Opt::Unknown(u) = o { Some((u.kind, u.data.clone())) } else { None };
            p.options.iter().filter_map(unknown).collect::<Vec<_>>()
        });
        let reported = frames(&net, 3).iter().any(|(_, p)| {
            p.options.iter().any(|o| matches!(o, Opt::Error(e) if e.what == What::OptionNotSupported(kind)))
        });
        (kinds, reported)
    };
    assert_eq!(passed_on(0b0000_0100), (Some(vec![(0b0000_0100, vec![1, 2])]), false));
    assert_eq!(passed_on(0b0010_0100), (Some(vec![]), false));
    // the mark: the first bit after the length
    assert_eq!(passed_on(0b0100_0100), (Some(vec![(0b0100_0100, vec![0x81, 2])]), false));
    assert_eq!(passed_on(0b0110_0100), (None, false));
    assert_eq!(passed_on(0b1000_0000), (Some(vec![(0b1000_0000, vec![1, 2])]), true)); // flow state: timeout option
    assert_eq!(passed_on(0b1110_0100), (None, true));
}

/// Sizes of all tables and queues.
fn sizes(machine: &Dsr, now: Instant) -> [usize; 6] {
    let status = machine.status(now);
    let of = |name: &str| status.details[name].as_u64().unwrap() as usize;
    let paths = status.details["paths"].as_array().unwrap().len();
    [paths, of("discoveries"), of("initiators"), of("delayed"), of("unconfirmed"), status.neighbours.len()]
}

#[test]
fn ten_thousand_requests_per_second_leave_all_tables_bounded() {
    let mut machine = Dsr::new(node(1), Options::default()).unwrap();
    let mut passed_on = 0;
    for n in 0..20_000u32 {
        let now = Instant::from_nanos(u64::from(n) * 100_000);
        machine.handle_timeout(now);
        // each from another initiator, over another neighbour, for another target
        let address = |k: u32| Ipv4Addr::from(0x0a10_0000 + n * 4 + k);
        let request = Request { identification: n as u16, target: address(1), addresses: vec![address(2)] };
        let bytes = Datagram::control(address(0), BROADCAST, 1, vec![Opt::Request(request)]).to_bytes();
        let from = [2, 1, 0, (n >> 16) as u8, (n >> 8) as u8, n as u8];
        machine.handle(now, Input::Frame { from, to: manet_routing::BROADCAST_MAC, bytes });
        while let Some(output) = machine.poll_output() {
            passed_on += usize::from(matches!(output, Output::Frame { .. }));
        }
        if n % 1000 == 999 {
            assert!(sizes(&machine, now).iter().zip([64, 64, 64, 256, 50, 256]).all(|(is, most)| *is <= most));
        }
    }
    assert!(passed_on > 15_000, "{passed_on}: a flood that fits the tables is passed on, as the RFC has it");
}

#[test]
fn a_stack_that_sends_to_all_addresses_leaves_all_tables_bounded() {
    let mut machine = Dsr::new(node(1), Options::default()).unwrap();
    for n in 0..5000u32 {
        let bytes = udp(ip(1), Ipv4Addr::from(0x0a10_0000 + n), 1, b"x");
        machine.handle(Instant::from_nanos(u64::from(n) * 1000), Input::Packet { bytes });
        while machine.poll_output().is_some() {}
    }
    let now = Instant::from_nanos(5_000_000);
    assert_eq!((machine.status(now).held, sizes(&machine, now)[1]), (64, 64));
}

fn opt() -> impl Strategy<Value = Opt> {
    let hops = || proptest::collection::vec((1..9usize).prop_map(ip), 0..6);
    let one = || (1..9usize).prop_map(ip);
    prop_oneof![
        (any::<u16>(), one(), hops()).prop_map(|(identification, target, addresses)| Opt::Request(Request {
            identification,
            target,
            addresses
        })),
        (any::<bool>(), hops().prop_filter("one", |h| !h.is_empty()))
            .prop_map(|(last_external, addresses)| Opt::Reply(Reply { last_external, addresses })),
        (0..16u8, one(), one(), one()).prop_map(|(salvage, source, destination, node)| Opt::Error(RouteError {
            salvage,
            source,
            destination,
            what: What::NodeUnreachable(node)
        })),
        (any::<bool>(), any::<bool>(), 0..3u8, 0..6u8, hops()).prop_map(|(f, l, salvage, left, addresses)| {
            Opt::SourceRoute(SourceRoute {
                first_external: f,
                last_external: l,
                salvage,
                segments_left: left,
                addresses,
            })
        }),
        any::<u16>().prop_map(|identification| Opt::AckRequest(manet_dsr::wire::AckRequest { identification })),
        (0..9u16, one(), one()).prop_map(|(identification, source, destination)| Opt::Ack(manet_dsr::wire::Ack {
            identification,
            source,
            destination
        })),
        any::<u8>().prop_map(|kind| Opt::Unknown(Unknown { kind: kind | 4, data: vec![1] })),
    ]
}

fn packet() -> impl Strategy<Value = Bytes> {
    let parts = (1..9usize, 1..9usize, proptest::collection::vec(opt(), 0..4), any::<u8>(), any::<bool>());
    parts.prop_map(|(from, to, options, ttl, control)| {
        let mut packet = if control {
            Datagram::control(ip(from), ip(to), 1, options)
        } else {
            let mut packet = Datagram::parse(&udp(ip(from), ip(to), 1, b"x")).unwrap();
            packet.options = options;
            packet
        };
        packet.set_ttl(ttl);
        packet.to_bytes()
    })
}

proptest! {
    /// Forged packets of every kind, as frames, overheard, failed and purged: no panic, no route with a repeated node, no
    /// frame that does not parse, no deadline left behind.
    #[test]
    fn no_input_of_a_neighbour_breaks_a_node(
        packets in proptest::collection::vec((packet(), 2..9usize, 0..6u8), 1..60), by_acks in any::<bool>(), arp in 0..3u8
    ) {
        let link = if by_acks { manet_dsr::options::Link::Ack } else { manet_dsr::options::Link::Feedback };
        let arp = [Resolution::None, Resolution::Cmu, Resolution::Silent][usize::from(arp)];
        let mut machine = Dsr::new(node(1), Options { link, arp, ..Options::default() }).unwrap();
        for (i, (bytes, neighbour, how)) in packets.into_iter().enumerate() {
            let now = ms(i as u64 * 7);
            machine.handle_timeout(now);
            prop_assert!(machine.next_timeout().is_none_or(|t| t > now));
            let (from, to) = (mac(neighbour), mac(1));
            let input = match how {
                0 | 1 => Input::Frame { from, to, bytes },
                2 => Input::Overheard { from, to: mac(9), bytes },
                3 => Input::FrameFailed { to: from, bytes },
                4 => Input::Arp { from, bytes: Bytes(arp_request(neighbour, bytes[4]).to_bytes()) },
                _ => Input::FramesPurged { to: from, packets: vec![bytes] },
            };
            machine.handle(now, input);
            if i % 3 == 0 {
                machine.handle(now, Input::Packet { bytes: udp(ip(1), ip(neighbour), i as u16, b"y") });
            }
            while let Some(output) = machine.poll_output() {
                let Output::Frame { bytes, .. } = output else { continue };
                prop_assert!(ipv4::Packet::parse(&bytes).is_some());
                let packet = Datagram::parse(&bytes).unwrap();
                let Some(walk) = packet.walk() else { continue };
                let mut nodes = walk.nodes.clone();
                nodes.sort();
                nodes.dedup();
                prop_assert_eq!(nodes.len(), walk.nodes.len(), "{}", packet);
            }
            for (list, external) in paths(&machine, now) {
                let mut nodes = list.clone();
                nodes.sort();
                nodes.dedup();
                prop_assert!(nodes.len() == list.len() && !nodes.contains(&ip(1)) && !external);
            }
        }
    }

    #[test]
    fn noise_breaks_no_node(frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..100), 1..20)) {
        let mut machine = Dsr::new(node(1), Options::default()).unwrap();
        for bytes in frames {
            let mut bytes = Bytes(bytes);
            // after the IP header, or only that would be tested
            if bytes.len() > 24 {
                bytes.0[0] = 0x45;
                bytes.0[9] = 48;
                ipv4::repair(&mut bytes.0);
            }
            machine.handle(Instant::ZERO, Input::Frame { from: mac(2), to: mac(1), bytes: bytes.clone() });
            machine.handle(Instant::ZERO, Input::Arp { from: mac(2), bytes: bytes.clone() });
            machine.handle(Instant::ZERO, Input::Packet { bytes });
        }
    }
}

/// A request of a neighbour for node 1 or another.
fn arp_request(neighbour: usize, target: u8) -> Message {
    let (operation, sender_mac, target_mac) = (Operation::Request, mac(neighbour), [0; 6]);
    Message { operation, sender_mac, sender: ip(neighbour), target_mac, target: ip(usize::from(target % 3)) }
}

fn paths(machine: &Dsr, now: Instant) -> Vec<(Vec<Ipv4Addr>, bool)> {
    let details = machine.status(now).details;
    let path =
        |p: &serde_json::Value| (serde_json::from_value(p["hops"].clone()).unwrap(), p["external"].as_bool().unwrap());
    details["paths"].as_array().unwrap().iter().map(path).collect()
}
