//! DSR: dynamic source routing (RFC 4728, without the flow-state extension of section 7). See README.md.

#![warn(missing_docs)]

pub mod cache;
pub mod datagram;
mod delayed;
pub mod discovery;
mod duplicates;
mod gratuitous;
mod lifetime;
pub mod machine;
pub mod maintenance;
mod neighbours;
pub mod options;
mod overheard_filter;
mod receive;
mod reported;
mod request;
mod resolve;
mod salvage;
mod salvaged;
mod send;
mod shortening;
mod waiting;
pub mod wire;

pub use machine::Dsr;
pub use options::{overhead, Options};
