//! Data of DSR's Route Error option: emitting parsed data gives the same bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_dsr::wire::RouteError;

fuzz_target!(|data: &[u8]| {
    if let Ok(option) = RouteError::parse(data) {
        let again = option.data();
        assert!(again.len() <= data.len());
        assert_eq!(RouteError::parse(&again), Ok(option));
    }
});
