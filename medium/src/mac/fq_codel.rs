//! FQ-CoDel (RFC 8290) as mac80211 has it: for each receiver a set of flow queues under CoDel, and airtime fairness among the
//! receivers.
//!
//! A receiver's packets are spread over [`FLOWS`] queues by a seeded hash of their flow. Queues are served by deficit round robin,
//! those that have just become busy first (sections 4.1 and 4.2), so a sparse flow does not wait behind a bulk transfer. Receivers
//! are served by a deficit round robin of their own, in time on the air (`ieee80211_next_txq`, `net/mac80211/tx.c`), so a slow link
//! does not take the time of the others.
//!
//! Values and the treatment of a full queue are those of Linux 6.x: `include/net/fq_impl.h` and `ieee80211_txq_setup_flows`.
//! Departures: each receiver has [`FLOWS`] queues of its own, while mac80211's receivers share 4096 and move a packet that collides
//! with another receiver's to a queue of the receiver; the memory of a packet is its IP length, not its `truesize`; airtime is that
//! of data frames sent, received ones and responses are not counted; no limit on what waits in the hardware (AQL), since nothing
//! does.

use super::codel::{Codel, Dequeued, Fifo};
use super::{Dest, Packet};
use crate::wire::flow;
use manet_engine::random::mix;
use manet_engine::{Duration, Instant};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Flow queues of each receiver (`fq_init(fq, 4096)`, `net/mac80211/tx.c`; RFC 8290, section 5.2.5, has 1024).
pub const FLOWS: u64 = 4096;
/// Bytes that a queue may send in a round (`fq_init`, `include/net/fq_impl.h`; RFC 8290, section 5.2.4, has 1514 and names 300 for
/// slow links).
pub const QUANTUM_BYTES: i64 = 300;
/// Packets that may wait (`fq_init`, `include/net/fq_impl.h`; RFC 8290, section 5.2.3, has 10240).
pub const LIMIT_PACKETS: usize = 8192;
/// Bytes that may wait (`fq_init`, `include/net/fq_impl.h`).
pub const MEMORY_BYTES: u64 = 16 << 20;
/// The same without VHT: 64 of the longest A-MPDUs of 802.11n (`ieee80211_txq_setup_flows`, `net/mac80211/tx.c`).
pub const MEMORY_BYTES_BEFORE_VHT: u64 = 4 << 20;
/// Packets that a full queue drops at most at once (`fq_flow_drop`, `include/net/fq_impl.h`; RFC 8290, section 4.1, has 64).
const BATCH: usize = 32;
/// Time on the air that a receiver may take in a round (`IEEE80211_DEFAULT_AIRTIME_WEIGHT`, us, `net/mac80211/ieee80211_i.h`).
pub const AIRTIME_QUANTUM: Duration = Duration::from_micros(256);

#[derive(Clone, Debug, Default)]
struct Flow {
    packets: Fifo,
    codel: Codel,
    /// Bytes that it may still send in this round.
    deficit: i64,
    /// Whether it is in one of the two lists.
    is_listed: bool,
}

/// A receiver's flows.
#[derive(Clone, Debug)]
struct Peer {
    flows: HashMap<u16, Flow>,
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    packets: usize,
    /// Time on the air that it may still take in this round, ns.
    deficit_ns: i64,
    is_scheduled: bool,
}

impl Default for Peer {
    fn default() -> Self {
        let (flows, new, old) = (HashMap::new(), VecDeque::new(), VecDeque::new());
        Self { flows, new, old, packets: 0, deficit_ns: AIRTIME_QUANTUM.as_nanos() as i64, is_scheduled: false }
    }
}

/// The packets that wait at a station.
#[derive(Clone, Debug)]
pub struct FqCodel {
    perturbation: u64,
    limit: usize,
    memory: u64,
    peers: HashMap<Dest, Peer>,
    /// The receivers for which something waits, the next one first; some that have nothing left.
    schedule: VecDeque<Dest>,
    len: usize,
    bytes: u64,
}

impl FqCodel {
    /// `perturbation`: of the hash; `memory`: bytes that may wait.
    pub fn new(perturbation: u64, memory: u64) -> Self {
        let (peers, schedule) = (HashMap::new(), VecDeque::new());
        Self { perturbation, limit: LIMIT_PACKETS, memory, peers, schedule, len: 0, bytes: 0 }
    }

