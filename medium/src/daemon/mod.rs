//! The daemon: TAPs, sockets and files around the machines. The only place of this crate with I/O and `unsafe`.
//!
//! - [`run`]: from a configuration to a finished run;
//! - [`world`]: air and wires as one machine; [`outlet`]: what it does to the hosts and what they answer;
//! - [`hwsim`], [`wiphy`], [`ethtool`]: radios of the kernel's own, in the place of TAPs;
//! - [`tap`], [`feedback`], [`control`], [`commands`]: the ways in and out; [`listener`]: without a free descriptor, too;
//! - [`recorder`]: air log, capture and log of inputs ([`input_log`]), on a thread of their own;
//! - [`host`]: priority, memory, signals.

pub mod commands;
pub mod control;
pub mod ethtool;
pub mod feedback;
pub mod host;
pub mod hwsim;
pub mod input_log;
pub mod listener;
pub mod outlet;
pub mod recorder;
pub mod replay;
pub mod run;
pub mod tap;
pub mod wiphy;
pub mod world;

use std::fmt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// One line that names what failed and the remedy.
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

/// What became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    Signal,
    Parent,
    ControlListener,
    ControlClient(u32),
    FeedbackListener(u32),
    FeedbackClient(u32),
    Port(u32),
    Hwsim,
}

impl Token {
    pub fn pack(self) -> u64 {
        let (kind, index) = match self {
            Token::Signal => (0, 0),
            Token::Parent => (1, 0),
            Token::ControlListener => (2, 0),
            Token::ControlClient(i) => (3, i),
            Token::FeedbackListener(i) => (4, i),
            Token::FeedbackClient(i) => (5, i),
            Token::Port(i) => (6, i),
            Token::Hwsim => (7, 0),
        };
        kind << 32 | u64::from(index)
    }

    pub fn unpack(packed: u64) -> Option<Self> {
        let index = packed as u32;
        Some(match packed >> 32 {
            0 => Token::Signal,
            1 => Token::Parent,
            2 => Token::ControlListener,
            3 => Token::ControlClient(index),
            4 => Token::FeedbackListener(index),
            5 => Token::FeedbackClient(index),
            6 => Token::Port(index),
            7 => Token::Hwsim,
            _ => return None,
        })
    }
}

/// Removes a socket that a killed daemon left behind; one that still answers is an error.
fn clear_stale_socket(path: &Path, key: &str) -> Result<(), DaemonError> {
    use std::os::unix::fs::FileTypeExt;
    let Ok(meta) = path.symlink_metadata() else { return Ok(()) };
    if !meta.file_type().is_socket() {
        return Err(DaemonError(format!(
            "key \"{key}\": {} exists and is no socket; choose another path",
            path.display()
        )));
    }
    // a SEQPACKET listener refuses a stream with EPROTOTYPE: alive as well
    match UnixStream::connect(path) {
        Err(e) if e.kind() == std::io::ErrorKind::ConnectionRefused => {}
        _ => {
            return Err(DaemonError(format!(
                "key \"{key}\": another medium listens on {}; stop it or choose another path",
                path.display()
            )))
        }
    }
    std::fs::remove_file(path).map_err(|e| DaemonError(format!("key \"{key}\": {}: {e}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_packing() {
        for token in [
            Token::Signal,
            Token::Parent,
            Token::ControlListener,
            Token::ControlClient(7),
            Token::FeedbackListener(8),
            Token::FeedbackClient(u32::MAX),
            Token::Port(9),
            Token::Hwsim,
        ] {
            assert_eq!(Token::unpack(token.pack()), Some(token));
        }
        assert_eq!(Token::unpack(u64::MAX), None);
    }
}
