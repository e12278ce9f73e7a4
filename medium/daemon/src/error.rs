//! Errors that end the daemon.

use std::fmt;

/// One line with the failure and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonError(pub String);

impl fmt::Display for DaemonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for DaemonError {}

impl From<std::io::Error> for DaemonError {
    fn from(e: std::io::Error) -> Self {
        Self(e.to_string())
    }
}
