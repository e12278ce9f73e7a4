//! A TORA node: steps of kind, neighbour, milliseconds (16 bits), length, that many bytes. Control bytes of a neighbour follow a
//! list that brings its link up if the first bit of the kind is set. Nothing panics, no deadline is left behind (Timeline), only
//! routes that exist are cleared, and no table exceeds its bound.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_fuzz::{input, milliseconds, steps};
use manet_routing::trial::{self, fits, ip, One};
use manet_routing::{Bytes, Node, Output};
use manet_tora::machine::MAX_DESTINATIONS;
use manet_tora::neighbours::MAX_NEIGHBOURS;
use manet_tora::wire::{Heard, Packet};
use manet_tora::{Link, Options, Tora};

/// The list of a neighbour; the first neighbours in order of arrival have the numbers from 1 on.
fn hello(who: u8, bytes: &[u8]) -> Bytes {
    let echo = bytes.first().map_or(1, |b| u16::from(*b % 8));
    let us = Heard { address: ip(1), number: u16::from(who) + 1, echo };
    Packet { hello: Some(vec![us]), ..Packet::default() }.emit().into()
}

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let flag = |bit: u8| first & bit != 0;
    let options = Options {
        link: if flag(1) { Link::Feedback } else { Link::Hello },
        announce_heights: flag(2),
        await_acknowledgement: flag(4),
        hold_forwarded: flag(8),
        ..Options::default()
    };
    let mut one = One::<Tora>::new(Node { mtu: 576, notices: true, ..trial::node(1) }, options);
    steps(rest, |[what, who, high, low, _], bytes| {
        let bytes = if what % 8 == 3 { hello(*who, bytes) } else { bytes.to_vec().into() };
        for output in one.after(milliseconds(*high, *low), input(*what, *who, bytes)) {
            assert!(fits(&output, 576));
            if let Output::Control { bytes, .. } = output {
                Packet::parse(&bytes).expect("our own packets parse");
            }
        }
    });
    let status = one.status();
    let used = status.routes.iter().filter(|r| r.state != "required").count();
    // a route waits for an acknowledgement before the kernel has it
    assert!(one.routes.len() <= used);
    assert!(status.routes.len() <= MAX_DESTINATIONS && status.neighbours.len() <= MAX_NEIGHBOURS && status.held <= 64);
});
