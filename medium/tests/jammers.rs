//! Jammers in small networks in virtual time: carrier sense, interference, shares of time, timelines.

mod common;

use common::{chain, loaded, standing};
use manet_engine::{Duration, Instant, Machine};
use manet_medium::air_log::AirRow;
use manet_medium::config::{Config, Loaded};
use manet_medium::fate::Fate;
use manet_medium::phy::Radio;
use manet_medium::sim::{self, SimResult};
use manet_medium::{Input, Medium, Output, StationId};
use serde_json::{json, Value};

/// ns-2's power: received at 250 m, sensed at 550 m.
const NS2_W: f64 = 0.281_838_15;
const RULES: [&str; 3] = ["ns2", "sinr", "probability"];

/// A saturated sender and its receiver, 100 m apart, and jammers.
fn jammed(rule: &str, jammers: Value) -> Loaded {
    loaded(&chain(2, 100.0), |config| {
        match rule {
            "probability" => config["radio_overrides"] = json!({"reception": "sinr"}),
            rule => config["interference"] = rule.into(),
        }
        config["traffic"] = json!([{"from": "sta1", "to": "sta2", "kind": "saturated", "bytes": 1000}]);
        config["jammers"] = jammers;
    })
}

/// A jammer 30 m from the receiver, on the side of the sender.
fn near(more: Value) -> Value {
    let mut jammer = json!({"name": "jam1", "position": [70.0, 0.0, 0.0], "tx_power_w": NS2_W});
    jammer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    jammer
}

fn run(loaded: &Loaded) -> SimResult {
    sim::run(loaded, standing(loaded), None)
}

fn throughput(loaded: &Loaded) -> f64 {
    run(loaded).flows[0].throughput_bps
}

#[test]
fn a_constant_jammer_in_sense_range_silences_a_station() {
    for rule in RULES {
        let result = run(&jammed(rule, json!([near(json!({}))])));
        assert_eq!(result.flows[0].delivered_packets, 0, "{rule}");
        assert_eq!(result.stations["sta1"].airtime_tx_ns, 0, "{rule}: the sender senses it and waits");
        assert_eq!((result.jammers["jam1"].bursts, result.jammers["jam1"].airtime_tx_ns), (1, 10_000_000_000));
    }
}

/// A jammer that only the receiver hears: the sender sends, and nothing arrives.
#[test]
fn a_hidden_jammer_destroys_frames_that_the_sender_sends_in_vain() {
    for rule in RULES {
        // 600 m from the sender, beyond its sense range, and 360 m from the receiver, which is 240 m from the sender
        let loaded = loaded(&[[0.0, 0.0], [240.0, 0.0]], |config| {
            match rule {
                "probability" => config["radio_overrides"] = json!({"reception": "sinr"}),
                rule => config["interference"] = rule.into(),
            }
            config["traffic"] = json!([{"from": "sta1", "to": "sta2", "kind": "saturated", "bytes": 1000}]);
            config["jammers"] = json!([{"name": "jam1", "position": [600.0, 0.0, 0.0], "tx_power_w": NS2_W}]);
        });
        let result = run(&loaded);
        assert_eq!(result.flows[0].delivered_packets, 0, "{rule}");
        let sta1 = &result.stations["sta1"];
        assert!(sta1.tx_rts > 100, "{rule}: {sta1:?}");
        // by SINR each RTS survives, and the receiver, which senses the jammer, sends no CTS (ns-2's rule `response_needs_idle`)
        let hidden = if rule == "probability" { 0 } else { sta1.tx_rts };
        assert_eq!((sta1.fate_hidden, sta1.fate_collision), (hidden, 0), "{rule}: the sender cannot sense it");
        assert_eq!(result.stations["sta2"].tx_cts, 0);
    }
}

#[test]
fn a_jammer_far_away_or_switched_off_changes_nothing() {
    for rule in RULES {
        let alone = throughput(&jammed(rule, json!([])));
        assert!(alone > 1e6);
        for more in [
            json!({"position": [1e5, 0.0, 0.0]}),
            json!({"active": false}),
            json!({"start_s": 11.0}),
            json!({"freq_mhz": 2437}),
        ] {
            assert_eq!(throughput(&jammed(rule, json!([near(more.clone())]))), alone, "{rule} {more}");
        }
    }
}

#[test]
fn a_periodic_jammer_leaves_the_share_of_its_pauses() {
    for rule in RULES {
        let alone = throughput(&jammed(rule, json!([])));
        for (on_s, off_s) in [(0.1, 0.3), (0.2, 0.2), (0.3, 0.1)] {
            let periodic = json!({"kind": "periodic", "on_s": on_s, "off_s": off_s});
            let share = throughput(&jammed(rule, json!([near(periodic)]))) / alone;
            let pauses = off_s / (on_s + off_s);
            // of each pause an exchange of 5.6 ms may be lost at its end, and the backoff after it
            let lost = 0.02 / off_s;
            assert!(share <= pauses * 1.01 && share > pauses * (1.0 - lost), "{rule} {on_s} {off_s}: {share}");
        }
    }
}

