//! The counters of a station, which sum up its frames, their fates and the dropped packets (`formats/air.md`).

use crate::fate::{DropReason, Fate};
use crate::phy::FrameKind;
use manet_engine::Duration;
use serde::Serialize;

/// The counters of one station (`counters.json`, formats/air.md). Fates are counted at the sender.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Packets from the host.
    pub enqueued: u64,
    /// Packets handed to the host.
    pub delivered_up: u64,
    /// Packets dropped by a full queue.
    pub queue_full: u64,
    /// Packets dropped by CoDel.
    #[serde(skip_serializing_if = "is_zero")]
    pub codel: u64,
    /// Packets dropped by FQ-CoDel's full queue.
    #[serde(skip_serializing_if = "is_zero")]
    pub overlimit: u64,
    /// Packets marked Congestion Experienced by CoDel.
    #[serde(skip_serializing_if = "is_zero")]
    pub ce_marked: u64,
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
    /// EDCA: backoffs of a category that ended together with that of a higher one.
    #[serde(skip_serializing_if = "is_zero")]
    pub internal_collision: u64,
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

/// For a counter that most profiles and queues do not have.
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
            codel: self.codel - earlier.codel,
            overlimit: self.overlimit - earlier.overlimit,
            ce_marked: self.ce_marked - earlier.ce_marked,
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
            internal_collision: self.internal_collision - earlier.internal_collision,
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
            DropReason::Codel => &mut self.codel,
            DropReason::Overlimit => &mut self.overlimit,
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
