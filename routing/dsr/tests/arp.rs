//! Address resolution by ARP (option `arp`), on an ideal channel; in behaviour as ns-2.35's mac/arp.cc below DSR.

mod net;
use manet_dsr::datagram::Datagram;
use manet_dsr::options::Link;
use manet_dsr::wire::{Opt, What};
use manet_dsr::Options;
use manet_routing::arp::Resolution;
use manet_routing::packet::arp::{Message, Operation};
use manet_routing::trial::{ip, mac, ms, node, udp};
use manet_routing::{Bytes, Input, Mac, Output, BROADCAST_MAC};
use net::{chain, delivered, frames, net_of, route, routed, send, Net};

fn options(arp: Resolution) -> Options {
    Options { arp, ..Options::default() }
}

/// The ARP messages that a node sent: receiver, operation, target.
fn messages(net: &Net, n: usize) -> Vec<(Mac, Operation, std::net::Ipv4Addr)> {
    let message = |o: &Output| match o {
        Output::Arp { to, bytes } => Message::parse(bytes).map(|m| (*to, m.operation, m.target)),
        _ => None,
    };
    net.outputs(n).filter_map(message).collect()
}

/// Identifications of the packets in a node's notes `event`.
fn noted(net: &Net, n: usize, event: &str) -> Vec<u16> {
    let packet = |o: &Output| match o {
        Output::Note(note) if note.event == event => note.packet.clone(),
        _ => None,
    };
    net.outputs(n).filter_map(packet).map(|p| u16::from_be_bytes([p[4], p[5]])).collect()
}

/// Node `n` hears a datagram of `neighbour`, which is not there when the node answers.
fn hears(net: &mut Net, n: usize, neighbour: usize) {
    let bytes = udp(ip(neighbour), ip(n), 99, b"x");
    net.input(n, Input::Frame { from: mac(neighbour), to: mac(n), bytes });
}

#[test]
fn a_packet_waits_for_the_answer_and_one_exchange_tells_both_ends() {
    let mut net = chain(2, &options(Resolution::Cmu));
    send(&mut net, 1, 2, 1);
    net.run(ms(1000));
    assert_eq!(delivered(&net, 2), [1]);
    // node 2 asks for node 1, to send its Route Reply there; node 1 learns node 2 from that request
    assert_eq!(messages(&net, 2), [(BROADCAST_MAC, Operation::Request, ip(1))]);
    assert_eq!(messages(&net, 1), [(mac(2), Operation::Reply, ip(2))]);
    assert_eq!((net.total("arp-requests"), net.total("arp-replies")), (1, 1));
    assert_eq!((net.total("arp-displaced"), net.total("arp-failed")), (0, 0));
    // entries do not expire
    net.run(ms(3_600_000));
    send(&mut net, 1, 2, 2);
    net.run(ms(3_601_000));
    assert_eq!((delivered(&net, 2), net.total("arp-requests")), (vec![1, 2], 1));
}

#[test]
fn without_the_option_no_arp_is_sent_and_none_is_heard() {
    let mut net = chain(3, &Options::default());
    send(&mut net, 1, 3, 1);
    net.run(ms(1000));
    let request =
        Message { operation: Operation::Request, sender_mac: mac(2), sender: ip(2), target_mac: [0; 6], target: ip(1) };
    net.input(1, Input::Arp { from: mac(2), bytes: Bytes(request.to_bytes()) });
    assert!((1..=3).all(|n| messages(&net, n).is_empty()));
    assert_eq!(net.counter(1, "arp-unused"), 1);
}

#[test]
fn the_next_packet_takes_the_place_of_the_one_that_waits_and_the_fourth_breaks_the_link() {
    let mut net = net::net(1, &options(Resolution::Cmu));
    hears(&mut net, 1, 2);
    (1..=3).for_each(|id| send(&mut net, 1, 2, id));
    assert_eq!((noted(&net, 1, "resolving"), noted(&net, 1, "displaced")), (vec![1, 2, 3], vec![1, 2]));
    assert_eq!((net.counter(1, "arp-displaced"), net.notes(1, "link-broken")), (2, vec![]));
    send(&mut net, 1, 2, 4);
    assert_eq!(net.notes(1, "link-broken"), [(ip(2), 3)]);
    // the one that waited and the new one go back to the send buffer, and a discovery starts
    let status = net.status(1);
    assert_eq!((net.counter(1, "arp-failed"), net.counter(1, "resent"), status.held), (2, 2, 2));
    assert_eq!(net.notes(1, "discovery"), [(ip(2), 1)]);
    assert_eq!(messages(&net, 1).len(), 3);
}

