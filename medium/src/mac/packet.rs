//! What a MAC handles: packets from the host, frames on the air.

use crate::phy::FrameKind;
use manet_engine::Duration;
use std::sync::Arc;

/// Whom a packet or frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dest {
    Station(u16),
    Broadcast,
    /// A unicast address that belongs to no station: sent, retried, never answered.
    Nobody,
}

/// A packet from the host on its way through the interface queue and the air.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Number of the packet in the air log, from 1.
    pub id: u64,
    pub dest: Dest,
    pub dest_mac: [u8; 6],
    /// Length of the IP (or ARP) packet, i.e. of the Ethernet payload.
    pub ip_bytes: u32,
    /// DSCP CS6, goes first.
    pub control: bool,
    /// The Ethernet frame as the host gave it; empty for synthetic traffic.
    pub ethernet: Arc<[u8]>,
    /// Synthetic traffic: which flow and hop, see `crate::sim`.
    pub tag: u64,
}

/// A frame on the air.
#[derive(Clone, Debug)]
pub struct Frame {
    pub kind: FrameKind,
    pub from: u16,
    pub dest: Dest,
    /// The Duration field: how long after the frame's end the medium is reserved.
    pub reserves: Duration,
    /// MPDU length with FCS.
    pub bytes: u32,
    pub rate_bps: u64,
    pub airtime: Duration,
    /// Sequence number of the MSDU, 0..4096.
    pub sequence: u16,
    pub retry: bool,
    /// 1 for the first transmission of this frame for this packet.
    pub attempt: u32,
    /// The backoff drawn before this frame; 0 for responses and immediate access.
    pub backoff_slots: u32,
    pub packet: Option<Arc<Packet>>,
}

impl Frame {
    /// Number of its packet in the air log; 0 for CTS and ACK.
    pub fn packet_id(&self) -> u64 {
        self.packet.as_ref().map_or(0, |p| p.id)
    }
}
