//! Actions of the DCF, and the events that it counts.

use super::{Frame, Packet};
use crate::fate::DropReason;
use std::sync::Arc;

/// An action that the medium carries out for the DCF.
#[derive(Clone, Debug)]
pub enum Action {
    /// Put the frame on the air now.
    Transmit(Frame),
    /// Hand the packet up to the host.
    Deliver {
        /// The packet received.
        packet: Arc<Packet>,
        /// Rate of its data frame, bit/s.
        rate_bps: u64,
    },
    /// The packet was acknowledged (unicast) or sent (broadcast).
    Sent {
        /// The packet in service.
        packet: Arc<Packet>,
        /// Attempts beyond the first RTS and the first data frame.
        retries: u32,
        /// Attempts of the data frame, or of the RTS before it if those are more.
        tries: u32,
    },
    /// Retries exhausted.
    Failed {
        /// The packet given up.
        packet: Arc<Packet>,
        /// The limit reached.
        reason: FailReason,
        /// As in [`Self::Sent`].
        tries: u32,
    },
    /// The interface queue dropped the packet.
    Dropped {
        /// The packet, never sent.
        packet: Arc<Packet>,
        /// The reason.
        reason: DropReason,
    },
}

/// The retry limit that a frame reached; the values are those of link feedback (formats/sockets.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailReason {
    /// dot11ShortRetryLimit: RTS, or a data frame without RTS.
    ShortRetryLimit = 1,
    /// dot11LongRetryLimit: a data frame after RTS/CTS.
    LongRetryLimit = 2,
}

/// Counted events that are not actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DcfCounters {
    /// RTS without CTS.
    pub cts_timeout: u64,
    /// Data frames without ACK.
    pub ack_timeout: u64,
    /// EDCA: backoffs of a category that ended together with that of a higher one (802.11-2020 10.23.2.4).
    pub internal_collision: u64,
    /// Data frames received again and not delivered (9.3.2.10).
    pub rx_duplicate: u64,
    /// Data frames and broadcasts delivered to the host.
    pub rx_data: u64,
}
