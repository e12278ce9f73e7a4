//! The link-feedback sockets, `feedback_dir/<station>.sock` (formats/sockets.md).
//!
//! A client that does not read loses the oldest messages and never stalls the medium; a malformed
//! message is answered with ERROR and ignored.

use crate::listener::{clear_stale_socket, Listener};
use crate::token::Token;
use crate::DaemonError;
use manet_engine::packet_filter::Program;
use manet_engine::real_time::Watcher;
use manet_medium::wire::feedback::{Repr, DELIVERED, FAILURES, MAX_LEN, OVERHEARD};
use manet_medium::wire::MacAddress;
use manet_medium::StationId;
use nix::errno::Errno;
use nix::sys::socket::{
    bind, listen, recv, send, socket, AddressFamily, Backlog, MsgFlags, SockFlag, SockType, UnixAddr,
};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Messages kept for a client whose socket is full.
const BACKLOG: usize = 1024;
/// Messages read from one client in one turn of the loop.
const MESSAGES_AT_ONCE: usize = 32;
/// Maximum number of clients of all stations together, beyond one of each station: its routing daemon.
const MORE_CLIENTS: usize = 1024;

struct Client {
    socket: OwnedFd,
    station: StationId,
    flags: u32,
    /// The overheard frames that it receives; `None`: all.
    filter: Option<Program>,
    waiting: VecDeque<Vec<u8>>,
    /// Whether epoll reports that the socket is writable.
    awaits_writable: bool,
}

impl Client {
    /// Whether the client's filter lets a message pass.
    fn wants(&self, message: &Repr) -> bool {
        match (message, &self.filter) {
            (Repr::Overheard { frame, .. }, Some(filter)) => filter.run(frame, |_| None) > 0,
            _ => true,
        }
    }
}

/// The link-feedback sockets of all stations and their clients.
pub struct Feedback {
    watcher: Watcher,
    listeners: Vec<(Listener, PathBuf)>,
    clients: BTreeMap<u32, Client>,
    /// The clients of each station.
    of_station: Vec<Vec<u32>>,
    next_client: u32,
    /// Pending purges: our token to client and the client's token.
    purges: BTreeMap<u32, (u32, u32)>,
    next_purge: u32,
    /// Messages dropped because a client did not read them.
    pub messages_lost: u64,
    /// The message being sent.
    bytes: Vec<u8>,
}

/// A client's request to remove the queued frames for a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purge {
    /// The station of the socket.
    pub station: StationId,
    /// Receiver address of the frames.
    pub neighbour: MacAddress,
    /// To be passed to [`Feedback::purged`].
    pub token: u32,
}

impl Feedback {
    /// Listens for each station in `folder`; `None`: no sockets.
    ///
    /// # Errors
    /// A path that cannot be bound, or another daemon that listens there.
    pub fn open(folder: Option<&Path>, stations: &[&str], watcher: Watcher) -> Result<Self, DaemonError> {
        let mut feedback = Self {
            watcher,
            listeners: Vec::new(),
            clients: BTreeMap::new(),
            of_station: vec![Vec::new(); stations.len()],
            next_client: 0,
            purges: BTreeMap::new(),
            next_purge: 0,
            messages_lost: 0,
            bytes: Vec::new(),
        };
        let Some(folder) = folder else { return Ok(feedback) };
        std::fs::create_dir_all(folder)
            .map_err(|e| DaemonError(format!("key \"feedback_dir\": {}: {e}", folder.display())))?;
        for (i, station) in stations.iter().enumerate() {
            let path = folder.join(format!("{station}.sock"));
            let token = Token::FeedbackListener(i as u32);
            let listener = Listener::open(open_listener(&path)?, token, &feedback.watcher)?;
            feedback.listeners.push((listener, path));
        }
        Ok(feedback)
    }

