//! Trace files: an error is one line that names the file; a trajectory has finite positions at every time.
#![no_main]
use libfuzzer_sys::fuzz_target;
use manet_engine::Instant;
use manet_medium::trace::Trace;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Trace::parse(text, "trace.csv", &["sta1", "sta2"]) {
        Err(error) => assert!(error.to_string().starts_with("trace.csv:")),
        Ok(trace) => {
            for way in trace.trajectories.iter().flatten() {
                for at in [Instant::ZERO, Instant::from_nanos(7_000_000_123), way.moving_until(), Instant::MAX] {
                    assert!(way.at(at).iter().all(|v| v.is_finite()));
                }
            }
        }
    }
});
