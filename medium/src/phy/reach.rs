//! Ranges of a radio and its power at given distances, for maps and plans: `manet-medium reach`.
//!
//! Request and answer are one JSON object each. A range is found by bisection: power never rises with distance.

use super::propagation::Model;
use super::radio::{make_whole, RadioError};
use super::{Propagation, Radio};
use manet_engine::keys;
use manet_engine::keys::Declared;
use manet_engine::misfit::{self, Misfit};
use serde::{Deserialize, Serialize};

/// Beyond any coordinate of a station.
const FARTHEST_M: f64 = 1e7;
/// Steps of the bisection after which its two bounds are adjacent floating-point numbers.
const STEPS: usize = 200;

keys! {
    /// A radio, a propagation model and distances.
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Request {
        /// A whole profile, overrides applied.
        pub radio: Radio;
        /// The propagation model; by default two-ray ground.
        #[serde(default)]
        pub propagation: Model;
        /// Distances at which the power is requested, m.
        #[serde(default)]
        pub at_m: Vec<f64>;
        /// Whether the stations' kernels choose the rates (`hwsim.rates = "kernel"`).
        #[serde(default)]
        pub kernel_rates: bool;
    }
}

impl Request {
    /// Parses the text of a request.
    ///
    /// # Errors
    /// One line that names the key.
    pub fn parse(text: &str) -> Result<Self, Misfit> {
        let of_the_whole = |e: serde_json::Error| Misfit { key: String::new(), mistake: e.to_string() };
        let mut values: serde_json::Value = serde_json::from_str(text).map_err(of_the_whole)?;
        values.get_mut("radio").into_iter().for_each(make_whole);
        misfit::fit(Self::KEYS, &values)?;
        serde_json::from_value(values).map_err(of_the_whole)
    }
}

/// For shadowing the median. A matrix and a trace have no distances: all powers are 0. Without walls and fading.
#[derive(Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Range within which stations are neighbours, m: of a profile with one rate its reception range; null if pairs differ (shadowing,
    /// matrix, trace).
    pub received_m: Option<f64>,
    /// Carrier sense range, m; null if pairs differ.
    pub sensed_m: Option<f64>,
    /// Power at each of the requested distances, W.
    pub power_w: Vec<f64>,
    /// Power from which on stations are neighbours ([`Radio::neighbour_threshold_w`]), W.
    pub neighbour_w: f64,
}

/// Computes ranges and powers.
///
/// # Errors
/// [`RadioError`] of a profile that is out of limits or contradicts itself.
pub fn answer(request: &Request) -> Result<Answer, RadioError> {
    let Request { radio, propagation: model, at_m, kernel_rates } = request;
    let radio = &radio.clone().completed()?;
    // one station, which is its own pair
    let propagation = Propagation::new(&as_median(model), radio, 1, 0, |_| 0);
    let power_w = |distance_m: f64| propagation.power_w(0, 0, [0.0; 3], [distance_m, 0.0, 0.0]);
    let range_m =
        |threshold_w: f64| model.is_alike().then(|| farthest(|distance_m| power_w(distance_m) >= threshold_w));
    let neighbour_w = radio.neighbour_threshold_w(*kernel_rates);
    Ok(Answer {
        neighbour_w,
        received_m: range_m(neighbour_w),
        sensed_m: range_m(radio.carrier_sense_threshold_w),
        power_w: at_m.iter().map(|distance_m| power_w(*distance_m)).collect(),
    })
}

fn as_median(model: &Model) -> Model {
    match model {
        Model::Matrix { .. } | Model::Trace { .. } => Model::Matrix { matrix: Vec::new() },
        Model::Shadowing { exponent, reference_m, .. } => {
            Model::LogDistance { exponent: *exponent, reference_m: *reference_m }
        }
        other => other.clone(),
    }
}

