//! The daemon around any [`Protocol`]: sockets, kernel routes and files of one station, in its network namespace.
//!
//! The only place of `routing/` with I/O and `unsafe`. A daemon's program is one line:
//! `manet_routing_host::main::<P>()`.
//! - [`cli`], [`config`]: command line and configuration (formats/routing.md);
//! - [`daemon`]: from a configuration to the end of the run; [`outlet`]: the machine's outputs;
//! - [`kernel`]: sets and restores the kernel's state with [`rtnetlink`], [`tun`], [`sysctl`]; [`leftovers`] keeps the
//!   previous state over a `kill -9`;
//! - [`udp`], [`raw`], [`usage`] (design A) and [`frames`] (design B): packets; [`feedback`], [`nl80211`]: failed
//!   links; [`attach`]: socket filters;
//! - [`status`], [`notes`], [`capture`], [`replay`]: output for other programs;
//! - [`conformance`]: runs the test cases of a protocol, which are files; [`tshark`]: reads its packets with tshark.

#![warn(missing_docs)]

pub mod attach;
pub mod capture;
pub mod cli;
pub mod config;
pub mod conformance;
pub mod daemon;
pub mod error;
pub mod feedback;
pub mod frames;
pub mod kernel;
pub mod leftovers;
pub mod nl80211;
pub mod notes;
pub mod outlet;
pub mod raw;
pub mod replay;
pub mod rtnetlink;
pub mod status;
pub mod sys;
pub mod sysctl;
pub mod tshark;
pub mod tun;
pub mod udp;
pub mod usage;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tcp_packet;
#[cfg(test)]
mod toy;

use manet_routing::Protocol;
use std::process::ExitCode;

pub use error::HostError;

/// The program of a daemon: parses the command line, runs and returns the exit status.
pub fn main<P: Protocol>() -> ExitCode {
    cli::main::<P>()
}
