//! OLSR packets and message headers: what is read is written again alike, up to what could not be read.
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
