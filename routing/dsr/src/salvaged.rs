//! Packets that this node salvaged, so that copies of one are not salvaged again.

use crate::datagram::Datagram;
use manet_engine::{Duration, Instant};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Maximum number of remembered packets, and their time: longer than copies of a packet circulate.
const MAX_PACKETS: usize = 256;
const REMEMBERED: Duration = Duration::from_secs(10);

/// The salvaged packets. Without link feedback a returned packet may nevertheless have arrived; repeated salvaging would
/// then double its copies until the channel is full.
#[derive(Clone, Debug, Default)]
pub(crate) struct Salvaged(VecDeque<(Instant, Identity)>);

/// The fingerprint and the first eight bytes of the payload, since some stacks do not number packets with DF.
type Identity = ((Ipv4Addr, Ipv4Addr, u16, u16, u8), Vec<u8>);

impl Salvaged {
    /// Remembers a packet. True: it is new.
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
