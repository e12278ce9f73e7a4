//! Packets from the host and frames on the air.

use crate::mac::block_ack::room::DELIMITER_BYTES;
use crate::mac::block_ack::Bitmap;
use crate::mac::Category;
use crate::phy::mode::{Family, GuardInterval, Mcs};
use crate::phy::radio::Stretch;
use crate::phy::{FrameKind, Mode, Radio};
use crate::wire::dot11::{FCS_LEN, MAX_MSDU_BYTES, QOS_CONTROL_LEN, SNAP_LEN};
use crate::wire::mac80211::{self, Kind};
use manet_engine::Duration;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Receiver of a packet or frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dest {
    /// The station with this number.
    Station(u16),
    /// All stations: a broadcast or multicast address.
    Broadcast,
    /// A unicast address that belongs to no station: sent, retried, never answered.
    Unknown,
}

impl Dest {
    /// The number of a station.
    pub fn station(self) -> Option<u16> {
        match self {
            Dest::Station(station) => Some(station),
            Dest::Broadcast | Dest::Unknown => None,
        }
    }
}

/// A packet from the host on its way through the interface queue and the air.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Number of the packet in the air log, from 1.
    pub id: u64,
    /// Receiver on this hop.
    pub dest: Dest,
    /// MAC address of the receiver.
    pub dest_mac: [u8; 6],
    /// Length of the IP (or ARP) packet, i.e. of the Ethernet payload.
    pub ip_bytes: u32,
    /// Network control (DSCP CS6 or ARP), served first.
    pub control: bool,
    /// Access category; without EDCA best effort.
    pub category: Category,
    /// The Ethernet frame from the host; empty for synthetic traffic.
    pub ethernet: Arc<[u8]>,
    /// Synthetic traffic: flow and hop, see [`crate::sim`].
    pub tag: u64,
    /// The frame of mac80211, if the station's MAC is the kernel's; then the air carries this frame.
    pub mpdu: Option<Arc<Mpdu>>,
}

/// An 802.11 frame from mac80211.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mpdu {
    /// The station that sends it.
    pub from: u16,
    /// The kernel's identifier of the frame.
    pub cookie: u64,
    /// Header and body without FCS.
    pub bytes: Box<[u8]>,
    /// Rates requested by the kernel's rate control, in order; empty: the profile's rates.
    pub rates: Box<[Stage]>,
    /// Kind of the frame.
    pub kind: Kind,
    /// Centre frequency of its channel, MHz.
    pub freq_mhz: u32,
}

/// A number of tries at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// Rate, bit/s.
    pub rate_bps: u64,
    /// Tries at this rate, 1 or more.
    pub tries: u8,
    /// Of an MCS of HT; absent: a rate of DSSS or OFDM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ht: Option<HtRate>,
}

/// A rate of HT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HtRate {
    /// 0 to 15; 8 to 15 have two streams.
    pub mcs: u8,
    /// 20 or 40 MHz.
    pub width_mhz: u16,
    /// Whether the guard interval is that of 400 ns.
    pub short_guard: bool,
}

impl HtRate {
    /// Its mode; `None`: the standard has none, or one of more than two streams.
    pub fn mode(self) -> Option<Mode> {
        let guard = GuardInterval::of_short(self.short_guard);
        Mcs::new(Family::Ht, self.mcs, self.width_mhz, guard, 1).ok().map(Mode::Mcs)
    }
}

impl Stage {
    /// Its mode.
    pub fn mode(&self, radio: &Radio) -> Mode {
        self.ht.and_then(HtRate::mode).unwrap_or_else(|| radio.mode_of_rate(self.rate_bps))
    }
}

impl Packet {
    /// Length of its data frame on the air with FCS, bytes.
    pub fn mpdu_bytes(&self, radio: &Radio) -> u32 {
        match &self.mpdu {
            Some(mpdu) => (mpdu.bytes.len() + FCS_LEN) as u32,
            None if self.dest != Dest::Broadcast && radio.is_qos() => {
                self.ip_bytes + radio.overhead_bytes + QOS_CONTROL_LEN as u32
            }
            None => self.ip_bytes + radio.overhead_bytes,
        }
    }

