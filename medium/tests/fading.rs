//! Fading: a normal draw, in decibels, on the power of each frame at each station.

mod common;

use common::{chain, loaded, standing};
use manet_engine::{Duration, Instant, Machine};
use manet_medium::air_log::AirRow;
use manet_medium::{Input, Medium, Output, StationId};

const FRAMES: u64 = 2000;
const GAP_MS: u64 = 20;

/// The share of the first station's broadcasts that the second decodes, at `distance_m` with `fading_db`; and their powers there, dBm.
fn decoded(distance_m: f64, fading_db: f64) -> (f64, Vec<f64>) {
    let loaded = loaded(&chain(2, distance_m), |config| config["fading_db"] = fading_db.into());
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
