//! Propagation: received power as a pure function of both positions and both antennas.
//!
//! `two-ray` is ns-2's `TwoRayGround` (mobile/tworayground.cc): free space (Friis) up to the crossover distance
//! 4 pi ht hr / lambda, beyond it Pt Gt Gr ht^2 hr^2 / (d^4 L); the height of an antenna is its own plus the station's z above
//! the ground at z = 0 (nothing is received from or below the ground). The others: free space (Friis 1946); log-distance
//! (Rappaport, Wireless Communications, section 4.9.1: free space up to the reference distance); shadowing
//! (section 4.9.2: one log-normal draw for each pair, symmetric, from the seed, or a field over the positions of both, [`shadowing`]);
//! ITU indoor (Recommendation ITU-R P.1238-9, equation 1: 20 log10 f + N log10 d + Lf(n) - 28 dB); disc (sharp: received up to `range_m`,
//! only sensed up to `sense_m`, nothing beyond); matrix (the given losses, no other links); trace (losses over time, [`super::measured`]). [`walls`]
//! add their losses to the models of distance.
use super::pattern::Directional;
use super::shadowing::{self, Field};
use super::walls::{self, Wall};
use super::{Antenna, Radio};
use manet_engine::keys::{above, within, Limits};
use manet_engine::random::{Purpose, Stream};
use manet_engine::{keys, tables};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::path::PathBuf;

const LIGHT_MPS: f64 = 3.0e8; // ns-2's value, so that 250 m stays 250 m
/// Maximum range of a model, m, above that of any 802.11 radio of a station.
const MAX_RANGE_M: f64 = 100_000.0;

/// Numbers of the pairs of a jammer and a station, above those of all pairs of stations.
const JAMMER_PAIRS: u64 = 1 << 48;

const EXPONENT: Limits = above(0.0).up_to(10.0).by_default(3.0);
const REFERENCE_M: Limits = above(0.0).up_to(1000.0).of("m").by_default(1.0);
/// N of an office at 2.4 GHz (P.1238-9, table 2).
const LOSS_COEFFICIENT: Limits = above(0.0).up_to(100.0).by_default(30.0);
const FLOOR_HEIGHT_M: Limits = above(0.0).up_to(100.0).of("m").by_default(3.0);
/// Lf(n) = 15 + 4 (n - 1) of an office (P.1238-9, table 3, 1.8 to 2 GHz).
const FIRST_FLOOR_DB: Limits = within(0.0, 300.0).of("dB").by_default(15.0);
const FURTHER_FLOOR_DB: Limits = within(0.0, 300.0).of("dB").by_default(4.0);

fn exponent() -> f64 {
    EXPONENT.default.unwrap_or_default()
}
fn reference_m() -> f64 {
    REFERENCE_M.default.unwrap_or_default()
}
fn loss_coefficient() -> f64 {
    LOSS_COEFFICIENT.default.unwrap_or_default()
}
fn floor_height_m() -> f64 {
    FLOOR_HEIGHT_M.default.unwrap_or_default()
}
fn first_floor_db() -> f64 {
    FIRST_FLOOR_DB.default.unwrap_or_default()
}
fn further_floor_db() -> f64 {
    FURTHER_FLOOR_DB.default.unwrap_or_default()
}

