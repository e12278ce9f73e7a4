//! Ethernet frames from a host: parsing and emitting the header, classification.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_medium::wire::ethernet::{Frame, Repr, HEADER_LEN};

fuzz_target!(|data: &[u8]| {
    let Ok(frame) = Frame::new_checked(data) else { return };
    let _ = frame.is_network_control();
    let mut out = [0xa5; HEADER_LEN];
    Repr::parse(data).expect("long enough").emit(&mut out);
    assert_eq!(out, data[..HEADER_LEN]);
});
