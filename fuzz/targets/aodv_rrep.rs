//! AODV route replies and hellos (RFC 3561, 5.2) with their extensions.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_aodv::wire::rrep::Repr;

fuzz_target!(|data: &[u8]| {
    if let Ok(message) = Repr::parse(data) {
        assert_eq!(Repr::parse(&message.emit()), Ok(message.clone()));
        let _ = (message.internet_destination(), message.hello_interval());
        message.extensions.iter().for_each(|e| drop(e.as_neighbours()));
        let _ = message.to_string();
    }
});
