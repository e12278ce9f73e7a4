//! A node without its radio: the machine and, for design A, a kernel with the routes of formats/routing.md ("Kernel state"),
//! which forwards IPv4 packets.
//!
//! Modelled: longest-prefix routes, the TTL, the default route into the TUN. Not modelled: the kernel's ARP (neighbours' MAC addresses are
//! known), fragments, ICMP other than host unreachable, sockets other than the sinks of the data.

use crate::addresses;
use crate::frames;
use manet_engine::{Duration, Instant};
use manet_routing::packet::ipv4;
use manet_routing::{Bytes, Carrier, Device, Flow, Input, Protocol, Routes, BROADCAST};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Longest delay of a report that routes were used (`Input::Used`).
pub const REPORT: Duration = Duration::from_millis(50);

/// A node: machine and kernel.
pub struct Host<P> {
    /// The routing protocol.
    pub machine: P,
    /// The kernel's routes.
    pub routes: Routes,
    /// The node's address.
    pub address: Ipv4Addr,
    identification: u16,
    used: BTreeMap<(Ipv4Addr, Ipv4Addr), u32>,
    report_planned: bool,
}

/// The kernel's decision about a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Over the air.
    Radio {
        /// Address of the neighbour.
        via: Ipv4Addr,
        /// The IPv4 packet.
        bytes: Vec<u8>,
    },
    /// To the machine.
    Machine(Input),
    /// To a socket of this node.
    Up {
        /// The IPv4 packet.
        bytes: Vec<u8>,
    },
    /// Dropped, with the name of its counter.
    Dropped(&'static str),
}

impl<P: Protocol> Host<P> {
    /// A node without routes.
    pub fn new(machine: P, address: Ipv4Addr) -> Self {
        Self {
            machine,
            routes: Routes::default(),
            address,
            identification: 0,
            used: BTreeMap::new(),
            report_planned: false,
        }
    }

    /// The next value of the IPv4 identification field.
    pub fn next_identification(&mut self) -> u16 {
        self.identification = self.identification.wrapping_add(1);
        self.identification
    }

    /// A packet from the air (design A). `port`: UDP port of the protocol.
    pub fn arrive(&mut self, packet: &ipv4::Packet, port: u16) -> Verdict {
        let to = packet.destination();
        if packet.source() == self.address {
            return Verdict::Dropped("martian");
        }
        // a network broadcast is for this node too, as in the kernel's local table
        let for_all = to == BROADCAST || to == broadcast_of(addresses::NETWORK);
        if to == self.address || for_all {
            if let Some(control) = frames::datagram(packet).filter(|d| d.port == port) {
                let bytes = Bytes(control.payload.to_vec());
                return Verdict::Machine(Input::Control { from: packet.source(), to, ttl: packet.ttl(), bytes });
            }
            if for_all {
                return Verdict::Dropped("broadcast-ignored");
            }
            self.count_use(packet);
            return self.up(packet.bytes().to_vec());
        }
        // RFC 1812, 5.2.3 (14) and 5.3.1
        if packet.ttl() <= 1 {
            return Verdict::Dropped("ttl-expired");
        }
        let mut bytes = packet.bytes().to_vec();
        bytes[8] -= 1;
        ipv4::repair(&mut bytes);
        self.route(bytes)
    }

    /// Looks up the route of a packet to be sent; its TTL stays.
    pub fn route(&mut self, bytes: Vec<u8>) -> Verdict {
        let Some(packet) = ipv4::Packet::parse(&bytes) else { return Verdict::Dropped("not-ipv4") };
        if packet.destination() == self.address {
            return self.up(bytes);
        }
        match self.routes.lookup(packet.destination()) {
            Some(route) if route.device == Device::Radio => {
                let via = route.via;
                self.count_use(&packet);
                Verdict::Radio { via, bytes }
            }
            // the default route into the TUN
            _ => Verdict::Machine(Input::Packet { bytes: Bytes(bytes) }),
        }
    }

    /// A packet for this node.
    pub fn up(&self, bytes: Vec<u8>) -> Verdict {
        match ipv4::Packet::parse(&bytes) {
            Some(packet) if P::TUNNELS.contains(&packet.protocol()) => {
                Verdict::Machine(Input::Tunnelled { bytes: Bytes(bytes) })
            }
            Some(_) => Verdict::Up { bytes },
            None => Verdict::Dropped("not-ipv4"),
        }
    }

    fn count_use(&mut self, packet: &ipv4::Packet) {
        if matches!(frames::kind(packet, P::CARRIER), frames::Kind::Data { .. }) && P::CARRIER != Carrier::Frames {
            *self.used.entry((packet.source(), packet.destination())).or_default() += 1;
        }
    }

    /// Time at which to plan a report of use; `None`: no report is due.
    pub fn plan_report(&mut self, now: Instant) -> Option<Instant> {
        let needed = !self.used.is_empty() && !self.report_planned;
        self.report_planned |= needed;
        needed.then(|| now + REPORT)
    }

    /// The report of the routes used since the last one.
    pub fn report(&mut self) -> Input {
        self.report_planned = false;
        let used = std::mem::take(&mut self.used);
        let flow = |((source, destination), packets)| Flow { source, destination, packets };
        Input::Used { flows: used.into_iter().map(flow).collect() }
    }
}

fn broadcast_of((network, prefix): (Ipv4Addr, u8)) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(network) | u32::MAX.checked_shr(prefix.into()).unwrap_or(0))
}
