//! The physical layer as pure functions: how long a frame lasts, how strongly it arrives.

pub mod propagation;
pub mod radio;

pub use propagation::Propagation;
pub use radio::{FrameKind, Radio};
