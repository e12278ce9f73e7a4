//! The targets of machines share the layout of a step and the inputs of neighbours.

use manet_engine::Duration;
use manet_routing::trial::ip;
use manet_routing::{Bytes, Flow, Input, BROADCAST};

/// Reads steps of `N` bytes, of which the last is the length of the bytes that follow.
pub fn steps<const N: usize>(mut rest: &[u8], mut each: impl FnMut(&[u8; N], &[u8])) {
    while let Some((head, tail)) = rest.split_first_chunk::<N>() {
        let (bytes, next) = tail.split_at(usize::from(head[N - 1]).min(tail.len()));
        rest = next;
        each(head, bytes);
    }
}

pub fn milliseconds(high: u8, low: u8) -> Duration {
    Duration::from_millis(u64::from(u16::from_be_bytes([high, low])))
}

/// An input of design A at node 1; neighbours are few, so that messages meet each other's routes.
pub fn input(what: u8, who: u8, bytes: Bytes) -> Input {
    let neighbour = ip(usize::from(who % 8));
    match what % 8 {
        0..=3 => Input::Control { from: neighbour, to: BROADCAST, ttl: 1, bytes },
        4 => Input::Packet { bytes },
        5 => Input::LinkFailed { neighbour, bytes },
        6 => Input::Purged { neighbour, packets: vec![bytes] },
        _ if who == 0 => Input::Stop,
        _ => {
            Input::Used { flows: vec![Flow { source: neighbour, destination: ip(usize::from(who >> 4)), packets: 1 }] }
        }
    }
}