tables! {
    /// The `propagation` table of `medium.json`.
    pub enum Model by "model" {
        /// Two-ray ground with ns-2's constants.
        TwoRay = "two-ray" {}
        /// Free space (Friis).
        FreeSpace = "free-space" {}
        /// Free space up to a reference distance, then a power of the distance.
        LogDistance = "log-distance" {
            /// Path loss exponent.
            #[serde(default = "exponent")]
            exponent: f64 => EXPONENT;
            /// Reference distance, up to which the loss is that of free space.
            #[serde(default = "reference_m")]
            reference_m: f64 => REFERENCE_M;
        }
        /// Log-distance with log-normal shadowing.
        Shadowing = "shadowing" {
            /// Path loss exponent.
            #[serde(default = "exponent")]
            exponent: f64 => EXPONENT;
            /// Reference distance, up to which the loss is that of free space.
            #[serde(default = "reference_m")]
            reference_m: f64 => REFERENCE_M;
            /// Standard deviation of the loss.
            sigma_db: f64 => within(0.0, 30.0).of("dB");
            /// Distance over which the correlation of the loss falls to 1/e as a station moves; without it the loss is drawn once for each pair of stations.
            #[serde(default)]
            correlation_m: Option<f64> => above(0.0).up_to(MAX_RANGE_M).of("m");
        }
        /// ITU-R P.1238 for the inside of a building, with a loss for each floor between two stations.
        ItuIndoor = "itu-indoor" {
            /// Distance power loss coefficient N: dB for each factor 10 of the distance.
            #[serde(default = "loss_coefficient")]
            loss_coefficient: f64 => LOSS_COEFFICIENT;
            /// Height of a floor: a station at height z is on floor z / floor_height_m, rounded down.
            #[serde(default = "floor_height_m")]
            floor_height_m: f64 => FLOOR_HEIGHT_M;
            /// Loss of the first floor between two stations.
            #[serde(default = "first_floor_db")]
            first_floor_db: f64 => FIRST_FLOOR_DB;
            /// Loss of each further floor.
            #[serde(default = "further_floor_db")]
            further_floor_db: f64 => FURTHER_FLOOR_DB;
        }
        /// Sharp ranges: frames are received, only sensed, or neither.
        Disc = "disc" {
            /// Reception range.
            range_m: f64 => above(0.0).up_to(MAX_RANGE_M).of("m");
            /// Carrier sense range, not below range_m.
            sense_m: f64 => above(0.0).up_to(MAX_RANGE_M).of("m");
        }
        /// The given losses, no other links.
        Matrix = "matrix" {
            /// The links; an entry stands for both directions unless both are given.
            matrix: Vec<MatrixEntry>;
        }
        /// Measured links over time, no other links.
        Trace = "trace" {
            /// File of the links (formats/links.md), relative to this file.
            file: PathBuf;
        }
    }
}

keys! {
    /// The loss of one link.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct MatrixEntry {
        /// Sending station.
        pub from: String;
        /// Receiving station.
        pub to: String;
        /// Path loss; a pair without an entry has no link. Within 10,000 km the formulas give at most 273 dB (two-ray,
        /// antennas at 1.5 m).
        pub loss_db: f64 => within(0.0, 300.0).of("dB");
    }
}

impl Model {
    /// The refusal of a power or an antenna under a model with ranges of its own.
    pub const OWN_RANGES: &'static str =
        "the propagation model disc has ranges of its own, which power and antennas do not change; choose another model";

    /// Whether power and antennas have no effect.
    pub fn has_own_ranges(&self) -> bool {
        matches!(self, Model::Disc { .. })
    }

    /// The refusal of walls under a model whose losses do not follow from positions.
    pub const WITHOUT_PATHS: &'static str =
        "walls have no effect under disc, matrix and trace, whose links are as given; remove them, or choose another model";

    /// Whether a path between two positions has a loss that walls add to.
    pub fn has_paths(&self) -> bool {
        !matches!(self, Model::Disc { .. } | Model::Matrix { .. } | Model::Trace { .. })
    }

    /// Whether all pairs of stations at one distance have the same power, so that the radio has one range.
    pub fn is_alike(&self) -> bool {
        !matches!(self, Model::Shadowing { .. } | Model::Matrix { .. } | Model::Trace { .. })
    }
}

/// Power that the radio of the profile radiates in the direction of another one, both gains and the system loss included, W.
pub fn radiated_w(radio: &Radio) -> f64 {
    radio.tx_power_w * 10f64.powf((2.0 * radio.antenna_gain_db - radio.system_loss_db) / 10.0)
}

/// Wavelength of the radio, m.
pub fn wavelength_m(radio: &Radio) -> f64 {
    LIGHT_MPS / radio.frequency_hz
}

impl Default for Model {
    fn default() -> Self {
        Model::TwoRay {}
    }
}