    /// Number of packets that wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a packet to its flow. A full queue drops from the head of the longest flow; those packets are appended to `dropped`.
    pub fn push(&mut self, now: Instant, packet: Arc<Packet>, dropped: &mut Vec<Arc<Packet>>) {
        let hash = match packet.ethernet.is_empty() {
            true => mix(self.perturbation ^ u64::from(packet.synthetic_flow())),
            false => flow::hash(&packet.ethernet, self.perturbation),
        };
        let bucket = ((u128::from(hash) * u128::from(FLOWS)) >> 64) as u16;
        self.activate(packet.dest);
        let peer = self.peers.entry(packet.dest).or_default();
        let flow = peer.flows.entry(bucket).or_default();
        self.len += 1;
        self.bytes += u64::from(packet.ip_bytes);
        peer.packets += 1;
        flow.packets.push(now, packet);
        if !std::mem::replace(&mut flow.is_listed, true) {
            flow.deficit = QUANTUM_BYTES;
            peer.new.push_back(bucket);
        }
        while self.len > self.limit || self.bytes > self.memory {
            self.drop_from_longest(dropped);
        }
    }

    /// A receiver that has something comes to the head of the schedule: its deficit, not its place, decides when it is its turn
    /// (`__ieee80211_schedule_txq`). Broadcasts have no deficit and come to the tail.
    fn activate(&mut self, dest: Dest) {
        if std::mem::replace(&mut self.peers.entry(dest).or_default().is_scheduled, true) {
            return;
        }
        match dest {
            Dest::Station(_) => self.schedule.push_front(dest),
            Dest::Broadcast | Dest::Unknown => self.schedule.push_back(dest),
        }
    }

    /// Drops half of the flow with the most bytes, at most [`BATCH`] packets; of equal flows the one that is served first.
    fn drop_from_longest(&mut self, dropped: &mut Vec<Arc<Packet>>) {
        let mut longest: Option<(u64, Dest, u16)> = None;
        for dest in &self.schedule {
            let peer = &self.peers[dest];
            for bucket in peer.new.iter().chain(&peer.old) {
                let bytes = peer.flows[bucket].packets.bytes();
                if longest.is_none_or(|(most, ..)| bytes > most) {
                    longest = Some((bytes, *dest, *bucket));
                }
            }
        }
        let (_, dest, bucket) = longest.expect("something waits");
        let peer = self.peers.get_mut(&dest).expect("it is scheduled");
        let flow = peer.flows.get_mut(&bucket).expect("it is listed");
        for _ in 0..(flow.packets.len() / 2).clamp(1, BATCH) {
            let packet = flow.packets.pop().expect("at most half of it");
            (self.len, peer.packets) = (self.len - 1, peer.packets - 1);
            self.bytes -= u64::from(packet.ip_bytes);
            dropped.push(packet);
        }
    }

    /// The receiver whose turn it is. `resends`: those that have packets to be sent again, which the queue does not hold.
    pub fn next_dest(&mut self, resends: &[u16]) -> Option<Dest> {
        for peer in resends {
            self.activate(Dest::Station(*peer));
        }
        loop {
            let dest = *self.schedule.front()?;
            let peer = self.peers.get_mut(&dest).expect("it is scheduled");
            let resends = dest.station().is_some_and(|peer| resends.contains(&peer));
            if peer.packets == 0 && !resends {
                peer.is_scheduled = false;
                self.schedule.pop_front();
                continue;
            }
            if dest.station().is_none() {
                self.schedule.rotate_left(1);
                return Some(dest);
            }
            if peer.deficit_ns >= 0 {
                return Some(dest);
            }
            peer.deficit_ns += AIRTIME_QUANTUM.as_nanos() as i64;
            self.schedule.rotate_left(1);
        }
    }

    /// A frame to `dest` takes `airtime`.
    pub fn charge(&mut self, dest: Dest, airtime: Duration) {
        if let Some(peer) = self.peers.get_mut(&dest) {
            peer.deficit_ns -= airtime.as_nanos() as i64;
        }
    }

