//! Machines of routing protocols joined by the medium library, in virtual time, without a kernel: the only place where
//! the two meet.
//!
//! - [`scenario`]: who is where, who moves where, who sends to whom: pure functions of a seed;
//! - [`mesh`]: the loop over the medium and all machines on one clock ([`Mesh`]);
//! - [`host`]: what surrounds a machine on a node: its routes and what a kernel does with a packet;
//! - [`next_hops`], [`graph`]: the routes of all nodes and the links that there are, and how they fit (loops, convergence);
//! - [`seen`]: what happened, counted; [`summary`]: the rows of the tables;
//! - [`reaction`]: how long a flow is interrupted when its path breaks;
//! - [`snapshot`]: tables that are checked in;
//! - [`protocols`]: the four daemons' machines by name.

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
