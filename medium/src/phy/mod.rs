//! The physical layer as pure functions: how long a frame lasts, how strongly it arrives.

pub mod propagation;
pub mod radio;
pub mod reach;

pub use propagation::Propagation;
pub use radio::{FrameKind, Radio};

/// `None` where nothing arrives.
pub fn dbm(power_w: f64) -> Option<f64> {
    (power_w > 0.0).then(|| 10.0 * (power_w * 1e3).log10())
}
