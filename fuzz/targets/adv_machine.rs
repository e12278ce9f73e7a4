//! An ADV node: steps of kind, neighbour, milliseconds (16 bits), length, that many bytes. Nothing panics, no deadline is left
//! behind (Timeline), the routes installed are those of the status, and no table exceeds its bound.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_adv::neighbours::MAX_NEIGHBOURS;
use manet_adv::options::Link;
use manet_adv::table::MAX_DESTINATIONS;
use manet_adv::{Adv, Options};
use manet_engine::Duration;
use manet_fuzz::{input, milliseconds, steps};
use manet_routing::trial::{self, fits, One};
use manet_routing::Node;

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let link = if first & 1 != 0 { Link::Hello } else { Link::Feedback };
    let options =
        Options { link, connection_idle: Duration::from_secs(u64::from(first >> 1) + 1), ..Options::default() };
    let mut one = One::<Adv>::new(Node { mtu: 576, notices: true, ..trial::node(1) }, options);
    steps(rest, |[what, who, high, low, _], bytes| {
        let out = one.after(milliseconds(*high, *low), input(*what, *who, bytes.to_vec().into()));
        assert!(out.iter().all(|output| fits(output, 576)));
    });
    let status = one.status();
    assert_eq!(status.routes.iter().filter(|r| r.state != "broken").count(), one.routes.len());
    assert!(status.routes.len() <= MAX_DESTINATIONS && status.neighbours.len() <= MAX_NEIGHBOURS && status.held <= 64);
});