/// A model for one radio, with the gain of each pair of stations.
#[derive(Clone, Debug)]
pub struct Propagation {
    model: Model,
    wavelength_m: f64,
    /// Pt Gt Gr / L of two stations with the radio's own power and antenna.
    radiated_w: f64,
    system_loss_db: f64,
    /// The radio's own.
    usual: Antenna,
    /// Of each station; empty while all have the usual one.
    antennas: Vec<Antenna>,
    /// Of each station the antenna with a pattern, if it has one; empty if none has.
    patterns: Vec<Option<Directional>>,
    receive_w: f64,
    sense_w: f64,
    stations: usize,
    /// Gain (factor on the power) of each ordered pair: shadowing or matrix.
    pair_gain: Vec<f64>,
    /// Of shadowing with a correlation.
    field: Option<Field>,
    walls: Vec<Wall>,
}

impl Propagation {
    /// `seed`: of the shadowing draws; `index`: number of a station of the matrix, whose name was checked before.
    pub fn new(model: &Model, radio: &Radio, stations: usize, seed: u64, index: impl Fn(&str) -> usize) -> Self {
        let mut pair_gain = Vec::new();
        let mut field = None;
        match model {
            Model::Shadowing { correlation_m: Some(correlation_m), .. } => {
                field = Some(Field::new(seed, *correlation_m))
            }
            Model::Shadowing { sigma_db, .. } => {
                pair_gain = vec![1.0; stations * stations];
                for a in 0..stations {
                    for b in a + 1..stations {
                        let pair = (a * stations + b) as u64;
                        let db = Stream::new(seed, pair, Purpose::Shadowing).normal() * sigma_db;
                        pair_gain[a * stations + b] = 10f64.powf(db / 10.0);
                        pair_gain[b * stations + a] = 10f64.powf(db / 10.0);
                    }
                }
            }
            Model::Matrix { matrix } => {
                pair_gain = vec![0.0; stations * stations];
                let mut given = vec![false; stations * stations];
                for entry in matrix {
                    let (a, b) = (index(&entry.from), index(&entry.to));
                    let gain = 10f64.powf(-entry.loss_db / 10.0);
                    pair_gain[a * stations + b] = gain;
                    given[a * stations + b] = true;
                    if !given[b * stations + a] {
                        pair_gain[b * stations + a] = gain;
                    }
                }
            }
            _ => {}
        }
        Self {
            model: model.clone(),
            wavelength_m: wavelength_m(radio),
            radiated_w: radiated_w(radio),
            system_loss_db: radio.system_loss_db,
            usual: Antenna::of(radio),
            antennas: Vec::new(),
            patterns: Vec::new(),
            receive_w: radio.receive_threshold_w,
            sense_w: radio.carrier_sense_threshold_w,
            stations,
            pair_gain,
            field,
            walls: Vec::new(),
        }
    }

    /// The same with `jammers` more, whose numbers follow those of the stations. The draws of the stations stay those without them.
    pub fn with_jammers(
        model: &Model,
        radio: &Radio,
        stations: usize,
        jammers: usize,
        seed: u64,
        index: impl Fn(&str) -> usize,
    ) -> Self {
        let all = stations + jammers;
        // no other model draws for pairs
        let Model::Shadowing { sigma_db, correlation_m: None, .. } = model else {
            return Self::new(model, radio, all, seed, index);
        };
        let mut propagation = Self::new(model, radio, stations, seed, index);
        let among_stations = std::mem::replace(&mut propagation.pair_gain, vec![1.0; all * all]);
        for a in 0..stations {
            propagation.pair_gain[a * all..a * all + stations]
                .copy_from_slice(&among_stations[a * stations..(a + 1) * stations]);
            for jammer in 0..jammers {
                let pair = JAMMER_PAIRS + ((jammer as u64) << 32) + a as u64;
                let gain = 10f64.powf(Stream::new(seed, pair, Purpose::Shadowing).normal() * sigma_db / 10.0);
                propagation.pair_gain[a * all + stations + jammer] = gain;
                propagation.pair_gain[(stations + jammer) * all + a] = gain;
            }
        }
        propagation.stations = all;
        propagation
    }