    /// Whether no station can send it, whatever MTU its interface has: its MSDU is the IP packet with LLC/SNAP (IEEE 802.11-2020,
    /// 9.2.4.7.1 and 5.1.4).
    pub fn is_too_long(&self) -> bool {
        match &self.mpdu {
            None => self.ip_bytes as usize + SNAP_LEN > MAX_MSDU_BYTES,
            // most frames are too short for a second look at their header
            Some(mpdu) => {
                let body_is_too_long = |header: mac80211::Header| header.body_is_too_long(&mpdu.bytes);
                mpdu.bytes.len() > MAX_MSDU_BYTES && mac80211::Header::parse(&mpdu.bytes).is_ok_and(body_is_too_long)
            }
        }
    }

    /// Of synthetic traffic, the number of its flow ([`crate::sim`]).
    pub fn synthetic_flow(&self) -> u16 {
        (self.tag >> 48) as u16
    }

    /// Whether it is the beacon of an access point.
    pub fn is_beacon(&self) -> bool {
        self.mpdu.as_ref().is_some_and(|m| m.kind == Kind::Beacon)
    }

    /// Address of the interface that sends it; `None`: not a frame of mac80211.
    pub fn transmitter(&self) -> Option<&[u8]> {
        self.mpdu.as_ref().and_then(|m| m.bytes.get(10..16))
    }

    /// Mode of its data frame if the kernel requests none: management frames are sent at a basic rate, as mac80211 does, so that
    /// each member of the BSS can decode them.
    fn default_mode(&self, radio: &Radio, kind: FrameKind) -> Mode {
        match &self.mpdu {
            Some(mpdu) if mpdu.kind != Kind::Data => radio.mode_of(FrameKind::Bcast),
            _ => radio.mode_of(kind),
        }
    }

    /// Whether the mode of its data frame is not a rate control's choice here: the kernel chose it, or it is a management frame.
    pub fn has_own_mode(&self) -> bool {
        self.mpdu.as_ref().is_some_and(|mpdu| !mpdu.rates.is_empty() || mpdu.kind != Kind::Data)
    }

    /// Whether the kernel chose the rate of its data frame.
    pub fn has_own_rates(&self) -> bool {
        self.mpdu.as_ref().is_some_and(|mpdu| !mpdu.rates.is_empty())
    }

    /// Mode of its data frame in the `attempt`th attempt (from 1); after all requested tries, the last requested one.
    pub fn mode(&self, radio: &Radio, kind: FrameKind, attempt: u32) -> Mode {
        let stages = self.mpdu.as_ref().map_or(&[][..], |m| &m.rates);
        let mut tries = 0;
        let stage = stages.iter().find(|stage| {
            tries += u32::from(stage.tries);
            attempt <= tries
        });
        let stage = stage.or(stages.last());
        stage.map_or_else(|| self.default_mode(radio, kind), |stage| stage.mode(radio))
    }

    /// The least time on the air of its data frame at the requested rates.
    pub fn shortest_airtime(&self, radio: &Radio, kind: FrameKind) -> Duration {
        let stages = self.mpdu.as_ref().map_or(&[][..], |m| &m.rates);
        let airtime = |mode| radio.airtime(self.mpdu_bytes(radio), mode);
        let shortest = stages.iter().map(|stage| airtime(stage.mode(radio))).min();
        shortest.unwrap_or_else(|| airtime(self.default_mode(radio, kind)))
    }
}

/// An MPDU of a data frame under a Block Ack agreement.
#[derive(Clone, Debug)]
pub struct Part {
    /// The packet.
    pub packet: Arc<Packet>,
    /// Sequence number.
    pub sequence: u16,
    /// Transmissions, this one included.
    pub attempt: u32,
    /// Length with FCS, bytes.
    pub bytes: u32,
    /// First byte of its delimiter in the PSDU.
    pub offset: u32,
}

