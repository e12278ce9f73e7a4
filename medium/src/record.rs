//! Rows of the air log (`formats/air.md`) and the counters that sum them up.

use crate::mac::{Dest, Frame};
use crate::phy::mode::Mode;
use crate::phy::{dbm, FrameKind};
use manet_engine::{Duration, Instant};
use serde::Serialize;
use std::fmt;

/// Outcome of a frame at the station that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Decoded.
    Delivered,
    /// An interferer that the sender could have sensed.
    Collision,
    /// An interferer that the sender could not sense.
    Hidden,
    /// Below the receive threshold, or the receiver is off.
    Weak,
    /// Lost by the error rate of the link.
    Error,
    /// The receiver was sending or engaged in another exchange.
    Busy,
    /// An RTS decoded and not answered because of the NAV.
    Nav,
}

impl Fate {
    /// Name in the air log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Collision => "collision",
            Self::Hidden => "hidden",
            Self::Weak => "weak",
            Self::Error => "error",
            Self::Busy => "busy",
            Self::Nav => "nav",
        }
    }
}

/// Reason why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The interface queue was full.
    QueueFull,
    /// dot11ShortRetryLimit reached.
    RetryShort,
    /// dot11LongRetryLimit reached.
    RetryLong,
    /// Removed on request of a client.
    Purged,
    /// A unicast address that belongs to no station.
    NoPeer,
    /// Longer than the standard can send ([`MAX_MSDU_BYTES`](crate::wire::dot11::MAX_MSDU_BYTES)).
    TooLong,
    /// The station was switched off.
    Off,
    /// Queued or in flight at the end of the run.
    Stopped,
}

impl DropReason {
    /// Name in the air log.
    pub fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::RetryShort => "retry-short",
            Self::RetryLong => "retry-long",
            Self::Purged => "purged",
            Self::NoPeer => "no-peer",
            Self::TooLong => "too-long",
            Self::Off => "off",
            Self::Stopped => "stopped",
        }
    }
}

/// One row of `air.csv`.
#[derive(Clone, Debug)]
pub enum AirRecord {
    /// A frame was on the air.
    Tx {
        /// Start of the frame; it lasts `frame.airtime`.
        at: Instant,
        /// The frame.
        frame: Frame,
        /// Outcome at the station that it is for; `None` for a broadcast, or if the run ended before.
        fate: Option<Fate>,
        /// Number of stations that decoded a broadcast.
        receivers: u32,
        /// Power in W at its start at the station that it is for; `None` if there is none or its radio is off.
        power_w: Option<f64>,
        /// The stations that decoded it, whether or not it was for them, with the power in W at each; empty unless
        /// `outputs.monitor` asks for it.
        heard: Vec<(u16, f64)>,
        /// Of an MPDU of an A-MPDU: its place, from 1, and the number of MPDUs.
        place: Option<(u8, u8)>,
    },
    /// A packet from the host.
    Enqueue {
        /// Instant of the arrival.
        at: Instant,
        /// The sender.
        station: u16,
        /// The receiver.
        peer: Dest,
        /// Number of the packet.
        packet: u64,
        /// Length of the IP packet, bytes.
        bytes: u32,
    },
    /// A packet handed up to the host.
    Deliver {
        /// End of the frame.
        at: Instant,
        /// The receiver.
        station: u16,
        /// The sender.
        from: u16,
        /// `Data` or `Bcast`.
        kind: FrameKind,
        /// Number of the packet.
        packet: u64,
        /// Length of the IP packet, bytes.
        bytes: u32,
        /// Power at the start of the frame, W.
        power_w: f64,
    },
    /// A packet dropped by the sender.
    Drop {
        /// Instant of the drop.
        at: Instant,
        /// The sender.
        station: u16,
        /// The receiver.
        peer: Dest,
        /// Number of the packet.
        packet: u64,
        /// Length of the IP packet, bytes.
        bytes: u32,
        /// The reason.
        reason: DropReason,
    },
}

