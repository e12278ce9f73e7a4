//! pcapng blocks and the radiotap headers in them: a parsed block is the same after emitting and parsing.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_medium::wire::{pcapng::Block, radiotap};

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    while let Ok((block, next)) = Block::parse(rest) {
        let mut again = Vec::new();
        block.emit(&mut again);
        assert_eq!(Block::parse(&again), Ok((block.clone(), &[][..])));
        if let Block::Packet { data, .. } = block {
            let _ = radiotap::Repr::parse(data);
        }
        rest = next;
    }
    if let Ok((repr, _)) = radiotap::Repr::parse(data) {
        let mut out = vec![0xa5; repr.buffer_len()];
        repr.emit(&mut out);
        assert_eq!(out, data[..out.len()]);
    }
});
