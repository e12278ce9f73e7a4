//! DSDV updates: nothing panics, and what parses is what would be sent.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_dsdv::wire;

fuzz_target!(|data: &[u8]| {
    if let Ok(adverts) = wire::parse(data) {
        assert_eq!(wire::emit(&adverts), data);
    }
});
