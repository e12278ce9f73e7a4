//! ADV messages: nothing panics, and emitting a parsed message gives the same bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_adv::wire::Message;

fuzz_target!(|data: &[u8]| {
    if let Ok(message) = Message::parse(data) {
        assert_eq!(message.emit(), data);
    }
});
