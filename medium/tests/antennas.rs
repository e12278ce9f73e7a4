//! Transmit powers and antennas that differ between stations or change during a run, in small networks in virtual time.

mod common;

use common::{chain, loaded, standing};
use manet_engine::{Duration, Instant, Machine};
use manet_medium::air_log::AirRow;
use manet_medium::config::{Config, Loaded};
use manet_medium::phy::antenna::Change;
use manet_medium::{Input, Medium, Output, StationId};

const A: StationId = StationId(0);
const B: StationId = StationId(1);

/// Two stations this far apart, m: ns-2's radio reaches 250 m.
const APART_M: f64 = 300.0;
/// Four times ns-2's power, for 300 m, which need (300 / 250)^4 = 2.07 times that of 250 m (ns-2's tworayground.cc).
const MORE_W: f64 = 0.2818 * 4.0;

/// Sends a broadcast at `at_ms` and returns the stations that decode it.
fn heard(medium: &mut Medium, from: StationId, at_ms: u64) -> Vec<u16> {
    let now = Instant::ZERO + Duration::from_millis(at_ms);
    medium.handle(now, Input::Synthetic { station: from, to: None, ip_bytes: 500, tag: 0 });
    while let Some(at) = medium.next_timeout() {
        medium.handle_timeout(at);
    }
    let outputs = std::iter::from_fn(|| medium.poll_output());
    outputs
        .filter_map(|output| match output {
            Output::Air(AirRow::Deliver { station, .. }) => Some(station),
            _ => None,
        })
        .collect()
}

fn more() -> Change {
    Change { tx_power_w: Some(MORE_W), ..Change::default() }
}

#[test]
fn a_change_of_power_applies_to_the_frames_after_it_and_to_this_sender_only() {
    let loaded = loaded(&chain(2, APART_M), |_| ());
    let mut medium = Medium::new(&loaded, standing(&loaded));
    medium.set_recording(true);
    assert_eq!((heard(&mut medium, A, 0), heard(&mut medium, B, 100)), (vec![], vec![]));
    medium.handle(Instant::ZERO + Duration::from_millis(200), Input::Antenna { station: A, change: more() });
    assert_eq!((heard(&mut medium, A, 300), heard(&mut medium, B, 400)), (vec![B.0], vec![]), "an asymmetric link");
    let links = medium.links(Instant::ZERO + Duration::from_millis(500));
    assert_eq!(links.iter().map(|l| (l.from, l.in_range)).collect::<Vec<_>>(), [(A, true), (B, false)]);
}

#[test]
fn a_station_of_the_configuration_has_a_power_of_its_own_from_the_start() {
    let loaded = loaded(&chain(2, APART_M), |config| config["stations"][1]["tx_power_w"] = MORE_W.into());
    let mut medium = Medium::new(&loaded, standing(&loaded));
    medium.set_recording(true);
    assert_eq!((heard(&mut medium, A, 0), heard(&mut medium, B, 100)), (vec![], vec![A.0]));
    assert_eq!(medium.antenna(A).tx_power_w, loaded.radio.tx_power_w);
}

#[test]
fn a_change_is_an_input_that_can_be_written_down_and_read_back() {
    let text = serde_json::to_string(&Input::Antenna { station: B, change: more() }).unwrap();
    assert_eq!(text, r#"{"Antenna":{"station":1,"tx_power_w":1.1272,"antenna_gain_db":null,"antenna_height_m":null}}"#);
    let back: Input = serde_json::from_str(&text).unwrap();
    assert!(matches!(back, Input::Antenna { station: B, change } if change == more()));
}

#[test]
fn a_power_out_of_limits_or_under_a_model_with_ranges_of_its_own_is_refused() {
    let refusal = |power_w: f64, model: &str| {
        let json = serde_json::json!({
            "format": "manet-medium/1", "radio": "ns2-dsss-2m.toml", "propagation": serde_json::from_str::<serde_json::Value>(model).unwrap(),
            "stations": [{"name": "sta1", "mac": "02:00:00:00:00:01", "position": [0, 0, 0], "tx_power_w": power_w}],
        });
        let config = Config::parse(&json.to_string()).unwrap();
        Loaded::new(config, loaded(&chain(2, APART_M), |_| ()).radio).unwrap_err().to_string()
    };
    let disc = refusal(1.0, r#"{"model": "disc", "range_m": 100.0, "sense_m": 200.0}"#);
    assert!(disc.starts_with("key \"stations[0]\": the propagation model disc has ranges of its own"), "{disc}");
    let zero = refusal(0.0, r#"{"model": "two-ray"}"#);
    assert!(zero.starts_with("key \"stations[0].tx_power_w\": 0 is not between 0.0000000000001 and 1000"), "{zero}");
}