impl AirRecord {
    /// Appends the row to `out` without line end; `name` returns the name of a station.
    pub fn write_csv<'a>(&self, out: &mut String, name: impl Fn(u16) -> &'a str) {
        use std::fmt::Write;
        let peer = |dest: Dest| match dest {
            Dest::Station(s) => name(s),
            Dest::Broadcast => "*",
            Dest::Unknown => "?",
        };
        let packet_kind = |dest: Dest| if dest == Dest::Broadcast { "bcast" } else { "data" };
        // writing to a String cannot fail
        let _ = match self {
            Self::Tx { at, frame, fate, receivers, power_w, .. } => write!(
                out,
                "{},{},tx,{},{},{},{},{},{},{},{},{},{},{}",
                at.as_nanos(),
                name(frame.from),
                frame.kind.name(),
                peer(frame.dest),
                frame.packet_id(),
                frame.attempt,
                frame.bytes,
                frame.mode.rate_bps(),
                frame.airtime.as_nanos(),
                frame.backoff_slots,
                fate.map_or("", Fate::name),
                if frame.dest == Dest::Broadcast { receivers.to_string() } else { String::new() },
                PowerDbm(*power_w),
            ),
            Self::Enqueue { at, station, peer: to, packet, bytes } => write!(
                out,
                "{},{},enqueue,{},{},{packet},,{bytes},,,,,,",
                at.as_nanos(),
                name(*station),
                packet_kind(*to),
                peer(*to)
            ),
            Self::Deliver { at, station, from, kind, packet, bytes, power_w } => write!(
                out,
                "{},{},deliver,{},{},{packet},,{bytes},,,,,,{}",
                at.as_nanos(),
                name(*station),
                kind.name(),
                name(*from),
                PowerDbm(Some(*power_w))
            ),
            Self::Drop { at, station, peer: to, packet, bytes, reason } => write!(
                out,
                "{},{},drop,{},{},{packet},,{bytes},,,,{},,",
                at.as_nanos(),
                name(*station),
                packet_kind(*to),
                peer(*to),
                reason.name()
            ),
        };
    }

    /// Appends the column [`Self::MODE`] with its comma: `ht-mcs7-20` for a frame with an MCS, empty for others.
    pub fn write_mode(&self, out: &mut String) {
        use std::fmt::Write;
        out.push(',');
        if let Self::Tx { frame: Frame { mode: Mode::Mcs(mcs), .. }, .. } = self {
            let _ = write!(out, "{mcs}");
        }
    }

    /// Appends the column [`Self::AGGREGATE`] with its comma: `2/28` for the second of 28 MPDUs of an A-MPDU, empty for others.
    pub fn write_aggregate(&self, out: &mut String) {
        use std::fmt::Write;
        out.push(',');
        if let Self::Tx { place: Some((place, of)), .. } = self {
            let _ = write!(out, "{place}/{of}");
        }
    }

    /// Name of a further column of `air.csv`, if the profile aggregates.
    pub const AGGREGATE: &'static str = "aggregate";

    /// Name of a further column of `air.csv`, if the profile has an MCS.
    pub const MODE: &'static str = "mode";

    /// Appends the column [`Self::HEARD`] with its comma: `sta2=-71.2 sta3=-80.4`, in the order of the stations' numbers.
    pub fn write_heard<'a>(&self, out: &mut String, name: impl Fn(u16) -> &'a str) {
        use std::fmt::Write;
        out.push(',');
        let Self::Tx { heard, .. } = self else { return };
        for (i, (station, power_w)) in heard.iter().enumerate() {
            let space = if i == 0 { "" } else { " " };
            let _ = write!(out, "{space}{}={}", name(*station), PowerDbm(Some(*power_w)));
        }
    }

    /// Name of the last column of `air.csv`, if `outputs.monitor` asks for it.
    pub const HEARD: &'static str = "heard_dbm";

    /// First line of `air.csv`, without [`Self::HEARD`].
    pub const CSV_HEADER: &'static str =
        "t_ns,station,event,frame,peer,packet,attempt,bytes,rate_bps,airtime_ns,backoff_slots,fate,receivers,power_dbm";
}

/// A power with one decimal in dBm; empty for `None` and 0 W.
struct PowerDbm(Option<f64>);

impl fmt::Display for PowerDbm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.and_then(dbm).map_or(Ok(()), |power_dbm| write!(f, "{power_dbm:.1}"))
    }
}

