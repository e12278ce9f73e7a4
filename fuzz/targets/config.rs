//! medium.json: parsed and checked without a panic, whatever it says. The radio is a real profile, so that checks are reached.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_medium::config::Loaded;
use manet_medium::verdict::Thresholds;
use std::path::PathBuf;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let radios = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../medium/radios"));
    if let Ok(loaded) = Loaded::from_text(text, radios) {
        let _ = Thresholds::from_config(loaded.config.verdict.as_ref());
    }
});
