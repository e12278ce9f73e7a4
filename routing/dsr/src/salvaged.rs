//! Packets that were salvaged here, so that copies of one are not salvaged again.

use crate::datagram::Datagram;
use manet_engine::{Duration, Instant};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// How many salvaged packets are remembered, and for how long: longer than the copies of one live here.
const MAX_PACKETS: usize = 256;
const REMEMBERED: Duration = Duration::from_secs(10);

/// Packets that were given another route here. Without link feedback a packet that is given back may have arrived all the same;
/// each time round that makes two of one, until there is no air left for anything else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Salvaged(VecDeque<(Instant, Identity)>);

/// The fingerprint, and the first eight bytes of the payload, as some stacks number nothing that must not be
/// fragmented.
type Identity = ((Ipv4Addr, Ipv4Addr, u16, u16, u8), Vec<u8>);

impl Salvaged {
    /// Remembers it. True: it is new.
    pub fn remember(&mut self, now: Instant, packet: &Datagram) -> bool {
        while self.0.front().is_some_and(|(at, _)| now.since(*at) >= REMEMBERED) {
            self.0.pop_front();
        }
        let payload = packet.payload();
        let identity = (packet.fingerprint(), payload[..payload.len().min(8)].to_vec());
        if self.0.iter().any(|(_, known)| *known == identity) {
            return false;
        }
        if self.0.len() >= MAX_PACKETS {
            self.0.pop_front();
        }
        self.0.push_back((now, identity));
        true
    }
}
