//! OLSR (RFC 3626) as a machine without clock or socket, and its wire format. README.md lists what is modelled and what is
//! not.

#![warn(missing_docs)]

mod announce;
mod associations;
mod hysteresis;
mod links;
mod machine;
mod mpr;
mod neighbours;
mod options;
mod outgoing;
mod receive;
mod routes;
mod sequence;
mod topology;
mod until;
pub mod wire;

pub use machine::Olsr;
pub use options::{Link, Options};
