//! Lines of the control socket: an error is one line.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_medium::daemon::commands::parse;

fuzz_target!(|data: &[u8]| {
    if let Err(error) = parse(data) {
        assert!(!error.is_empty() && !error.contains('\n'));
    }
});
