//! Bodies of OLSR's HELLO: emitting a parsed body gives the same bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_olsr::wire::Hello;

fuzz_target!(|data: &[u8]| {
    let Ok(read) = Hello::parse(data) else { return };
    let again = read.emit();
    assert_eq!(again.len(), data.len());
    assert_eq!(Hello::parse(&again), Ok(read));
});
