//! Antennas that radiate more in some directions than in others.
//!
//! A pattern is a loss of 0 dB or more by the angle from the main lobe, in the plane of x and y: the gain of the station's
//! [`Antenna`](super::Antenna) is the largest of any direction, on which culling relies. It is the same for sent and received frames (reciprocity). Heights do not
//! count: a station straight above or at the same place is in the main lobe. Not modelled: polarisation, elevation, an antenna that
//! turns with its station.

use manet_engine::keys::{above, within, Limits};
use manet_engine::tables;
use std::f64::consts::PI;

use super::radio::GAIN;

/// Direction of the main lobe, counterclockwise from the x axis, as ns-3's `Orientation`.
const AZIMUTH: Limits = within(-360.0, 360.0).of("deg");
/// Default of `front_to_back_db`: 20 dB, as `MaxAttenuation` of ns-3's `ParabolicAntennaModel`.
const FRONT_TO_BACK: Limits = within(0.0, 100.0).of("dB").by_default(20.0);

fn front_to_back_db() -> f64 {
    FRONT_TO_BACK.default.unwrap_or_default()
}

tables! {
    /// The antenna of a station.
    pub enum Directional by "pattern" {
        /// The same gain in all directions.
        Omni = "omni" {
            /// Gain.
            gain_dbi: f64 => GAIN;
        }
        /// One main lobe, a parabola in decibels: 12 (angle / beamwidth)^2 dB less than the gain, at most `front_to_back_db` (3GPP TR 36.814,
        /// table A.2.1.1-2).
        Sector = "sector" {
            /// Gain of the main lobe.
            gain_dbi: f64 => GAIN;
            /// Width of the main lobe between the directions of half power, 3 dB less.
            beamwidth_deg: f64 => above(0.0).up_to(360.0).of("deg");
            /// Direction of the main lobe, counterclockwise from the x axis.
            #[serde(default)]
            azimuth_deg: f64 => AZIMUTH;
            /// Ratio of the gains of the main lobe and of the back.
            #[serde(default = "front_to_back_db")]
            front_to_back_db: f64 => FRONT_TO_BACK;
        }
        /// Gains by angle; between two angles the decibels are interpolated, over a full turn.
        Table = "table" {
            /// Angles from the azimuth, counterclockwise, ascending.
            angles_deg: Vec<f64> => within(-360.0, 360.0).of("deg");
            /// Gain at each of them.
            gains_dbi: Vec<f64> => GAIN;
            /// Direction of angle 0, counterclockwise from the x axis.
            #[serde(default)]
            azimuth_deg: f64 => AZIMUTH;
        }
    }
}

impl Directional {
    /// What the limits of single keys do not say: key within the table, mistake, remedy.
    pub fn mistake(&self) -> Option<String> {
        let Self::Table { angles_deg, gains_dbi, .. } = self else { return None };
        if angles_deg.len() != gains_dbi.len() || angles_deg.is_empty() {
            let (angles, gains) = (angles_deg.len(), gains_dbi.len());
            return Some(format!(
                "gains_dbi\": {gains} gains for {angles} angles; give one for each angle, at least one"
            ));
        }
        let ascending = angles_deg.windows(2).all(|pair| pair[0] < pair[1]);
        let turn_deg = angles_deg[angles_deg.len() - 1] - angles_deg[0];
        if !ascending || turn_deg >= 360.0 {
            return Some("angles_deg\": not ascending within one turn; sort them, and give one of -180 and 180".into());
        }
        None
    }

    /// The largest gain of any direction, dB.
    pub fn gain_db(&self) -> f64 {
        match self {
            Self::Omni { gain_dbi } | Self::Sector { gain_dbi, .. } => *gain_dbi,
            Self::Table { gains_dbi, .. } => gains_dbi.iter().copied().fold(f64::MIN, f64::max),
        }
    }

    /// How much less than that it has at an angle in degrees from its azimuth, dB.
    fn loss_db(&self, angle_deg: f64) -> f64 {
        match self {
            Self::Omni { .. } => 0.0,
            Self::Sector { beamwidth_deg, front_to_back_db, .. } => {
                let off_deg = (angle_deg + 180.0).rem_euclid(360.0) - 180.0;
                (12.0 * (off_deg / beamwidth_deg).powi(2)).min(*front_to_back_db)
            }
            Self::Table { angles_deg, gains_dbi, .. } => {
                self.gain_db() - interpolated(angles_deg, gains_dbi, angle_deg)
            }
        }
    }

    fn azimuth_deg(&self) -> f64 {
        match self {
            Self::Omni { .. } => 0.0,
            Self::Sector { azimuth_deg, .. } | Self::Table { azimuth_deg, .. } => *azimuth_deg,
        }
    }

