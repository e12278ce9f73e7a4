//! Bodies of OLSR's messages: a parsed body, emitted, has the same length and parses to the same body.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_olsr::wire::{Hello, Hna, Mid, Tc};

macro_rules! check {
    ($data:ident: $($body:ty),*) => {{ $(
        if let Ok(body) = <$body>::parse($data) {
            let again = body.emit();
            assert_eq!(again.len(), $data.len());
            assert_eq!(<$body>::parse(&again), Ok(body));
        }
    )* }};
}

fuzz_target!(|data: &[u8]| check!(data: Hello, Hna, Mid, Tc));
