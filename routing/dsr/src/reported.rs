//! Who knows of a broken link, so that each source learns of it once and not with each of its packets.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Who knows that the link to `next` is broken: by a Route Error (`origins`), or by ICMP (`flows`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Reported {
    pub next: Option<Ipv4Addr>,
    pub origins: BTreeSet<Ipv4Addr>,
    pub flows: BTreeSet<(Ipv4Addr, Ipv4Addr, u8)>,
}
