//! Bodies of OLSR's MID: emitting a parsed body gives the same bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_olsr::wire::Mid;

fuzz_target!(|data: &[u8]| {
    let Ok(read) = Mid::parse(data) else { return };
    let again = read.emit();
    assert_eq!(again.len(), data.len());
    assert_eq!(Mid::parse(&again), Ok(read));
});
