//! The edge of the range: a rate control finds a rate that arrives there.

mod common;

use common::{chain, loaded, standing};
use manet_medium::sim::{self, FlowResult};
use serde_json::{json, Value};

fn run(profile: &str, positions: &[[f64; 2]], overrides: &Value, traffic: &Value, duration_s: f64) -> Vec<FlowResult> {
    let loaded = loaded(positions, |j| {
        j["radio"] = format!("{profile}.toml").into();
        j["radio_overrides"] = overrides.clone();
        j["traffic"] = traffic.clone();
        j["duration_s"] = duration_s.into();
    });
    sim::run(&loaded, standing(&loaded), None).flows
}

fn saturated(from: usize, to: usize) -> Value {
    json!({"from": format!("sta{from}"), "to": format!("sta{to}"), "kind": "saturated", "bytes": 1500})
}

/// Saturated flows with RTS and without, Mbit/s.
fn with_and_without_rts(profile: &str, positions: &[[f64; 2]], flows: &Value, rate_control: &str) -> [f64; 2] {
    [0, 3000].map(|rts_threshold_bytes| {
        let overrides = json!({"rate_control": rate_control, "rts_threshold_bytes": rts_threshold_bytes});
        let flows = run(profile, positions, &overrides, flows, 2.0);
        flows.iter().map(|flow| flow.throughput_bps / 1e6).sum()
    })
}

/// The RTS before data at 24 Mbit/s and more (of 802.11b at 2) does not arrive here, that before slower data does.
#[test]
fn a_rate_whose_rts_does_not_arrive_is_left() {
    for (profile, metres, most) in
        [("dot11g-54m", 390.0, 11.0), ("dot11a-54m", 310.0, 12.0), ("dot11b-11m", 540.0, 0.8)]
    {
        for rate_control in ["ideal", "arf", "aarf", "minstrel", "minstrel-ht"] {
            let flows = json!([saturated(1, 2)]);
            let [with, without] = with_and_without_rts(profile, &chain(2, metres), &flows, rate_control);
            assert!(with > 0.85 * without && without > 0.8 * most, "{profile}, {rate_control}: {with}, {without}");
        }
    }
}

/// No rate control can tell an RTS that collided from one that was too weak, as it cannot of data.
#[test]
fn collisions_of_rts_lower_the_rate_no_more_than_those_of_data() {
    let angle = |n: usize| std::f64::consts::TAU * n as f64 / 20.0;
    let circle: Vec<_> = (0..20).map(|n| [20.0 * angle(n).cos(), 20.0 * angle(n).sin()]).collect();
    let flows: Value = (1..=10).map(|n| saturated(n, n + 10)).collect();
    for rate_control in ["arf", "aarf", "minstrel", "minstrel-ht", "ideal"] {
        let [with, without] = with_and_without_rts("dot11g-54m", &circle, &flows, rate_control);
        assert!(with > 0.9 * without, "{rate_control}: {with}, {without}");
    }
}
