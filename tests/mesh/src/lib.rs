//! Machines of routing protocols joined by the medium library, in virtual time, without a kernel: the only place that
//! uses both.
//!
//! - [`scenario`]: positions, movements and flows: pure functions of a seed;
//! - [`mesh`]: the loop over the medium and all machines on one clock ([`Mesh`]);
//! - [`host`]: the surroundings of a machine on a node: its routes and the kernel's treatment of packets;
//! - [`next_hops`], [`graph`]: routes of all nodes, existing links, and how they fit (loops, convergence);
//! - [`seen`]: observations of a run; [`summary`]: rows of the tables;
//! - [`reaction`]: interruption of a flow when its path breaks;
//! - [`snapshot`]: tables that are checked in; [`fingerprint`]: all outputs as one number;
//! - [`protocols`]: the four daemons' machines by name; [`addresses`], [`frames`]: addresses and bytes.

#![warn(missing_docs)]

pub mod addresses;
pub mod fingerprint;
pub mod frames;
pub mod graph;
pub mod host;
pub mod mesh;
pub mod next_hops;
pub mod protocols;
pub mod reaction;
pub mod scenario;
pub mod seen;
pub mod snapshot;
pub mod summary;

pub use mesh::Mesh;
pub use scenario::Scenario;
