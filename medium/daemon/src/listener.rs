//! A listening socket that rests while the process, or the host, has no descriptor left.
//!
//! accept(2) then fails with EMFILE or ENFILE and leaves the connection in the backlog, so that a level-triggered poll reports
//! the listener again at once, for ever. It is taken out of the poll until [`Listener::wake`], which the daemon calls a few
//! times a second.

use crate::token::Token;
use crate::DaemonError;
use manet_engine::real_time::Watcher;
use nix::errno::Errno;
use nix::sys::socket::{accept4, SockFlag};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

pub struct Listener {
    socket: OwnedFd,
    token: Token,
    resting: bool,
    /// Times that nobody could be let in for want of a descriptor.
    failed: u64,
}

impl Listener {
    /// `socket` listens already, and does not block.
    pub fn open(socket: OwnedFd, token: Token, watcher: &Watcher) -> io::Result<Self> {
        watcher.watch(&socket, token.pack(), false)?;
        Ok(Self { socket, token, resting: false, failed: 0 })
    }

    /// A client that has come; it does not block either.
    pub fn accept(&mut self, watcher: &Watcher) -> Option<OwnedFd> {
        match accept4(self.socket.as_raw_fd(), SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC) {
            // SAFETY: accept4 gave us this descriptor and nobody else has it
            Ok(fd) => Some(unsafe { OwnedFd::from_raw_fd(fd) }),
            Err(Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM) => {
                self.failed += 1;
                self.resting = watcher.unwatch(&self.socket).is_ok();
                None
            }
            Err(_) => None,
        }
    }

    /// Looks again whether there is a descriptor for who waits.
    pub fn wake(&mut self, watcher: &Watcher) {
        if self.resting {
            self.resting = watcher.watch(&self.socket, self.token.pack(), false).is_err();
        }
    }

    pub fn failed(&self) -> u64 {
        self.failed
    }
}

/// Removes a socket that a killed daemon left behind; one that still answers is an error. `key` of medium.json names it.
pub fn clear_stale_socket(path: &Path, key: &str) -> Result<(), DaemonError> {
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
