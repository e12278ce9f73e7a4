//! AODV route errors (RFC 3561, 5.3).
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_aodv::wire::rerr::Repr;

fuzz_target!(|data: &[u8]| {
    if let Ok(message) = Repr::parse(data) {
        assert_eq!(Repr::parse(&message.emit()), Ok(message.clone()));
        let _ = message.to_string();
    }
});
