//! Rows of the air log (`formats/air.md`).

use crate::fate::{DropReason, Fate};
use crate::mac::{Category, Dest, Frame};
use crate::phy::mode::Mode;
use crate::phy::{dbm, FrameKind};
use manet_engine::{Duration, Instant};
use std::fmt;

/// One row of `air.csv`.
#[derive(Clone, Debug)]
pub enum AirRow {
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
        /// Lowest SINR in dB over the MPDU at the station that it is for; `None`: that station did not hold the frame to its end, or its
        /// reception is by thresholds.
        sinr_db: Option<f64>,
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
        /// Its access category.
        category: Category,
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
    /// A packet dropped by the sender, or by a receiver that has stored it for an earlier MPDU.
    Drop {
        /// Instant of the drop.
        at: Instant,
        /// The station that drops it.
        station: u16,
        /// The other one.
        peer: Dest,
        /// Number of the packet.
        packet: u64,
        /// Length of the IP packet, bytes.
        bytes: u32,
        /// The reason.
        reason: DropReason,
        /// Its access category.
        category: Category,
    },
    /// A burst of a jammer, or a part of a long one.
    Jam {
        /// Its start.
        at: Instant,
        /// The jammer: its number after those of the stations.
        station: u16,
        /// Its length.
        airtime: Duration,
    },
}

impl AirRow {
    /// Appends the row to `out` without line end; `name` returns the name of a station or, of the numbers after them, a jammer.
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
            Self::Enqueue { at, station, peer: to, packet, bytes, .. } => write!(
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
            Self::Drop { at, station, peer: to, packet, bytes, reason, .. } => write!(
                out,
                "{},{},drop,{},{},{packet},,{bytes},,,,{},,",
                at.as_nanos(),
                name(*station),
                packet_kind(*to),
                peer(*to),
                reason.name()
            ),
            Self::Jam { at, station, airtime } => {
                write!(out, "{},{},jam,,*,,,,,{},,,,", at.as_nanos(), name(*station), airtime.as_nanos())
            }
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

    /// Appends the column [`Self::SINR`] with its comma: `23.4`, empty for a frame without one.
    pub fn write_sinr(&self, out: &mut String) {
        use std::fmt::Write;
        out.push(',');
        if let Self::Tx { sinr_db: Some(sinr_db), .. } = self {
            let _ = write!(out, "{sinr_db:.1}");
        }
    }

    /// Appends the column [`Self::CATEGORY`] with its comma: `voice`, empty for CTS, a jammer, and for what a host is handed.
    pub fn write_category(&self, out: &mut String) {
        out.push(',');
        out.push_str(match self {
            Self::Tx { frame, .. } if frame.kind != FrameKind::Cts => frame.category.name(),
            Self::Enqueue { category, .. } | Self::Drop { category, .. } => category.name(),
            Self::Tx { .. } | Self::Deliver { .. } | Self::Jam { .. } => "",
        });
    }

    /// Name of a further column of `air.csv`, with EDCA.
    pub const CATEGORY: &'static str = "category";

    /// Name of a further column of `air.csv`, if reception is by SINR.
    pub const SINR: &'static str = "sinr_db";

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