    /// Accepts one waiting client of the station with this number.
    pub fn accept(&mut self, listener: u32) {
        let Some((at, _)) = self.listeners.get_mut(listener as usize) else { return };
        let Some(socket) = at.accept(&self.watcher) else { return };
        let id = self.next_client;
        if self.clients.len() < self.listeners.len() + MORE_CLIENTS
            && self.watcher.watch(&socket, Token::FeedbackClient(id).pack(), false).is_ok()
        {
            self.next_client = id.wrapping_add(1);
            let station = StationId(listener as u16);
            let waiting = VecDeque::new();
            let client = Client { socket, station, flags: 0, filter: None, waiting, awaits_writable: false };
            self.clients.insert(id, client);
            self.of_station[usize::from(station.0)].push(id);
        }
    }

    /// The listening sockets.
    pub fn listeners(&mut self) -> impl Iterator<Item = &mut Listener> {
        self.listeners.iter_mut().map(|(listener, _)| listener)
    }

    fn remove(&mut self, id: u32) {
        if let Some(client) = self.clients.remove(&id) {
            self.of_station[usize::from(client.station.0)].retain(|other| *other != id);
        }
    }

    /// Reads and writes as far as possible without blocking; returns the client's station and its requests.
    pub fn ready(&mut self, id: u32) -> (Option<StationId>, Vec<Purge>) {
        let mut purges = Vec::new();
        let Some(station) = self.clients.get(&id).map(|c| c.station) else { return (None, purges) };
        self.flush(id);
        let mut buffer = vec![0; MAX_LEN];
        for _ in 0..MESSAGES_AT_ONCE {
            let Some(client) = self.clients.get_mut(&id) else { break };
            let length = match recv(client.socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Err(Errno::EAGAIN | Errno::EINTR) => break,
                // the client has closed its socket, or sent an empty packet
                Ok(0) | Err(_) => {
                    self.remove(id);
                    break;
                }
                Ok(length) => length,
            };
            match Repr::parse(&buffer[..length]) {
                Ok(Repr::Subscribe { flags }) => client.flags = flags,
                // parse has checked the program
                Ok(Repr::Filter { program }) => client.filter = Program::parse(program).unwrap_or(None),
                Ok(Repr::Purge { neighbour, token }) => {
                    let ours = self.next_purge;
                    self.next_purge = ours.wrapping_add(1);
                    self.purges.insert(ours, (id, token));
                    purges.push(Purge { station, neighbour, token: ours });
                }
                Ok(_) => self.send_to(id, &Repr::Error { text: "only SUBSCRIBE, PURGE and FILTER go to the medium" }),
                Err(e) => self.send_to(id, &Repr::Error { text: e.0 }),
            }
        }
        (Some(station), purges)
    }

    /// Whether a client of the station subscribes to overheard frames.
    pub fn wants_overheard(&self, station: StationId) -> bool {
        self.of_station[usize::from(station.0)].iter().any(|id| self.clients[id].flags & OVERHEARD != 0)
    }

    /// Sends a message to every client of the station that subscribes to its kind.
    pub fn publish(&mut self, station: StationId, message: &Repr) {
        let flag = match message {
            Repr::Failed { .. } => FAILURES,
            Repr::Overheard { .. } => OVERHEARD,
            Repr::Delivered { .. } => DELIVERED,
            _ => return,
        };
        let station = usize::from(station.0);
        // a client found closed is removed from the list: the next one takes its place
        let mut at = 0;
        while let Some(id) = self.of_station[station].get(at).copied() {
            let client = &self.clients[&id];
            if client.flags & flag != 0 && client.wants(message) {
                self.send_to(id, message);
            }
            at += usize::from(self.of_station[station].get(at) == Some(&id));
        }
    }

