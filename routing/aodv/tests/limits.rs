//! Floods and forged messages do not exceed the machine's bounds.

use manet_aodv::table;
use manet_aodv::wire::{rerr, rrep, rreq, Message};
use manet_aodv::{Aodv, Options};
use manet_engine::{random, Duration, Instant, Machine, Stream};
use manet_routing::trial::{ip, udp};
use manet_routing::{Bytes, Input, Node, Output, Protocol, BROADCAST};
use std::net::Ipv4Addr;

fn machine(options: Options) -> Aodv {
    machine_in((Ipv4Addr::new(10, 0, 0, 0), 8), options)
}

fn machine_in(network: (Ipv4Addr, u8), options: Options) -> Aodv {
    let node = Node::new(2, ip(2), network, [2, 0, 0, 0, 0, 2]);
    Aodv::new(node, options).unwrap()
}

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(us)
}

fn control(from: Ipv4Addr, to: Ipv4Addr, message: Message) -> Input {
    Input::Control { from, to, ttl: 10, bytes: Bytes(message.emit()) }
}

fn request(id: u32, destination: Ipv4Addr, originator: Ipv4Addr, sequence: u32) -> Message {
    let request = rreq::Repr::new(id, destination, originator, sequence);
    Message::Rreq(rreq::Repr { gratuitous: true, unknown: true, hops: 3, ..request })
}

fn reply(destination: Ipv4Addr, originator: Ipv4Addr, sequence: u32) -> Message {
    Message::Rrep(rrep::Repr::new(destination, sequence, originator, 60_000))
}

fn drain(machine: &mut Aodv) -> Vec<Output> {
    std::iter::from_fn(|| machine.poll_output()).collect()
}

/// Handles the input after all earlier deadlines; returns the outputs.
fn handle(machine: &mut Aodv, now: Instant, input: Input) -> Vec<Output> {
    let mut out = Vec::new();
    while let Some(due) = machine.next_timeout().filter(|t| *t <= now) {
        machine.handle_timeout(due);
        assert!(machine.next_timeout().is_none_or(|t| t > due), "a stale deadline");
        out.extend(drain(machine));
    }
    machine.handle(now, input);
    out.extend(drain(machine));
    out
}

fn data(source: Ipv4Addr, destination: Ipv4Addr, identification: u16) -> Input {
    Input::Packet { bytes: udp(source, destination, identification, b"data") }
}

#[test]
fn ten_thousand_forged_requests_per_second_leave_tables_bounded_and_a_used_route_intact() {
    let mut m = machine(Options::default());
    let mut rng = Stream::new(1, 1, random::Purpose::Traffic);
    handle(&mut m, at(0), control(ip(3), ip(2), reply(ip(4), ip(2), 7)));
    handle(&mut m, at(0), data(ip(2), ip(4), 1));
    let (mut broadcasts, mut routes_set) = (0, 0);
    for n in 0..30_000u32 {
        let now = at(u64::from(n) * 100);
        let from = Ipv4Addr::from(0x0a02_0000 + rng.below(5000) as u32);
        let originator = Ipv4Addr::from(0x0a03_0000 + rng.below(60_000) as u32);
        let message = request(rng.next_u64() as u32, ip(99), originator, rng.next_u64() as u32);
        for output in handle(&mut m, now, control(from, BROADCAST, message)) {
            broadcasts += usize::from(matches!(output, Output::Control { .. }));
            routes_set += usize::from(matches!(output, Output::SetRoute(_)));
        }
    }
    let status = m.status(at(3_000_000));
    let remembered = status.details["requests_remembered"].as_u64().unwrap();
    assert!(status.routes.len() <= table::MAX_ROUTES && remembered <= 4096, "{} {remembered}", status.routes.len());
    assert!(status.routes.iter().any(|r| r.destination == ip(4) && r.state == "valid"));
    // none of the forged routes reached the kernel; each request was forwarded or its loss counted
    let count = |name| status.counters.get(name) as usize;
    assert_eq!((routes_set, count("rreq-received")), (0, 30_000));
    let waiting = 30_000 - broadcasts - count("rreq-queue-full");
    assert!(waiting <= 256, "{waiting}");
}

#[test]
fn forged_replies_do_not_fill_the_table_either() {
    let mut m = machine(Options::default());
    for n in 0..20_000u32 {
        handle(&mut m, at(n.into()), control(ip(3), ip(2), reply(Ipv4Addr::from(0x0a03_0000 + n), ip(2), 7)));
    }
    let status = m.status(at(20_000));
    assert_eq!(status.routes.len(), table::MAX_ROUTES);
    // all others were cleared in the kernel; the neighbour's own entry, which was not there, may have gone too
    let evicted = status.counters.get("route-evicted") as usize;
    assert!(evicted.abs_diff(20_000 - table::MAX_ROUTES) <= 1, "{evicted}");
}

