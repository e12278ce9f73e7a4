//! Inputs and outputs of a protocol. The driver executes outputs in order and completes each before the next: a route
//! that is set is in the kernel when the packet after it is sent.

use crate::packet::icmp;
use crate::{Bytes, Mac, Route};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// An event for the machine. JSON: `{"kebab-case-name": {..}}` (event log, formats/routing.md).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Input {
    /// A control datagram of a neighbour ([`crate::Carrier::Udp`]). The node's own datagrams never arrive.
    Control {
        /// IP source.
        from: Ipv4Addr,
        /// IP destination: this node or [`crate::BROADCAST`].
        to: Ipv4Addr,
        /// TTL on arrival.
        ttl: u8,
        /// UDP payload.
        bytes: Bytes,
    },
    /// Design A: a packet for which the kernel has no route; the TTL of a forwarded packet (its source is another node)
    /// is already decremented. Design B: a packet of the local stack or, at a gateway, of a wire.
    Packet {
        /// The packet, from its IPv4 header on.
        bytes: Bytes,
    },
    /// A packet of one of the protocols [`crate::Protocol::TUNNELS`] arrived for this node.
    Tunnelled {
        /// The packet, from its outer IPv4 header on.
        bytes: Bytes,
    },
    /// Design A: data packets that the kernel sent, forwarded or received since the last such report; at most 50 ms late.
    Used {
        /// One entry per pair of source and destination.
        flows: Vec<Flow>,
    },
    /// The radio dropped a packet for a neighbour after its retries.
    LinkFailed {
        /// The next hop of the packet.
        neighbour: Ipv4Addr,
        /// The IPv4 packet; empty if it is not known.
        bytes: Bytes,
    },
    /// The packets that [`Output::Purge`] removed from the radio's queue.
    Purged {
        /// The neighbour of the request.
        neighbour: Ipv4Addr,
        /// IPv4 packets, oldest first.
        packets: Vec<Bytes>,
    },
    /// Design B: a frame from the air for this node or a group address.
    Frame {
        /// Transmitter.
        from: Mac,
        /// Receiver.
        to: Mac,
        /// The IPv4 packet of the frame.
        bytes: Bytes,
    },
    /// Design B: a decoded frame for another station.
    Overheard {
        /// Transmitter.
        from: Mac,
        /// Receiver.
        to: Mac,
        /// The IPv4 packet of the frame.
        bytes: Bytes,
    },
    /// Design B: an ARP message for this node or a group address ([`crate::Protocol::resolves_addresses`]).
    Arp {
        /// Transmitter.
        from: Mac,
        /// The message ([`crate::packet::arp`]).
        bytes: Bytes,
    },
    /// Design B: as `LinkFailed`.
    FrameFailed {
        /// Receiver of the lost frame.
        to: Mac,
        /// The IPv4 packet; empty if it is not known.
        bytes: Bytes,
    },
    /// Design B: the receiver of a frame acknowledged it.
    FrameDelivered {
        /// Receiver of the frame.
        to: Mac,
    },
    /// Design B: as `Purged`.
    FramesPurged {
        /// The receiver whose frames were purged.
        to: Mac,
        /// IPv4 packets, oldest first.
        packets: Vec<Bytes>,
    },
    /// The daemon ends. A protocol that has a farewell message sends it now; the host removes the routes.
    Stop,
}

/// Data packets of one source and destination, from one use report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// IP source of the packets.
    pub source: Ipv4Addr,
    /// IP destination of the packets.
    pub destination: Ipv4Addr,
    /// Number of packets, at least 1.
    pub packets: u32,
}

/// An action that the machine requests. JSON as of [`Input`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Send a control datagram over the radio, to a neighbour or to [`crate::BROADCAST`], with DSCP CS6.
    Control {
        /// Address of a neighbour or [`crate::BROADCAST`].
        to: Ipv4Addr,
        /// IP TTL.
        ttl: u8,
        /// UDP payload.
        bytes: Bytes,
    },
    /// Add a route, or replace the route to the same destination.
    SetRoute(Route),
    /// Remove a route. Nothing happens if it does not exist.
    ClearRoute {
        /// Destination of the route.
        destination: Ipv4Addr,
        /// Prefix length in bits, 0 to 32.
        prefix: u8,
    },
    /// Hand an IPv4 packet to the kernel, which sends it by its routes and does not change the TTL.
    Send {
        /// The packet, from its IPv4 header on.
        bytes: Bytes,
    },
    /// The machine drops this packet: send ICMP host unreachable (type 3, code 1) to its source, over the kernel's routes.
    /// Nothing is sent for ICMP errors, fragments other than the first, and broadcasts (RFC 1122, section 3.2.2).
    Unreachable {
        /// The dropped packet, from its IPv4 header on.
        bytes: Bytes,
    },
    /// Design A: notify the source of a packet ([`icmp::Notice`]), over the kernel's routes.
    Notice {
        /// Contents of the notice.
        kind: icmp::Notice,
        /// The packet that the notice quotes.
        bytes: Bytes,
    },
    /// Remove the packets for a neighbour from the radio's queue. A radio that supports it answers with [`Input::Purged`].
    Purge {
        /// Next hop of the packets.
        neighbour: Ipv4Addr,
    },
    /// Design B: send an IPv4 packet in one frame.
    Frame {
        /// Receiver; [`crate::BROADCAST_MAC`] for all.
        to: Mac,
        /// The packet, from its IPv4 header on.
        bytes: Bytes,
        /// Whether the host marks the packet CS6 (the machine sets no TOS itself).
        control: bool,
    },
    /// Design B: send an ARP message in one frame.
    Arp {
        /// Receiver; [`crate::BROADCAST_MAC`] for all.
        to: Mac,
        /// The message ([`crate::packet::arp`]).
        bytes: Bytes,
    },
    /// Design B: as `Purge`.
    PurgeFrames {
        /// Receiver of the frames.
        to: Mac,
    },
    /// Design B: hand an IPv4 packet to the local stack (at a gateway: to the kernel, which routes it).
    Deliver {
        /// The packet, from its IPv4 header on.
        bytes: Bytes,
    },
    /// Write a line of the notes.
    Note(Note),
}

/// One line of the notes (formats/routing.md), for readers of the run, ELFN and figures. The host itself notes the
/// routes that it sets or clears and the packets for which it sends unreachables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// `discovery` (value: TTL), `no-route` (value: packets dropped), `link-broken`, `repair`, `salvage`, `gateway`, ...
    pub event: String,
    /// The destination or neighbour concerned.
    pub about: Ipv4Addr,
    /// A number whose meaning depends on `event`.
    pub value: u64,
    /// Design B, `route`: the first hop. `displaced`: the next hop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Ipv4Addr>,
    /// Design B, `unreachable` and `displaced`: the dropped packet, from its IPv4 header on. The host notes its source, ports and
    /// sequence number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<Bytes>,
}

impl Output {
    /// A note without `via` and `packet`.
    pub fn note(event: &str, about: Ipv4Addr, value: u64) -> Self {
        Self::Note(Note { event: event.to_owned(), about, value, via: None, packet: None })
    }
}
