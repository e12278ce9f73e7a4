//! Data of DSR's Acknowledgement option, and of the Acknowledgement Request: emitting parsed data gives the same bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_dsr::wire::{Ack, AckRequest};

fuzz_target!(|data: &[u8]| {
    if let Ok(ack) = Ack::parse(data) {
        assert_eq!(ack.data(), data[..10]);
    }
    if let Ok(request) = AckRequest::parse(data) {
        assert_eq!(request.data(), data[..2]);
    }
});
