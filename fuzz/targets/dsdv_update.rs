//! DSDV updates: nothing panics, and emitting a parsed update gives the same bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_dsdv::wire;

fuzz_target!(|data: &[u8]| {
    if let Ok(adverts) = wire::parse(data) {
        assert_eq!(wire::emit(&adverts), data);
    }
});
