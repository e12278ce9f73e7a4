//! Small configurations for the tests of the medium as a whole.

use manet_medium::config::{Config, Loaded};
use manet_medium::phy::Radio;
use manet_medium::trace::Trajectory;
use serde_json::{json, Value};
use std::path::Path;

/// Stations at `positions` with `change` applied to the rest of `medium.json`.
pub fn loaded(positions: &[[f64; 2]], change: impl FnOnce(&mut Value)) -> Loaded {
    let stations: Vec<Value> = positions
        .iter()
        .enumerate()
        .map(|(i, p)| {
            let n = i + 1;
            json!({"name": format!("sta{n}"), "mac": format!("02:00:00:00:00:{n:02x}"), "position": [p[0], p[1], 0.0]})
        })
        .collect();
    let mut config = json!({
        "format": "manet-medium/1",
        "seed": 1,
        "radio": "ns2-dsss-2m.toml",
        "stations": stations,
        "duration_s": 10.0,
    });
    change(&mut config);
    let config = Config::parse(&config.to_string()).unwrap();
    let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("radios").join(&config.radio);
    let radio = Radio::parse(&std::fs::read_to_string(profile).unwrap(), &config.radio_overrides).unwrap();
    Loaded::new(config, radio).unwrap()
}

pub fn standing(loaded: &Loaded) -> Vec<Trajectory> {
    loaded.config.stations.iter().map(|s| Trajectory::standing(s.position)).collect()
}

pub fn chain(n: usize, spacing_m: f64) -> Vec<[f64; 2]> {
    (0..n).map(|i| [i as f64 * spacing_m, 0.0]).collect()
}