    /// Removes the next packet for `dest`; those that CoDel drops before it are appended to `dropped` (RFC 8290, section 4.2).
    /// `None`: nothing waits for it.
    pub fn pop_for(&mut self, now: Instant, dest: Dest, dropped: &mut Vec<Arc<Packet>>) -> Option<Dequeued> {
        let peer = self.peers.get_mut(&dest)?;
        loop {
            let is_new = !peer.new.is_empty();
            let bucket = *peer.new.front().or(peer.old.front())?;
            let list = if is_new { &mut peer.new } else { &mut peer.old };
            let flow = peer.flows.get_mut(&bucket).expect("it is listed");
            if flow.deficit <= 0 {
                flow.deficit += QUANTUM_BYTES;
                list.pop_front();
                peer.old.push_back(bucket);
                continue;
            }
            let before = dropped.len();
            let next = flow.codel.dequeue(now, &mut flow.packets, dropped);
            for gone in dropped[before..].iter().chain(next.as_ref().map(|next| &next.packet)) {
                (self.len, peer.packets) = (self.len - 1, peer.packets - 1);
                self.bytes -= u64::from(gone.ip_bytes);
            }
            if let Some(next) = next {
                flow.deficit -= i64::from(next.packet.ip_bytes);
                return Some(next);
            }
            // section 4.2: an empty new queue passes through the old ones once, so that it cannot starve them
            list.pop_front();
            if is_new && !peer.old.is_empty() {
                peer.old.push_back(bucket);
            } else {
                flow.is_listed = false;
            }
        }
    }

    /// The packet for `dest` at the head of the flow whose turn it is, which CoDel may still drop. `None`: nothing waits for it.
    pub fn front_for(&self, dest: Dest) -> Option<&Arc<Packet>> {
        let peer = self.peers.get(&dest)?;
        peer.new.iter().chain(&peer.old).find_map(|bucket| peer.flows[bucket].packets.iter().next())
    }