/// The part of a frame that belongs to a Block Ack agreement.
#[derive(Clone, Debug)]
pub enum Block {
    /// Data.
    Data {
        /// The originator's window start, which begins a recipient that does not know it. Real stations agree on it by ADDBA.
        window_start: u16,
        /// One MPDU, or those of an A-MPDU in ascending order.
        parts: Box<[Part]>,
    },
    /// A Block Ack Request.
    Request {
        /// Starting sequence number.
        start: u16,
    },
    /// A Block Ack.
    Answer(Bitmap),
}

/// A frame on the air.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Kind of the frame.
    pub kind: FrameKind,
    /// The station that sends it.
    pub from: u16,
    /// Receiver address.
    pub dest: Dest,
    /// The Duration field: time after the frame's end for which the medium is reserved.
    pub reserves: Duration,
    /// Length of the MPDU with FCS, bytes.
    pub bytes: u32,
    /// Modulation, code rate, width and streams.
    pub mode: Mode,
    /// Time on the air.
    pub airtime: Duration,
    /// RTS and CTS: time on the air of the ACK that ends the exchange, the last part of `reserves`.
    pub ack_airtime: Duration,
    /// Access category of data, RTS and Block Ack Requests, and of the answers to data; without EDCA best effort.
    pub category: Category,
    /// Sequence number of the MSDU, 0 to 4095.
    pub sequence: u16,
    /// The Retry bit.
    pub retry: bool,
    /// 1 for the first transmission of this frame for this packet.
    pub attempt: u32,
    /// Backoff drawn before this frame, slots; 0 for responses and immediate access.
    pub backoff_slots: u32,
    /// The packet of RTS, data and broadcast frames; of an A-MPDU the first.
    pub packet: Option<Arc<Packet>>,
    /// Contents under a Block Ack agreement.
    pub block: Option<Arc<Block>>,
    /// ACK and Block Ack: SNR of the frame that they answer, dB. Real stations measure that of the answer.
    pub snr_db: Option<f64>,
}

impl Frame {
    /// The MPDUs of an A-MPDU; empty for any other frame.
    pub fn aggregate(&self) -> &[Part] {
        match self.block.as_deref() {
            Some(Block::Data { parts, .. }) if parts.len() > 1 => parts,
            _ => &[],
        }
    }

    /// The MPDUs of an A-MPDU in time: each from its delimiter to the next, the first with the preamble if `with_preamble`.
    pub fn stretches(&self, radio: &Radio, with_preamble: bool) -> Vec<Stretch> {
        let parts = self.aggregate();
        let (from_ns, to_ns) = radio.layout(self.bytes, self.mode).body_ns;
        let last = parts.last().map_or(0, |last| last.offset + DELIMITER_BYTES + last.bytes);
        let at = |offset: u32| from_ns + (to_ns - from_ns) * u64::from(offset) / u64::from(last.max(1));
        let ends = parts.iter().skip(1).map(|next| at(next.offset)).chain([to_ns]);
        let stretch = |(part, end): (&Part, u64)| Stretch {
            from_ns: if with_preamble && part.offset == 0 { 0 } else { at(part.offset) },
            to_ns: end,
            bits: f64::from(part.bytes + DELIMITER_BYTES) * 8.0,
        };
        parts.iter().zip(ends).map(stretch).collect()
    }

    /// Number of its packet in the air log; 0 for CTS and ACK.
    pub fn packet_id(&self) -> u64 {
        self.packet.as_ref().map_or(0, |p| p.id)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A packet of 1500 bytes of synthetic flow 0.
    pub fn packet(id: u64, dest: u16, control: bool) -> Arc<Packet> {
        Arc::new(Packet {
            id,
            dest: Dest::Station(dest),
            dest_mac: [2, 0, 0, 0, 0, dest as u8],
            ip_bytes: 1500,
            control,
            category: Category::default(),
            ethernet: [].into(),
            tag: 0,
            mpdu: None,
        })
    }
}
