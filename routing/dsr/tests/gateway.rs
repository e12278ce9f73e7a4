//! Internet access: a node with wires replies for every address outside the network, with the L bit; packets
//! from outside carry the F bit (RFC 4728, sections 6.3 and 6.7).

mod net;
use manet_dsr::Options;
use manet_routing::trial::{ip, ms, node, udp};
use manet_routing::{Input, Output};
use net::{chain, delivered, frames, net_of, path, Net};
use std::net::Ipv4Addr;

const OUTSIDE: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 2);

/// 1-2-3, node 3 being the gateway; 4 is out of range.
fn net() -> Net {
    let mut nodes: Vec<_> = (1..=4).map(node).collect();
    nodes[2].wires = vec![(Ipv4Addr::new(192, 168, 1, 0), 30)];
    let mut net = net_of(nodes, &Options::default());
    net.link(1, 2);
    net.link(2, 3);
    net
}

#[test]
fn a_packet_for_the_internet_leaves_at_the_gateway_and_the_answer_comes_back() {
    let mut net = net();
    let there = udp(ip(1), OUTSIDE, 5, b"there");
    net.input(1, Input::Packet { bytes: there });
    net.run(ms(1000));
    assert_eq!(delivered(&net, 3), [5]);
    let sent = frames(&net, 1).pop().unwrap().1;
    let route = sent.source_route().unwrap();
    assert_eq!((route.addresses.as_slice(), route.last_external), ([ip(2), ip(3)].as_slice(), true));

    // from the wire: the kernel of the gateway routes it into the TUN
    net.input(3, Input::Packet { bytes: udp(OUTSIDE, ip(1), 6, b"back") });
    net.run(ms(2000));
    assert_eq!(delivered(&net, 1), [6]);
    let back = frames(&net, 3).pop().unwrap().1;
    let route = back.source_route().unwrap();
    assert_eq!((route.addresses.as_slice(), route.segments_left), ([ip(3), ip(2)].as_slice(), 1));
    assert!(route.first_external && back.origin() == ip(3));
}

#[test]
fn the_gateway_s_ttl_is_the_kernel_s() {
    let mut net = net();
    net.input(1, Input::Packet { bytes: udp(ip(1), OUTSIDE, 5, b"there") });
    net.run(ms(1000));
    let out = net.outputs(3).find_map(|o| if let Output::Deliver { bytes } = o { Some(bytes[8]) } else { None });
    // node 2 decremented it once; the gateway's kernel, which forwards it, will do it again
    assert_eq!(out, Some(63));
}

#[test]
fn a_dropped_packet_from_outside_is_reported_to_the_gateway_and_by_icmp_to_its_source() {
    let mut net = net();
    net.input(1, Input::Packet { bytes: udp(ip(1), OUTSIDE, 5, b"there") });
    net.run(ms(1000));
    net.cut(1, 2);
    net.input(3, Input::Packet { bytes: udp(OUTSIDE, ip(1), 6, b"back") });
    net.run(ms(1100));
    assert_eq!((net.counter(3, "errors-received"), net.counter(2, "icmp-sent")), (1, 1));
    // the ICMP error leaves by the gateway, whose kernel routes it to the wire
    let to_wire = net.outputs(3).filter(|o| matches!(o, Output::Deliver { .. })).count();
    assert_eq!((to_wire, net.counter(3, "to-wire")), (2, 2));
}

#[test]
fn a_node_without_wires_does_not_reply_for_the_internet() {
    let mut net = chain(3, &Options::default());
    net.input(1, Input::Packet { bytes: udp(ip(1), OUTSIDE, 5, b"there") });
    net.run(ms(5000));
    assert_eq!((net.total("replies-sent"), net.counter(1, "requests-sent")), (0, 4));
}

#[test]
fn the_gateway_s_own_kernel_must_have_routes_to_its_wires() {
    let mut net = net();
    net.input(3, Input::Packet { bytes: udp(ip(3), OUTSIDE, 5, b"x") });
    assert_eq!((net.counter(3, "no-wire"), frames(&net, 3).len()), (1, 0));
}

#[test]
fn only_the_gateway_replies_for_the_internet_and_no_node_with_a_cached_route() {
    // RFC 4728, 6.3: external hops are not returned in a reply from the cache
    let mut net = net();
    net.input(1, Input::Packet { bytes: udp(ip(1), OUTSIDE, 5, b"there") });
    net.run(ms(1000));
    assert!(path(&net, 2, 3).is_some());
    net.link(2, 4);
    net.input(4, Input::Packet { bytes: udp(ip(4), OUTSIDE, 6, b"there") });
    net.run(ms(5000));
    assert_eq!((delivered(&net, 3), net.counter(2, "cached-replies")), (vec![5, 6], 0));
}
