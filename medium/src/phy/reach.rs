//! How far a radio is received and sensed, and what arrives at a distance, for who draws or plans: `manet-medium reach`.
//!
//! One question as a JSON object, one answer. The distance is found by halving: power never rises with it.

use super::propagation::Model;
use super::radio::RadioError;
use super::{Propagation, Radio};
use serde::{Deserialize, Serialize};

/// Beyond any coordinate of a station.
const FARTHEST_M: f64 = 1e7;
/// Halvings after which the two ends are neighbours as numbers.
const HALVINGS: usize = 200;

/// A radio, a propagation model and distances.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// A whole profile, overrides applied.
    pub radio: Radio,
    /// The propagation model; by default two-ray ground.
    #[serde(default)]
    pub propagation: Model,
    /// Distances whose power is asked for.
    #[serde(default)]
    pub at_m: Vec<f64>,
}

/// Of shadowing the median. A matrix has no distances: nothing arrives.
#[derive(Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Null where pairs differ (shadowing, matrix).
    pub received_m: Option<f64>,
    /// Carrier sense range, m; null where pairs differ.
    pub sensed_m: Option<f64>,
    /// At the distances of the question.
    pub power_w: Vec<f64>,
}

/// Refuses a profile whose values do not fit.
pub fn answer(question: &Question) -> Result<Answer, RadioError> {
    let Question { radio, propagation: model, at_m } = question;
    radio.check().map_err(RadioError::Value)?;
    // one station, which is its own pair: no draw, and no entry of a matrix
    let propagation = Propagation::new(&as_median(model), radio, 1, 0, |_| 0);
    let power_w = |distance_m: f64| propagation.power_w(0, 0, [0.0; 3], [distance_m, 0.0, 0.0]);
    let alike = !matches!(model, Model::Shadowing { .. } | Model::Matrix { .. });
    let range_m = |threshold_w: f64| alike.then(|| farthest(|distance_m| power_w(distance_m) >= threshold_w));
    Ok(Answer {
        received_m: range_m(radio.receive_threshold_w),
        sensed_m: range_m(radio.carrier_sense_threshold_w),
        power_w: at_m.iter().map(|distance_m| power_w(*distance_m)).collect(),
    })
}

fn as_median(model: &Model) -> Model {
    match model {
        Model::Matrix { .. } => Model::Matrix { matrix: Vec::new() },
        other => other.clone(),
    }
}

fn farthest(arrives: impl Fn(f64) -> bool) -> f64 {
    let (mut near_m, mut far_m) = (0.0, FARTHEST_M);
    for _ in 0..HALVINGS {
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

    fn asked(model: &str) -> Answer {
        let propagation = serde_json::from_str(model).unwrap();
        answer(&Question { radio: profile("ns2-dsss-2m"), propagation, at_m: vec![100.0] }).unwrap()
    }

    #[test]
    fn the_papers_radio_is_received_at_250_m_and_sensed_at_550() {
        let two_ray = asked(r#"{"model": "two-ray"}"#);
        assert!((two_ray.received_m.unwrap() - 250.0).abs() < 0.1, "{two_ray:?}");
        assert!((two_ray.sensed_m.unwrap() - 550.0).abs() < 0.5, "{two_ray:?}");
    }

    #[test]
    fn the_power_is_what_propagation_says() {
        // free space at 100 m: 0.28183815 W x (0.32823 m / (4 pi 100 m))^2
        let power_w = asked(r#"{"model": "free-space"}"#).power_w[0];
        assert!(
            (power_w / (0.281_838_15 * (0.328_228_f64 / (400.0 * std::f64::consts::PI)).powi(2)) - 1.0).abs() < 1e-4
        );
        let shadowed = asked(r#"{"model": "shadowing", "sigma_db": 8.0}"#);
        assert_eq!(shadowed.power_w, asked(r#"{"model": "log-distance"}"#).power_w, "the median");
        assert_eq!((shadowed.received_m, shadowed.sensed_m), (None, None));
    }

    #[test]
    fn a_disc_is_as_large_as_it_says_and_a_matrix_has_no_size() {
        let disc = asked(r#"{"model": "disc", "range_m": 120.0, "sense_m": 240.0}"#);
        assert_eq!((disc.received_m, disc.sensed_m), (Some(120.0), Some(240.0)));
        let matrix = asked(r#"{"model": "matrix", "matrix": [{"from": "a", "to": "b", "loss_db": 60}]}"#);
        assert_eq!(matrix, Answer { received_m: None, sensed_m: None, power_w: vec![0.0] });
    }
}
