//! The control socket: JSON lines over a Unix stream (formats/sockets.md). This file moves lines; `commands` answers them.

use crate::listener::{clear_stale_socket, Listener};
use crate::token::Token;
use crate::DaemonError;
use manet_engine::real_time::Watcher;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Maximum length of a line, bytes; a longer one closes the connection.
pub const MAX_LINE_BYTES: usize = 64 * 1024;
/// Maximum of unread answers, bytes; a client with more is disconnected.
const MAX_UNSENT_BYTES: usize = 16 * 1024 * 1024;
const MAX_CLIENTS: usize = 64;

struct Client {
    stream: UnixStream,
    received: Vec<u8>,
    to_send: Vec<u8>,
}

/// The control socket and its clients.
pub struct Control {
    watcher: Watcher,
    listener: Option<(Listener, PathBuf)>,
    clients: BTreeMap<u32, Client>,
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
            self.clients.insert(id, Client { stream, received: Vec::new(), to_send: Vec::new() });
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
        let mut chunk = [0; 16 * 1024];
        let keep = match client.stream.read(&mut chunk) {
            Ok(0) => false,
            Ok(n) => {
                client.received.extend_from_slice(&chunk[..n]);
                true
            }
            Err(e) => matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        };
        let lines = take_lines(&mut client.received);
        let too_long = client.received.len() > MAX_LINE_BYTES || lines.iter().any(|l| l.len() > MAX_LINE_BYTES);
        if !keep || too_long {
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
        client.to_send.extend_from_slice(answer.to_string().as_bytes());
        client.to_send.push(b'\n');
        if client.to_send.len() > MAX_UNSENT_BYTES {
            self.clients.remove(&id);
        } else {
            self.flush(id);
        }
    }

    fn flush(&mut self, id: u32) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        if client.to_send.is_empty() {
            return;
        }
        match client.stream.write(&client.to_send) {
            Ok(n) => {
                client.to_send.drain(..n);
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => {
                self.clients.remove(&id);
                return;
            }
        }
        let writable = !client.to_send.is_empty();
        let _ = self.watcher.change(&client.stream, Token::ControlClient(id).pack(), writable);
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if let Some((_, path)) = &self.listener {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn take_lines(received: &mut Vec<u8>) -> Vec<Vec<u8>> {
    let Some(last) = received.iter().rposition(|b| *b == b'\n') else { return Vec::new() };
    let rest = received.split_off(last + 1);
    let whole = std::mem::replace(received, rest);
    whole[..last].split(|b| *b == b'\n').map(<[u8]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_are_taken_and_the_rest_waits() {
        let mut received = b"one\ntwo\nthr".to_vec();
        assert_eq!(take_lines(&mut received), [b"one".to_vec(), b"two".to_vec()]);
        assert_eq!(received, b"thr");
        assert!(take_lines(&mut received).is_empty());
    }
}
