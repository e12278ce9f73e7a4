//! The fate of each frame at the station that it is for, and the reasons for which packets are dropped (`formats/air.md`).

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
    /// Its flow waited too long, as CoDel decides (RFC 8289).
    Codel,
    /// FQ-CoDel's queue was full and its flow the longest.
    Overlimit,
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
            Self::Codel => "codel",
            Self::Overlimit => "overlimit",
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
