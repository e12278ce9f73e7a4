//! What makes the results of a run incomplete. Each is a reason for the verdict `void`, and one line to the user.

use std::fmt;
use std::io;
use std::path::PathBuf;

#[derive(Debug)]
pub enum Incomplete {
    /// A log was given up at the first error; what was written until then is kept.
    LogBroken { path: PathBuf, error: io::Error },
    /// A log reached its limit in bytes; all logs ended at the same event.
    LogFull { path: PathBuf, limit: u64 },
    /// The thread that writes the logs panicked.
    WriterFailed,
    /// A file that is written whole at the end of the run.
    NotWritten { path: PathBuf, error: io::Error },
    /// Somebody removed the interface of a station, or of the end of a wire.
    InterfaceDeleted { of: String },
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LogBroken { path, error } => {
                let full = error.kind() == io::ErrorKind::StorageFull;
                let remedy = if full { "; free some space and run again" } else { "" };
                write!(f, "{}: {error}{remedy}; what was written until then is kept", path.display())
            }
            Self::LogFull { path, limit } => write!(
                f,
                "{} has reached its limit of {limit} bytes; raise log_limit (of the daemon: --log-limit) or make the run shorter",
                path.display()
            ),
            Self::WriterFailed => f.write_str("the air log's writer failed; its files are incomplete"),
            Self::NotWritten { path, error } => {
                write!(f, "{}: {error}; free some space or choose another folder", path.display())
            }
            Self::InterfaceDeleted { of } => {
                write!(f, "the interface of {of} was deleted while the medium ran; leave it to the medium")
            }
        }
    }
}
