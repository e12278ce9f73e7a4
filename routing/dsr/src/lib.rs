//! DSR: dynamic source routing (RFC 4728, without the flow-state extension of section 7). See README.md.

pub mod cache;
pub mod datagram;
mod delayed;
mod discovery;
mod dull;
pub mod machine;
pub mod maintenance;
mod neighbours;
pub mod options;
mod receiving;
pub mod requests;
mod salvage;
mod sending;
mod shortening;
mod waiting;
pub mod wire;

pub use machine::Dsr;
pub use options::{overhead, Options};
