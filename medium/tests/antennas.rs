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

/// Free space beyond the reference distance of a sector: the closed form of both ends.
#[test]
fn a_sector_gives_and_takes_by_the_direction_of_the_other_end() {
    // sta1 at the origin looks along x, sta2 at 100 m on the x axis looks back at it, sta3 is at 60 degrees, behind sta2's lobe
    let (x, y) = (50.0, 50.0 * 3.0f64.sqrt());
    let loaded = loaded(&[[0.0, 0.0], [100.0, 0.0], [x, y]], |config| {
        config["propagation"] = serde_json::json!({"model": "free-space"});
        let sector = |azimuth: f64| serde_json::json!({"pattern": "sector", "gain_dbi": 8, "beamwidth_deg": 60, "azimuth_deg": azimuth, "front_to_back_db": 30});
        config["stations"][0]["antenna"] = sector(0.0);
        config["stations"][1]["antenna"] = sector(180.0);
    });
    let (radio, medium) = (&loaded.radio, Medium::new(&loaded, standing(&loaded)));
    // Friis at 100 m: each pair is 100 m apart
    let spread_db = 20.0 * (3e8 / radio.frequency_hz / (400.0 * std::f64::consts::PI)).log10();
    let own_db = 10.0 * radio.tx_power_w.log10() - radio.system_loss_db + spread_db;
    // at 60 degrees off: 12 (60 / 60)^2 = 12 dB less
    for (from, to, gains_db) in
        [(0, 1, 8.0 + 8.0), (1, 0, 8.0 + 8.0), (0, 2, 8.0 - 12.0), (2, 0, 8.0 - 12.0), (1, 2, 8.0 - 12.0)]
    {
        let links = medium.links(Instant::ZERO);
        let link = links.iter().find(|l| (l.from.0, l.to.0) == (from, to)).unwrap();
        let expected_db = own_db + gains_db + if from == 2 || to == 2 { radio.antenna_gain_db } else { 0.0 };
        assert!((10.0 * link.power_w.log10() - expected_db).abs() < 1e-9, "{from} {to}");
    }
}

#[test]
fn a_sector_reaches_farther_before_it_and_less_far_behind() {
    let loaded = loaded(&[[0.0, 0.0], [APART_M, 0.0], [-150.0, 0.0]], |config| {
        config["stations"][0]["antenna"] =
            serde_json::json!({"pattern": "sector", "gain_dbi": 6, "beamwidth_deg": 90, "front_to_back_db": 30});
    });
    let mut medium = Medium::new(&loaded, standing(&loaded));
    medium.set_recording(true);
    // 6 dB are 250 m * 10^(6 / 40) = 353 m; -24 dB 63 m; sta3 reaches sta2 from neither
    assert_eq!((heard(&mut medium, A, 0), heard(&mut medium, B, 100)), (vec![B.0], vec![A.0]));
    assert_eq!(heard(&mut medium, StationId(2), 200), [0; 0]);
    // what the prompt changes is the main lobe: 30 dB more reach 353 m behind, too
    let gain = Change { antenna_gain_db: Some(36.0), ..Change::default() };
    medium.handle(Instant::ZERO + Duration::from_millis(300), Input::Antenna { station: A, change: gain });
    assert_eq!(heard(&mut medium, StationId(2), 400), vec![A.0]);
}

#[test]
fn an_antenna_with_a_gain_twice_or_a_table_that_is_none_is_refused() {
    let refusal = |station: serde_json::Value| {
        let mut all = serde_json::json!({"name": "sta1", "mac": "02:00:00:00:00:01", "position": [0, 0, 0]});
        all.as_object_mut().unwrap().extend(station.as_object().unwrap().clone());
        let json = serde_json::json!({"format": "manet-medium/1", "radio": "ns2-dsss-2m.toml", "stations": [all]});
        let config = Config::parse(&json.to_string()).map_err(|e| e.to_string())?;
        Loaded::new(config, loaded(&chain(2, APART_M), |_| ()).radio).map(|_| ()).map_err(|e| e.to_string())
    };
    let sector = serde_json::json!({"pattern": "sector", "gain_dbi": 6, "beamwidth_deg": 90});
    assert_eq!(refusal(serde_json::json!({"antenna": sector})), Ok(()));
    let twice = refusal(serde_json::json!({"antenna": sector, "antenna_gain_db": 6})).unwrap_err();
    assert_eq!(twice, "key \"stations[0].antenna_gain_db\": antenna has a gain; leave one of them out");
    let table = serde_json::json!({"pattern": "table", "angles_deg": [0, 90], "gains_dbi": [1]});
    let short = refusal(serde_json::json!({"antenna": table})).unwrap_err();
    assert!(short.starts_with("key \"stations[0].antenna.gains_dbi\": 1 gains for 2 angles"), "{short}");
    let wide = refusal(serde_json::json!({"antenna": {"pattern": "sector", "gain_dbi": 6, "beamwidth_deg": 400}}))
        .unwrap_err();
    assert!(wide.starts_with("key \"stations[0].antenna.beamwidth_deg\": 400 is not"), "{wide}");
    let unknown =
        refusal(serde_json::json!({"antenna": {"pattern": "omni", "gain_dbi": 6, "azimuth_deg": 1}})).unwrap_err();
    assert!(unknown.contains("azimuth_deg"), "{unknown}");
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
