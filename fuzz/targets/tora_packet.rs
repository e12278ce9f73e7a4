//! TORA packets: nothing panics, and emitting a parsed packet gives the same packet.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_tora::wire::Packet;

fuzz_target!(|data: &[u8]| {
    if let Ok(packet) = Packet::parse(data) {
        // bits that have no meaning, and the fields of a null height, are not kept
        assert_eq!(Packet::parse(&packet.emit()).unwrap(), packet);
        let _ = packet.to_string();
    }
});