    /// Adds walls. The model must have paths, unless there are none.
    pub fn set_walls(&mut self, walls: Vec<Wall>) {
        self.walls = walls;
    }

    /// The power and the antenna of a station.
    pub fn antenna(&self, station: usize) -> Antenna {
        self.antennas.get(station).copied().unwrap_or(self.usual)
    }

    /// Replaces the power and the antenna of a station. The model must not have ranges of its own.
    pub fn set_antenna(&mut self, station: usize, antenna: Antenna) {
        if self.antenna(station) == antenna {
            return;
        }
        self.antennas.resize(self.stations, self.usual);
        self.antennas[station] = antenna;
    }

    /// Gives a station an antenna with a pattern. Its gain is that of [`Self::set_antenna`], from which the pattern subtracts.
    pub fn set_pattern(&mut self, station: usize, antenna: &Directional) {
        if !matches!(antenna, Directional::Omni { .. }) {
            self.patterns.resize(self.stations, None);
            self.patterns[station] = Some(antenna.clone());
        }
    }

    /// The factor by which the patterns of a pair, at positions `a` and `b`, lessen its power: 1 or less.
    fn directivity(&self, from: usize, to: usize, a: [f64; 3], b: [f64; 3]) -> f64 {
        if self.patterns.is_empty() {
            return 1.0;
        }
        let loss_db = |station: usize, own, other| {
            self.patterns[station].as_ref().map_or(0.0, |antenna| antenna.loss_towards_db(own, other))
        };
        10f64.powf(-(loss_db(from, a, b) + loss_db(to, b, a)) / 10.0)
    }

    /// Pt Gt Gr / L of a pair, without patterns.
    fn radiated_w(&self, from: usize, to: usize) -> f64 {
        if self.antennas.is_empty() {
            return self.radiated_w;
        }
        let (a, b) = (&self.antennas[from], &self.antennas[to]);
        a.tx_power_w * 10f64.powf((a.gain_db + b.gain_db - self.system_loss_db) / 10.0)
    }

    /// Power in W at station `to`, at position `b` (m), of a frame from station `from`, at position `a` (m). Under trace without the
    /// loss of the link, which depends on the time ([`super::Measured::gain`]).
    pub fn power_w(&self, from: usize, to: usize, a: [f64; 3], b: [f64; 3]) -> f64 {
        let open_w = self.without_walls_w(from, to, a, b);
        if self.walls.is_empty() {
            open_w
        } else {
            open_w * walls::gain(&self.walls, a, b)
        }
    }

    fn without_walls_w(&self, from: usize, to: usize, a: [f64; 3], b: [f64; 3]) -> f64 {
        let d = distance_m(a, b);
        let radiated_w = self.radiated_w(from, to) * self.directivity(from, to, a, b);
        let pair = from * self.stations + to;
        match &self.model {
            Model::TwoRay {} => {
                let height_m = |station: usize, z: f64| (self.antenna(station).height_m + z).max(0.0);
                let heights_m2 = height_m(from, a[2]) * height_m(to, b[2]);
                let crossover_m = 4.0 * PI * heights_m2 / self.wavelength_m;
                if d <= crossover_m {
                    self.free_space_w(radiated_w, d)
                } else {
                    radiated_w * heights_m2.powi(2) / d.powi(4)
                }
            }
            Model::FreeSpace {} => self.free_space_w(radiated_w, d),
            Model::LogDistance { exponent, reference_m } => self.log_distance_w(radiated_w, d, *exponent, *reference_m),
            Model::Shadowing { exponent, reference_m, sigma_db, .. } => {
                let shadowed = self
                    .field
                    .as_ref()
                    .map_or_else(|| self.pair_gain[pair], |field| 10f64.powf(sigma_db * field.at(a, b) / 10.0));
                self.log_distance_w(radiated_w, d, *exponent, *reference_m) * shadowed
            }
            Model::ItuIndoor { loss_coefficient, floor_height_m, first_floor_db, further_floor_db } => {
                let floors = ((a[2] / floor_height_m).floor() - (b[2] / floor_height_m).floor()).abs();
                let floors_db = if floors == 0.0 { 0.0 } else { first_floor_db + further_floor_db * (floors - 1.0) };
                let loss_db = loss_coefficient * d.max(1.0).log10() + floors_db;
                radiated_w * self.itu_at_1_m() * 10f64.powf(-loss_db / 10.0)
            }
            // 1 % above the thresholds: rounding must not decide about the range
            Model::Disc { range_m, .. } if d <= *range_m => self.receive_w * 1.01,
            Model::Disc { sense_m, .. } if d <= *sense_m => self.sense_w * 1.01,
            Model::Disc { .. } => 0.0,
            Model::Matrix { .. } => radiated_w * self.pair_gain[pair],
            Model::Trace { .. } => radiated_w,
        }
    }

