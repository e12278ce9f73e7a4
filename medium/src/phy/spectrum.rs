//! The share of a frame's power that a radio of another channel takes in.
//!
//! The transmitted spectrum fills the standard's mask, of DSSS the main lobe of its chips (11 Mchip/s, sinc^2) within the mask. The receiver's
//! filter has the same shape. Of two channels so far apart the share is the overlap of both, of one channel 1: the integral of
//! A. Mishra, V. Shrivastava, S. Banerjee and W. Arbaugh, "Partially overlapped channels not considered harmful" (SIGMETRICS 2006). Masks
//! (IEEE Std 802.11-2012): 16.4.6.5 and 17.4.7.3 (DSSS, HR/DSSS), 18.3.9.3 (OFDM, 20 MHz), 20.3.20.1 (HT), 22.3.18.1 (VHT); 23.3.16.1 of
//! 802.11ah (S1G), 27.3.19.1 of 802.11ax (HE). Measured radios are better than their mask: the share is an upper bound.

use super::radio::{Modulation, Radio};
use std::f64::consts::PI;

/// Points of an integral in each MHz, of channels of 20 MHz and more, and of S1G.
const POINTS: i64 = 10;
const S1G_POINTS: i64 = 100;
/// Channels farther apart than this many widths have nothing of each other: no mask says what is emitted there.
const FARTHEST_WIDTHS: f64 = 4.0;
/// Chips of DSSS and CCK, 1/us (16.4.6.4, 17.4.6.5).
const CHIPS_MHZ: f64 = 11.0;

/// The mask's -30 dBr, to which the zero of the main lobe is filled.
const SIDE_LOBE: f64 = 1e-3;

/// The transmit spectrum of a PHY.
struct Mask {
    /// Width of the channel, MHz.
    width_mhz: f64,
    /// Offset from the centre, MHz, and level there, dBr, ascending; decibels are interpolated, and stay the last beyond.
    points: Vec<(f64, f64)>,
    /// Whether the spectrum is that of chips within the mask.
    chips: bool,
}

impl Mask {
    fn of(radio: &Radio) -> Self {
        let width_mhz = f64::from(radio.width_mhz);
        // OFDM: flat up to `flat`, then -20 dBr, -28 dBr and the floor at these offsets
        let ofdm = |offsets: [f64; 4], floor_db: f64| {
            let levels = [0.0, -20.0, -28.0, floor_db];
            Self { width_mhz, points: offsets.into_iter().zip(levels).collect(), chips: false }
        };
        match radio.modulation {
            Modulation::Dsss => Self {
                width_mhz: 2.0 * CHIPS_MHZ,
                // steps of a mask without slopes
                points: vec![(11.0, 0.0), (11.0 + 1e-9, -30.0), (22.0, -30.0), (22.0 + 1e-9, -50.0)],
                chips: true,
            },
            Modulation::Ofdm => Self { width_mhz: 20.0, ..ofdm([9.0, 11.0, 20.0, 30.0], -40.0) },
            Modulation::Ht | Modulation::Vht => {
                let half_mhz = width_mhz / 2.0;
                let floor_db = if radio.modulation == Modulation::Ht { -45.0 } else { -40.0 };
                ofdm([half_mhz - 1.0, half_mhz + 1.0, width_mhz, 1.5 * width_mhz], floor_db)
            }
            Modulation::He => {
                let half_mhz = width_mhz / 2.0;
                let edge_mhz = if radio.width_mhz == 20 { 0.25 } else { 0.5 };
                ofdm([half_mhz - edge_mhz, half_mhz + edge_mhz, width_mhz, 1.5 * width_mhz], -40.0)
            }
            Modulation::S1g => {
                let half_mhz = width_mhz / 2.0;
                ofdm([0.9 * half_mhz, half_mhz + 0.1, width_mhz, 1.5 * width_mhz], -40.0)
            }
        }
    }

    /// Power density at an offset from the centre, relative to the mask's 0 dBr.
    fn density(&self, offset_mhz: f64) -> f64 {
        let offset_mhz = offset_mhz.abs();
        let after = self.points.partition_point(|(at_mhz, _)| *at_mhz <= offset_mhz);
        let level_db = match (after.checked_sub(1).map(|before| self.points[before]), self.points.get(after)) {
            (None, _) => 0.0,
            (Some((_, level_db)), None) => level_db,
            (Some((from_mhz, from_db)), Some((to_mhz, to_db))) => {
                from_db + (to_db - from_db) * (offset_mhz - from_mhz) / (to_mhz - from_mhz)
            }
        };
        let mask = 10f64.powf(level_db / 10.0);
        if self.chips && offset_mhz > 0.0 {
            let x = PI * offset_mhz / CHIPS_MHZ;
            // beyond the main lobe a filter keeps the side lobes within the mask: they count as filling it
            let lobe = (x.sin() / x).powi(2);
            return if offset_mhz <= CHIPS_MHZ { lobe.max(SIDE_LOBE) } else { mask };
        }
        mask
    }
}

