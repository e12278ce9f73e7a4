//! Data of DSR's Route Reply option: emitting parsed data gives the same bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_dsr::wire::Reply;

fuzz_target!(|data: &[u8]| {
    if let Ok(option) = Reply::parse(data) {
        let again = option.data();
        assert!(again.len() <= data.len());
        assert_eq!(Reply::parse(&again), Ok(option));
    }
});
