//! The status socket: JSON lines over a Unix stream (formats/routing.md), and its command-line client.

use crate::error::{HostError, Result};
use manet_engine::line_client::LineClient;
use manet_engine::real_time::Watcher;
use manet_routing::{Counters, Status};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A longer line closes the connection.
const MAX_LINE: usize = 4096;
/// A client with more unread bytes than this is dropped.
const MAX_BACKLOG: usize = 4 * 1024 * 1024;
const CLIENTS: usize = 16;
/// The first token of clients; smaller ones are the daemon's.
pub const FIRST_TOKEN: u64 = 1 << 32;

struct Client {
    lines: LineClient<UnixStream>,
    follows: bool,
}

/// The listener with its clients; inert without a path.
pub struct StatusSocket {
    listener: Option<(UnixListener, PathBuf)>,
    watcher: Option<Watcher>,
    /// Token of the listener.
    token: u64,
    clients: BTreeMap<u64, Client>,
    next: u64,
    /// No client can be accepted now (the process has no descriptor left): the listener is not watched.
    paused: bool,
}

/// The error in answer to an unknown request.
pub const REMEDY: &str = "ask {\"op\":\"status\"}, {\"op\":\"follow\"} or {\"op\":\"stop\"}";

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// One status answer.
    Status,
    /// All notes from now on.
    Follow,
    /// End of the daemon.
    Stop,
    /// Anything else.
    Unknown,
}

impl StatusSocket {
    /// Listens on `path` and removes a stale socket. Fails if another daemon answers there or the path is unusable.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let mut socket = Self {
            listener: None,
            watcher: None,
            token: 0,
            clients: BTreeMap::new(),
            next: FIRST_TOKEN,
            paused: false,
        };
        let Some(path) = path else { return Ok(socket) };
        let fail = |e| {
            HostError(format!("key \"status\": {}: {e}; is there the folder? paths hold 107 bytes", path.display()))
        };
        clear_stale(path)?;
        let listener = UnixListener::bind(path).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        socket.listener = Some((listener, path.to_owned()));
        Ok(socket)
    }

    /// Registers the listener under `token`, and keeps `watcher` for clients.
    pub fn watch(&mut self, watcher: Watcher, token: u64) -> std::io::Result<()> {
        if let Some((listener, _)) = &self.listener {
            watcher.watch(listener, token, false)?;
        }
        self.watcher = Some(watcher);
        self.token = token;
        Ok(())
    }

    /// Watches the listener again after a client could not be accepted. Called once per turn of the loop: a watched
    /// listener
    /// with a client that cannot be accepted would wake the loop without end.
    pub fn resume(&mut self) {
        let (Some((listener, _)), Some(watcher)) = (&self.listener, &self.watcher) else { return };
        if self.paused {
            self.paused = watcher.watch(listener, self.token, false).is_err();
        }
    }

    /// Accepts a pending client; one beyond the limit is closed.
    pub fn accept(&mut self) {
        let (Some((listener, _)), Some(watcher)) = (&self.listener, &self.watcher) else { return };
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            Err(_) => {
                self.paused = watcher.unwatch(listener).is_ok();
                return;
            }
        };
        let watched = stream.set_nonblocking(true).is_ok() && watcher.watch(&stream, self.next, false).is_ok();
        if watched && self.clients.len() < CLIENTS {
            let client = Client { lines: LineClient::new(stream), follows: false };
            self.clients.insert(self.next, client);
            self.next += 1;
        }
    }

    /// Sends pending bytes to a client, reads from it and returns its requests.
    pub fn ready(&mut self, token: u64) -> Vec<Request> {
        self.flush(token);
        let Some(client) = self.clients.get_mut(&token) else { return Vec::new() };
        let open = client.lines.read(&mut [0; MAX_LINE]);
        let requests = client.lines.take_lines().iter().map(|line| Request::parse(line)).collect();
        if !open || client.lines.unfinished() > MAX_LINE {
            self.clients.remove(&token);
        }
        requests
    }

    /// Sends an answer to a client as one line.
    pub fn answer(&mut self, token: u64, answer: &Value) {
        self.put(token, &format!("{answer}\n"));
    }

    /// Makes a client a follower.
    pub fn follow(&mut self, token: u64) {
        if let Some(client) = self.clients.get_mut(&token) {
            client.follows = true;
        }
    }

    /// Sends a line, which ends in a newline, to all followers.
    pub fn send_to_followers(&mut self, line: &str) {
        let following: Vec<u64> = self.clients.iter().filter(|(_, c)| c.follows).map(|(t, _)| *t).collect();
        for token in following {
            self.put(token, line);
        }
    }

    fn put(&mut self, token: u64, line: &str) {
        let Some(client) = self.clients.get_mut(&token) else { return };
        client.lines.queue(line.as_bytes());
        if client.lines.unsent() > MAX_BACKLOG {
            self.clients.remove(&token);
        } else {
            self.flush(token);
        }
    }

    fn flush(&mut self, token: u64) {
        let (Some(client), Some(watcher)) = (self.clients.get_mut(&token), &self.watcher) else { return };
        if client.lines.unsent() == 0 {
            return;
        }
        if !client.lines.flush() {
            self.clients.remove(&token);
            return;
        }
        let _ = watcher.change(&client.lines.stream, token, client.lines.unsent() > 0);
    }
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        if let Some((_, path)) = &self.listener {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Request {
    fn parse(line: &[u8]) -> Self {
        let value: Result<Value, _> = serde_json::from_slice(line);
        let op = value.as_ref().ok().and_then(|v| v.get("op")).and_then(Value::as_str);
        match op {
            Some("status") => Self::Status,
            Some("follow") => Self::Follow,
            Some("stop") => Self::Stop,
            _ => Self::Unknown,
        }
    }
}

/// The answer to `{"op":"status"}`.
pub fn answer(protocol: &str, address: Ipv4Addr, t_ns: i64, status: &Status, host: &Counters) -> Value {
    let mut answer = json!({"ok": true, "protocol": protocol, "address": address, "t_ns": t_ns, "host": host});
    match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => {
            for (key, value) in fields {
                answer[key] = value;
            }
            answer
        }
        Ok(_) | Err(_) => json!({"ok": false, "error": "the status cannot be written as JSON"}),
    }
}

