//! A DSDV node: steps of kind, neighbour, milliseconds (16 bits), length, that many bytes. Nothing panics, no deadline is left
//! behind (Timeline), the routes installed are those of the status, and no table exceeds its bound.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_dsdv::neighbours::MAX_NEIGHBOURS;
use manet_dsdv::table::MAX_DESTINATIONS;
use manet_dsdv::{Dsdv, Options};
use manet_fuzz::{input, milliseconds, steps};
use manet_routing::trial::{self, fits, One};
use manet_routing::Node;

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let options =
        Options { bidirectional_check: first & 1 != 0, trigger_on_fresh: first & 2 != 0, ..Options::default() };
    let node = if first & 4 != 0 { trial::gateway(1) } else { trial::node(1) };
    let mut one = One::<Dsdv>::new(Node { mtu: 576, notices: true, ..node }, options);
    steps(rest, |[what, who, high, low, _], bytes| {
        let out = one.after(milliseconds(*high, *low), input(*what, *who, bytes.to_vec().into()));
        assert!(out.iter().all(|output| fits(output, 576)));
    });
    let status = one.status();
    assert_eq!(status.routes.iter().filter(|r| r.state != "broken").count(), one.routes.len());
    // one more is the default route
    assert!(
        status.routes.len() <= MAX_DESTINATIONS + 1 && status.neighbours.len() <= MAX_NEIGHBOURS && status.held <= 64
    );
});
