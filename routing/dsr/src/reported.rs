//! Nodes informed of a broken link, so that each source gets one report and not one per packet.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The nodes that were informed that the link to `next` is broken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reported {
    /// Far end of the link.
    pub next: Option<Ipv4Addr>,
    /// Nodes informed by a Route Error.
    pub origins: BTreeSet<Ipv4Addr>,
    /// Flows informed by ICMP: source, destination, IP protocol.
    pub flows: BTreeSet<(Ipv4Addr, Ipv4Addr, u8)>,
}
