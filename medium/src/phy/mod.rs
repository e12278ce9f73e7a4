//! The physical layer as pure functions: airtime and received power.

pub mod antenna;
pub mod error_model;
pub mod fading;
pub mod measured;
pub mod mode;
pub mod pattern;
pub mod propagation;
pub mod radio;
pub mod reach;
pub mod shadowing;
pub mod spectrum;
pub mod walls;

pub use antenna::Antenna;
pub use measured::Measured;
pub use mode::Mode;
pub use propagation::Propagation;
pub use radio::{FrameKind, Radio};

/// A power in W as a level in dBm; `None` for 0 W.
pub fn dbm(power_w: f64) -> Option<f64> {
    (power_w > 0.0).then(|| 10.0 * (power_w * 1e3).log10())
}
