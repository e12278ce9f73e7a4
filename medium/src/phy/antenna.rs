//! Transmit power and antenna of one station: the profile's, or its own.

use super::Radio;
use serde::{Deserialize, Serialize};

/// Power and antenna of a station.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Antenna {
    /// Transmit power at the antenna, W.
    pub tx_power_w: f64,
    /// Gain of the antenna, for what it sends and what it receives, dB.
    #[serde(rename = "antenna_gain_db")]
    pub gain_db: f64,
    /// Height of the antenna above the station, m.
    #[serde(rename = "antenna_height_m")]
    pub height_m: f64,
}

/// The values that replace those of a station; `None` keeps the old one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Change {
    /// Transmit power at the antenna, W.
    pub tx_power_w: Option<f64>,
    /// Gain of the antenna, dB.
    pub antenna_gain_db: Option<f64>,
    /// Height of the antenna above the station, m.
    pub antenna_height_m: Option<f64>,
}

impl Change {
    /// Whether it replaces nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Antenna {
    /// The power and the antenna of a profile.
    pub fn of(radio: &Radio) -> Self {
        Self { tx_power_w: radio.tx_power_w, gain_db: radio.antenna_gain_db, height_m: radio.antenna_height_m }
    }

    /// This antenna after a change.
    pub fn with(self, change: &Change) -> Self {
        Self {
            tx_power_w: change.tx_power_w.unwrap_or(self.tx_power_w),
            gain_db: change.antenna_gain_db.unwrap_or(self.gain_db),
            height_m: change.antenna_height_m.unwrap_or(self.height_m),
        }
    }
}
