//! Rows of the air log (`formats/air.md`) and the counters that sum them up.

use crate::mac::{Dest, Frame};
use crate::phy::{dbm, FrameKind};
use manet_engine::{Duration, Instant};
use serde::Serialize;
use std::fmt;

/// Why a frame did not arrive, or that it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    Delivered,
    /// An interferer that the sender could have sensed.
    Collision,
    /// An interferer that the sender could not sense.
    Hidden,
    Weak,
    /// Packet error rate of the link.
    Error,
    /// The receiver was sending, or had another duty.
    Busy,
    /// An RTS heard and not answered because of the NAV.
    Nav,
}

impl Fate {
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

/// How a packet ended without being delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    QueueFull,
    RetryShort,
    RetryLong,
    Purged,
    NoPeer,
    /// The station was switched off.
    Off,
    Stopped,
}

impl DropReason {
    pub fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::RetryShort => "retry-short",
            Self::RetryLong => "retry-long",
            Self::Purged => "purged",
            Self::NoPeer => "no-peer",
            Self::Off => "off",
            Self::Stopped => "stopped",
        }
    }
}

/// One row of `air.csv`.
#[derive(Clone, Debug)]
pub enum AirRecord {
    /// A frame was on the air from `at` for `frame.airtime`. `receivers`: how many decoded a broadcast; `power_w`: with which
    /// power it began at the station that it is for, if that is one and its radio is on.
    Tx {
        at: Instant,
        frame: Frame,
        fate: Option<Fate>,
        receivers: u32,
        power_w: Option<f64>,
    },
    Enqueue {
        at: Instant,
        station: u16,
        peer: Dest,
        packet: u64,
        bytes: u32,
    },
    Deliver {
        at: Instant,
        station: u16,
        from: u16,
        kind: FrameKind,
        packet: u64,
        bytes: u32,
        power_w: f64,
    },
    Drop {
        at: Instant,
        station: u16,
        peer: Dest,
        packet: u64,
        bytes: u32,
        reason: DropReason,
    },
}

impl AirRecord {
    /// The row, without line end; `name` gives a station's name.
    pub fn write_csv<'a>(&self, out: &mut String, name: impl Fn(u16) -> &'a str) {
        use std::fmt::Write;
        let peer = |dest: Dest| match dest {
            Dest::Station(s) => name(s),
            Dest::Broadcast => "*",
            Dest::Nobody => "?",
        };
        let packet_kind = |dest: Dest| if dest == Dest::Broadcast { "bcast" } else { "data" };
        // writing to a String cannot fail
        let _ = match self {
            Self::Tx { at, frame, fate, receivers, power_w } => write!(
                out,
                "{},{},tx,{},{},{},{},{},{},{},{},{},{},{}",
                at.as_nanos(),
                name(frame.from),
                frame.kind.name(),
                peer(frame.dest),
                frame.packet_id(),
                frame.attempt,
                frame.bytes,
                frame.rate_bps,
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

    pub const CSV_HEADER: &'static str =
        "t_ns,station,event,frame,peer,packet,attempt,bytes,rate_bps,airtime_ns,backoff_slots,fate,receivers,power_dbm";
}

/// To a tenth of a decibel; empty where there is none.
struct PowerDbm(Option<f64>);

impl fmt::Display for PowerDbm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.and_then(dbm).map_or(Ok(()), |power_dbm| write!(f, "{power_dbm:.1}"))
    }
}

/// The counters of one station (`counters.json`). Fates are the sender's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    pub enqueued: u64,
    pub delivered_up: u64,
    pub queue_full: u64,
    pub retry_short: u64,
    pub retry_long: u64,
    pub purged: u64,
    pub no_peer: u64,
    pub off: u64,
    pub tx_rts: u64,
    pub tx_cts: u64,
    pub tx_data: u64,
    pub tx_ack: u64,
    pub tx_bcast: u64,
    pub rx_data: u64,
    pub rx_duplicate: u64,
    pub ack_timeout: u64,
    pub cts_timeout: u64,
    pub fate_collision: u64,
    pub fate_hidden: u64,
    pub fate_weak: u64,
    pub fate_error: u64,
    pub fate_busy: u64,
    pub fate_nav: u64,
    pub airtime_tx_ns: u64,
}

impl Counters {
    pub fn count_tx(&mut self, kind: FrameKind, airtime: Duration) {
        self.airtime_tx_ns += airtime.as_nanos();
        *match kind {
            FrameKind::Rts => &mut self.tx_rts,
            FrameKind::Cts => &mut self.tx_cts,
            FrameKind::Data => &mut self.tx_data,
            FrameKind::Ack => &mut self.tx_ack,
            FrameKind::Bcast => &mut self.tx_bcast,
        } += 1;
    }

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

    /// What was counted after `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            enqueued: self.enqueued - earlier.enqueued,
            delivered_up: self.delivered_up - earlier.delivered_up,
            queue_full: self.queue_full - earlier.queue_full,
            retry_short: self.retry_short - earlier.retry_short,
            retry_long: self.retry_long - earlier.retry_long,
            purged: self.purged - earlier.purged,
            no_peer: self.no_peer - earlier.no_peer,
            off: self.off - earlier.off,
            tx_rts: self.tx_rts - earlier.tx_rts,
            tx_cts: self.tx_cts - earlier.tx_cts,
            tx_data: self.tx_data - earlier.tx_data,
            tx_ack: self.tx_ack - earlier.tx_ack,
            tx_bcast: self.tx_bcast - earlier.tx_bcast,
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

    pub fn count_drop(&mut self, reason: DropReason) {
        *match reason {
            DropReason::QueueFull => &mut self.queue_full,
            DropReason::RetryShort => &mut self.retry_short,
            DropReason::RetryLong => &mut self.retry_long,
            DropReason::Purged => &mut self.purged,
            DropReason::NoPeer => &mut self.no_peer,
            DropReason::Off => &mut self.off,
            DropReason::Stopped => return,
        } += 1;
    }
}
