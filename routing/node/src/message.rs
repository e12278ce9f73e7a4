//! What reaches a protocol and what it wants done. Outputs are carried out one after the other, each finished before the
//! next: a route that is set is in the kernel when the packet after it is sent.

use crate::packet::icmp;
use crate::{Bytes, Mac, Route};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Input {
    /// The payload of a control datagram (`Carrier::Udp`) from neighbour `from`; `to` is its IP destination, `ttl` as it arrived.
    /// Own datagrams never arrive.
    Control { from: Ipv4Addr, to: Ipv4Addr, ttl: u8, bytes: Bytes },
    /// Design A: an IPv4 packet, from its header on, for which the kernel has no route; a forwarded one (its source is not
    /// us) has its TTL decremented already. Design B: a packet of the own stack, or of a wire if we are a gateway.
    Packet { bytes: Bytes },
    /// An IPv4 packet of a protocol that the machine asked for ([`crate::Protocol::TUNNELS`]) arrived for us.
    Tunnelled { bytes: Bytes },
    /// Data packets that the kernel sent, forwarded or received since the last such report (design A); at most 50 ms late.
    Used { flows: Vec<Flow> },
    /// The radio gave up a packet for `neighbour` after its retries. `bytes` is the IPv4 packet (empty: not known).
    LinkFailed { neighbour: Ipv4Addr, bytes: Bytes },
    /// What [`Output::Purge`] took out of the radio's queue, oldest first.
    Purged { neighbour: Ipv4Addr, packets: Vec<Bytes> },
    /// Design B: an IPv4 packet in a frame for us (or for all) from the air.
    Frame { from: Mac, to: Mac, bytes: Bytes },
    /// Design B: a decoded frame that was for somebody else.
    Overheard { from: Mac, to: Mac, bytes: Bytes },
    /// Design B: as `LinkFailed`.
    FrameFailed { to: Mac, bytes: Bytes },
    /// Design B: a frame for `to` was acknowledged.
    FrameDelivered { to: Mac },
    /// Design B: as `Purged`.
    FramesPurged { to: Mac, packets: Vec<Bytes> },
    /// The daemon is asked to end: say goodbye if the protocol has a word for it. Routes are removed by the host.
    Stop,
}

/// Data packets of one source and destination, from one use report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub packets: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Send a control datagram over the radio, to a neighbour or to [`crate::BROADCAST`], with DSCP CS6.
    Control {
        to: Ipv4Addr,
        ttl: u8,
        bytes: Bytes,
    },
    /// Put in, or replace, the route of its destination.
    SetRoute(Route),
    ClearRoute {
        destination: Ipv4Addr,
        prefix: u8,
    },
    /// Hand an IPv4 packet to the kernel, which sends it by its routes without touching the TTL.
    Send {
        bytes: Bytes,
    },
    /// This packet is given up: ICMP host unreachable (type 3, code 1) to its source, over the kernel's routes. Nothing
    /// is sent for ICMP errors, fragments other than the first, broadcasts (RFC 1122, 3.2.2).
    Unreachable {
        bytes: Bytes,
    },
    /// Design A: tell the packet's source what has become of it ([`icmp::Notice`]), over the kernel's routes.
    Notice {
        kind: icmp::Notice,
        bytes: Bytes,
    },
    /// Take the packets for `neighbour` out of the radio's queue; answered by [`Input::Purged`] where the radio can.
    Purge {
        neighbour: Ipv4Addr,
    },
    /// Design B: an IPv4 packet in one frame. `control`: mark it CS6 (the machine sets no TOS itself).
    Frame {
        to: Mac,
        bytes: Bytes,
        control: bool,
    },
    /// Design B: as `Purge`.
    PurgeFrames {
        to: Mac,
    },
    /// Design B: an IPv4 packet for the own stack (or, at a gateway, for the kernel to route on).
    Deliver {
        bytes: Bytes,
    },
    Note(Note),
}

/// One line of the notes (formats/routing.md): what a reader of the run, ELFN or a figure wants to know.
/// Routes set and cleared, and packets given up, are noted by the host where it does so itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// `discovery` (value: TTL), `no-route` (value: packets dropped), `link-broken`, `repair`, `salvage`, `gateway`, ...
    pub event: String,
    pub about: Ipv4Addr,
    pub value: u64,
    /// Design B, `route`: the first hop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Ipv4Addr>,
    /// Design B, `unreachable`: the dead packet, from its IPv4 header on, of which the host notes source, ports and
    /// sequence number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<Bytes>,
}

impl Output {
    pub fn note(event: &str, about: Ipv4Addr, value: u64) -> Self {
        Self::Note(Note { event: event.to_owned(), about, value, via: None, packet: None })
    }
}
