//! A listening socket that pauses while the process, or the host, has no free descriptor.
//!
//! accept(2) then fails with EMFILE or ENFILE and leaves the connection in the backlog, so that a level-triggered poll reports
//! the listener again at once, for ever. The listener therefore leaves the poll until [`Listener::wake`], which the daemon calls
//! a few times a second.

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

/// A listening socket in the driver's poll.
pub struct Listener {
    socket: OwnedFd,
    token: Token,
    paused: bool,
    /// Number of times that no descriptor was free for a client.
    failed: u64,
}

impl Listener {
    /// `socket` listens already, and does not block.
    ///
    /// # Errors
    /// The errors of epoll_ctl(2).
    pub fn open(socket: OwnedFd, token: Token, watcher: &Watcher) -> io::Result<Self> {
        watcher.watch(&socket, token.pack(), false)?;
        Ok(Self { socket, token, paused: false, failed: 0 })
    }

    /// Accepts one waiting client; its socket does not block either.
    pub fn accept(&mut self, watcher: &Watcher) -> Option<OwnedFd> {
        match accept4(self.socket.as_raw_fd(), SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC) {
            // SAFETY: accept4 returned this descriptor and nothing else owns it
            Ok(fd) => Some(unsafe { OwnedFd::from_raw_fd(fd) }),
            Err(Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM) => {
                self.failed += 1;
                self.paused = watcher.unwatch(&self.socket).is_ok();
                None
            }
            Err(_) => None,
        }
    }

    /// Returns to the poll, so that waiting clients are accepted if descriptors are free again.
    pub fn wake(&mut self, watcher: &Watcher) {
        if self.paused {
            self.paused = watcher.watch(&self.socket, self.token.pack(), false).is_err();
        }
    }

    /// Number of times that no descriptor was free for a client.
    pub fn failed(&self) -> u64 {
        self.failed
    }
}

/// Removes a socket that a killed daemon left behind. `key`: the key of medium.json that names it.
///
/// # Errors
/// A file that is no socket, or a socket on which another process listens.
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
