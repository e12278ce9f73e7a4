//! What a MAC handles: packets from the host, frames on the air.

use crate::phy::{FrameKind, Radio};
use crate::wire::dot11::FCS_LEN;
use manet_engine::Duration;
use serde::{Deserialize, Serialize};
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
    /// What mac80211 gave, where the station's MAC is the kernel's; then this is what the air carries.
    pub mpdu: Option<Arc<Mpdu>>,
}

/// An 802.11 frame as mac80211 made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mpdu {
    pub from: u16,
    /// By which the kernel knows it again.
    pub cookie: u64,
    /// Header and body without FCS.
    pub bytes: Box<[u8]>,
    /// What its rate control wants tried, first to last; empty: the profile's rate.
    pub rates: Box<[Stage]>,
}

/// So many tries at this rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    pub rate_bps: u64,
    pub tries: u8,
}

impl Packet {
    /// Length of its data frame on the air, with FCS.
    pub fn mpdu_bytes(&self, radio: &Radio) -> u32 {
        match &self.mpdu {
            Some(mpdu) => (mpdu.bytes.len() + FCS_LEN) as u32,
            None => self.ip_bytes + radio.overhead_bytes,
        }
    }

    /// The rate of its data frame at the `attempt`th time (from 1): beyond all that was asked for, the last of it.
    pub fn rate_bps(&self, radio: &Radio, kind: FrameKind, attempt: u32) -> u64 {
        let stages = self.mpdu.as_ref().map_or(&[][..], |m| &m.rates);
        let mut tries = 0;
        let stage = stages.iter().find(|stage| {
            tries += u32::from(stage.tries);
            attempt <= tries
        });
        stage.or(stages.last()).map_or(radio.rate_of(kind), |stage| stage.rate_bps)
    }

    /// Time on the air of its data frame at the fastest rate it may come to.
    pub fn shortest_airtime(&self, radio: &Radio, kind: FrameKind) -> Duration {
        let stages = self.mpdu.as_ref().map_or(&[][..], |m| &m.rates);
        let fastest = stages.iter().map(|s| s.rate_bps).max().unwrap_or(radio.rate_of(kind));
        radio.airtime(self.mpdu_bytes(radio), fastest)
    }
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
    /// RTS and CTS: time on the air of the ACK that ends the exchange, the last part of what `reserves` holds.
    pub ack_airtime: Duration,
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
