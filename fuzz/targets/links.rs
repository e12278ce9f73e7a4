//! Files of measured links: an error is one line that names the file; gains and delivery rates are finite at every time.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_engine::Instant;
use manet_medium::config::MAX_TIME_S;
use manet_medium::phy::{Measured, Radio};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let profile = include_str!("../../medium/radios/ns2-dsss-2m.toml");
    let radio = Radio::parse(profile, &Default::default()).expect("a profile of the project");
    match Measured::parse(text, "links.csv", &["sta1", "sta2"], &radio, MAX_TIME_S) {
        Err(error) => assert!(error.to_string().starts_with("links.csv:")),
        Ok(links) => {
            for at in [Instant::ZERO, Instant::from_nanos(7_000_000_123), Instant::MAX] {
                for (from, to) in [(0, 1), (1, 0)] {
                    assert!(links.gain(from, to, at).is_finite());
                    assert!((0.0..=1.0).contains(&links.delivery(from, to, 2_000_000, at)));
                }
            }
        }
    }
});
