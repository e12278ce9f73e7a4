//! Ethernet frames from a host: parsing and emitting the header, classification, flow and ECN mark.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_medium::wire::ethernet::{Frame, Repr, HEADER_LEN};
use manet_medium::wire::flow;

fuzz_target!(|data: &[u8]| {
    let mut marked = data.to_vec();
    let is_marked = flow::mark_congestion(&mut marked);
    assert!(is_marked || marked == data);
    assert_eq!(flow::hash(&marked, 1), flow::hash(data, 1));
    let Ok(frame) = Frame::new_checked(data) else { return };
    let _ = frame.is_network_control();
    let mut out = [0xa5; HEADER_LEN];
    Repr::parse(data).expect("long enough").emit(&mut out);
    assert_eq!(out, data[..HEADER_LEN]);
});
