//! Fading: a normal draw, in decibels, on the power of each frame at each station, and small-scale fading of links over time.

mod common;

use common::{chain, loaded, standing};
use manet_engine::{Duration, Instant, Machine};
use manet_medium::air_log::AirRow;
use manet_medium::{sim, Input, Medium, Output, StationId};
use serde_json::{json, Value};

const FRAMES: u64 = 2000;
const GAP_MS: u64 = 20;

/// The share of the first station's broadcasts that the second decodes, at `distance_m` with `fading_db`; and their powers there, dBm.
fn decoded(distance_m: f64, fading_db: f64) -> (f64, Vec<f64>) {
    decoded_with(distance_m, |config| config["fading_db"] = fading_db.into())
}

fn decoded_with(distance_m: f64, change: impl FnOnce(&mut Value)) -> (f64, Vec<f64>) {
    let loaded = loaded(&chain(2, distance_m), change);
    let mut medium = Medium::new(&loaded, standing(&loaded));
    medium.set_recording(true);
    let mut powers = Vec::new();
    for frame in 0..FRAMES {
        let now = Instant::ZERO + Duration::from_millis(frame * GAP_MS);
        medium.handle(now, Input::Synthetic { station: StationId(0), to: None, ip_bytes: 500, tag: 0 });
        while let Some(at) = medium.next_timeout() {
            medium.handle_timeout(at);
        }
        while let Some(output) = medium.poll_output() {
            if let Output::Air(AirRow::Deliver { power_w: watts, .. }) = output {
                powers.push(10.0 * (1000.0 * watts).log10());
            }
        }
    }
    (powers.len() as f64 / FRAMES as f64, powers)
}

#[test]
fn a_frame_is_decoded_as_often_as_the_normal_distribution_says() {
    // two-ray: 40 log10(d / 250 m) dB below the threshold; sigma 3 dB: 1 - phi(3.17 / 3) = 0.1455 at 300 m, 1 - phi(-3.88 / 3) =
    // 0.902 at 200 m (the radio reaches 250.1 m). Four standard errors of 2000 frames: 0.032 and 0.027
    let (beyond, _) = decoded(300.0, 3.0);
    assert!((beyond - 0.1455).abs() < 0.032, "{beyond}");
    let (within, _) = decoded(200.0, 3.0);
    assert!((within - 0.902).abs() < 0.027, "{within}");
}

#[test]
fn the_power_of_each_frame_is_drawn_anew_and_logged() {
    // at 50 m every frame is decoded: the powers are the whole distribution, whose deviation is known to 1.6 % from 2000 draws
    let (share, powers) = decoded(50.0, 3.0);
    assert_eq!(share, 1.0);
    let mean = powers.iter().sum::<f64>() / powers.len() as f64;
    let deviation = (powers.iter().map(|p| (p - mean).powi(2)).sum::<f64>() / powers.len() as f64).sqrt();
    assert!((deviation - 3.0).abs() < 0.2, "{deviation}");
}

#[test]
fn without_fading_reception_ends_at_the_range() {
    assert_eq!((decoded(300.0, 0.0).0, decoded(200.0, 0.0).0), (0.0, 1.0));
}

/// Two-ray: (250.1 m / d)^4 times the threshold. Frames 20 ms apart at 100 m/s, whose coherence time is 1.4 ms, have independent powers.
const MARGIN: fn(f64) -> f64 = |distance_m| (250.1 / distance_m).powi(4);

#[test]
fn links_fade_as_often_below_the_threshold_as_their_distribution_says() {
    // exponential: exp(-1 / margin); gamma of shape 3: exp(-x) (1 + x + x^2 / 2), x = 3 / margin. Four standard errors: 0.045
    let gamma = |x: f64| (-x).exp() * (1.0 + x + x * x / 2.0);
    for distance_m in [200.0, 250.0, 300.0] {
        let need = 1.0 / MARGIN(distance_m);
        for (fading, expected) in [
            (json!({"model": "rayleigh", "speed_mps": 100.0}), (-need).exp()),
            (json!({"model": "rayleigh", "speed_mps": 100.0, "coherence": "block"}), (-need).exp()),
            (json!({"model": "nakagami", "m": 3.0, "speed_mps": 100.0}), gamma(3.0 * need)),
        ] {
            let (found, _) = decoded_with(distance_m, |config| config["fading"] = fading.clone());
            assert!((found - expected).abs() < 0.045, "{fading} at {distance_m} m: {found}, not {expected}");
        }
    }
}

#[test]
fn a_standing_link_without_a_speed_keeps_its_power_and_a_moving_one_fades() {
    let (_, powers) = decoded_with(50.0, |config| config["fading"] = json!({"model": "rician", "k_db": 10.0}));
    assert_eq!(powers.iter().map(|p| p.to_bits()).collect::<std::collections::HashSet<_>>().len(), 1);
    // 40 m at 1 m/s over 0.33 m wavelengths, sampled every 2 cm
    let loaded = loaded(&chain(2, 40.0), |config| config["fading"] = json!({"model": "rayleigh"}));
    let mut trajectories = standing(&loaded);
    trajectories[1].move_to(Instant::ZERO, [80.0, 0.0, 0.0], 1.0);
    let mut medium = Medium::new(&loaded, trajectories);
    medium.set_recording(true);
    let mut below = 0;
    for frame in 0..FRAMES {
        let now = Instant::ZERO + Duration::from_millis(frame * GAP_MS);
        let mean_w = medium.links(now)[0].power_w;
        medium.handle(now, Input::Synthetic { station: StationId(0), to: None, ip_bytes: 500, tag: 0 });
        while let Some(at) = medium.next_timeout() {
            medium.handle_timeout(at);
        }
        while let Some(output) = medium.poll_output() {
            if let Output::Air(AirRow::Deliver { power_w, .. }) = output {
                below += u64::from(power_w < mean_w);
            }
        }
    }
    // 1 - 1 / e = 0.632 of the time below the mean; 120 wavelengths: some 240 independent values
    let share = below as f64 / FRAMES as f64;
    assert!((share - 0.632).abs() < 0.13, "{share}");
}

#[test]
fn the_same_seed_is_the_same_channel_and_another_seed_another() {
    let log = |seed: u64| {
        let loaded = loaded(&chain(4, 220.0), |config| {
            config["seed"] = seed.into();
            config["fading"] = json!({"model": "rician", "k_db": 3.0, "speed_mps": 3.0});
            config["traffic"] = json!([{"from": "sta1", "to": "sta4", "kind": "saturated", "bytes": 1000,
                "route": ["sta1", "sta2", "sta3", "sta4"]}]);
        });
        let names: Vec<&str> = loaded.config.stations.iter().map(|s| s.name.as_str()).collect();
        let mut log = String::new();
        let mut on_air = |row: &AirRow| row.write_csv(&mut log, |s| names[s as usize]);
        sim::run(&loaded, standing(&loaded), Some(&mut on_air));
        log
    };
    assert_eq!(log(1), log(1));
    assert_ne!(log(1), log(2));
}
