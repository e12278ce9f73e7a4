//! The interface queue: drop-tail, with network control (DSCP CS6) first if configured.
//!
//! As in ns-2's `PriQueue`, a control packet that finds the queue full replaces the data packet at the tail.
//! Unlike there, control packets keep their own order, and the limit is the number of packets that wait: ns-2's `DropTail::enque`
//! drops when length + 1 reaches the limit, so that its limit of 50 is 49 here. The packet in service is outside the limit in both.

use super::{Dest, Packet};
use std::collections::VecDeque;
use std::sync::Arc;

/// The packets of a station that wait for the MAC.
#[derive(Clone, Debug)]
pub struct InterfaceQueue {
    limit: usize,
    control_first: bool,
    control: VecDeque<Arc<Packet>>,
    data: VecDeque<Arc<Packet>>,
}

impl InterfaceQueue {
    /// `limit`: packets that may wait; `control_first`: whether control packets are served first.
    pub fn new(limit: usize, control_first: bool) -> Self {
        Self { limit, control_first, control: VecDeque::new(), data: VecDeque::new() }
    }

    /// Number of packets that wait.
    pub fn len(&self) -> usize {
        self.control.len() + self.data.len()
    }

    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends `packet`; returns the packet that a full queue drops, which may be `packet` itself.
    pub fn push(&mut self, packet: Arc<Packet>) -> Option<Arc<Packet>> {
        let full = self.len() >= self.limit;
        if packet.control && self.control_first {
            let out = if full { self.data.pop_back() } else { None };
            if full && out.is_none() {
                return Some(packet);
            }
            self.control.push_back(packet);
            return out;
        }
        if full {
            return Some(packet);
        }
        self.data.push_back(packet);
        None
    }

    /// Puts the beacon of an access point before all others and beyond the limit: at each target beacon transmission time it is the
    /// next frame for transmission (IEEE Std 802.11-2012 clause 10.1.3.2), after those of the radio's other networks. Returns an
    /// earlier beacon of its network that still waits, which it replaces.
    pub fn push_beacon(&mut self, packet: Arc<Packet>) -> Option<Arc<Packet>> {
        let beacons = self.control.iter().take_while(|p| p.is_beacon()).count();
        let waits = self.control.iter().take(beacons).position(|p| p.transmitter() == packet.transmitter());
        if let Some(outdated) = waits.and_then(|at| self.control.get_mut(at)) {
            return Some(std::mem::replace(outdated, packet));
        }
        self.control.insert(beacons, packet);
        None
    }

    /// Removes the packet to be served next.
    pub fn pop(&mut self) -> Option<Arc<Packet>> {
        self.control.pop_front().or_else(|| self.data.pop_front())
    }

    /// The packet for `dest` that is served next.
    pub fn front_for(&self, dest: Dest) -> Option<&Arc<Packet>> {
        self.control.iter().chain(&self.data).find(|packet| packet.dest == dest)
    }

    /// Removes the packet for `dest` that is served next.
    pub fn pop_for(&mut self, dest: Dest) -> Option<Arc<Packet>> {
        [&mut self.control, &mut self.data].into_iter().find_map(|queue| {
            let at = queue.iter().position(|packet| packet.dest == dest)?;
            queue.remove(at)
        })
    }

    /// The packet to be served next.
    pub fn front(&self) -> Option<&Arc<Packet>> {
        self.control.front().or_else(|| self.data.front())
    }

    /// Removes the packets for the unicast address `mac`, in order.
    pub fn purge(&mut self, mac: [u8; 6]) -> Vec<Arc<Packet>> {
        let mut out = Vec::new();
        for queue in [&mut self.control, &mut self.data] {
            queue.retain(|p| {
                let hit = p.dest != Dest::Broadcast && p.dest_mac == mac;
                if hit {
                    out.push(p.clone());
                }
                !hit
            });
        }
        out
    }

    /// Removes all packets, in the order of service.
    pub fn drain(&mut self) -> impl Iterator<Item = Arc<Packet>> + '_ {
        self.control.drain(..).chain(self.data.drain(..))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn packet(id: u64, dest: u16, control: bool) -> Arc<Packet> {
        Arc::new(Packet {
            id,
            dest: Dest::Station(dest),
            dest_mac: [2, 0, 0, 0, 0, dest as u8],
            ip_bytes: 1500,
            control,
            ethernet: [].into(),
            tag: 0,
            mpdu: None,
        })
    }

    fn order(q: &mut InterfaceQueue) -> Vec<u64> {
        std::iter::from_fn(|| q.pop()).map(|p| p.id).collect()
    }

    #[test]
    fn a_full_queue_drops_the_newcomer() {
        let mut q = InterfaceQueue::new(2, true);
        assert!(q.push(packet(1, 1, false)).is_none());
        assert!(q.push(packet(2, 1, false)).is_none());
        assert_eq!(q.push(packet(3, 1, false)).unwrap().id, 3);
        assert_eq!(order(&mut q), [1, 2]);
    }

    #[test]
    fn control_is_sent_first_and_displaces_data_from_a_full_queue() {
        let mut q = InterfaceQueue::new(2, true);
        q.push(packet(1, 1, false));
        q.push(packet(2, 1, false));
        assert_eq!(q.push(packet(3, 1, true)).unwrap().id, 2);
        assert!(q.push(packet(4, 1, true)).is_some_and(|p| p.id == 1));
        assert_eq!(q.push(packet(5, 1, true)).unwrap().id, 5, "a queue full of control drops like any other");
        assert_eq!(order(&mut q), [3, 4]);
    }

    #[test]
    fn without_priority_order_is_order_of_arrival() {
        let mut q = InterfaceQueue::new(5, false);
        for (id, control) in [(1, false), (2, true), (3, false)] {
            q.push(packet(id, 1, control));
        }
        assert_eq!(order(&mut q), [1, 2, 3]);
    }

    #[test]
    fn a_purge_takes_one_neighbours_packets_and_leaves_the_rest_in_order() {
        let mut q = InterfaceQueue::new(9, true);
        for (id, dest, control) in [(1, 7, false), (2, 8, false), (3, 7, true), (4, 8, false), (5, 7, false)] {
            q.push(packet(id, dest, control));
        }
        let out: Vec<u64> = q.purge([2, 0, 0, 0, 0, 7]).iter().map(|p| p.id).collect();
        assert_eq!(out, [3, 1, 5]);
        assert_eq!(order(&mut q), [2, 4]);
    }
}
