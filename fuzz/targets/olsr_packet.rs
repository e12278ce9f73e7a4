//! OLSR packets and message headers: emitting parsed ones gives the same bytes, up to the first malformed message.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_olsr::wire::Packet;

fuzz_target!(|data: &[u8]| {
    let Ok((packet, cut)) = Packet::parse(data) else { return };
    let again = packet.emit();
    assert_eq!(again[2..], data[2..again.len()]);
    assert!(cut || again[..2] == data[..2]);
    let _ = packet.to_string();
});
