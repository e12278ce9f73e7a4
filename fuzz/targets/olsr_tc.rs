//! Bodies of OLSR's TC: emitting a parsed body gives the same bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_olsr::wire::Tc;

fuzz_target!(|data: &[u8]| {
    let Ok(read) = Tc::parse(data) else { return };
    let again = read.emit();
    assert_eq!(again.len(), data.len());
    assert_eq!(Tc::parse(&again), Ok(read));
});
