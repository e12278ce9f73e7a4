//! Packet error rates of directed links: what an experiment takes off a link besides collisions.
//!
//! A frame is struck at the receiver after it would have been decoded, so that the receiver defers for EIFS as after
//! any frame with a wrong FCS.

use crate::config::{ErrorFrames, ErrorUnit, Loaded};
use crate::mac::Frame;
use crate::phy::FrameKind;
use manet_engine::Stream;

/// One entry per ordered pair of stations; a later entry of `links` overrides an earlier one.
pub struct ErrorRates {
    stations: usize,
    rate: Vec<f64>,
    unit: Vec<ErrorUnit>,
    frames: Vec<ErrorFrames>,
    overhead_bytes: u32,
}

impl ErrorRates {
    pub fn new(loaded: &Loaded) -> Self {
        let n = loaded.config.stations.len();
        let mut rates = Self {
            stations: n,
            rate: vec![0.0; n * n],
            unit: vec![ErrorUnit::Frame; n * n],
            frames: vec![ErrorFrames::Data; n * n],
            overhead_bytes: loaded.radio.overhead_bytes,
        };
        let index = loaded.station_index();
        let matches = |name: &str, i: usize| name == "*" || index[name] == i;
        for link in &loaded.config.links {
            for pair in 0..n * n {
                if matches(&link.from, pair / n) && matches(&link.to, pair % n) {
                    rates.rate[pair] = link.error_rate;
                    rates.unit[pair] = link.unit;
                    rates.frames[pair] = link.frames;
                }
            }
        }
        rates
    }

    pub fn rate(&self, from: u16, to: u16) -> f64 {
        self.rate[from as usize * self.stations + to as usize]
    }

    pub fn set(&mut self, from: u16, to: u16, rate: f64) {
        self.rate[from as usize * self.stations + to as usize] = rate.clamp(0.0, 1.0);
    }

    /// Is this frame lost at station `at`? Draws from `dice` only where there is a rate.
    pub fn strikes(&self, frame: &Frame, at: u16, dice: &mut Stream) -> bool {
        let pair = frame.from as usize * self.stations + at as usize;
        let rate = self.rate[pair];
        let data = matches!(frame.kind, FrameKind::Data | FrameKind::Bcast);
        if rate == 0.0 || !(data || self.frames[pair] == ErrorFrames::All) {
            return false;
        }
        let probability = match self.unit[pair] {
            ErrorUnit::Frame => rate,
            ErrorUnit::Byte => {
                let bytes = if data { frame.bytes.saturating_sub(self.overhead_bytes) } else { frame.bytes };
                1.0 - (1.0 - rate).powi(bytes as i32)
            }
        };
        dice.chance(probability)
    }
}
