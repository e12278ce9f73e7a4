//! What the DCF wants done, and what it counts besides.

use super::{Frame, Packet};
use std::sync::Arc;

/// What the machine wants done, in order.
#[derive(Clone, Debug)]
pub enum Action {
    /// Put the frame on the air now.
    Transmit(Frame),
    /// Hand the packet up to the host.
    Deliver { packet: Arc<Packet>, rate_bps: u64 },
    /// The packet was acknowledged (unicast) or sent (broadcast); `retries` beyond the first attempts,
    /// `tries`: of the data frame, or of the RTS before it.
    Sent { packet: Arc<Packet>, retries: u32, tries: u32 },
    /// Retries exhausted.
    Failed { packet: Arc<Packet>, reason: FailReason, tries: u32 },
}

/// Which limit a frame reached: the values are those of link feedback (formats/sockets.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailReason {
    ShortRetryLimit = 1,
    LongRetryLimit = 2,
}

/// Events worth counting that are not actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DcfCounters {
    pub cts_timeout: u64,
    pub ack_timeout: u64,
    pub rx_duplicate: u64,
    pub rx_data: u64,
}