/// Shares of power by the distance of channels.
#[derive(Clone, Debug)]
pub struct Spectrum {
    /// By whole MHz.
    shares: Vec<f64>,
}

impl Spectrum {
    /// That of a radio's PHY and width.
    pub fn of(radio: &Radio) -> Self {
        let mask = Mask::of(radio);
        let farthest_mhz = FARTHEST_WIDTHS * mask.width_mhz;
        let points = if radio.modulation == Modulation::S1g { S1G_POINTS } else { POINTS };
        let last = farthest_mhz as i64 * points;
        let densities: Vec<f64> = (-last..=last).map(|i| mask.density(i as f64 / points as f64)).collect();
        let overlap = |apart: usize| densities[apart..].iter().zip(&densities).map(|(a, b)| a * b).sum::<f64>();
        let whole = overlap(0);
        Self { shares: (0..=farthest_mhz as usize).map(|mhz| overlap(mhz * points as usize) / whole).collect() }
    }

    /// The factor on the power of a frame whose channel is `apart_mhz` away: 1 for the same channel, 0 for one that is far away.
    pub fn share(&self, apart_mhz: u32) -> f64 {
        self.shares.get(apart_mhz as usize).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::radio::tests::profile;

    fn db(profile_name: &str, apart_mhz: u32) -> f64 {
        10.0 * Spectrum::of(&profile(profile_name)).share(apart_mhz).log10()
    }

    #[test]
    fn the_table_of_the_documentation_is_of_this_code() {
        let page = include_str!("../../../docs/medium.md");
        let rows = [
            ("DSSS, CCK (802.11b)", "dot11b-11m"),
            ("OFDM, 20 MHz (802.11a, g)", "dot11g-54m"),
            ("HT, 20 MHz", "dot11n-ht20"),
            ("HT, 40 MHz", "dot11n-ht40"),
        ];
        for (head, name) in rows {
            let cells = [5, 10, 15, 20, 25, 30, 35, 40, 50, 60].map(|mhz| format!("{:.1}", db(name, mhz)));
            let row = format!("| {head} | {} |", cells.join(" | "));
            assert!(page.lines().any(|line| line == row), "docs/medium.md lacks: {row}");
        }
    }

    #[test]
    fn the_share_falls_with_the_distance_of_the_channels_to_nothing() {
        for name in ["dot11b-11m", "dot11g-54m", "dot11n-ht20", "dot11n-ht40", "dot11ac-vht80", "dot11ax-he20"] {
            let spectrum = Spectrum::of(&profile(name));
            assert_eq!(spectrum.share(0), 1.0);
            // the grid of the integral is finer than a MHz
            let falls = (0..320).all(|mhz| spectrum.share(mhz + 1) <= spectrum.share(mhz) * (1.0 + 1e-3));
            assert!(falls, "{name}");
            assert_eq!(spectrum.share(321), 0.0, "{name}");
        }
    }

    /// Two rectangles of 18 MHz overlap by 13 MHz at 5 MHz, by 8 at 10: what is outside of them adds less than 0.5 dB.
    #[test]
    fn ofdm_channels_overlap_as_their_flat_parts_do() {
        for (apart_mhz, overlap_mhz) in [(5, 13.0_f64), (10, 8.0)] {
            let of_rectangles_db = 10.0 * (overlap_mhz / 18.0).log10();
            let apart_db = db("dot11g-54m", apart_mhz) - of_rectangles_db;
            assert!((0.0..0.5).contains(&apart_db), "{apart_mhz} MHz: {apart_db}");
        }
    }

    /// Table 18-14: with a wanted frame 3 dB above the minimum sensitivity an interferer of the adjacent channel, 20 MHz away, may be 16 dB
    /// stronger at 6 Mbit/s, of the next one, 40 MHz away, 32 dB. NIST's model needs 3.4 dB at 6 Mbit/s.
    #[test]
    fn ofdm_rejects_other_channels_as_the_standard_requires() {
        for (apart_mhz, stronger_db) in [(20, 16.0), (40, 32.0)] {
            let left_db = stronger_db + db("dot11a-54m", apart_mhz);
            assert!(left_db < -3.4, "{apart_mhz} MHz: {left_db} dB above the wanted frame");
        }
    }

    /// 17.4.8.4: an interferer 25 MHz away may be 35 dB stronger at 11 Mbit/s, which needs 6.3 dB: the mask alone does not give that.
    #[test]
    fn dsss_channels_of_one_to_thirteen_are_apart_as_far_as_the_mask_makes_them() {
        let all: Vec<f64> = (0..=5).map(|channels| db("dot11b-11m", 5 * channels)).collect();
        assert!(all.windows(2).all(|pair| pair[1] < pair[0]), "{all:?}");
        // the main lobe of each falls into the other's -30 dBr
        assert!((-36.0..-28.0).contains(&all[5]), "{all:?}");
        assert_eq!(Spectrum::of(&profile("dot11b-11m")).share(0), Spectrum::of(&profile("ns2-dsss-2m")).share(0));
    }
}