#[test]
fn a_silent_table_reports_nothing() {
    let mut net = net::net(1, &options(Resolution::Silent));
    hears(&mut net, 1, 2);
    (1..=20).for_each(|id| send(&mut net, 1, 2, id));
    net.run(ms(60_000));
    assert_eq!((net.counter(1, "arp-displaced"), net.counter(1, "arp-requests")), (19, 20));
    assert_eq!((net.notes(1, "link-broken"), net.notes(1, "discovery")), (vec![], vec![]));
    let status = net.status(1);
    assert_eq!(status.details["arp"], serde_json::json!({"known": 0, "waiting": 1}));
}

/// A datagram from node 1 to node 3 over node 2.
fn over_2(id: u16) -> Bytes {
    routed(&udp(ip(1), ip(3), id, b"x"), route(0, 1, &[2]))
}

#[test]
fn a_relay_reports_a_next_hop_that_does_not_answer_only_with_cmu() {
    for (arp, errors) in [(Resolution::Cmu, 1), (Resolution::Silent, 0)] {
        let mut net = chain(2, &options(arp));
        // node 1 asks node 2, which never heard node 3
        send(&mut net, 1, 2, 50);
        net.run(ms(1000));
        (1..=4).for_each(|id| net.input(2, Input::Frame { from: mac(1), to: mac(2), bytes: over_2(id) }));
        net.run(ms(2000));
        let broken = |(_, p): &(Mac, Datagram)| {
            let unreachable = |o: &Opt| matches!(o, Opt::Error(e) if e.what == What::NodeUnreachable(ip(3)));
            p.options.iter().any(unreachable)
        };
        assert_eq!(frames(&net, 2).iter().filter(|f| broken(f)).count(), errors, "{arp:?}");
        // silent: 1 to 3 are displaced and 4 waits; cmu: 1 and 2 are displaced, 3 and 4 lost with the link
        let (displaced, lost) = if errors == 0 { (vec![1, 2, 3], 0) } else { (vec![1, 2], 2) };
        assert_eq!((noted(&net, 2, "displaced"), net.counter(2, "lost")), (displaced, lost), "{arp:?}");
    }
}

#[test]
fn a_neighbour_that_asks_for_anyone_gets_the_packet_that_waits_for_it() {
    let mut net = chain(2, &options(Resolution::Silent));
    hears(&mut net, 1, 2);
    net.cut(1, 2);
    send(&mut net, 1, 2, 7);
    net.run(ms(5000));
    assert!(delivered(&net, 2).is_empty());
    net.link(1, 2);
    hears(&mut net, 2, 9);
    send(&mut net, 2, 9, 1);
    net.run(ms(5100));
    assert_eq!(messages(&net, 2), [(BROADCAST_MAC, Operation::Request, ip(9))]);
    assert_eq!(delivered(&net, 2), [99, 7]); // 99: the datagram of node 9
}

#[test]
fn with_acknowledgements_each_packet_returns_once() {
    // both packets are unconfirmed, and copies of them wait for ARP
    let options = Options { link: Link::Ack, ..options(Resolution::Cmu) };
    let mut net = net_of(vec![manet_routing::Node { feedback: false, ..node(1) }], &options);
    hears(&mut net, 1, 2);
    send(&mut net, 1, 2, 1);
    send(&mut net, 1, 2, 2);
    net.run(ms(2000));
    assert_eq!(net.notes(1, "link-broken").len(), 1);
    assert_eq!((net.counter(1, "resent"), net.status(1).held), (2, 2));
    // what was displaced is repeated: no packet is lost
    assert!(net.counter(1, "arp-displaced") > 0 && noted(&net, 1, "displaced").is_empty());
}

#[test]
fn malformed_messages_are_counted() {
    let mut net = net::net(1, &options(Resolution::Cmu));
    net.input(1, Input::Arp { from: mac(2), bytes: Bytes(vec![0; 28]) });
    let own =
        Message { operation: Operation::Reply, sender_mac: mac(2), sender: ip(1), target_mac: mac(1), target: ip(1) };
    net.input(1, Input::Arp { from: mac(2), bytes: Bytes(own.to_bytes()) });
    assert_eq!((net.counter(1, "arp-malformed"), net.counter(1, "arp-own-address")), (1, 1));
}