    /// All packets, receiver by receiver and flow by flow in the order of their turns.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Packet>> {
        let peers = self.schedule.iter().map(|dest| &self.peers[dest]);
        peers.flat_map(|peer| peer.new.iter().chain(&peer.old).flat_map(|bucket| peer.flows[bucket].packets.iter()))
    }

    /// Removes the packets that `is_wanted` does not want, in the order of [`Self::iter`].
    pub fn retain(&mut self, is_wanted: impl Fn(&Packet) -> bool) -> Vec<Arc<Packet>> {
        let mut out = Vec::new();
        for dest in &self.schedule {
            let peer = self.peers.get_mut(dest).expect("it is scheduled");
            let before = out.len();
            for bucket in peer.new.iter().chain(&peer.old) {
                peer.flows.get_mut(bucket).expect("it is listed").packets.retain(&is_wanted, &mut out);
            }
            peer.packets -= out.len() - before;
        }
        self.len -= out.len();
        self.bytes -= out.iter().map(|packet| u64::from(packet.ip_bytes)).sum::<u64>();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::packet::tests::packet;

    const PEER: Dest = Dest::Station(1);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// A synthetic packet of a flow to a peer.
    fn of_flow(id: u64, dest: u16, flow: u64, bytes: u32) -> Arc<Packet> {
        Arc::new(Packet { ip_bytes: bytes, tag: flow << 48, ..Packet::clone(&packet(id, dest, false)) })
    }

    fn queue() -> FqCodel {
        FqCodel::new(1, MEMORY_BYTES)
    }

    /// Pushes packets of a flow, of which none is dropped.
    fn fill(queue: &mut FqCodel, ids: impl Iterator<Item = u64>, dest: u16, flow: u64, bytes: u32) {
        let mut dropped = Vec::new();
        ids.for_each(|id| queue.push(at(0), of_flow(id, dest, flow, bytes), &mut dropped));
        assert!(dropped.is_empty());
    }

    /// The next `count` packets to the peer, before any has waited for long.
    fn next(queue: &mut FqCodel, count: usize) -> Vec<Arc<Packet>> {
        let mut dropped = Vec::new();
        (0..count).map_while(|_| queue.pop_for(at(1), PEER, &mut dropped)).map(|next| next.packet).collect()
    }

    fn ids(packets: &[Arc<Packet>]) -> Vec<u64> {
        packets.iter().map(|packet| packet.id).collect()
    }

    // RFC 8290, section 4.2: deficit round robin in bytes. Both send 5 packets of 300 bytes' worth for each quantum of 300
    #[test]
    fn flows_share_bytes_whatever_their_packets_length() {
        let mut q = queue();
        fill(&mut q, 1..1001, 1, 1, 1500);
        fill(&mut q, 1001..6001, 1, 2, 300);
        let sent = next(&mut q, 600);
        let bytes_of = |flow| sent.iter().filter(|p| p.tag >> 48 == flow).map(|p| i64::from(p.ip_bytes)).sum::<i64>();
        assert!((bytes_of(1) - bytes_of(2)).abs() <= 1500 + QUANTUM_BYTES, "{} {}", bytes_of(1), bytes_of(2));
    }

    // section 4.2: new flows come first
    #[test]
    fn a_flow_that_has_just_become_busy_precedes_the_others() {
        let mut q = queue();
        fill(&mut q, 1..11, 1, 1, 1500);
        assert_eq!(ids(&next(&mut q, 3)), [1, 2, 3]);
        fill(&mut q, 11..12, 1, 2, 100);
        assert_eq!(ids(&next(&mut q, 2)), [11, 4]);
    }

    // section 4.2: an empty new queue goes to the end of the old ones, so that one that sends a packet at a time has one turn in a
    // round
    #[test]
    fn a_flow_of_single_packets_does_not_starve_the_others() {
        let mut q = queue();
        fill(&mut q, 1..11, 1, 1, 300);
        assert_eq!(ids(&next(&mut q, 1)), [1]);
        let mut turns = Vec::new();
        for id in 11..15 {
            fill(&mut q, id..id + 1, 1, 2, 300);
            turns.extend(ids(&next(&mut q, 2)));
        }
        assert_eq!(turns, [11, 2, 12, 3, 13, 4, 14, 5]);
    }

    #[test]
    fn a_flow_that_was_removed_begins_with_a_full_quantum_again() {
        let mut q = queue();
        fill(&mut q, 1..2, 1, 1, 1500); // its deficit is 300 - 1500 afterwards
        assert_eq!(ids(&next(&mut q, 2)), [1]);
        fill(&mut q, 2..3, 1, 2, 300);
        fill(&mut q, 3..4, 1, 1, 1500);
        assert_eq!(ids(&next(&mut q, 2)), [2, 3]);
    }

    // section 4.1: from the head of the flow with the most bytes, in batches
    #[test]
    fn a_full_queue_drops_from_the_head_of_the_longest_flow() {
        let mut q = FqCodel::new(1, 20_000);
        fill(&mut q, 1..13, 1, 1, 1500); // 18000 bytes
        fill(&mut q, 13..18, 2, 2, 100); // 500 bytes in more packets than there is room for later
        let mut dropped = Vec::new();
        q.push(at(0), of_flow(18, 2, 2, 1500), &mut dropped);
        assert!(dropped.is_empty(), "20000 bytes are no more than the limit");
        q.push(at(0), of_flow(19, 2, 2, 1), &mut dropped);
        assert_eq!(ids(&dropped), [1, 2, 3, 4, 5, 6], "half of the twelve");
        assert_eq!((q.len(), ids(&next(&mut q, 1))), (13, vec![7]));
    }

    // at most 32 at once (fq_flow_drop)
    #[test]
    fn more_packets_than_the_limit_are_dropped_in_batches() {
        let mut q = queue();
        fill(&mut q, 0..LIMIT_PACKETS as u64, 1, 1, 40);
        let mut dropped = Vec::new();
        q.push(at(0), of_flow(LIMIT_PACKETS as u64, 1, 2, 40), &mut dropped);
        assert_eq!(ids(&dropped), (0..32).collect::<Vec<u64>>());
        assert_eq!(q.len(), LIMIT_PACKETS + 1 - 32);
    }

    // section 4.2, RFC 8289: each flow has a control loop of its own. The bulk flow fills 10 ms a packet, the sparse one never
    // waits
    #[test]
    fn codel_drops_of_the_flow_that_waits() {
        let mut q = queue();
        let (mut dropped, mut id, mut sparse) = (Vec::new(), 0, 0);
        for ms in 0..1000 {
            if ms % 4 == 0 {
                id += 1;
                q.push(at(ms), of_flow(id, 1, 1, 1500), &mut dropped);
            }
            if ms % 100 == 0 {
                id += 1;
                q.push(at(ms), of_flow(id, 1, 2, 100), &mut dropped);
            }
            if ms % 5 == 0 {
                sparse +=
                    u64::from(q.pop_for(at(ms), PEER, &mut dropped).is_some_and(|next| next.packet.tag >> 48 == 2));
            }
        }
        assert_eq!(sparse, 10);
        assert!(dropped.len() > 5 && dropped.iter().all(|packet| packet.tag >> 48 == 1), "{}", dropped.len());
    }

    // net/mac80211/tx.c, ieee80211_next_txq: a peer at a tenth of the rate sends a tenth of the packets, so that both take as long
    #[test]
    fn peers_share_the_time_on_the_air_whatever_their_rates() {
        let mut q = queue();
        fill(&mut q, 1..2001, 1, 1, 1500);
        fill(&mut q, 2001..4001, 2, 2, 1500);
        let (mut sent, mut dropped) = ([0_u64; 2], Vec::new());
        for _ in 0..1100 {
            let Some(Dest::Station(peer)) = q.next_dest(&[]) else { unreachable!("both have packets") };
            assert!(q.pop_for(at(1), Dest::Station(peer), &mut dropped).is_some());
            q.charge(Dest::Station(peer), Duration::from_micros(if peer == 1 { 200 } else { 2000 }));
            sent[usize::from(peer - 1)] += 1;
        }
        assert!(sent[0].abs_diff(1000) <= 20 && sent[1].abs_diff(100) <= 2, "{sent:?}");
    }

    #[test]
    fn a_peer_whose_airtime_is_used_up_waits_for_the_others_only() {
        let mut q = queue();
        fill(&mut q, 1..3, 1, 1, 1500);
        q.charge(PEER, Duration::from_millis(100));
        assert_eq!(q.next_dest(&[]), Some(PEER), "no other wants the air");
        q.charge(PEER, Duration::from_millis(100));
        fill(&mut q, 3..4, 2, 1, 1500);
        assert_eq!(q.next_dest(&[]), Some(Dest::Station(2)));
    }

    // broadcasts have no peer and no deficit: one in each round
    #[test]
    fn broadcasts_take_turns_with_the_peers() {
        let mut q = queue();
        fill(&mut q, 1..9, 1, 1, 1500);
        let mut dropped = Vec::new();
        for id in 11..14 {
            q.push(
                at(0),
                Arc::new(Packet { dest: Dest::Broadcast, ..Packet::clone(&packet(id, 9, false)) }),
                &mut dropped,
            );
        }
        let mut turns = Vec::new();
        while let Some(dest) = q.next_dest(&[]) {
            turns.push(q.pop_for(at(1), dest, &mut dropped).unwrap().packet.id);
            q.charge(dest, AIRTIME_QUANTUM + Duration::from_nanos(1));
        }
        assert_eq!(turns, [1, 11, 2, 12, 3, 13, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn a_peer_with_nothing_but_packets_to_be_sent_again_has_its_turn() {
        let mut q = queue();
        fill(&mut q, 1..3, 1, 1, 1500);
        q.next_dest(&[]);
        q.charge(PEER, AIRTIME_QUANTUM * 2);
        assert_eq!(q.next_dest(&[7]), Some(Dest::Station(7)));
        assert_eq!(q.next_dest(&[]), Some(PEER), "it has none left");
    }

    // section 4.1: the same hash, the same flow; another seed, other collisions
    #[test]
    fn queues_depend_on_the_perturbation() {
        let queues = |perturbation| {
            let mut q = FqCodel::new(perturbation, MEMORY_BYTES);
            (0..300).for_each(|flow| fill(&mut q, flow..flow + 1, 1, flow, 100));
            q.peers[&PEER].new.iter().copied().collect::<Vec<u16>>()
        };
        assert_eq!(queues(5), queues(5));
        assert_ne!(queues(5), queues(6));
        // of 300 flows in 4096 queues 300 * 299 / 2 / 4096 = 11 pairs collide in the mean
        assert!((270..=300).contains(&queues(5).len()), "{}", queues(5).len());
    }
}
