//! AODV RREP-ACKs (RFC 3561, 5.4) and, after them, minimal encapsulation (RFC 2004).
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_aodv::wire::{minimal, rrep_ack::Repr};
use manet_routing::packet::ipv4;

fuzz_target!(|data: &[u8]| {
    if let Ok(message) = Repr::parse(data) {
        assert_eq!(Repr::parse(&message.emit()), Ok(message.clone()));
        let _ = message.to_string();
    }
    if let Some(packet) = ipv4::Packet::parse(data) {
        if let Ok(inner) = minimal::decapsulate(&packet) {
            // the decapsulated packet can be encapsulated again
            let inner = ipv4::Packet::parse(&inner).expect("a packet comes out");
            let _ = minimal::encapsulate(&inner, packet.source(), packet.destination());
        }
    }
});
