//! ARP for IPv4 over Ethernet (RFC 826, "Packet format"): 28 bytes.

use crate::Mac;
use std::net::Ipv4Addr;

/// Length of a message, bytes. ns-2 has the same (`ARP_HDR_LEN`, mac/arp.h).
pub const LEN: usize = 28;
/// EtherType of its frames.
pub const ETHERTYPE: u16 = 0x0806;
/// Hardware type Ethernet, protocol type IPv4, and the lengths of their addresses.
const ETHERNET_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// ar$op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// ares_op$REQUEST.
    Request,
    /// ares_op$REPLY.
    Reply,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Request or reply.
    pub operation: Operation,
    /// Link address of the sender.
    pub sender_mac: Mac,
    /// Address of the sender.
    pub sender: Ipv4Addr,
    /// Link address of the target; of a request any value.
    pub target_mac: Mac,
    /// Address of the target.
    pub target: Ipv4Addr,
}

impl Message {
    /// `None`: truncated, for other kinds of addresses, or of another operation. Bytes beyond the message are padding.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (fixed, rest) = bytes.get(..LEN)?.split_at(8);
        let operation = match fixed.strip_prefix(&ETHERNET_IPV4)? {
            [0, 1] => Operation::Request,
            [0, 2] => Operation::Reply,
            _ => return None,
        };
        let mac = |at: usize| -> Option<Mac> { rest[at..at + 6].try_into().ok() };
        let address = |at: usize| Ipv4Addr::new(rest[at], rest[at + 1], rest[at + 2], rest[at + 3]);
        let (sender_mac, target_mac) = (mac(0)?, mac(10)?);
        Some(Self { operation, sender_mac, sender: address(6), target_mac, target: address(16) })
    }

    /// The bytes of the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = ETHERNET_IPV4.to_vec();
        bytes.extend([0, if self.operation == Operation::Request { 1 } else { 2 }]);
        bytes.extend(self.sender_mac);
        bytes.extend(self.sender.octets());
        bytes.extend(self.target_mac);
        bytes.extend(self.target.octets());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 10.0.0.1 at 02:00:00:00:00:01 asks for 10.0.0.2; fields in the order of RFC 826, "Packet format".
    const REQUEST: [u8; LEN] = [
        0, 1, 8, 0, 6, 4, 0, 1, // hardware, protocol, lengths, operation
        2, 0, 0, 0, 0, 1, 10, 0, 0, 1, // sender
        0, 0, 0, 0, 0, 0, 10, 0, 0, 2, // target
    ];

    #[test]
    fn a_request_has_the_bytes_of_rfc_826() {
        let request = Message {
            operation: Operation::Request,
            sender_mac: [2, 0, 0, 0, 0, 1],
            sender: Ipv4Addr::new(10, 0, 0, 1),
            target_mac: [0; 6],
            target: Ipv4Addr::new(10, 0, 0, 2),
        };
        assert_eq!(request.to_bytes(), REQUEST);
        assert_eq!(Message::parse(&[&REQUEST[..], &[0; 18]].concat()), Some(request));
    }

    #[test]
    fn other_kinds_of_arp_and_cut_messages_are_refused() {
        assert!((0..LEN).all(|n| Message::parse(&REQUEST[..n]).is_none()));
        // hardware type, protocol type, two lengths, operation (RARP: RFC 903 has 3)
        for (at, value) in [(1, 6), (2, 0x86), (4, 8), (5, 16), (7, 3), (7, 0)] {
            let mut other = REQUEST;
            other[at] = value;
            assert_eq!(Message::parse(&other), None, "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn what_is_parsed_is_written_with_the_same_bytes(mut bytes: [u8; LEN], noise: Vec<u8>, reply: bool) {
            let _ = Message::parse(&noise);
            bytes[..8].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1 + u8::from(reply)]);
            prop_assert_eq!(Message::parse(&bytes).map(|m| m.to_bytes()), Some(bytes.to_vec()));
        }
    }
}
