//! Ranges of a radio and its power at given distances, for maps and plans: `manet-medium reach`.
//!
//! Request and answer are one JSON object each. A range is found by bisection: power never rises with distance.

use super::propagation::Model;
use super::radio::RadioError;
use super::{Propagation, Radio};
use serde::{Deserialize, Serialize};

/// Beyond any coordinate of a station.
const FARTHEST_M: f64 = 1e7;
/// Steps of the bisection after which its two bounds are adjacent floating-point numbers.
const STEPS: usize = 200;

/// A radio, a propagation model and distances.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// A whole profile, overrides applied.
    pub radio: Radio,
    /// The propagation model; by default two-ray ground.
    #[serde(default)]
    pub propagation: Model,
    /// Distances at which the power is requested, m.
    #[serde(default)]
    pub at_m: Vec<f64>,
}

/// For shadowing the median. A matrix and a trace have no distances: all powers are 0. Without walls and fading.
#[derive(Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Reception range, m; null if pairs differ (shadowing, matrix, trace).
    pub received_m: Option<f64>,
    /// Carrier sense range, m; null if pairs differ.
    pub sensed_m: Option<f64>,
    /// Power at each of the requested distances, W.
    pub power_w: Vec<f64>,
}

/// Computes ranges and powers.
///
/// # Errors
/// [`RadioError`] of a profile that is out of limits or contradicts itself.
pub fn answer(request: &Request) -> Result<Answer, RadioError> {
    let Request { radio, propagation: model, at_m } = request;
    let radio = &radio.clone().completed()?;
    // one station, which is its own pair
    let propagation = Propagation::new(&as_median(model), radio, 1, 0, |_| 0);
    let power_w = |distance_m: f64| propagation.power_w(0, 0, [0.0; 3], [distance_m, 0.0, 0.0]);
    let range_m =
        |threshold_w: f64| model.is_alike().then(|| farthest(|distance_m| power_w(distance_m) >= threshold_w));
    Ok(Answer {
        received_m: range_m(radio.receive_threshold_w),
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

    fn answer_for(model: &str) -> Answer {
        let propagation = serde_json::from_str(model).unwrap();
        answer(&Request { radio: profile("ns2-dsss-2m"), propagation, at_m: vec![100.0] }).unwrap()
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
        assert_eq!(matrix, Answer { received_m: None, sensed_m: None, power_w: vec![0.0] });
    }
}
