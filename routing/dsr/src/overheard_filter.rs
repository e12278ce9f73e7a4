//! A filter for overheard data that means nothing to this node: most of the frames that a radio hears near a busy route.
//!
//! Where data teaches no routes (`learn_from_data` or `snoop` false), the radio reports failed links, and no reply of ours waits to be
//! taken back (RFC 4728, 8.2.5), an overheard packet matters only if it carries more than a source route, names this node (3.4.3:
//! route shortening), or comes from a neighbour whose frames were not heard yet. What is dropped is not counted either, be it
//! malformed behind the list of addresses or on a route that cannot be.

use crate::wire::header::NO_NEXT;
use crate::wire::source_route;
use manet_routing::packet::filter::Step::{
    self, AnyBit, AtLeast, Equal, IntoIndex, LoadByte, LoadHalf, LoadWord, MinusIndex,
};
use manet_routing::packet::filter::To;
use manet_routing::packet::ipv4::protocol;
use manet_routing::Mac;
use std::net::Ipv4Addr;

/// Routes that name more nodes are taken for interesting.
const ADDRESSES: u32 = 20;
/// Frames of further neighbours are taken for interesting: a program's jumps lead 255 instructions at most.
const NEIGHBOURS: usize = 128;

// offsets in the Ethernet frame, with an IPv4 header without options and a first DSR option that is a source route
const SENDER: u32 = 6;
const ETHERTYPE: u32 = 12;
const IP: u32 = 14;
const DSR: u32 = IP + 20;
const ROUTE: u32 = DSR + 4;
const FIRST_ADDRESS: u32 = ROUTE + 4;

/// Drops frames that mean nothing; offsets are those of the Ethernet frame. `neighbours` are recognised by the last four bytes of
/// their link addresses.
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
        // the source route is all there is: two bytes and its data
        LoadByte(ROUTE),
        Equal(u32::from(source_route::KIND), To::Next, To::Accept),
        LoadByte(ROUTE + 1),
        IntoIndex,
        LoadHalf(DSR + 2),
        AtLeast(4 + 4 * ADDRESSES + 1, To::Accept, To::Next),
        MinusIndex,
        Equal(2, To::Next, To::Accept),
    ]);
    // behind the route's last address comes the payload: where that ends, the program does, with "drop"
    steps.extend((0..ADDRESSES).flat_map(|i| is_own(FIRST_ADDRESS + 4 * i)));
    steps.push(Equal(own, To::Accept, To::Drop));
    steps
}

/// Accepts frames of who is none of these.
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
