//! Bodies of OLSR's HNA: emitting a parsed body gives the same bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_olsr::wire::Hna;

fuzz_target!(|data: &[u8]| {
    let Ok(read) = Hna::parse(data) else { return };
    let again = read.emit();
    assert_eq!(again.len(), data.len());
    assert_eq!(Hna::parse(&again), Ok(read));
});