    /// A distance in m beyond which no station receives `floor_w` (W) or more from station `from`, if no station is higher above the ground
    /// than `top_m`; infinite if the model has none.
    ///
    /// Each formula solves that of [`Self::power_w`] for the distance, with the largest factor of any receiver, in the main lobes of both. A power of two-ray
    /// is the lesser of its two laws (they meet at the crossover, beyond which the second falls faster), so neither law may be below
    /// the floor. The floor is lowered by far more than the rounding of either side. Walls and floors of a building only take from it.
    pub fn range_m(&self, from: usize, floor_w: f64, top_m: f64) -> f64 {
        let floor_w = floor_w * (1.0 - 1e-9);
        let receivers = if self.antennas.is_empty() { 0..1 } else { 0..self.stations };
        let mut strongest_w = receivers.map(|to| self.radiated_w(from, to)).fold(0.0, f64::max);
        if let (Model::Shadowing { sigma_db, .. }, Some(_)) = (&self.model, &self.field) {
            strongest_w *= 10f64.powf(sigma_db * shadowing::HIGHEST / 10.0);
        } else if let Model::Shadowing { .. } = self.model {
            let gains = &self.pair_gain[from * self.stations..(from + 1) * self.stations];
            strongest_w *= gains.iter().copied().fold(0.0, f64::max);
        }
        let free_space_m = self.wavelength_m / (4.0 * PI) * (strongest_w / floor_w).sqrt();
        match &self.model {
            _ if floor_w == 0.0 => f64::INFINITY,
            Model::TwoRay {} => {
                let heights = self.antennas.iter().chain([&self.usual]).map(|antenna| antenna.height_m);
                let height_m = (heights.fold(0.0, f64::max) + top_m).max(0.0);
                free_space_m.min(height_m * (strongest_w / floor_w).powf(0.25))
            }
            Model::FreeSpace {} => free_space_m,
            Model::LogDistance { exponent, reference_m } | Model::Shadowing { exponent, reference_m, .. } => {
                let at_reference_w = self.free_space_w(strongest_w, *reference_m);
                reference_m * (at_reference_w / floor_w).powf(1.0 / exponent).max(1.0)
            }
            Model::ItuIndoor { loss_coefficient, .. } => {
                (strongest_w * self.itu_at_1_m() / floor_w).powf(10.0 / loss_coefficient).max(1.0)
            }
            Model::Disc { range_m, sense_m } => range_m.max(*sense_m),
            Model::Matrix { .. } | Model::Trace { .. } => f64::INFINITY,
        }
    }

    /// The factor of 20 log10 f - 28 dB, f in MHz.
    fn itu_at_1_m(&self) -> f64 {
        10f64.powf(2.8) / (LIGHT_MPS / self.wavelength_m / 1e6).powi(2)
    }

    fn free_space_w(&self, radiated_w: f64, d: f64) -> f64 {
        if d == 0.0 {
            return radiated_w;
        }
        let spread = self.wavelength_m / (4.0 * PI * d);
        radiated_w * (spread * spread).min(1.0)
    }