/// A socket of a killed daemon is removed; one that answers is an error.
fn clear_stale(path: &Path) -> Result<()> {
    let Ok(meta) = path.symlink_metadata() else { return Ok(()) };
    let name = path.display();
    if !meta.file_type().is_socket() {
        return Err(HostError(format!("key \"status\": {name} exists and is no socket; choose another path")));
    }
    match UnixStream::connect(path) {
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => {}
        _ => {
            return Err(HostError(format!(
                "key \"status\": another daemon listens on {name}; stop it or choose another path"
            )))
        }
    }
    std::fs::remove_file(path).map_err(|e| HostError(format!("key \"status\": {name}: {e}")))
}

/// `manet-P status SOCKET OP`: prints the answer, for `follow` also every line until the daemon or the reader ends. Fails
/// if no daemon answers or it refuses `op`.
pub fn ask(path: &Path, op: &str) -> Result<()> {
    let fail = |e| HostError(format!("{}: {e}; is the daemon running?", path.display()));
    let mut stream = UnixStream::connect(path).map_err(fail)?;
    stream.write_all(format!("{}\n", json!({"op": op})).as_bytes()).map_err(fail)?;
    let mut refused = None;
    for (i, line) in BufReader::new(stream).lines().enumerate() {
        let line = line.map_err(fail)?;
        if i == 0 {
            let answer: Value = serde_json::from_str(&line).unwrap_or_default();
            refused = (answer["ok"] != true).then(|| answer["error"].as_str().unwrap_or("no answer").to_owned());
        }
        if refused.is_none() && writeln!(std::io::stdout(), "{line}").is_err() {
            break;
        }
        if op != "follow" {
            break;
        }
    }
    refused.map_or(Ok(()), |why| Err(HostError(why)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_engine::real_time::RealTime;

    fn socket(name: &str) -> (StatusSocket, PathBuf, RealTime<()>) {
        let path = std::env::temp_dir().join(format!("manet-status-{}-{name}", std::process::id()));
        let mut socket = StatusSocket::open(Some(&path)).unwrap();
        let driver = RealTime::start((), |()| false).unwrap();
        socket.watch(driver.watcher(), 1).unwrap();
        (socket, path, driver)
    }

    #[test]
    fn requests_are_answered_in_order_and_unknown_ones_are_recognised() {
        let (mut socket, path, _driver) = socket("order");
        let mut client = UnixStream::connect(&path).unwrap();
        socket.accept();
        client.write_all(b"{\"op\":\"status\"}\nnonsense\n{\"op\":\"stop\"}\n{\"op\":").unwrap();
        assert_eq!(socket.ready(FIRST_TOKEN), [Request::Status, Request::Unknown, Request::Stop]);
        socket.answer(FIRST_TOKEN, &json!({"ok": true}));
        let mut line = String::new();
        BufReader::new(&client).read_line(&mut line).unwrap();
        assert_eq!(line, "{\"ok\":true}\n");
    }

    #[test]
    fn followers_get_every_line_and_one_that_does_not_read_is_dropped() {
        let (mut socket, path, _driver) = socket("follow");
        let (reader, _lazy) = (UnixStream::connect(&path).unwrap(), UnixStream::connect(&path).unwrap());
        socket.accept();
        socket.accept();
        socket.follow(FIRST_TOKEN);
        socket.send_to_followers("one\n");
        let mut line = String::new();
        BufReader::new(&reader).read_line(&mut line).unwrap();
        assert_eq!(line, "one\n");
        socket.follow(FIRST_TOKEN + 1);
        drop(reader);
        let long = "x".repeat(1 << 20) + "\n";
        for _ in 0..6 {
            socket.send_to_followers(&long);
        }
        assert!(socket.clients.is_empty());
    }

    #[test]
    fn a_line_without_end_closes_the_connection() {
        let (mut socket, path, _driver) = socket("long");
        let mut client = UnixStream::connect(&path).unwrap();
        socket.accept();
        client.write_all(&[b'x'; MAX_LINE + 1]).unwrap();
        assert!(socket.ready(FIRST_TOKEN).is_empty());
        assert!(socket.ready(FIRST_TOKEN).is_empty() && socket.clients.is_empty());
    }

    #[test]
    fn the_socket_of_a_killed_daemon_is_replaced_and_that_of_a_running_one_is_not() {
        let (socket, path, _driver) = socket("stale");
        let error = StatusSocket::open(Some(&path)).err().unwrap();
        assert!(error.0.contains("another daemon listens"), "{error}");
        // a killed process leaves the file without a listener
        drop(socket);
        drop(UnixListener::bind(&path).unwrap());
        drop(StatusSocket::open(Some(&path)).unwrap());
        assert!(!path.exists());
        std::fs::write(&path, "").unwrap();
        assert!(StatusSocket::open(Some(&path)).err().unwrap().0.contains("is no socket"));
        std::fs::remove_file(&path).unwrap();
    }
}
