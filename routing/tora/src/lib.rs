//! TORA (draft-ietf-manet-tora-spec-04, Park and Corson, July 2001) over a neighbour layer after IMEP
//! (draft-ietf-manet-imep-spec-01).
//!
//! [`Tora`] is the machine, without socket and kernel. README.md lists what is modelled and what is not.

#![warn(missing_docs)]

pub mod blocks;
mod data;
pub mod destination;
pub mod height;
mod link;
pub mod machine;
pub mod neighbours;
pub mod options;
mod receive;
mod send;
pub mod wire;

pub use machine::Tora;
pub use options::{Link, Options};
