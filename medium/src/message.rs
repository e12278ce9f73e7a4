//! What goes into the medium and what comes out.

use crate::mac::{FailReason, Packet, Stage};
use crate::record::AirRecord;
use crate::wire::MacAddress;
use manet_engine::Instant;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Index into the configuration's list of stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StationId(pub u16);

/// From `at` on the station moves towards `to` at `speed_mps` (infinite: a jump).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Way {
    pub at: Instant,
    pub station: StationId,
    pub to: [f64; 3],
    #[serde(with = "crate::trace::speed_json")]
    pub speed_mps: f64,
}

/// How a frame came in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reception {
    pub power_w: f64,
    pub rate_bps: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Input {
    /// The station's host sends an Ethernet frame (14-byte header and payload, no FCS). Shorter ones are ignored.
    Packet {
        station: StationId,
        #[serde(with = "crate::logged_frame")]
        frame: Vec<u8>,
    },
    /// The station's mac80211 sends an 802.11 frame (without FCS); its outcome is reported once, with `cookie`, also that of a malformed one.
    Mpdu {
        station: StationId,
        #[serde(with = "crate::logged_frame")]
        frame: Vec<u8>,
        cookie: u64,
        rates: Vec<Stage>,
    },
    /// A packet without bytes, for traffic in virtual time.
    Synthetic { station: StationId, to: Option<StationId>, ip_bytes: u32, tag: u64 },
    /// From now on the station moves towards `to` at `speed_mps` (infinite: a jump).
    Move {
        station: StationId,
        to: [f64; 3],
        #[serde(with = "crate::trace::speed_json")]
        speed_mps: f64,
    },
    /// Ways to come: each leg from its own instant on, as rows of a trace.
    Follow { legs: Vec<Way> },
    /// At this instant every station stops where it then is; what was to come after it is forgotten.
    Halt { at: Instant },
    /// Error rate of the frames of a directed link.
    SetErrorRate { from: StationId, to: StationId, rate: f64 },
    /// Switch the radio of a station off or on.
    Power { station: StationId, on: bool },
    /// Offer the data frames that the station decodes although they are for others ([`Output::Overheard`]), or no longer (the default).
    Overhear { station: StationId, on: bool },
    /// Take the queued frames for a neighbour out; answered by [`Output::Purged`].
    Purge { station: StationId, neighbour: MacAddress, token: u32 },
    /// The run ends: everything queued or in flight is accounted for as `stopped`.
    Stop,
}

#[derive(Clone, Debug)]
pub enum Output {
    /// Hand this packet to the station's host; `packet.ethernet` are the bytes.
    Deliver {
        station: StationId,
        packet: Arc<Packet>,
        /// Of an MPDU only.
        heard: Option<Reception>,
    },
    /// Retries exhausted: link feedback.
    Failed {
        station: StationId,
        neighbour: MacAddress,
        reason: FailReason,
        packet: Arc<Packet>,
        /// Times that the sender tried.
        tries: u32,
    },
    Purged {
        station: StationId,
        neighbour: MacAddress,
        token: u32,
        packets: Vec<Arc<Packet>>,
    },
    /// ACK received for a unicast frame.
    Acked {
        station: StationId,
        neighbour: MacAddress,
        retries: u32,
        packet: Arc<Packet>,
        /// Times that the sender tried.
        tries: u32,
    },
    /// A broadcast frame has been sent.
    Broadcast {
        station: StationId,
        packet: Arc<Packet>,
    },
    /// An MPDU that never went out: it found a full queue or a radio without power, was purged, or the run ended.
    Dropped {
        station: StationId,
        packet: Arc<Packet>,
    },
    /// A data frame decoded by a station it was not for; only after [`Input::Overhear`].
    Overheard {
        station: StationId,
        transmitter: StationId,
        packet: Arc<Packet>,
    },
    /// One row of the air log; only after [`crate::Medium::set_recording`].
    Air(AirRecord),
}

/// What the radio of a directed pair would do with a frame now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkState {
    pub from: StationId,
    pub to: StationId,
    pub power_w: f64,
    pub in_range: bool,
    pub sensed: bool,
    pub error_rate: f64,
}
