//! The radio's reports of its links: from the medium's socket of this station (formats/sockets.md), from nl80211, or
//! none.
//!
//! Machines of design A know neighbours by their IPv4 addresses; the kernel's neighbour table maps MAC addresses to them.
//! Only IPv4 packets count as failures: a lost ARP reply breaks no link.

use crate::config::{Config, FeedbackSource};
use crate::error::{HostError, Result};
use crate::frames;
use crate::kernel::Kernel;
use crate::nl80211::Nl80211;
use manet_engine::packet_filter::{compile, Instruction, Step};
use manet_engine::real_time::Watcher;
use manet_routing::packet::ipv4;
use manet_routing::{Bytes, Carrier, Counters, Input, Mac, Node};
use nix::errno::Errno;
use nix::sys::socket::{connect, recv, send, socket, AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// Messages read before the other sockets are served.
const MESSAGES_AT_ONCE: usize = 64;
/// Maximum of pending purges; a machine has fewer neighbours in range.
const PURGES: usize = 256;
/// Maximum of packets in one purge; the medium's queues are shorter.
const PACKETS: usize = 4096;
/// Maximum of stations whose addresses are remembered after the kernel dropped them.
const STATIONS: usize = 1024;

const FAILURES: u32 = 1;
const OVERHEARD: u32 = 2;
const DELIVERED: u32 = 4;

/// A message of the medium (formats/sockets.md). Frames are Ethernet frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A frame was dropped after its retries.
    Failed {
        /// Receiver of the frame.
        neighbour: Mac,
        /// The dropped frame.
        frame: &'a [u8],
    },
    /// A frame was removed from the queue by a purge.
    Purged {
        /// Token of the request.
        token: u32,
        /// The removed frame.
        frame: &'a [u8],
    },
    /// A purge is complete.
    PurgeDone {
        /// Token of the request.
        token: u32,
    },
    /// A frame for another station was decoded.
    Overheard {
        /// Transmitter.
        from: Mac,
        /// Receiver.
        to: Mac,
        /// The frame.
        frame: &'a [u8],
    },
    /// A frame was acknowledged.
    Delivered {
        /// Receiver of the frame.
        neighbour: Mac,
    },
    /// The medium refused a request.
    Error,
}

/// The open source of link reports.
pub enum Source {
    /// The medium's socket.
    Medium(OwnedFd),
    /// Polled failure counts.
    Nl80211(Nl80211),
    /// No reports.
    None,
}

struct Purge {
    to: Mac,
    /// Design A: the neighbour of the machine's request.
    neighbour: Option<Ipv4Addr>,
    packets: Vec<Bytes>,
}

/// Reads link reports and turns them into inputs of the machine.
pub struct Feedback {
    source: Source,
    node: Node,
    frames: bool,
    purges: BTreeMap<u32, Purge>,
    next_token: u32,
    known: BTreeMap<Mac, Ipv4Addr>,
}

impl Feedback {
    /// `interface`: index of the radio. `deliveries`: whether the machine uses reports of acknowledged frames. Fails if the
    /// source cannot be opened.
    pub fn open(config: &Config, carrier: Carrier, interface: u32, deliveries: bool) -> Result<Self> {
        let frames = carrier == Carrier::Frames;
        let source = match &config.feedback {
            FeedbackSource::Medium(path) => {
                let flags = flags(frames, config.node.feedback, deliveries);
                Source::Medium(subscribe(path, flags)?)
            }
            FeedbackSource::Nl80211 if config.node.feedback => Source::Nl80211(Nl80211::open(interface)?),
            FeedbackSource::Nl80211 | FeedbackSource::None => Source::None,
        };
        let node = config.node.clone();
        Ok(Self { source, node, frames, purges: BTreeMap::new(), next_token: 0, known: BTreeMap::new() })
    }

    /// Registers the medium's socket; a polled source has none.
    pub fn watch(&self, watcher: &Watcher, token: u64) -> std::io::Result<()> {
        match &self.source {
            Source::Medium(socket) => watcher.watch(socket, token, false),
            Source::Nl80211(_) | Source::None => Ok(()),
        }
    }

    /// From now on the medium sends no overheard frames that `filter` drops ([`manet_routing::Protocol::overheard_filter`]):
    /// it knows them before any system call. Returns whether the medium gets the filter.
    pub fn set_overheard_filter(&self, filter: &[Step], counters: &mut Counters) -> bool {
        let Source::Medium(socket) = &self.source else { return true };
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let sent = send(socket.as_raw_fd(), &filter_message(filter), flags).is_ok();
        if !sent {
            counters.count("filter-refused");
        }
        sent
    }

