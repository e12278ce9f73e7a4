//! Data of each of DSR's options: parsed data, emitted and parsed again, give the same option; those of an acknowledgement and of its
//! request also the same bytes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_dsr::wire::{Ack, AckRequest, Reply, Request, RouteError, SourceRoute};

macro_rules! check {
    ($data:ident: $($option:ty),*) => {{ $(
        if let Ok(option) = <$option>::parse($data) {
            let again = option.data();
            assert!(again.len() <= $data.len());
            assert_eq!(<$option>::parse(&again), Ok(option));
        }
    )* }};
}

fuzz_target!(|data: &[u8]| {
    check!(data: Reply, Request, RouteError, SourceRoute);
    if let Ok(ack) = Ack::parse(data) {
        assert_eq!(ack.data(), data[..10]);
    }
    if let Ok(request) = AckRequest::parse(data) {
        assert_eq!(request.data(), data[..2]);
    }
});
