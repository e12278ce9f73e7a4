//! Flooded messages that wait for their jitter.

use crate::wire::Init;
use std::net::Ipv4Addr;

/// A flooded message that waits for its jitter. Hop counts and numbers are filled in when it is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Flood {
    /// An init-connection.
    Init(Init),
    /// A receiver-alert, or a non-receiver-alert.
    Alert { destination: Ipv4Addr, receiver: bool },
    /// An end-connection.
    End { source: Ipv4Addr, id: u32, destination: Ipv4Addr },
}
