//! How often a packet came back to us already, so that none goes round for ever.
//!
//! A packet is known by what does not change on its way: addresses, identification, protocol and payload, hashed
//! (64-bit FNV-1a). Two that hash alike cost one of them a try.

use manet_routing::packet::ipv4;
use std::collections::{BTreeMap, VecDeque};

/// A packet is given up when it comes back once more.
pub const TRIES: u8 = 2;
/// Packets remembered: four times what is held.
const MAX_PACKETS: usize = 256;

#[derive(Clone, Debug, Default)]
pub struct Returned {
    tries: BTreeMap<u64, u8>,
    order: VecDeque<u64>,
}

impl Returned {
    /// Counts that `packet` came back; false if it has done so too often.
    pub fn again(&mut self, packet: &ipv4::Packet) -> bool {
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
    fn a_packet_is_given_up_the_third_time_whatever_its_ttl() {
        let mut returned = Returned::default();
        let mut again = |id, ttl| returned.again(&ipv4::Packet::parse(&packet(id, ttl)).unwrap());
        assert_eq!([again(1, 64), again(1, 63), again(1, 62), again(2, 64)], [true, true, false, true]);
    }

    #[test]
    fn it_remembers_no_more_than_its_limit() {
        let mut returned = Returned::default();
        for id in 0..2000 {
            returned.again(&ipv4::Packet::parse(&packet(id, 64)).unwrap());
        }
        assert_eq!((returned.tries.len(), returned.order.len()), (MAX_PACKETS, MAX_PACKETS));
    }
}
