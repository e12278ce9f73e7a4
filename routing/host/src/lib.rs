//! The daemon around any [`Protocol`]: sockets, kernel routes and files of one station, in its network namespace.
//!
//! The only place of `routing/` with I/O and `unsafe`. A daemon's program is one line:
//! `manet_routing_host::main::<P>()`.
//! - [`cli`], [`config`]: command line and configuration (formats/routing.md);
//! - [`daemon`]: from a configuration to the end of the run; [`outlet`]: the machine's outputs;
//! - [`kernel`]: the state the kernel is put into and taken out of again, by [`rtnetlink`], [`tun`], [`sysctl`];
//!   [`leftovers`] remembers it over a `kill -9`;
//! - [`udp`], [`raw`], [`usage`] (design A) and [`frames`] (design B): packets; [`feedback`], [`nl80211`]: failed
//!   links; [`attach`]: which of them the kernel need not wake us for;
//! - [`status`], [`notes`], [`capture`], [`replay`]: what others read;
//! - [`conformance`]: runs the cases of a protocol's tests, which are files.

pub mod attach;
pub mod capture;
pub mod cli;
pub mod config;
pub mod conformance;
pub mod daemon;
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
pub mod tun;
pub mod udp;
pub mod usage;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod toy;

use manet_routing::{OptionError, Protocol};
use std::fmt;
use std::process::ExitCode;

/// The whole program of a daemon.
pub fn main<P: Protocol>() -> ExitCode {
    cli::main::<P>()
}

/// One line that names what failed and, where there is one, the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError(pub String);

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for HostError {}

impl From<std::io::Error> for HostError {
    fn from(e: std::io::Error) -> Self {
        Self(e.to_string())
    }
}

impl From<OptionError> for HostError {
    fn from(e: OptionError) -> Self {
        Self(e.0)
    }
}

type Result<T, E = HostError> = std::result::Result<T, E>;

/// The failure of a system call, for the user who started the daemon.
fn failed(what: &str, e: nix::errno::Errno) -> HostError {
    use nix::errno::Errno;
    let remedy = match e {
        Errno::EPERM | Errno::EACCES => "; run as root",
        Errno::EADDRINUSE => "; is another routing daemon running here? stop it",
        Errno::ENODEV => "; is the interface there?",
        _ => "",
    };
    HostError(format!("{what}: {}{remedy}", e.desc()))
}