    /// Whether the source must be polled ([`Self::poll`]).
    pub fn is_polled(&self) -> bool {
        matches!(self.source, Source::Nl80211(_))
    }

    /// Design A: requests a purge of the packets for `neighbour`.
    pub fn purge_neighbour(&mut self, neighbour: Ipv4Addr, kernel: &mut Kernel, counters: &mut Counters) {
        let table = kernel.netlink.neighbours(kernel.radio).unwrap_or_default();
        match table.iter().find(|(address, _)| *address == neighbour) {
            Some((_, mac)) => self.request_purge(*mac, Some(neighbour), counters),
            None => counters.count("purge-unknown-neighbour"),
        }
    }

    /// Design B: requests a purge of the frames for `to`.
    pub fn purge(&mut self, to: Mac, counters: &mut Counters) {
        self.request_purge(to, None, counters);
    }

    fn request_purge(&mut self, to: Mac, neighbour: Option<Ipv4Addr>, counters: &mut Counters) {
        let Source::Medium(socket) = &self.source else { return };
        let token = self.next_token;
        let [a, b, c, d, e, f] = to;
        let [t0, t1, t2, t3] = token.to_le_bytes();
        let message = [1, 2, 0, 0, 12, 0, 0, 0, a, b, c, d, e, f, 0, 0, t0, t1, t2, t3];
        // a purge is requested only if it can be remembered: otherwise its packets could not be assigned
        let room = self.purges.len() < PURGES;
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        if !room || send(socket.as_raw_fd(), &message, flags).is_err() {
            return counters.count("purge-failed");
        }
        self.next_token = token.wrapping_add(1);
        self.purges.insert(token, Purge { to, neighbour, packets: Vec::new() });
    }

    /// Reads the pending messages as inputs of the machine's design. `buffer` holds one message.
    pub fn ready(&mut self, kernel: &mut Kernel, counters: &mut Counters, buffer: &mut [u8]) -> Vec<Input> {
        let mut inputs = Vec::new();
        for _ in 0..MESSAGES_AT_ONCE {
            let Source::Medium(socket) = &self.source else { break };
            let length = match recv(socket.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT) {
                Err(Errno::EAGAIN | Errno::EINTR) => break,
                Ok(length) if length > 0 => length,
                // the medium has ended; only hellos, if any, show failed links from now on
                _ => {
                    counters.count("feedback-lost");
                    self.source = Source::None;
                    break;
                }
            };
            match parse(&buffer[..length]) {
                Some(message) => inputs.extend(self.input(message, kernel, counters)),
                None => counters.count("feedback-malformed"),
            }
        }
        inputs
    }

    /// Polls failures; none from a source that reports by itself.
    pub fn poll(&mut self, kernel: &mut Kernel, counters: &mut Counters) -> Vec<Input> {
        let Source::Nl80211(stations) = &mut self.source else { return Vec::new() };
        let Ok(failed) = stations.poll() else {
            counters.count("feedback-lost");
            return Vec::new();
        };
        let input = |mac| self.failed(mac, Bytes::default(), kernel, counters);
        failed.into_iter().filter_map(input).collect()
    }

    fn input(&mut self, message: Message, kernel: &mut Kernel, counters: &mut Counters) -> Option<Input> {
        match message {
            Message::Failed { neighbour, frame } => self.failed(neighbour, ip_packet(frame)?, kernel, counters),
            Message::Delivered { neighbour } => Some(Input::FrameDelivered { to: neighbour }),
            Message::Overheard { from, to, frame } => Some(Input::Overheard { from, to, bytes: ip_packet(frame)? }),
            Message::Purged { token, frame } => {
                let purge = self.purges.get_mut(&token).filter(|p| p.packets.len() < PACKETS)?;
                purge.packets.extend(ip_packet(frame));
                None
            }
            Message::PurgeDone { token } => {
                let Purge { to, neighbour, packets } = self.purges.remove(&token)?;
                Some(match neighbour {
                    Some(neighbour) => Input::Purged { neighbour, packets },
                    None => Input::FramesPurged { to, packets },
                })
            }
            Message::Error => {
                counters.count("feedback-refused");
                None
            }
        }
    }

