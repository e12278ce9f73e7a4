//! The same seed gives the same air log, byte for byte, in virtual time: on this machine, on any other, in any release.
//! A change of behaviour shows here as a changed fingerprint and a readable first page; `UPDATE=1 cargo test -p manet-medium`
//! rewrites both, to be reviewed as a diff.

mod common;

use common::{chain, loaded, standing};
use manet_engine::{Duration, Instant};
use manet_medium::air_log::AirRow;
use manet_medium::config::Loaded;
use manet_medium::sim;
use serde_json::json;
use std::path::PathBuf;

/// FNV-1a, 64 bits (Fowler, Noll, Vo): enough to notice any change, short enough to read aloud.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

fn air_log(loaded: &Loaded, moving: bool) -> String {
    let mut log = format!("{}\n", AirRow::CSV_HEADER);
    let mut trajectories = standing(loaded);
    if moving {
        trajectories[2].move_to(Instant::ZERO + Duration::from_secs(1), [400.0, 180.0, 0.0], 40.0);
    }
    let names: Vec<&str> = loaded.config.stations.iter().map(|s| s.name.as_str()).collect();
    let mut on_air = |record: &AirRow| {
        record.write_csv(&mut log, |s| names[s as usize]);
        log.push('\n');
    };
    sim::run(loaded, trajectories, Some(&mut on_air));
    log
}

/// Five stations in a chain, a relayed flow against a broadcast and a saturated neighbour, errors on a link, one station that moves away.
fn busy_chain(interference: &str) -> Loaded {
    loaded(&chain(5, 200.0), |j| {
        j["interference"] = interference.into();
        j["queue"] = json!({"packets": 5});
        j["links"] = json!([{"from": "sta2", "to": "sta3", "error_rate": 0.1}]);
        j["traffic"] = json!([
            {"from": "sta1", "to": "sta4", "kind": "cbr", "bytes": 1000, "rate_bps": 300000.0, "jitter": true,
             "route": ["sta1", "sta2", "sta3", "sta4"]},
            {"from": "sta3", "to": "*", "kind": "cbr", "bytes": 100, "rate_bps": 8000.0},
            {"from": "sta5", "to": "sta4", "kind": "saturated", "bytes": 1500, "start_s": 3.0, "stop_s": 6.0},
        ]);
    })
}

fn check(name: &str, log: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fingerprints").join(format!("{name}.txt"));
    let head: Vec<&str> = log.lines().take(40).collect();
    let ours = format!("fnv1a {:016x}, {} rows\n{}\n", fnv1a(log), log.lines().count() - 1, head.join("\n"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &ours).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        ours, golden,
        "the air log of \"{name}\" changed; if that is meant: UPDATE=1 cargo test -p manet-medium"
    );
}

#[test]
fn ns2_rule_standing() {
    check("ns2-standing", &air_log(&busy_chain("ns2"), false));
}

#[test]
fn ns2_rule_moving() {
    check("ns2-moving", &air_log(&busy_chain("ns2"), true));
}

#[test]
fn sinr_rule_moving() {
    check("sinr-moving", &air_log(&busy_chain("sinr"), true));
}

#[test]
fn the_same_run_twice_is_the_same_and_another_seed_is_not() {
    let a = air_log(&busy_chain("ns2"), true);
    assert_eq!(a, air_log(&busy_chain("ns2"), true));
    let mut other = busy_chain("ns2");
    other.config.seed = 2;
    assert_ne!(a, air_log(&other, true));
}

/// A further station out of range of all others, last in the list, must not shift the others' random streams.
#[test]
fn a_distant_station_does_not_change_the_draws_of_others() {
    let positions = |n| chain(n, 200.0).into_iter().chain([[1e5, 1e5]]).take(n + 1).collect::<Vec<_>>();
    let traffic = json!([{"from": "sta1", "to": "sta2", "kind": "saturated", "bytes": 1500}]);
    let alone = loaded(&chain(3, 200.0), |j| j["traffic"] = traffic.clone());
    let with = loaded(&positions(3), |j| j["traffic"] = traffic.clone());
    assert_eq!(air_log(&alone, false), air_log(&with, false));
}
