//! Data of DSR's Source Route option: emitting parsed data gives the same bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_dsr::wire::SourceRoute;

fuzz_target!(|data: &[u8]| {
    if let Ok(option) = SourceRoute::parse(data) {
        let again = option.data();
        assert!(again.len() <= data.len());
        assert_eq!(SourceRoute::parse(&again), Ok(option));
    }
});
