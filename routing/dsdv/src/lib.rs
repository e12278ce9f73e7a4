//! Destination-sequenced distance vector routing (Perkins and Bhagwat, SIGCOMM 1994) as in ns-2.35, with ns-3's messages.
//!
//! [`Dsdv`] is the machine, without socket and kernel. README.md lists what is modelled and what is not.

#![warn(missing_docs)]

mod data;
pub mod entry;
pub mod gateway;
mod internet;
pub mod machine;
pub mod neighbours;
pub mod options;
mod receive;
pub mod sequence;
pub mod table;
mod updates;
pub mod wire;

pub use machine::Dsdv;
pub use options::Options;
