//! Adaptive distance vector routing (Boppana and Konduru, INFOCOM 2001), after the public NCTUns 6.0 implementation's rules.
//!
//! [`Adv`] is the machine, without socket and kernel. README.md lists sources, departures and open points.

#![warn(missing_docs)]

pub mod connections;
mod data;
pub mod entry;
mod flood;
pub mod machine;
pub mod meter;
pub mod neighbours;
pub mod options;
mod pending;
mod receive;
pub mod sequence;
mod status;
pub mod table;
mod updates;
pub mod wire;

pub use machine::Adv;
pub use options::Options;
