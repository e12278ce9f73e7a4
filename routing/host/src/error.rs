//! The error of a daemon that cannot continue.

use manet_routing::OptionError;
use std::fmt;

/// One line that names the failed step and, if there is one, the remedy.
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

pub(crate) type Result<T, E = HostError> = std::result::Result<T, E>;

/// The failure of a system call, for the user who started the daemon.
pub(crate) fn failed(what: &str, e: nix::errno::Errno) -> HostError {
    use nix::errno::Errno;
    let remedy = match e {
        Errno::EPERM | Errno::EACCES => "; run as root",
        Errno::EADDRINUSE => "; is another routing daemon running here? stop it",
        Errno::ENODEV => "; is the interface there?",
        _ => "",
    };
    HostError(format!("{what}: {}{remedy}", e.desc()))
}
