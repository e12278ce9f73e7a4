//! A filter that drops overheard data without effect on this node: most of the frames near a route in use.
//!
//! If data teaches no routes (`learn_from_data` or `snoop` false), the radio reports failed links, and no reply waits that
//! could be cancelled (RFC 4728, 8.2.5), an overheard packet matters only if it has more options than a source route, has
//! this node on its route (3.4.3: route shortening), or comes from an unknown neighbour. Dropped packets are not counted,
//! even if they are malformed after the list of addresses or have an inconsistent route.

use crate::wire::header::NO_NEXT;
use crate::wire::source_route;
use manet_engine::packet_filter::Step::{
    self, AnyBit, AtLeast, Equal, IntoIndex, LoadByte, LoadHalf, LoadWord, MinusIndex,
};
use manet_engine::packet_filter::To;
use manet_routing::packet::ipv4::protocol;
use manet_routing::Mac;
use std::net::Ipv4Addr;

/// Packets with longer routes are accepted.
const ADDRESSES: u32 = 20;
/// Frames of further neighbours are accepted: a jump spans at most 255 instructions.
const NEIGHBOURS: usize = 128;

// offsets in the Ethernet frame, with an IPv4 header without options and a first DSR option that is a source route
const SENDER: u32 = 6;
const ETHERTYPE: u32 = 12;
const IP: u32 = 14;
const DSR: u32 = IP + 20;
const ROUTE: u32 = DSR + 4;
const FIRST_ADDRESS: u32 = ROUTE + 4;

/// The filter program; offsets count from the start of the Ethernet frame. `neighbours` are recognised by the last four
/// bytes of their link addresses.
pub fn program(own: Ipv4Addr, neighbours: impl Iterator<Item = Mac>) -> Vec<Step> {
    let own = u32::from(own);
    let is_own = |at: u32| [LoadWord(at), Equal(own, To::Accept, To::Next)];
    let mut steps = vec![
        LoadHalf(ETHERTYPE),
        Equal(0x0800, To::Next, To::Accept),
        LoadByte(IP),
        Equal(0x45, To::Next, To::Accept), // version 4, no options
    ];
    steps.extend([12, 16].into_iter().flat_map(|at| is_own(IP + at)));
    steps.extend(heard_before(neighbours));
    steps.extend([
        LoadByte(IP + 9),
        Equal(u32::from(protocol::DSR), To::Next, To::Drop), // one hop: no DSR header (8.1.1)
        LoadHalf(IP + 6),
        AnyBit(0x3fff, To::Accept, To::Next), // a fragment
        LoadByte(DSR),
        Equal(u32::from(NO_NEXT), To::Accept, To::Next),
        Equal(u32::from(protocol::DSR), To::Accept, To::Next),
        LoadByte(DSR + 1),
        AnyBit(0x80, To::Accept, To::Next), // flow state
        // the source route is the only option: two bytes and its data
        LoadByte(ROUTE),
        Equal(u32::from(source_route::KIND), To::Next, To::Accept),
        LoadByte(ROUTE + 1),
        IntoIndex,
        LoadHalf(DSR + 2),
        AtLeast(4 + 4 * ADDRESSES + 1, To::Accept, To::Next),
        MinusIndex,
        Equal(2, To::Next, To::Accept),
    ]);
    // the payload follows the route's last address: a load beyond its end drops the packet
    steps.extend((0..ADDRESSES).flat_map(|i| is_own(FIRST_ADDRESS + 4 * i)));
    steps.push(Equal(own, To::Accept, To::Drop));
    steps
}

/// Accepts frames of all stations except these.
fn heard_before(neighbours: impl Iterator<Item = Mac>) -> Vec<Step> {
    let last_four: Vec<u32> =
        neighbours.take(NEIGHBOURS).map(|[_, _, c, d, e, f]| u32::from_be_bytes([c, d, e, f])).collect();
    let Some((last, rest)) = last_four.split_last() else {
        return vec![LoadWord(0), AtLeast(0, To::Accept, To::Accept)];
    };
    let mut steps = vec![LoadWord(SENDER + 2)];
    steps.extend(rest.iter().enumerate().map(|(i, mac)| Equal(*mac, To::Skip((rest.len() - i) as u8), To::Next)));
    steps.push(Equal(*last, To::Next, To::Accept));
    steps
}
