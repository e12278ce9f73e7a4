//! Lines of the control socket: an error is one line.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_medium_daemon::commands::parse;

fuzz_target!(|data: &[u8]| {
    if let Err(error) = parse(data) {
        let error = error.to_string();
        assert!(!error.is_empty() && !error.contains('\n'));
    }
});