    fn failed(&mut self, to: Mac, bytes: Bytes, kernel: &mut Kernel, counters: &mut Counters) -> Option<Input> {
        if self.frames {
            return Some(Input::FrameFailed { to, bytes });
        }
        let Some(neighbour) = self.address_of(to, kernel) else {
            counters.count("feedback-unknown-neighbour");
            return None;
        };
        Some(Input::LinkFailed { neighbour, bytes })
    }

    /// The IPv4 address of a station, from the kernel's table or from an earlier state of it.
    fn address_of(&mut self, mac: Mac, kernel: &mut Kernel) -> Option<Ipv4Addr> {
        let table = kernel.netlink.neighbours(kernel.radio).unwrap_or_default();
        for (address, mac) in table.into_iter().rev().filter(|(address, _)| self.node.in_network(*address)) {
            if self.known.len() < STATIONS || self.known.contains_key(&mac) {
                self.known.insert(mac, address);
            }
        }
        self.known.get(&mac).copied()
    }
}

fn flags(frames: bool, feedback: bool, deliveries: bool) -> u32 {
    match (frames, feedback) {
        (true, true) if deliveries => FAILURES | OVERHEARD | DELIVERED,
        (true, true) => FAILURES | OVERHEARD,
        (true, false) => OVERHEARD,
        (false, true) => FAILURES,
        (false, false) => 0,
    }
}

/// The message FILTER of a program; no steps accept all frames.
fn filter_message(filter: &[Step]) -> Vec<u8> {
    let program = if filter.is_empty() { Vec::new() } else { compile(filter, 1) };
    let mut message = vec![1, 3, 0, 0];
    message.extend((8 * program.len() as u32).to_le_bytes());
    message.extend(program.into_iter().flat_map(Instruction::to_bytes));
    message
}

fn subscribe(path: &Path, flags: u32) -> Result<OwnedFd> {
    let fail = |e: Errno| {
        let path = path.display();
        HostError(format!(
            "key \"feedback\": {path}: {}; is the medium running? else say \"feedback\":\"none\"",
            e.desc()
        ))
    };
    let kind = SockFlag::SOCK_CLOEXEC;
    let fd = socket(AddressFamily::Unix, SockType::SeqPacket, kind, None).map_err(fail)?;
    connect(fd.as_raw_fd(), &UnixAddr::new(path).map_err(fail)?).map_err(fail)?;
    let mut message = vec![1, 1, 0, 0, 4, 0, 0, 0];
    message.extend(flags.to_le_bytes());
    send(fd.as_raw_fd(), &message, MsgFlags::MSG_NOSIGNAL).map_err(fail)?;
    Ok(fd)
}

/// The IPv4 packet of an Ethernet frame, without padding.
fn ip_packet(frame: &[u8]) -> Option<Bytes> {
    frames::parse(frame, frames::IPV4)?;
    Some(Bytes(ipv4::Packet::parse(frame.get(frames::HEADER_LEN..)?)?.bytes().to_vec()))
}

