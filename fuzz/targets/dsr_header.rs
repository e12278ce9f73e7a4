//! DSR headers with all their options, and IPv4 packets with such a header: a parsed one is the same after emitting and
//! parsing, except for padding.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_dsr::datagram::Datagram;
use manet_dsr::wire::Header;

fuzz_target!(|data: &[u8]| {
    if let Ok((header, payload)) = Header::parse(data) {
        assert!(data.ends_with(payload));
        let bytes = header.to_vec();
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(Header::parse(&bytes), Ok((header, [].as_slice())));
    }
    if let Ok(packet) = Datagram::parse(data) {
        let bytes = packet.to_bytes();
        let again = Datagram::parse(&bytes).expect("what was read can be written");
        assert_eq!(again.to_bytes(), bytes);
        let _ = (packet.is_sound(), packet.walk(), packet.next_hop(), packet.origin(), packet.to_string());
    }
});