/// The counters of one station (`counters.json`, formats/air.md). Fates are counted at the sender.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Packets from the host.
    pub enqueued: u64,
    /// Packets handed to the host.
    pub delivered_up: u64,
    /// Packets dropped by a full queue.
    pub queue_full: u64,
    /// Packets dropped at dot11ShortRetryLimit.
    pub retry_short: u64,
    /// Packets dropped at dot11LongRetryLimit.
    pub retry_long: u64,
    /// Packets removed on request of a client.
    pub purged: u64,
    /// Packets for an address that belongs to no station.
    pub no_peer: u64,
    /// Packets longer than the standard can send.
    pub too_long: u64,
    /// Packets dropped because the station was off.
    pub off: u64,
    /// RTS sent.
    pub tx_rts: u64,
    /// CTS sent.
    pub tx_cts: u64,
    /// Unicast data frames sent.
    pub tx_data: u64,
    /// ACKs sent.
    pub tx_ack: u64,
    /// Broadcast frames sent.
    pub tx_bcast: u64,
    /// Block Acks sent.
    #[serde(skip_serializing_if = "is_zero")]
    pub tx_ba: u64,
    /// Block Ack Requests sent.
    #[serde(skip_serializing_if = "is_zero")]
    pub tx_bar: u64,
    /// Data and broadcast frames received, without duplicates.
    pub rx_data: u64,
    /// Duplicate data frames received (9.3.2.10).
    pub rx_duplicate: u64,
    /// Data frames without ACK.
    pub ack_timeout: u64,
    /// RTS without CTS.
    pub cts_timeout: u64,
    /// Frames with [`Fate::Collision`].
    pub fate_collision: u64,
    /// Frames with [`Fate::Hidden`].
    pub fate_hidden: u64,
    /// Frames with [`Fate::Weak`].
    pub fate_weak: u64,
    /// Frames with [`Fate::Error`].
    pub fate_error: u64,
    /// Frames with [`Fate::Busy`].
    pub fate_busy: u64,
    /// Frames with [`Fate::Nav`].
    pub fate_nav: u64,
    /// Total time on the air, ns.
    pub airtime_tx_ns: u64,
}

/// For a counter that most profiles do not have.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Counters {
    /// Counts a frame sent, of an A-MPDU each of its `mpdus`.
    pub fn count_tx(&mut self, kind: FrameKind, mpdus: u64, airtime: Duration) {
        self.airtime_tx_ns += airtime.as_nanos();
        *match kind {
            FrameKind::Rts => &mut self.tx_rts,
            FrameKind::Cts => &mut self.tx_cts,
            FrameKind::Data => &mut self.tx_data,
            FrameKind::Ack => &mut self.tx_ack,
            FrameKind::Bcast => &mut self.tx_bcast,
            FrameKind::Ba => &mut self.tx_ba,
            FrameKind::Bar => &mut self.tx_bar,
        } += mpdus;
    }

    /// Counts the fate of a frame sent; `Delivered` has no counter.
    pub fn count_fate(&mut self, fate: Fate) {
        *match fate {
            Fate::Delivered => return,
            Fate::Collision => &mut self.fate_collision,
            Fate::Hidden => &mut self.fate_hidden,
            Fate::Weak => &mut self.fate_weak,
            Fate::Error => &mut self.fate_error,
            Fate::Busy => &mut self.fate_busy,
            Fate::Nav => &mut self.fate_nav,
        } += 1;
    }

    /// The difference to `earlier` counters of the same station.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            enqueued: self.enqueued - earlier.enqueued,
            delivered_up: self.delivered_up - earlier.delivered_up,
            queue_full: self.queue_full - earlier.queue_full,
            retry_short: self.retry_short - earlier.retry_short,
            retry_long: self.retry_long - earlier.retry_long,
            purged: self.purged - earlier.purged,
            no_peer: self.no_peer - earlier.no_peer,
            too_long: self.too_long - earlier.too_long,
            off: self.off - earlier.off,
            tx_rts: self.tx_rts - earlier.tx_rts,
            tx_cts: self.tx_cts - earlier.tx_cts,
            tx_data: self.tx_data - earlier.tx_data,
            tx_ack: self.tx_ack - earlier.tx_ack,
            tx_bcast: self.tx_bcast - earlier.tx_bcast,
            tx_ba: self.tx_ba - earlier.tx_ba,
            tx_bar: self.tx_bar - earlier.tx_bar,
            rx_data: self.rx_data - earlier.rx_data,
            rx_duplicate: self.rx_duplicate - earlier.rx_duplicate,
            ack_timeout: self.ack_timeout - earlier.ack_timeout,
            cts_timeout: self.cts_timeout - earlier.cts_timeout,
            fate_collision: self.fate_collision - earlier.fate_collision,
            fate_hidden: self.fate_hidden - earlier.fate_hidden,
            fate_weak: self.fate_weak - earlier.fate_weak,
            fate_error: self.fate_error - earlier.fate_error,
            fate_busy: self.fate_busy - earlier.fate_busy,
            fate_nav: self.fate_nav - earlier.fate_nav,
            airtime_tx_ns: self.airtime_tx_ns - earlier.airtime_tx_ns,
        }
    }

    /// Counts a packet dropped; `Stopped` has no counter.
    pub fn count_drop(&mut self, reason: DropReason) {
        *match reason {
            DropReason::QueueFull => &mut self.queue_full,
            DropReason::RetryShort => &mut self.retry_short,
            DropReason::RetryLong => &mut self.retry_long,
            DropReason::Purged => &mut self.purged,
            DropReason::NoPeer => &mut self.no_peer,
            DropReason::TooLong => &mut self.too_long,
            DropReason::Off => &mut self.off,
            DropReason::Stopped => return,
        } += 1;
    }
}
