//! Bodies of OLSR's MID: what is read is what would be sent.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_olsr::wire::Mid;

fuzz_target!(|data: &[u8]| {
    let Ok(read) = Mid::parse(data) else { return };
    let again = read.emit();
    assert_eq!(again.len(), data.len());
    assert_eq!(Mid::parse(&again), Ok(read));
});
