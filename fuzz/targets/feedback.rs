//! Link-feedback messages: nothing panics, and emitting a parsed message gives the same bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_medium::wire::feedback::Repr;

fuzz_target!(|data: &[u8]| {
    if let Ok(repr) = Repr::parse(data) {
        assert_eq!(repr.to_vec(), data);
    }
});
