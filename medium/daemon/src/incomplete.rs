//! Reasons why the results of a run are incomplete. Each makes the verdict `void` and is one line to the user.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// A reason.
#[derive(Debug)]
pub enum Incomplete {
    /// A log was abandoned at the first error; its content up to then is kept.
    LogBroken {
        /// Its path.
        path: PathBuf,
        /// The error of the write.
        error: io::Error,
    },
    /// A log reached its limit; all logs ended at the same event.
    LogFull {
        /// Its path.
        path: PathBuf,
        /// The limit, bytes.
        limit: u64,
    },
    /// The thread that writes the logs panicked.
    WriterFailed,
    /// A file that is written at the end of the run.
    NotWritten {
        /// Its path.
        path: PathBuf,
        /// The error of the write.
        error: io::Error,
    },
    /// Another program deleted the interface of a station or of the end of a wire.
    InterfaceDeleted {
        /// Name of the station or host.
        of: String,
    },
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
