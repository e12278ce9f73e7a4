//! Block Acks and Block Ack Requests: emitting a parsed frame gives the same bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_medium::wire::block_ack::Repr;

fuzz_target!(|data: &[u8]| {
    if let Ok(repr) = Repr::parse(data) {
        let mut out = vec![0xa5; repr.buffer_len()];
        repr.emit(&mut out);
        assert_eq!(out, data[..out.len()]);
    }
});
