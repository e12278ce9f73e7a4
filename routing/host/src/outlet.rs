//! Executes the machine's outputs in order; each completes before the next.

use crate::feedback::Feedback;
use crate::frames::Frames;
use crate::kernel::Kernel;
use crate::notes::{self, Notes};
use crate::raw::Sender;
use crate::status::StatusSocket;
use crate::udp::Udp;
use manet_engine::event_log::Logged;
use manet_engine::{Instant, Outside};
use manet_routing::packet::{icmp, ipv4};
use manet_routing::{Bytes, Counters, Output, Protocol};
use serde_json::{json, Value};
use std::fs::File;
use std::io::BufWriter;
use std::net::Ipv4Addr;

/// A machine whose inputs are written to the event log.
pub type LoggedProtocol<P> = Logged<P, BufWriter<File>>;

/// The sockets and files that outputs need.
pub struct Outlet {
    /// The node's address.
    pub address: Ipv4Addr,
    /// Routes and TUN device.
    pub kernel: Kernel,
    /// Design A: the socket of control datagrams.
    pub udp: Option<Udp>,
    /// Design B: the packet socket.
    pub frames: Option<Frames>,
    /// Design B: the packet socket of ARP, if the machine resolves addresses.
    pub arp: Option<Frames>,
    /// Raw socket for complete IPv4 packets.
    pub sender: Sender,
    /// Whether ICMP unreachables about TCP packets are sent or, in design B, delivered.
    pub tcp_unreachable: bool,
    /// Link reports and purges.
    pub feedback: Feedback,
    /// Writer of notes.
    pub notes: Notes,
    /// The status socket.
    pub status: StatusSocket,
    /// Counters of the host, by name.
    pub counters: Counters,
}

impl Outlet {
    /// Writes a note to file and followers. `and`: further keys.
    pub fn note(&mut self, at: Instant, event: &str, about: Ipv4Addr, value: u64, and: &[(&str, Value)]) {
        let line = self.notes.write(at, event, about, value, and);
        self.status.send_to_followers(&line);
    }

    fn count_result<E>(&mut self, result: Result<(), E>, good: &'static str, bad: &'static str) -> bool {
        self.counters.count(if result.is_ok() { good } else { bad });
        result.is_ok()
    }

    fn set_route(&mut self, at: Instant, route: manet_routing::Route) {
        match self.kernel.set_route(route) {
            Ok(changed) => {
                self.counters.count("routes-set");
                if changed {
                    let hops = u64::from(route.hops);
                    self.note(at, "route", route.destination, hops, &notes::about_route(&route));
                }
            }
            Err(_) => self.counters.count("routes-refused"),
        }
    }

    fn clear_route(&mut self, at: Instant, destination: Ipv4Addr, prefix: u8) {
        match self.kernel.clear_route(destination, prefix) {
            Ok(true) => {
                self.counters.count("routes-cleared");
                self.note(at, "lost", destination, 0, &[("prefix", json!(prefix))]);
            }
            Ok(false) => {}
            Err(_) => self.counters.count("routes-refused"),
        }
    }

    fn unreachable(&mut self, at: Instant, packet: &[u8]) {
        let error = icmp::host_unreachable(packet, self.address);
        let (Some(error), Some(about)) = (error, ipv4::Packet::parse(packet)) else { return };
        if !self.tcp_unreachable && about.protocol() == ipv4::protocol::TCP {
            self.counters.count("unreachable-kept");
            let (destination, protocol, mut and) = notes::about_packet(&about);
            and.push(("kept", json!(true)));
            return self.note(at, "unreachable", destination, protocol, &and);
        }
        let sent = self.sender.send(&error);
        if self.count_result(sent, "unreachable-sent", "send-failed") {
            let (destination, protocol, and) = notes::about_packet(&about);
            self.note(at, "unreachable", destination, protocol, &and);
        }
    }

    fn notice(&mut self, at: Instant, kind: icmp::Notice, packet: &[u8]) {
        let message = icmp::notice(&kind, packet, self.address);
        let (Some(message), Some(about)) = (message, ipv4::Packet::parse(packet)) else { return };
        let (counter, event) = match kind {
            icmp::Notice::Held => ("held-sent", "held"),
            icmp::Notice::Restored(_) => ("restored-sent", "restored"),
            icmp::Notice::Unreachable if !self.tcp_unreachable => return self.counters.count("unreachable-kept"),
            icmp::Notice::Unreachable => ("unreachable-sent", "unreachable-while-held"),
        };
        let sent = self.sender.send(&message);
        if self.count_result(sent, counter, "send-failed") {
            let (destination, protocol, and) = notes::about_packet(&about);
            self.note(at, event, destination, protocol, &and);
        }
    }

    fn send(&mut self, packet: &[u8]) {
        let sent = self.sender.send(packet);
        self.count_result(sent, "sent", "send-failed");
    }

    fn deliver(&mut self, packet: &Bytes) {
        if !self.tcp_unreachable && icmp::is_unreachable_tcp(packet) {
            return self.counters.count("unreachable-kept");
        }
        let taken = self.kernel.tun().is_some_and(|tun| tun.write(packet));
        self.counters.count(if taken { "delivered" } else { "deliver-failed" });
    }

    fn control(&mut self, to: Ipv4Addr, ttl: u8, bytes: &[u8]) {
        let Some(udp) = &mut self.udp else { return self.counters.count("no-such-carrier") };
        let sent = udp.send(to, ttl, bytes);
        self.count_result(sent, "control-sent", "control-failed");
    }

    fn frame(&mut self, to: manet_routing::Mac, packet: Bytes, control: bool) {
        let Some(frames) = &mut self.frames else { return self.counters.count("no-such-carrier") };
        let sent = frames.send(to, packet.0, control);
        self.count_result(sent, "frames-sent", "frames-failed");
    }

    fn arp_frame(&mut self, to: manet_routing::Mac, message: Vec<u8>) {
        let Some(frames) = &mut self.arp else { return self.counters.count("no-such-carrier") };
        let sent = frames.send(to, message, false);
        self.count_result(sent, "frames-sent", "frames-failed");
    }
}

impl<P: Protocol> Outside<LoggedProtocol<P>> for Outlet {
    fn put(&mut self, at: Instant, output: Output) {
        match output {
            Output::Control { to, ttl, bytes } => self.control(to, ttl, &bytes),
            Output::SetRoute(route) => self.set_route(at, route),
            Output::ClearRoute { destination, prefix } => self.clear_route(at, destination, prefix),
            Output::Send { bytes } => self.send(&bytes),
            Output::Unreachable { bytes } => self.unreachable(at, &bytes),
            Output::Notice { kind, bytes } => self.notice(at, kind, &bytes),
            Output::Purge { neighbour } => {
                self.feedback.purge_neighbour(neighbour, &mut self.kernel, &mut self.counters);
            }
            Output::PurgeFrames { to } => self.feedback.purge(to, &mut self.counters),
            Output::Frame { to, bytes, control } => self.frame(to, bytes, control),
            Output::Arp { to, bytes } => self.arp_frame(to, bytes.0),
            Output::Deliver { bytes } => self.deliver(&bytes),
            Output::Note(note) => {
                self.note(at, &note.event, note.about, note.value, &notes::about_note(&note));
            }
        }
    }
}
