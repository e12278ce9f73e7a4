//! AODV route requests (RFC 3561, 5.1) with their extensions.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_aodv::wire::rreq::Repr;

fuzz_target!(|data: &[u8]| {
    if let Ok(message) = Repr::parse(data) {
        assert_eq!(Repr::parse(&message.emit()), Ok(message.clone()));
        let _ = message.wanted_sequence();
        let _ = message.to_string();
    }
});
