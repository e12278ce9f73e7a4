//! Counts how often the radio or the kernel returned a packet, so that none circulates without end.
//!
//! A packet is identified by its fields that do not change on the path: addresses, identification, protocol and payload,
//! hashed (64-bit FNV-1a). A collision costs one packet a retry.

use manet_routing::packet::ipv4;
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of retries; a packet that returns once more is dropped.
pub const TRIES: u8 = 2;
/// Maximum number of remembered packets: four times the default of held packets.
const MAX_PACKETS: usize = 256;

/// The returned packets.
#[derive(Clone, Debug, Default)]
pub struct Returned {
    tries: BTreeMap<u64, u8>,
    order: VecDeque<u64>,
}

impl Returned {
    /// Counts a return of `packet`. False: it has returned more than [`TRIES`] times.
    pub fn may_retry(&mut self, packet: &ipv4::Packet) -> bool {
        let key = key(packet);
        if let Some(tries) = self.tries.get_mut(&key) {
            *tries = tries.saturating_add(1);
            return *tries <= TRIES;
        }
        if self.order.len() >= MAX_PACKETS {
            if let Some(oldest) = self.order.pop_front() {
                self.tries.remove(&oldest);
            }
        }
        self.order.push_back(key);
        self.tries.insert(key, 1);
        true
    }
}

fn key(packet: &ipv4::Packet) -> u64 {
    let (source, destination) = (packet.source().octets(), packet.destination().octets());
    let head = [packet.identification().to_be_bytes(), [packet.protocol(), 0]].concat();
    let bytes = source.iter().chain(&destination).chain(&head).chain(packet.payload());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn packet(identification: u16, ttl: u8) -> Vec<u8> {
        let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        ipv4::Repr { tos: 0, identification, dont_fragment: true, ttl, protocol: 17, source, destination }.packet(b"x")
    }

    #[test]
    fn a_packet_is_dropped_at_the_third_return_for_any_ttl() {
        let mut returned = Returned::default();
        let mut again = |id, ttl| returned.may_retry(&ipv4::Packet::parse(&packet(id, ttl)).unwrap());
        assert_eq!([again(1, 64), again(1, 63), again(1, 62), again(2, 64)], [true, true, false, true]);
    }

    #[test]
    fn the_number_of_remembered_packets_is_limited() {
        let mut returned = Returned::default();
        for id in 0..2000 {
            returned.may_retry(&ipv4::Packet::parse(&packet(id, 64)).unwrap());
        }
        assert_eq!((returned.tries.len(), returned.order.len()), (MAX_PACKETS, MAX_PACKETS));
    }
}