fn farthest(arrives: impl Fn(f64) -> bool) -> f64 {
    let (mut near_m, mut far_m) = (0.0, FARTHEST_M);
    for _ in 0..STEPS {
        let middle_m = (near_m + far_m) / 2.0;
        if arrives(middle_m) {
            near_m = middle_m;
        } else {
            far_m = middle_m;
        }
    }
    near_m
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::radio::tests::profile;
    use crate::phy::radio::{RateControl, Rules, Thresholds};

    fn answer_of(radio: Radio, model: &str, kernel_rates: bool) -> Answer {
        let propagation = serde_json::from_str(model).unwrap();
        answer(&Request { radio, propagation, at_m: vec![100.0], kernel_rates }).unwrap()
    }

    fn answer_for(model: &str) -> Answer {
        answer_of(profile("ns2-dsss-2m"), model, false)
    }

    #[test]
    fn a_request_that_is_none_is_refused_with_its_key() {
        let mut radio = serde_json::to_value(profile("ns2-dsss-2m")).unwrap();
        radio["rules"]["cts_holds"] = "x".into();
        let refused = Request::parse(&serde_json::json!({ "radio": radio }).to_string()).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "key \"radio.rules.cts_holds\": \"x\" is of the wrong type; give true or false"
        );
        assert_eq!(Request::parse("{}").unwrap_err().to_string(), "key \"radio\": is missing; add it");
    }

    #[test]
    fn a_whole_number_may_be_written_as_a_float_as_in_a_profile() {
        let mut radio = serde_json::to_value(profile("dot11a-54m")).unwrap();
        radio["data_rate_bps"] = 6e6.into();
        let request = Request::parse(&serde_json::json!({ "radio": radio }).to_string()).unwrap();
        assert_eq!(request.radio.data_rate_bps, 6_000_000);
    }

    #[test]
    fn the_papers_radio_is_received_at_250_m_and_sensed_at_550() {
        let two_ray = answer_for(r#"{"model": "two-ray"}"#);
        assert!((two_ray.received_m.unwrap() - 250.0).abs() < 0.1, "{two_ray:?}");
        assert!((two_ray.sensed_m.unwrap() - 550.0).abs() < 0.5, "{two_ray:?}");
    }

    #[test]
    fn the_power_is_that_of_the_propagation_model() {
        // free space at 100 m: 0.28183815 W x (0.32823 m / (4 pi 100 m))^2
        let power_w = answer_for(r#"{"model": "free-space"}"#).power_w[0];
        assert!(
            (power_w / (0.281_838_15 * (0.328_228_f64 / (400.0 * std::f64::consts::PI)).powi(2)) - 1.0).abs() < 1e-4
        );
        let shadowed = answer_for(r#"{"model": "shadowing", "sigma_db": 8.0}"#);
        assert_eq!(shadowed.power_w, answer_for(r#"{"model": "log-distance"}"#).power_w, "the median");
        assert_eq!((shadowed.received_m, shadowed.sensed_m), (None, None));
    }

    #[test]
    fn a_disc_is_as_large_as_it_says_and_a_matrix_has_no_size() {
        let disc = answer_for(r#"{"model": "disc", "range_m": 120.0, "sense_m": 240.0}"#);
        assert_eq!((disc.received_m, disc.sensed_m), (Some(120.0), Some(240.0)));
        assert_eq!(answer_for(r#"{"model": "trace", "file": "links.csv"}"#).power_w, [0.0], "the file is not read");
        let matrix = answer_for(r#"{"model": "matrix", "matrix": [{"from": "a", "to": "b", "loss_db": 60}]}"#);
        let neighbour_w = profile("ns2-dsss-2m").receive_threshold_w;
        assert_eq!(matrix, Answer { received_m: None, sensed_m: None, power_w: vec![0.0], neighbour_w });
    }

    /// Two-ray at 1.5 m is free space up to 490 m in this band, then the fourth power: at 23 dBm -65 dBm (MCS 7 of 80 MHz) at 115 m; by the
    /// error model MCS 9 needs 5.9 dB more, MCS 4 7.2 dB less (by the minimum sensitivities 7 and 6). MCS 0 needs less than -76 dBm, from which on the
    /// start of a frame is sensed.
    #[test]
    fn with_a_fixed_rate_neighbours_are_those_whom_that_rate_reaches() {
        let reach_m = |overrides: &str| {
            let radio = Radio::parse(include_str!("../../radios/dot11ac-vht80.toml"), &overrides.parse().unwrap());
            answer_of(radio.unwrap(), r#"{"model": "two-ray"}"#, false).received_m.unwrap()
        };
        let of_profile = reach_m("");
        let farther = |overrides: &str, db: f64| {
            let expected_m = of_profile * 10f64.powf(db / 20.0);
            let ours_m = reach_m(overrides);
            assert!((ours_m / expected_m - 1.0).abs() < 1e-3, "{overrides}: {ours_m} m, expected {expected_m}");
        };
        assert_eq!(of_profile.round(), 115.0);
        farther("mcs = 9", -5.922);
        farther("mcs = 4", 7.184);
        farther("mcs = 0", 11.0);
        farther("mcs = 9\nreception = \"threshold\"", -7.0);
        farther("mcs = 4\nreception = \"threshold\"", 6.0);
        farther("streams = 2", -3.01);
        // whatever the MCS at which a rate control begins
        for mcs in [0, 7, 9] {
            farther(&format!("mcs = {mcs}\nrate_control = \"minstrel-ht\""), 11.0);
        }
        // a profile that does not say what its threshold is for: it is for its MCS
        let mut own = profile("dot11ac-vht80");
        (own.receive_threshold_mcs, own.mcs, own.data_rate_bps) = (None, Some(9), 0);
        assert_eq!(answer_of(own, r#"{"model": "two-ray"}"#, false).received_m, Some(of_profile));
    }

    /// Free space up to 230 m of 802.11g at 1.5 m, then the fourth power: -72 dBm (54 Mbit/s) at 219 m, -82 dBm (the start of a frame is sensed) at
    /// 399 m. 6 Mbit/s need -89 dBm.
    #[test]
    fn with_several_rates_neighbours_are_those_whom_the_slowest_usable_rate_reaches() {
        let reach_m = |radio: &Radio, by_kernel| {
            answer_of(radio.clone(), r#"{"model": "two-ray"}"#, by_kernel).received_m.unwrap().round()
        };
        let fixed = profile("dot11g-54m");
        assert_eq!((reach_m(&fixed, false), reach_m(&fixed, true)), (219.0, 399.0));
        let adaptive = Radio { rate_control: RateControl::MinstrelHt, ..fixed.clone() };
        assert_eq!(reach_m(&adaptive, false), 399.0);
        let sensitive = Radio { carrier_sense_threshold_w: 1e-13, ..adaptive.clone() };
        assert_eq!(reach_m(&sensitive, false), (399.0 * 10f64.powf(7.0 / 40.0)).round(), "-89 dBm");
        let one = Radio { rules: Rules { thresholds: Thresholds::One, ..adaptive.rules.clone() }, ..adaptive };
        assert_eq!((reach_m(&one, false), reach_m(&one, true)), (219.0, 219.0), "all frames need the power of data");
    }
}