    /// The loss in dB at position `own` (m) towards the position `other`.
    pub fn loss_towards_db(&self, own: [f64; 3], other: [f64; 3]) -> f64 {
        let (dx, dy) = (other[0] - own[0], other[1] - own[1]);
        if dx == 0.0 && dy == 0.0 {
            return 0.0;
        }
        self.loss_db(dy.atan2(dx) * 180.0 / PI - self.azimuth_deg())
    }
}

/// The gain at `angle_deg` between its neighbours in a table of ascending angles, which continues after a full turn.
fn interpolated(angles_deg: &[f64], gains_dbi: &[f64], angle_deg: f64) -> f64 {
    let first_deg = angles_deg[0];
    let angle_deg = first_deg + (angle_deg - first_deg).rem_euclid(360.0);
    let after = angles_deg.partition_point(|known| *known <= angle_deg);
    let (from_deg, from_dbi) = (angles_deg[after - 1], gains_dbi[after - 1]);
    let (to_deg, to_dbi) =
        angles_deg.get(after).map_or((first_deg + 360.0, gains_dbi[0]), |to_deg| (*to_deg, gains_dbi[after]));
    from_dbi + (to_dbi - from_dbi) * (angle_deg - from_deg) / (to_deg - from_deg)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sector(azimuth_deg: f64) -> Directional {
        Directional::Sector { gain_dbi: 14.0, beamwidth_deg: 65.0, azimuth_deg, front_to_back_db: 25.0 }
    }

    /// The gain at (0, 0) towards (cos, sin) of this angle.
    fn gain_at(antenna: &Directional, angle_deg: f64) -> f64 {
        let (sin, cos) = (angle_deg / 180.0 * PI).sin_cos();
        antenna.gain_db() - antenna.loss_towards_db([0.0; 3], [100.0 * cos, 100.0 * sin, 0.0])
    }

    #[test]
    fn a_sector_has_half_its_power_at_half_its_beamwidth_and_its_back_everywhere_else() {
        for azimuth_deg in [0.0, 90.0, -135.0, 300.0] {
            let antenna = sector(azimuth_deg);
            // 12 (1 / 2)^2 = 3 dB; 12 (45 / 65)^2 = 5.75 dB; from 65 sqrt(25 / 12) = 93.8 degrees on the back
            for (off_deg, gain_dbi) in
                [(0.0, 14.0), (32.5, 11.0), (45.0, 14.0 - 5.751_479), (94.0, -11.0), (180.0, -11.0)]
            {
                for angle_deg in [azimuth_deg + off_deg, azimuth_deg - off_deg] {
                    let here_dbi = gain_at(&antenna, angle_deg);
                    assert!((here_dbi - gain_dbi).abs() < 1e-6, "{azimuth_deg} {off_deg}: {here_dbi}");
                }
            }
        }
    }

    #[test]
    fn a_table_is_interpolated_in_decibels_over_the_whole_turn() {
        let antenna = Directional::Table {
            angles_deg: vec![-90.0, 0.0, 90.0],
            gains_dbi: vec![-2.0, 10.0, 4.0],
            azimuth_deg: 20.0,
        };
        assert_eq!(antenna.gain_db(), 10.0);
        // from 90 to 270 degrees, which is -90, 6 dB less in 180 degrees
        for (off_deg, gain_dbi) in
            [(0.0, 10.0), (-45.0, 4.0), (45.0, 7.0), (90.0, 4.0), (135.0, 2.5), (180.0, 1.0), (-90.0, -2.0)]
        {
            assert!((gain_at(&antenna, 20.0 + off_deg) - gain_dbi).abs() < 1e-9, "{off_deg}");
        }
    }

    #[test]
    fn straight_above_and_at_the_same_place_is_the_main_lobe() {
        assert_eq!(sector(180.0).loss_towards_db([5.0, 5.0, 0.0], [5.0, 5.0, 30.0]), 0.0);
        assert_eq!(sector(180.0).loss_towards_db([5.0, 5.0, 0.0], [6.0, 5.0, 30.0]), 25.0);
    }

    #[test]
    fn a_table_that_is_none_is_refused() {
        let mistake = |angles_deg: &[f64], gains_dbi: &[f64]| {
            let (angles_deg, gains_dbi) = (angles_deg.to_vec(), gains_dbi.to_vec());
            Directional::Table { angles_deg, gains_dbi, azimuth_deg: 0.0 }.mistake()
        };
        assert_eq!(mistake(&[0.0, 90.0], &[1.0, 2.0]), None);
        assert!(mistake(&[0.0, 90.0], &[1.0]).unwrap().starts_with("gains_dbi\": 1 gains for 2 angles"));
        assert!(mistake(&[], &[]).unwrap().contains("at least one"));
        assert!(mistake(&[0.0, 90.0, 45.0], &[1.0; 3]).unwrap().starts_with("angles_deg\": not ascending"));
        assert!(mistake(&[-180.0, 0.0, 180.0], &[1.0; 3]).unwrap().contains("give one of -180 and 180"));
        assert_eq!(sector(0.0).mistake(), None);
    }
}
