//! The edge of the range: the planned range holds, and a rate control finds a rate that arrives there.

mod common;

use common::{chain, loaded, standing};
use manet_medium::phy::reach::{answer, Request};
use manet_medium::phy::Radio;
use manet_medium::sim::{self, FlowResult};
use serde_json::{json, Value};
use std::path::Path;

fn run(profile: &str, positions: &[[f64; 2]], overrides: &Value, traffic: &Value, duration_s: f64) -> Vec<FlowResult> {
    let loaded = loaded(positions, |j| {
        j["radio"] = format!("{profile}.toml").into();
        j["radio_overrides"] = overrides.clone();
        j["traffic"] = traffic.clone();
        j["duration_s"] = duration_s.into();
    });
    sim::run(&loaded, standing(&loaded), None).flows
}

fn profiles() -> Vec<String> {
    let folder = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("radios")).unwrap();
    let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<_> = folder.map(|entry| stem(&entry.unwrap().path())).collect();
    names.sort();
    names
}

/// The profile's planned range, m; `None`: it has no such mode.
fn range_m(profile: &str, overrides: &Value) -> Option<f64> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("radios/{profile}.toml"));
    let overrides = toml::Table::try_from(overrides).unwrap();
    let radio = Radio::parse(&std::fs::read_to_string(path).unwrap(), &overrides).ok()?;
    let request = Request { radio, propagation: Default::default(), at_m: Vec::new(), kernel_rates: false };
    answer(&request).unwrap().received_m
}

/// Shares of 100 unicast packets and of 100 broadcasts of full length that arrive over so many metres.
fn shares(profile: &str, metres: f64, overrides: &Value) -> [f64; 2] {
    let cbr = |to: &str, start_s: f64| json!({"from": "sta1", "to": to, "kind": "cbr", "bytes": 1500, "rate_bps": 40e3, "start_s": start_s});
    let flows = run(profile, &chain(2, metres), overrides, &json!([cbr("sta2", 0.0), cbr("*", 0.15)]), 30.0);
    [0, 1].map(|n| flows[n].delivered_packets as f64 / flows[n].offered_packets as f64)
}

#[test]
fn the_planned_range_of_each_fixed_mcs_and_rate_holds() {
    let mut held = [0; 3];
    for profile in profiles() {
        let mcs = |streams| (0..=15).map(move |mcs| (streams, json!({"mcs": mcs, "streams": streams})));
        let rates = [1.0, 2.0, 5.5, 6.0, 9.0, 11.0, 12.0, 18.0, 24.0, 36.0, 48.0, 54.0];
        let rates = rates.map(|mbps| (0, json!({"data_rate_bps": mbps * 1e6})));
        for (streams, overrides) in mcs(1).chain(mcs(2)).chain(rates) {
            let Some(range_m) = range_m(&profile, &overrides) else { continue };
            let [unicast, _] = shares(&profile, 0.98 * range_m, &overrides);
            assert!(unicast >= 0.99, "{profile}, {overrides}: {unicast} at 0.98 of {range_m} m");
            held[streams] += 1;
        }
    }
    assert!(held[0] > 20 && held[1] > 80 && held[2] > 80, "{held:?}");
}

#[test]
fn two_streams_have_half_the_power_each() {
    let half = 10f64.powf(-3.01 / 20.0);
    for (profile, one, two) in [("dot11ac-vht80", 7, 7), ("dot11n-ht20", 4, 12), ("dot11ax-he20", 9, 9)] {
        let of = |mcs: u8, streams: u8| range_m(profile, &json!({"mcs": mcs, "streams": streams})).unwrap();
        let ratio = of(two, 2) / of(one, 1);
        assert!((half..=half.sqrt() * 1.01).contains(&(ratio * 1.001)), "{profile}: {ratio}");
        let by_threshold = |mcs: u8, streams: u8| {
            range_m(profile, &json!({"mcs": mcs, "streams": streams, "reception": "threshold"})).unwrap()
        };
        assert!(by_threshold(two, 2) < by_threshold(one, 1), "{profile}");
    }
}

#[test]
fn a_slower_fixed_rate_reaches_farther_as_far_as_its_rts() {
    let of = |profile: &str, mbps: f64, rts_threshold_bytes: u32| {
        let overrides = json!({"data_rate_bps": mbps * 1e6, "rts_threshold_bytes": rts_threshold_bytes});
        range_m(profile, &overrides).unwrap().round()
    };
    // free space up to 230 m, then the fourth power: -72 dBm (54 Mbit/s), -77 (36), -81 (24), -82 (the start of a frame is sensed)
    assert_eq!([54.0, 24.0, 6.0].map(|mbps| of("dot11g-54m", mbps, 3000)), [219.0, 377.0, 399.0]);
    assert_eq!([54.0, 24.0, 6.0].map(|mbps| of("dot11g-54m", mbps, 0)), [219.0, 377.0, 377.0], "RTS at 24 Mbit/s");
    // -82 dBm (11 Mbit/s), -86 (2, that of broadcasts)
    assert_eq!([11.0, 2.0, 1.0].map(|mbps| of("dot11b-11m", mbps, 0)), [399.0, 502.0, 502.0]);
}

#[test]
fn with_a_rate_control_unicast_and_broadcasts_arrive_within_its_one_range() {
    for profile in
        ["dot11a-54m", "dot11b-11m", "dot11g-54m", "dot11n-ht20", "dot11ac-vht80", "dot11ah-1m", "dot11ax-he80"]
    {
        let overrides = json!({"rate_control": "minstrel-ht"});
        let range_m = range_m(profile, &overrides).unwrap();
        let [unicast, broadcast] = shares(profile, 0.98 * range_m, &overrides);
        assert!(unicast >= 0.95 && broadcast >= 0.9, "{profile}: {unicast}, {broadcast} at 0.98 of {range_m} m");
    }
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
            assert!(with > 0.8 * without && without > 0.8 * most, "{profile}, {rate_control}: {with}, {without}");
        }
    }
}

/// A few RTSs in a row have to be lost to count: most collisions are no loss of data then, which spares the rate control those of data.
#[test]
fn collisions_of_rts_do_not_lower_the_rate() {
    let angle = |n: usize| std::f64::consts::TAU * n as f64 / 20.0;
    let circle: Vec<_> = (0..20).map(|n| [20.0 * angle(n).cos(), 20.0 * angle(n).sin()]).collect();
    let flows: Value = (1..=10).map(|n| saturated(n, n + 10)).collect();
    for rate_control in ["arf", "aarf", "minstrel", "minstrel-ht", "ideal"] {
        let [with, without] = with_and_without_rts("dot11g-54m", &circle, &flows, rate_control);
        assert!(with > 1.05 * without, "{rate_control}: {with}, {without}");
    }
}