#[test]
fn a_reactive_jammer_stops_more_with_less_energy() {
    for rule in RULES {
        let alone = throughput(&jammed(rule, json!([])));
        let constant = run(&jammed(rule, json!([near(json!({}))])));
        let reactive = run(&jammed(rule, json!([near(json!({"kind": "reactive", "on_s": 0.0005}))])));
        assert_eq!(reactive.flows[0].delivered_packets, 0, "{rule}: every RTS is hit");
        assert!(alone > 0.0 && constant.flows[0].delivered_packets == 0);
        let (less, more) = (reactive.jammers["jam1"].airtime_tx_ns, constant.jammers["jam1"].airtime_tx_ns);
        assert!(less < more / 3, "{rule}: {less} of {more} ns, at the same power");
        assert!(reactive.jammers["jam1"].bursts > 1000);
    }
}

/// Start, length and fate of a frame, us.
type FrameSeen = (u64, u64, Option<Fate>);

/// Start and length of each burst, and start, length and fate of each frame, us.
fn timeline(loaded: &Loaded, sends: &[(u64, u16, u16)], until_us: u64) -> (Vec<(u64, u64)>, Vec<FrameSeen>) {
    let at = |us| Instant::ZERO + Duration::from_micros(us);
    let mut medium = Medium::new(loaded, standing(loaded));
    medium.set_recording(true);
    for (us, from, to) in sends {
        let (station, to) = (StationId(*from), Some(StationId(*to)));
        medium.handle(at(*us), Input::Synthetic { station, to, ip_bytes: 1000, tag: 0 });
    }
    medium.handle(at(until_us), Input::Stop);
    let (mut bursts, mut frames) = (Vec::new(), Vec::new());
    while let Some(output) = medium.poll_output() {
        match output {
            Output::Air(AirRow::Jam { at, airtime, .. }) => {
                bursts.push((at.as_nanos() / 1000, airtime.as_nanos() / 1000))
            }
            Output::Air(AirRow::Tx { at, frame, fate, .. }) => {
                frames.push((at.as_nanos() / 1000, frame.airtime.as_nanos() / 1000, fate));
            }
            _ => {}
        }
    }
    (bursts, frames)
}

#[test]
fn a_periodic_jammer_sends_in_turn_from_its_start_to_its_stop() {
    let periodic = json!({"kind": "periodic", "on_s": 0.002, "off_s": 0.003, "start_s": 0.001, "stop_s": 0.0125});
    let (bursts, _) = timeline(&jammed("ns2", json!([near(periodic)])), &[], 100_000);
    assert_eq!(bursts, [(1000, 2000), (6000, 2000), (11_000, 1500)]);
}

#[test]
fn a_reactive_jammer_begins_its_delay_after_the_frame_and_jams_what_is_still_there_again() {
    let reactive = json!({"kind": "reactive", "on_s": 0.0001, "delay_us": 50.0});
    let (bursts, frames) = timeline(&jammed("ns2", json!([near(reactive)])), &[(0, 0, 1)], 2_000);
    // an RTS of 352 us (PLCP 192 us, 20 bytes at 1 Mbit/s): bursts of 100 us, 50 us after its start and after each burst
    let (begin, airtime, fate) = frames[0];
    assert_eq!((airtime, fate), (352, Some(Fate::Collision)));
    assert_eq!(bursts[..3], [(begin + 50, 100), (begin + 200, 100), (begin + 350, 100)]);
    // the last one ends after the frame
    assert!(bursts.get(3).is_none_or(|(at, _)| *at >= frames[1].0 + 50));
}

#[test]
fn a_constant_jammer_has_a_row_for_each_second() {
    let (bursts, _) = timeline(&jammed("ns2", json!([near(json!({}))])), &[], 2_500_000);
    assert_eq!(bursts, [(0, 1_000_000), (1_000_000, 1_000_000), (2_000_000, 500_000)]);
}

#[test]
fn a_jammer_is_switched_by_its_number_after_the_stations() {
    let loaded = jammed("ns2", json!([near(json!({}))]));
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let mut medium = Medium::new(&loaded, standing(&loaded));
    medium.set_recording(true);
    let jammer = StationId(2);
    medium.handle(at(500), Input::Power { station: jammer, on: false });
    medium.handle(at(600), Input::Synthetic { station: StationId(0), to: Some(StationId(1)), ip_bytes: 1000, tag: 7 });
    medium.handle(at(900), Input::Power { station: jammer, on: true });
    medium.handle(at(1000), Input::Synthetic { station: StationId(0), to: Some(StationId(1)), ip_bytes: 1000, tag: 8 });
    medium.handle(at(2000), Input::Stop);
    let outputs: Vec<Output> = std::iter::from_fn(|| medium.poll_output()).collect();
    let delivered =
        outputs.iter().filter(|output| matches!(output, Output::Deliver { packet, .. } if packet.tag == 7)).count();
    assert_eq!(delivered, 1, "only while it was off");
    assert!(!outputs.iter().any(|output| matches!(output, Output::Deliver { packet, .. } if packet.tag == 8)));
    assert_eq!(medium.jammer(0, at(2000)).1.airtime_tx_ns, 1_600_000_000);
}