/// Parses a message of the medium; integers are little-endian. `None`: malformed or of an unknown type.
pub fn parse(bytes: &[u8]) -> Option<Message<'_>> {
    let [1, kind, 0, 0, l0, l1, l2, l3, body @ ..] = bytes else { return None };
    if u32::from_le_bytes([*l0, *l1, *l2, *l3]) as usize != body.len() {
        return None;
    }
    let mac = |at: usize| -> Option<Mac> { body.get(at..at + 6)?.try_into().ok() };
    let word = |at: usize| -> Option<u32> { Some(u32::from_le_bytes(body.get(at..at + 4)?.try_into().ok()?)) };
    let frame = |at: usize| -> Option<&[u8]> {
        let frame = body.get(at + 4..)?;
        (word(at)? as usize == frame.len()).then_some(frame)
    };
    Some(match kind {
        129 => Message::Failed { neighbour: mac(8)?, frame: frame(16)? },
        130 => Message::Purged { token: word(0)?, frame: frame(12)? },
        131 => Message::PurgeDone { token: word(0).filter(|_| body.len() == 8)? },
        132 => Message::Overheard { from: mac(8)?, to: mac(14)?, frame: frame(20)? },
        133 => Message::Delivered { neighbour: mac(8).filter(|_| body.len() == 20)? },
        255 => Message::Error,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    fn hex(bytes: &[u8]) -> String {
        Bytes(bytes.to_vec()).to_hex()
    }

    fn in_json(message: Message) -> Value {
        let mac = manet_engine::mac_text::format;
        match message {
            Message::Failed { neighbour, frame } => {
                json!({"type": "failed", "neighbour": mac(neighbour), "frame": hex(frame)})
            }
            Message::Purged { token, frame } => json!({"type": "purged", "token": token, "frame": hex(frame)}),
            Message::PurgeDone { token } => json!({"type": "purge_done", "token": token}),
            Message::Overheard { from, to, frame } => {
                json!({"type": "overheard", "transmitter": mac(from), "receiver": mac(to), "frame": hex(frame)})
            }
            Message::Delivered { neighbour } => json!({"type": "delivered", "neighbour": mac(neighbour)}),
            Message::Error => json!({"type": "error"}),
        }
    }

    /// The lines of formats/examples/feedback.txt: bytes and their meaning.
    fn golden() -> Vec<(Vec<u8>, Value)> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../formats/examples/feedback.txt");
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().filter(|l| !l.starts_with('#'));
        let line = |l: &str| {
            let (bytes, says) = l.split_at(l.find('{').unwrap());
            (Bytes::from_hex(&bytes.replace(' ', "")).unwrap().0, serde_json::from_str(says).unwrap())
        };
        lines.map(line).collect()
    }

    #[test]
    fn the_golden_messages_of_the_medium_are_understood() {
        let mut understood = 0;
        for (bytes, says) in golden() {
            // these types are sent to the medium
            let Some(message) = parse(&bytes) else {
                assert!(["subscribe", "purge", "filter"].iter().any(|kind| says["type"] == *kind), "{says}");
                continue;
            };
            understood += 1;
            for (key, value) in in_json(message).as_object().unwrap() {
                assert_eq!(&says[key], value, "{key} of {says}");
            }
        }
        assert_eq!(understood, 7);
    }

    #[test]
    fn a_message_cut_or_with_a_wrong_length_is_refused() {
        for (bytes, says) in golden() {
            assert!((0..bytes.len()).all(|n| parse(&bytes[..n]).is_none()), "{says}");
            let mut longer = bytes.clone();
            longer.push(0);
            assert!(parse(&longer).is_none(), "{says}");
        }
    }

    #[test]
    fn only_ipv4_frames_carry_packets_and_padding_is_left_out() {
        let repr = ipv4::Repr {
            tos: 0,
            identification: 0,
            dont_fragment: false,
            ttl: 1,
            protocol: 17,
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
        };
        let packet = repr.packet(&[1, 2, 3]);
        let mut frame = [[0; 12].as_slice(), &[8, 0], &packet].concat();
        frame.resize(60, 0);
        assert_eq!(ip_packet(&frame), Some(Bytes(packet)));
        frame[13] = 6; // ARP
        assert_eq!(ip_packet(&frame), None);
        assert_eq!(ip_packet(&frame[..9]), None);
    }

    #[test]
    fn a_filter_is_sent_in_the_bytes_of_the_golden_message() {
        use manet_engine::packet_filter::To;
        let (golden, _) = golden().into_iter().find(|(_, says)| says["type"] == "filter").unwrap();
        let ipv4 = [Step::LoadHalf(12), Step::Equal(0x800, To::Accept, To::Drop)];
        assert_eq!(filter_message(&ipv4), golden);
        assert_eq!(filter_message(&[]), [1, 3, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_purge_that_cannot_be_remembered_is_not_requested() {
        use nix::sys::socket::socketpair;
        let (ours, medium) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_NONBLOCK).unwrap();
        let node = json!({"number": 1, "address": "10.0.0.1", "network": ["10.0.0.0", 8], "mac": "02:00:00:00:00:01",
            "seed": 1, "feedback": true});
        let node = serde_json::from_value(node).unwrap();
        let (source, purges) = (Source::Medium(ours), BTreeMap::new());
        let mut feedback = Feedback { source, node, frames: true, purges, next_token: 0, known: BTreeMap::new() };
        let mut counters = Counters::default();
        let mut asked = 0;
        for _ in 0..PURGES + 3 {
            feedback.purge([2, 0, 0, 0, 0, 2], &mut counters);
            while recv(medium.as_raw_fd(), &mut [0; 64], MsgFlags::MSG_DONTWAIT).is_ok() {
                asked += 1;
            }
        }
        assert_eq!((asked, feedback.purges.len(), counters.get("purge-failed")), (PURGES, PURGES, 3));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, kind in 128u8.., body: Vec<u8>) {
            let _ = parse(&bytes);
            let _ = ip_packet(&bytes);
            let whole = [&[1, kind, 0, 0], (body.len() as u32).to_le_bytes().as_slice(), &body].concat();
            let _ = parse(&whole);
        }
    }
}
