//! 802.11 frames and the LLC/SNAP header in them: emitting a parsed frame gives the same bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_medium::wire::dot11::{parse_snap, snap, Frame, Repr, SNAP_LEN};

fuzz_target!(|data: &[u8]| {
    if let Ok(repr) = Repr::parse(data) {
        let mut out = vec![0xa5; repr.buffer_len()];
        repr.emit(&mut out);
        assert_eq!(out, data[..out.len()]);
        let frame = Frame::new_checked(data).expect("it parsed");
        if let Ok((ethertype, _)) = parse_snap(frame.body()) {
            assert_eq!(snap(ethertype), frame.body()[..SNAP_LEN]);
        }
    }
});