#[test]
fn a_jammer_that_follows_a_station_is_where_it_is() {
    let loaded = loaded(&[[0.0, 0.0], [100.0, 0.0], [3000.0, 0.0]], |config| {
        config["jammers"] = json!([{"name": "jam1", "follows": "sta3", "tx_power_w": NS2_W}]);
        config["traffic"] = json!([{"from": "sta1", "to": "sta2", "kind": "saturated", "bytes": 1000}]);
    });
    let mut trajectories = standing(&loaded);
    trajectories[2].move_to(Instant::ZERO + Duration::from_secs(5), [50.0, 0.0, 0.0], f64::INFINITY);
    let jammed = sim::run(&loaded, trajectories, None).flows[0].delivered_packets;
    let free = sim::run(&loaded, standing(&loaded), None).flows[0].delivered_packets;
    // it arrives half way, and its power is renewed within 0.1 s
    assert!(jammed * 100 > free * 49 && jammed * 100 < free * 52, "{jammed} of {free}");
}

#[test]
fn the_shadowing_of_the_stations_is_that_without_jammers() {
    let links = |jammers: usize| {
        let loaded = loaded(&chain(4, 100.0), |config| {
            config["propagation"] = json!({"model": "shadowing", "sigma_db": 8.0});
            let jammer = |i| json!({"name": format!("jam{i}"), "position": [0, 0, 0], "tx_power_w": 1.0});
            config["jammers"] = (0..jammers).map(jammer).collect();
        });
        let powers: Vec<f64> =
            Medium::new(&loaded, standing(&loaded)).links(Instant::ZERO).iter().map(|l| l.power_w).collect();
        powers
    };
    assert_eq!(links(0), links(3));
}

fn log(loaded: &Loaded) -> String {
    let names = loaded.sender_names();
    let mut log = String::new();
    let mut on_air = |row: &AirRow| {
        row.write_csv(&mut log, |s| names[usize::from(s)]);
        log.push('\n');
    };
    sim::run(loaded, standing(loaded), Some(&mut on_air));
    log
}

#[test]
fn the_air_log_has_the_bursts_and_is_the_same_again() {
    let all = json!([
        near(json!({"kind": "reactive", "on_s": 0.001})),
        {"name": "jam2", "position": [0, 50, 0], "tx_power_w": 0.01, "kind": "periodic", "on_s": 0.02, "off_s": 0.5},
    ]);
    for rule in RULES {
        let loaded = jammed(rule, all.clone());
        let first = log(&loaded);
        assert_eq!(first, log(&loaded));
        let row = first.lines().find(|line| line.contains(",jam2,jam,")).unwrap();
        assert_eq!(row, "0,jam2,jam,,*,,,,,20000000,,,,");
        assert_eq!(row.split(',').count(), AirRow::CSV_HEADER.split(',').count());
    }
}

#[test]
fn mistakes_are_named_with_their_key() {
    let refusal = |jammer: Value| {
        let stations = json!([{"name": "sta1", "mac": "02:00:00:00:00:01", "position": [0, 0, 0]}]);
        let json = json!({"format": "manet-medium/1", "radio": "a.toml", "stations": stations, "jammers": [jammer]});
        let radio = Radio::parse(include_str!("../radios/ns2-dsss-2m.toml"), &Default::default()).unwrap();
        let loaded = Config::parse(&json.to_string()).map(|config| Loaded::new(config, radio));
        loaded.unwrap().err().map(|e| e.to_string()).unwrap_or_default()
    };
    let with = |more: Value| refusal(near(more));
    assert_eq!(with(json!({})), "");
    assert_eq!(with(json!({"name": "sta1"})), "key \"jammers[0].name\": \"sta1\" is already a station or jammer");
    assert!(with(json!({"follows": "sta1"})).starts_with("key \"jammers[0]\": needs either a position or follows"));
    assert!(with(json!({"position": null, "follows": "sta2"}))
        .starts_with("key \"jammers[0].follows\": there is no station"));
    assert!(with(json!({"kind": "periodic", "on_s": 1}))
        .starts_with("key \"jammers[0].off_s\": a periodic jammer needs it"));
    assert!(with(json!({"on_s": 1})).starts_with("key \"jammers[0].on_s\": a constant jammer has none"));
    assert!(with(json!({"kind": "reactive", "on_s": 0})).starts_with("key \"jammers[0].on_s\": 0 is not"));
    assert!(with(json!({"start_s": 2, "stop_s": 1})).starts_with("key \"jammers[0].stop_s\": 1 is not after start_s 2"));
}