    /// Sends the answer to a purge to the client that requested it.
    pub fn purged<'a>(&mut self, token: u32, neighbour: MacAddress, frames: impl Iterator<Item = &'a [u8]>) {
        let Some((id, token)) = self.purges.remove(&token) else { return };
        let mut count = 0;
        for frame in frames {
            count += 1;
            self.send_to(id, &Repr::Purged { token, neighbour, frame });
        }
        self.send_to(id, &Repr::PurgeDone { token, count });
    }

    fn send_to(&mut self, id: u32, message: &Repr) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        self.bytes.resize(message.buffer_len(), 0);
        message.emit(&mut self.bytes);
        if client.waiting.is_empty() {
            match hand_over(client, &self.bytes) {
                Handed::Taken => return,
                Handed::Full => {}
                Handed::Gone => return self.remove(id),
            }
        }
        if client.waiting.len() >= BACKLOG {
            client.waiting.pop_front();
            self.messages_lost += 1;
        }
        client.waiting.push_back(self.bytes.clone());
        self.watch_writable(id);
    }

    /// Sends the waiting messages; epoll reports when the socket is writable for the rest.
    fn flush(&mut self, id: u32) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        while let Some(message) = client.waiting.front() {
            match hand_over(client, message) {
                Handed::Taken => {
                    client.waiting.pop_front();
                }
                Handed::Full => break,
                Handed::Gone => return self.remove(id),
            }
        }
        self.watch_writable(id);
    }

    /// Makes epoll report a writable socket exactly while messages wait for it.
    fn watch_writable(&mut self, id: u32) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let wanted = !client.waiting.is_empty();
        if wanted != client.awaits_writable {
            client.awaits_writable = wanted;
            let _ = self.watcher.change(&client.socket, Token::FeedbackClient(id).pack(), wanted);
        }
    }
}

enum Handed {
    Taken,
    Full,
    Gone,
}

fn hand_over(client: &Client, message: &[u8]) -> Handed {
    match send(client.socket.as_raw_fd(), message, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL) {
        Ok(_) => Handed::Taken,
        Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS) => Handed::Full,
        Err(_) => Handed::Gone,
    }
}

impl Drop for Feedback {
    fn drop(&mut self) {
        for (_, path) in &self.listeners {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn open_listener(path: &Path) -> Result<OwnedFd, DaemonError> {
    clear_stale_socket(path, "feedback_dir")?;
    let fail = |e: Errno| {
        DaemonError(format!("key \"feedback_dir\": {}: {}; socket paths hold 107 bytes", path.display(), e.desc()))
    };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).map_err(fail)?;
    let address = UnixAddr::new(path).map_err(fail)?;
    bind(fd.as_raw_fd(), &address).map_err(fail)?;
    let backlog = Backlog::new(16).map_err(fail)?;
    listen(&fd.as_fd(), backlog).map_err(fail)?;
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::raise_descriptor_limit;
    use manet_engine::real_time::RealTime;
    use nix::sys::socket::connect;

    #[test]
    fn the_daemon_of_each_station_of_a_large_network_is_a_client() {
        raise_descriptor_limit();
        let folder = std::env::temp_dir().join(format!("manet-feedback-{}", std::process::id()));
        let names: Vec<String> = (1..=MORE_CLIENTS + 100).map(|number| format!("sta{number}")).collect();
        let stations: Vec<&str> = names.iter().map(String::as_str).collect();
        let watcher = RealTime::start((), |()| false).unwrap().watcher();
        let mut feedback = Feedback::open(Some(&folder), &stations, watcher).unwrap();
        let client = |station: usize| {
            let flags = SockFlag::SOCK_CLOEXEC;
            let client = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).unwrap();
            let address = UnixAddr::new(&folder.join(format!("{}.sock", names[station]))).unwrap();
            connect(client.as_raw_fd(), &address).unwrap();
            client
        };
        let mut clients = Vec::new();
        for station in 0..names.len() {
            clients.push(client(station));
            feedback.accept(station as u32);
        }
        assert_eq!(feedback.clients.len(), names.len());
        for _ in 0..=MORE_CLIENTS {
            clients.push(client(0));
            feedback.accept(0);
        }
        assert_eq!(feedback.clients.len(), names.len() + MORE_CLIENTS);
        drop(feedback);
        std::fs::remove_dir(&folder).unwrap();
    }
}
