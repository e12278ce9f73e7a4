//! The control socket: JSON lines over a Unix stream (formats/sockets.md). This file moves lines; `commands` answers them.

use crate::listener::{clear_stale_socket, Listener};
use crate::token::Token;
use crate::DaemonError;
use manet_engine::line_client::LineClient;
use manet_engine::real_time::Watcher;
use std::collections::BTreeMap;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Maximum length of a line, bytes; a longer one closes the connection.
pub const MAX_LINE_BYTES: usize = 64 * 1024;
/// Maximum of unread answers, bytes; a client with more is disconnected.
const MAX_UNSENT_BYTES: usize = 16 * 1024 * 1024;
const MAX_CLIENTS: usize = 64;

/// The control socket and its clients.
pub struct Control {
    watcher: Watcher,
    listener: Option<(Listener, PathBuf)>,
    clients: BTreeMap<u32, LineClient<UnixStream>>,
    next_client: u32,
}

impl Control {
    /// Listens at `path`; `None`: no socket.
    ///
    /// # Errors
    /// A path that cannot be bound, or another daemon that listens there.
    pub fn open(path: Option<&Path>, watcher: Watcher) -> Result<Self, DaemonError> {
        let mut control = Self { watcher, listener: None, clients: BTreeMap::new(), next_client: 0 };
        let Some(path) = path else { return Ok(control) };
        clear_stale_socket(path, "control_socket")?;
        let fail =
            |e| DaemonError(format!("key \"control_socket\": {}: {e}; socket paths hold 107 bytes", path.display()));
        let listener = UnixListener::bind(path).map_err(fail)?;
        listener.set_nonblocking(true)?;
        let listener = Listener::open(listener.into(), Token::ControlListener, &control.watcher)?;
        control.listener = Some((listener, path.to_owned()));
        Ok(control)
    }

    /// Accepts one waiting client.
    pub fn accept(&mut self) {
        let Some((listener, _)) = &mut self.listener else { return };
        let Some(stream) = listener.accept(&self.watcher).map(UnixStream::from) else { return };
        let id = self.next_client;
        let watched = self.watcher.watch(&stream, Token::ControlClient(id).pack(), false).is_ok();
        if self.clients.len() < MAX_CLIENTS && watched {
            self.next_client = id.wrapping_add(1);
            self.clients.insert(id, LineClient::new(stream));
        }
    }

    /// The listening socket, if there is one.
    pub fn listeners(&mut self) -> impl Iterator<Item = &mut Listener> {
        self.listener.iter_mut().map(|(listener, _)| listener)
    }

    /// Reads and writes as far as possible without blocking; returns the complete lines received, without line ends.
    pub fn ready(&mut self, id: u32) -> Vec<Vec<u8>> {
        self.flush(id);
        let Some(client) = self.clients.get_mut(&id) else { return Vec::new() };
        let open = client.read(&mut [0; 16 * 1024]);
        let lines = client.take_lines();
        let too_long = client.unfinished() > MAX_LINE_BYTES || lines.iter().any(|l| l.len() > MAX_LINE_BYTES);
        if !open || too_long {
            self.clients.remove(&id);
        }
        if too_long {
            Vec::new()
        } else {
            lines
        }
    }

    /// Sends an answer to a client, or queues it until the socket is writable.
    pub fn answer(&mut self, id: u32, answer: &serde_json::Value) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.queue(format!("{answer}\n").as_bytes());
        if client.unsent() > MAX_UNSENT_BYTES {
            self.clients.remove(&id);
        } else {
            self.flush(id);
        }
    }

    fn flush(&mut self, id: u32) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        if client.unsent() == 0 {
            return;
        }
        if !client.flush() {
            self.clients.remove(&id);
            return;
        }
        let _ = self.watcher.change(&client.stream, Token::ControlClient(id).pack(), client.unsent() > 0);
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if let Some((_, path)) = &self.listener {
            let _ = std::fs::remove_file(path);
        }
    }
}