#[test]
fn packets_to_many_destinations_do_not_exceed_the_buffer() {
    let mut m = machine(Options::default());
    let mut unreachable = 0;
    for n in 0..5000u32 {
        let outputs = handle(&mut m, at(u64::from(n) * 1000), data(ip(2), Ipv4Addr::from(0x0a03_0000 + n), n as u16));
        unreachable += outputs.iter().filter(|o| matches!(o, Output::Unreachable { .. })).count();
        assert!(m.status(at(u64::from(n) * 1000)).held <= 64);
    }
    let counters = m.status(at(5_000_000)).counters;
    // ten requests a second and the first ten at once
    assert!(counters.get("rreq-sent") <= 60, "{}", counters.get("rreq-sent"));
    assert_eq!(unreachable as u64, counters.get("no-route"));
    assert_eq!(counters.get("no-route") + counters.get("held-full") + m.status(at(5_000_000)).held as u64, 5000);
}

#[test]
fn no_route_error_is_longer_than_100_destinations() {
    let mut m = machine(Options::default());
    handle(&mut m, at(0), control(ip(1), BROADCAST, request(1, ip(9), ip(1), 5)));
    for n in 0..250u32 {
        handle(&mut m, at(1), control(ip(3), ip(2), reply(Ipv4Addr::from(0x0a03_0001 + n), ip(1), 7)));
    }
    let failed = Input::LinkFailed { neighbour: ip(3), bytes: Bytes::default() };
    let errors: Vec<usize> = handle(&mut m, at(2), failed)
        .iter()
        .filter_map(|o| match o {
            Output::Control { bytes, .. } => rerr::Repr::parse(bytes).ok().map(|e| e.unreachable.len()),
            _ => None,
        })
        .collect();
    // 250 and the neighbour itself
    assert_eq!(errors, [100, 100, 51]);
}

#[test]
fn our_own_number_wraps_without_ever_being_zero() {
    let mut m = machine(Options::default());
    // a request for us with a fresher number makes it ours (6.1); fresher is less than 2^31 ahead, so it takes three
    for (id, wanted) in [(1, 0x7fff_fff0), (2, 0xffff_ffe0), (3, u32::MAX)] {
        let mut ask = request(id, ip(2), ip(1), 5);
        if let Message::Rreq(r) = &mut ask {
            (r.unknown, r.destination_sequence) = (false, wanted);
        }
        handle(&mut m, at(0), control(ip(1), BROADCAST, ask));
        assert_eq!(m.status(at(0)).sequence, Some(wanted));
    }
    handle(&mut m, at(2), data(ip(2), ip(77), 1));
    assert_eq!(m.status(at(2)).sequence, Some(1));
}

#[test]
fn a_forged_zero_at_the_wrap_does_not_become_our_number() {
    let mut m = machine(Options::default());
    for (number, ours) in [(0x7fff_fff0, 0x7fff_fff0), (0xffff_ffe0, 0xffff_ffe0), (u32::MAX, u32::MAX), (0, u32::MAX)]
    {
        handle(&mut m, at(0), control(ip(1), ip(2), reply(ip(2), ip(1), number)));
        assert_eq!(m.status(at(0)).sequence, Some(ours));
    }
}

#[test]
fn no_node_has_the_networks_broadcast_address_and_no_route_leads_to_it() {
    let all = Ipv4Addr::new(10, 255, 255, 255);
    let mut m = machine(Options::default());
    handle(&mut m, at(0), control(ip(1), BROADCAST, request(1, ip(77), all, 5)));
    handle(&mut m, at(1), control(ip(1), BROADCAST, request(2, all, ip(5), 5)));
    handle(&mut m, at(2), control(ip(1), ip(2), reply(all, ip(2), 5)));
    handle(&mut m, at(3), control(all, ip(2), reply(ip(3), ip(2), 5)));
    let status = m.status(at(3));
    assert!(status.routes.is_empty(), "{:?}", status.routes);
    assert_eq!((status.counters.get("malformed-address"), status.counters.get("forged-sender")), (3, 1));
}

#[test]
fn in_a_network_of_two_the_last_address_is_a_hosts() {
    // RFC 3021: 10.0.0.2/31 has 10.0.0.2 and 10.0.0.3
    let mut m = machine_in((ip(2), 31), Options::default());
    let asked = handle(&mut m, at(0), data(ip(2), ip(3), 1));
    assert!(asked.iter().any(|o| matches!(o, Output::Control { to: BROADCAST, .. })), "{asked:?}");
    let sent = handle(&mut m, at(1), control(ip(3), ip(2), reply(ip(3), ip(2), 5)));
    assert!(sent.iter().any(|o| matches!(o, Output::Send { .. })), "{sent:?}");
}
