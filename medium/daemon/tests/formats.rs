//! The golden examples of `formats/examples` that the daemon reads; `medium/tests/formats.rs` has those of the library.

use manet_engine::Instant;
use manet_medium_daemon::commands;
use manet_medium_daemon::setup::Setup;
use serde_json::Value;
use std::path::PathBuf;

fn example(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../formats/examples").join(name)
}

#[test]
fn the_configuration_that_the_testbed_writes_is_accepted() {
    let setup = Setup::read(&example("medium.json")).unwrap();
    let radio = &setup.loaded.radio;
    assert_eq!(setup.loaded.station_names(), ["sta1", "sta2", "gw1"]);
    assert_eq!((radio.name.as_str(), radio.rts_threshold_bytes), ("dot11b-11m", 2347));
    assert_eq!(setup.trajectories[2].at(Instant::ZERO), [400.0, 0.0, 2.5]);
}

#[test]
fn the_control_requests_of_the_example_are_understood() {
    let text = std::fs::read_to_string(example("control.jsonl")).unwrap();
    assert!(text.lines().count() > 10);
    for line in text.lines() {
        let exchange: Value = serde_json::from_str(line).unwrap();
        let understood = commands::parse(exchange["request"].to_string().as_bytes());
        assert_eq!(understood.is_ok(), exchange["answer"]["ok"] == true, "{line}: {understood:?}");
    }
}