    fn log_distance_w(&self, radiated_w: f64, d: f64, exponent: f64, reference_m: f64) -> f64 {
        if d <= reference_m {
            self.free_space_w(radiated_w, d)
        } else {
            self.free_space_w(radiated_w, reference_m) * (reference_m / d).powf(exponent)
        }
    }
}

/// Straight-line distance in m.
pub fn distance_m(a: [f64; 3], b: [f64; 3]) -> f64 {
    let d = [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
    (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::radio::tests::profile;

    fn at(model: Model, d: f64) -> f64 {
        Propagation::new(&model, &profile("ns2-dsss-2m"), 2, 1, |_| 0).power_w(0, 1, [0.0; 3], [d, 0.0, 0.0])
    }

    #[test]
    fn two_ray_receives_at_250_m_and_senses_at_550_m_as_ns2_does() {
        let r = profile("ns2-dsss-2m");
        assert!(at(Model::TwoRay {}, 250.0) >= r.receive_threshold_w, "ns-2: exactly 250.0 m works");
        assert!(at(Model::TwoRay {}, 250.2) < r.receive_threshold_w);
        assert!(at(Model::TwoRay {}, 550.0) >= r.carrier_sense_threshold_w);
        assert!(at(Model::TwoRay {}, 550.5) < r.carrier_sense_threshold_w);
    }

    #[test]
    fn a_station_of_its_own_power_reaches_farther_than_it_hears_and_a_gain_works_both_ways() {
        let radio = profile("ns2-dsss-2m");
        let mut model = Propagation::new(&Model::TwoRay {}, &radio, 3, 1, |_| 0);
        let power_w = |model: &Propagation, from, to| model.power_w(from, to, [0.0; 3], [200.0, 0.0, 0.0]);
        let (usual, before_w) = (model.antenna(1), power_w(&model, 0, 2));
        model.set_antenna(1, Antenna { tx_power_w: usual.tx_power_w * 2.0, ..usual });
        assert!((power_w(&model, 1, 0) / before_w - 2.0).abs() < 1e-12, "3 dB more is sent");
        assert_eq!(power_w(&model, 0, 1), before_w, "and nothing more is received");
        model.set_antenna(1, Antenna { gain_db: usual.gain_db + 10.0, ..usual });
        for (from, to) in [(0, 1), (1, 0)] {
            assert!((power_w(&model, from, to) / before_w - 10.0).abs() < 1e-12);
        }
        assert_eq!(power_w(&model, 0, 2), before_w, "other pairs are as they were");
        // beyond the crossover the power grows with the square of the height (ns-2's tworayground.cc)
        model.set_antenna(1, Antenna { height_m: usual.height_m * 1.2, ..usual });
        assert!((power_w(&model, 1, 0) / before_w - 1.44).abs() < 1e-12);
    }

    #[test]
    fn two_ray_changes_law_at_the_crossover_distance() {
        // 4 pi 1.5^2 / (3e8 / 914e6) = 86.14 m: d^-2 below, d^-4 above
        let ratio = |a, b| at(Model::TwoRay {}, a) / at(Model::TwoRay {}, b);
        assert!((ratio(40.0, 80.0) - 4.0).abs() < 1e-9);
        assert!((ratio(100.0, 200.0) - 16.0).abs() < 1e-9);
    }

    #[test]
    fn two_ray_carries_further_from_a_hill() {
        let model = Propagation::new(&Model::TwoRay {}, &profile("ns2-dsss-2m"), 2, 1, |_| 0);
        let power = |z: f64| model.power_w(0, 1, [0.0, 0.0, z], [300.0, 0.0, z]);
        // both antennas at 2 m and not 1.5 m: the crossover is at 153 m, the power (2 / 1.5)^4 times that on the flat;
        // at 3 m it is at 345 m, and 300 m are free space
        assert!((power(0.5) / power(0.0) - (2.0f64 / 1.5).powi(4)).abs() < 1e-9);
        assert!((power(1.5) / at(Model::FreeSpace {}, 300.0) - 1.0).abs() < 1e-9);
        assert_eq!(power(-2.0), 0.0, "below the ground");
    }

    #[test]
    fn log_distance_falls_by_its_exponent_and_is_free_space_up_to_the_reference() {
        let model = Model::LogDistance { exponent: 3.0, reference_m: 1.0 };
        assert!((at(model.clone(), 10.0) / at(model.clone(), 20.0) - 8.0).abs() < 1e-9);
        assert_eq!(at(model, 1.0), at(Model::FreeSpace {}, 1.0));
    }

    #[test]
    fn shadowing_is_seeded_symmetric_and_as_wide_as_configured() {
        let model = Model::Shadowing { exponent: 2.0, reference_m: 1.0, sigma_db: 4.0, correlation_m: None };
        let r = profile("ns2-dsss-2m");
        let n = 60;
        let p = Propagation::new(&model, &r, n, 9, |_| 0);
        let power = |a, b| p.power_w(a, b, [0.0; 3], [100.0, 0.0, 0.0]);
        assert_eq!(power(3, 7), power(7, 3));
        assert_ne!(power(3, 7), power(3, 8));
        let median = 10.0 * at(Model::LogDistance { exponent: 2.0, reference_m: 1.0 }, 100.0).log10();
        let mut sum = (0.0, 0.0, 0.0);
        for a in 0..n {
            for b in a + 1..n {
                let x = 10.0 * power(a, b).log10() - median;
                sum = (sum.0 + 1.0, sum.1 + x, sum.2 + x * x);
            }
        }
        let (mean, sd) = (sum.1 / sum.0, (sum.2 / sum.0).sqrt());
        // 1770 draws: the mean within 3.3 * 4 / sqrt(1770) = 0.31, the deviation within 0.22
        assert!(mean.abs() < 0.31 && (sd - 4.0).abs() < 0.22, "{mean} {sd}");
    }

    #[test]
    fn shadowing_with_a_correlation_changes_gradually_as_a_station_moves_and_not_beyond_its_bound() {
        let model = Model::Shadowing { exponent: 2.0, reference_m: 1.0, sigma_db: 4.0, correlation_m: Some(20.0) };
        let p = Propagation::new(&model, &profile("ns2-dsss-2m"), 3, 9, |_| 0);
        let open = Propagation::new(
            &Model::LogDistance { exponent: 2.0, reference_m: 1.0 },
            &profile("ns2-dsss-2m"),
            3,
            9,
            |_| 0,
        );
        let shadow_db = |x: f64| {
            let of = |model: &Propagation| model.power_w(0, 1, [0.0; 3], [x, 0.0, 0.0]);
            10.0 * (of(&p) / of(&open)).log10()
        };
        let along: Vec<f64> = (0..4000).map(|i| shadow_db(100.0 + f64::from(i))).collect();
        let rms = |values: &[f64]| (values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64).sqrt();
        let steps: Vec<f64> = along.windows(2).map(|two| two[1] - two[0]).collect();
        // a step of 1 m: sigma sqrt(2 (1 - exp(-1 / 20))) = 1.25 dB; 4000 m are 200 correlation lengths
        assert!((rms(&along) - 4.0).abs() < 0.8, "{}", rms(&along));
        assert!((rms(&steps) - 1.25).abs() < 0.3, "{}", rms(&steps));
        assert_eq!(
            p.power_w(0, 1, [0.0; 3], [90.0, 0.0, 0.0]),
            p.power_w(2, 0, [0.0; 3], [90.0, 0.0, 0.0]),
            "by place, not by pair"
        );
        let far_m = p.range_m(0, 1e-9, 0.0);
        assert!(
            open.power_w(0, 1, [0.0; 3], [far_m, 0.0, 0.0]) * 10f64.powf(1.6) < 1e-9 * (1.0 + 1e-6),
            "4 x 4 dB above"
        );
    }

    #[test]
    fn indoors_the_loss_is_that_of_p_1238() {
        let radio = Radio { frequency_hz: 2.4e9, ..profile("ns2-dsss-2m") };
        let model = |first_floor_db, further_floor_db| {
            let model =
                Model::ItuIndoor { loss_coefficient: 30.0, floor_height_m: 3.0, first_floor_db, further_floor_db };
            Propagation::new(&model, &radio, 2, 1, |_| 0)
        };
        let loss_db = |model: &Propagation, d: f64, z: f64| {
            10.0 * (radiated_w(&radio) / model.power_w(0, 1, [0.0; 3], [d, 0.0, z])).log10()
        };
        // 20 log10(2400) + 30 log10(10) - 28 = 67.604 + 30 - 28 = 69.604 dB
        assert!((loss_db(&model(15.0, 4.0), 10.0, 0.0) - 69.604).abs() < 1e-3);
        assert!((loss_db(&model(15.0, 4.0), 0.2, 0.0) - 39.604).abs() < 1e-3, "as at 1 m");
        // 10 m aside and 7 m up, two floors: 30 log10(12.207) = 32.598, and 15 + 4
        assert!((loss_db(&model(15.0, 4.0), 10.0, 7.0) - (39.604 + 32.598 + 19.0)).abs() < 1e-3);
        assert!((loss_db(&model(0.0, 0.0), 10.0, 7.0) - (39.604 + 32.598)).abs() < 1e-3);
    }

    #[test]
    fn a_wall_takes_its_loss_from_the_paths_that_cross_it() {
        let mut model = Propagation::new(&Model::TwoRay {}, &profile("ns2-dsss-2m"), 2, 1, |_| 0);
        let open_w = model.power_w(0, 1, [0.0; 3], [100.0, 0.0, 0.0]);
        model.set_walls(vec![Wall { from: [50.0, -5.0], to: [50.0, 5.0], loss_db: 10.0 }]);
        let power_w = |y| model.power_w(0, 1, [0.0, y, 0.0], [100.0, y, 0.0]);
        assert!((power_w(0.0) / open_w - 0.1).abs() < 1e-12);
        assert_eq!(power_w(6.0), open_w, "past its end");
    }

    #[test]
    fn a_matrix_has_its_entries_both_ways_and_nothing_else() {
        let entry = |from: &str, to: &str, loss_db| MatrixEntry { from: from.into(), to: to.into(), loss_db };
        let matrix = vec![entry("0", "1", 60.0), entry("1", "2", 70.0), entry("2", "1", 80.0)];
        let r = profile("ns2-dsss-2m");
        let p = Propagation::new(&Model::Matrix { matrix }, &r, 3, 1, |name| name.parse().unwrap());
        let loss_db = |a, b| 10.0 * (r.tx_power_w / p.power_w(a, b, [0.0; 3], [1e6, 0.0, 0.0])).log10();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(loss_db(0, 1), 60.0) && near(loss_db(1, 0), 60.0), "symmetric unless both are given");
        assert!(near(loss_db(1, 2), 70.0) && near(loss_db(2, 1), 80.0));
        assert_eq!(p.power_w(0, 2, [0.0; 3], [0.0; 3]), 0.0);
    }

    /// serde names the fields that it knows when one is unknown.
    #[test]
    fn the_models_and_their_keys_are_those_that_serde_reads() {
        let refusal = |json: String| serde_json::from_str::<Model>(&json).unwrap_err().to_string();
        let names = |text: &str| text.split('`').skip(3).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        let models = names(&refusal(r#"{"model": "?"}"#.to_owned()));
        assert_eq!(models, Model::TABLES.iter().map(|model| model.name).collect::<Vec<_>>());
        for model in Model::TABLES {
            let keys = names(&refusal(format!(r#"{{"model": "{}", "?": 0}}"#, model.name)));
            assert_eq!(keys, model.keys.iter().map(|key| key.name).collect::<Vec<_>>(), "{}", model.name);
        }
    }

    #[test]
    fn the_disc_is_sharp() {
        let r = profile("ns2-dsss-2m");
        let disc = |d| at(Model::Disc { range_m: 100.0, sense_m: 200.0 }, d);
        assert!(disc(100.0) >= r.receive_threshold_w && disc(100.01) < r.receive_threshold_w);
        assert!(disc(200.0) >= r.carrier_sense_threshold_w && disc(200.01) == 0.0);
    }
}
