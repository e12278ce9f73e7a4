//! Data of DSR's Route Request option: emitting parsed data gives the same bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_dsr::wire::Request;

fuzz_target!(|data: &[u8]| {
    if let Ok(option) = Request::parse(data) {
        let again = option.data();
        assert!(again.len() <= data.len());
        assert_eq!(Request::parse(&again), Ok(option));
    }
});
