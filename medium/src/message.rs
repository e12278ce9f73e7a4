//! Inputs and outputs of the medium.

use crate::air_log::AirRow;
use crate::mac::{FailReason, Packet, Stage};
use crate::phy::antenna::Change;
use crate::wire::MacAddress;
use manet_engine::Instant;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Index into the configuration's list of stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StationId(pub u16);

/// One leg of a movement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leg {
    /// Start of the leg.
    pub at: Instant,
    /// The station that moves.
    pub station: StationId,
    /// Destination x, y, z, m.
    pub to: [f64; 3],
    /// Speed, m/s; infinite: a jump; 0: the station stops.
    #[serde(with = "crate::trace::speed_json")]
    pub speed_mps: f64,
}

/// Power and rate of a reception.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reception {
    /// Power at the receiver, W.
    pub power_w: f64,
    /// Rate of the frame, bit/s.
    pub rate_bps: u64,
}

/// An event from a host, a client or the driver.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Input {
    /// The host of a station sends an Ethernet frame. Frames shorter than a header are ignored.
    Packet {
        /// The sender.
        station: StationId,
        /// 14-byte header and payload without FCS.
        #[serde(with = "crate::logged_frame")]
        frame: Vec<u8>,
    },
    /// The mac80211 of a station sends an 802.11 frame. Its outcome is reported once, with `cookie`, also for a malformed frame.
    Mpdu {
        /// The sender.
        station: StationId,
        /// Header and body without FCS.
        #[serde(with = "crate::logged_frame")]
        frame: Vec<u8>,
        /// The kernel's identifier of the frame.
        cookie: u64,
        /// Rates requested by the kernel, in order; empty: the profile's rate.
        rates: Vec<Stage>,
        /// Centre frequency on which the kernel sends it, MHz; `None`: that of the configuration.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        freq_mhz: Option<u32>,
    },
    /// A packet without bytes, for traffic in virtual time.
    Synthetic {
        /// The sender.
        station: StationId,
        /// The receiver; `None`: all.
        to: Option<StationId>,
        /// Length of the IP packet, bytes.
        ip_bytes: u32,
        /// Returned in [`Packet::tag`].
        tag: u64,
    },
    /// A station moves from now on.
    Move {
        /// The station that moves.
        station: StationId,
        /// Destination x, y, z, m.
        to: [f64; 3],
        /// Speed, m/s; infinite: a jump; 0: the station stops.
        #[serde(with = "crate::trace::speed_json")]
        speed_mps: f64,
    },
    /// Movements to come, like rows of a trace.
    Follow {
        /// In order of time for each station; a leg in the past begins now.
        legs: Vec<Leg>,
    },
    /// Every station stops; later legs are discarded.
    Halt {
        /// The instant of the stop; in the past: now.
        at: Instant,
    },
    /// Sets the error rate of a directed link.
    SetErrorRate {
        /// The sender.
        from: StationId,
        /// The receiver.
        to: StationId,
        /// 0 to 1, in the unit of the configuration.
        rate: f64,
    },
    /// Switches the radio of a station off or on.
    Power {
        /// The station.
        station: StationId,
        /// Whether the radio has power.
        on: bool,
    },
    /// Changes the transmit power or the antenna of a station, for frames that begin from now on.
    Antenna {
        /// The station.
        station: StationId,
        /// The new values.
        #[serde(flatten)]
        change: Change,
    },
    /// Selects whether a station reports decoded data frames for other stations ([`Output::Overheard`]); by default it does not.
    Overhear {
        /// The station.
        station: StationId,
        /// Whether it reports them.
        on: bool,
    },
    /// Removes the queued frames for a neighbour; answered by [`Output::Purged`].
    Purge {
        /// The station whose queue it is.
        station: StationId,
        /// Receiver address of the frames.
        neighbour: MacAddress,
        /// Returned in the answer.
        token: u32,
    },
    /// The run ends: every packet queued or in flight is counted as `stopped`.
    Stop,
}

/// An action for the driver.
#[derive(Clone, Debug)]
pub enum Output {
    /// A packet for the host of a station; `packet.ethernet` holds the bytes.
    Deliver {
        /// The receiver.
        station: StationId,
        /// The packet.
        packet: Arc<Packet>,
        /// Power and rate; only for a frame of mac80211.
        heard: Option<Reception>,
    },
    /// Retries exhausted: link feedback.
    Failed {
        /// The sender.
        station: StationId,
        /// Receiver address.
        neighbour: MacAddress,
        /// The limit reached.
        reason: FailReason,
        /// The packet given up.
        packet: Arc<Packet>,
        /// Attempts of the sender.
        tries: u32,
    },
    /// Answer to [`Input::Purge`].
    Purged {
        /// The station whose queue it is.
        station: StationId,
        /// Receiver address of the frames.
        neighbour: MacAddress,
        /// Token of the request.
        token: u32,
        /// The packets removed, in order.
        packets: Vec<Arc<Packet>>,
    },
    /// ACK received for a unicast frame.
    Acked {
        /// The sender.
        station: StationId,
        /// Receiver address.
        neighbour: MacAddress,
        /// Attempts beyond the first RTS and the first data frame.
        retries: u32,
        /// The packet acknowledged.
        packet: Arc<Packet>,
        /// Attempts of the sender.
        tries: u32,
    },
    /// A broadcast frame has been sent.
    Broadcast {
        /// The sender.
        station: StationId,
        /// The packet.
        packet: Arc<Packet>,
    },
    /// A frame of mac80211 that was never sent: full queue, radio without power, purge, or end of the run.
    Dropped {
        /// The sender.
        station: StationId,
        /// The packet.
        packet: Arc<Packet>,
    },
    /// A data frame for another station that this one decoded; only after [`Input::Overhear`].
    Overheard {
        /// The station that decoded it.
        station: StationId,
        /// The sender.
        transmitter: StationId,
        /// The packet.
        packet: Arc<Packet>,
    },
    /// The NAV of a station changed; only after [`crate::Medium::set_reporting_nav`].
    Nav {
        /// When it changed.
        at: Instant,
        /// The station.
        station: StationId,
        /// Its end from now on; at or before `at`: none.
        until: Instant,
    },
    /// One row of the air log; only after [`crate::Medium::set_recording`].
    Air(AirRow),
}

/// State of a directed link at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkState {
    /// The sender.
    pub from: StationId,
    /// The receiver.
    pub to: StationId,
    /// Received power, W; 0 if a radio is off.
    pub power_w: f64,
    /// Whether the two are neighbours: the power reaches [`crate::phy::Radio::neighbour_threshold_w`].
    pub in_range: bool,
    /// Whether the power reaches the carrier sense threshold.
    pub sensed: bool,
    /// Error rate, 0 to 1.
    pub error_rate: f64,
}
