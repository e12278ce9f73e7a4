//! medium.json: any text is parsed and checked without a panic. The radio is a real profile, so that checks are reached.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_medium::config::{Config, Loaded};
use manet_medium::phy::Radio;

const PROFILE: &str = include_str!("../../medium/radios/ns2-dsss-2m.toml");

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(config) = Config::parse(text) else { return };
    let Ok(radio) = Radio::parse(PROFILE, &config.radio_overrides) else { return };
    let _ = Loaded::new(config, radio);
});
