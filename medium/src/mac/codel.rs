//! CoDel (RFC 8289) over one first-in-first-out queue, as a machine whose time is injected.
//!
//! The decisions are those of sections 5.5 and 5.6, with ECN as in section 5.2.6 of RFC 8290. Departures, both of Linux
//! (`include/net/codel_impl.h`): a mark takes the place of a drop in the control law, and the last packet is never dropped
//! (`maxpacket_` is 0), as mac80211 leaves the `mtu` of its `codel_params` at 0 (`ieee80211_txq_setup_flows`, `net/mac80211/tx.c`).

use super::Packet;
use crate::wire::flow;
use manet_engine::{Duration, Instant};
use std::collections::VecDeque;
use std::sync::Arc;

/// Acceptable minimum of the time that packets wait. RFC 8289, section 4.3, has 5 ms for wired links; the value is mac80211's
/// (`ieee80211_txq_setup_flows`, `net/mac80211/tx.c`), as one A-MPDU already takes up to 5.5 ms.
pub const TARGET: Duration = Duration::from_millis(20);
/// The time that the minimum may be above the target, a worst-case round trip (RFC 8289, section 4.2; the same in mac80211).
pub const INTERVAL: Duration = Duration::from_millis(100);
/// A drop rate is remembered so many intervals (RFC 8289, section 5.5).
const MEMORY_INTERVALS: u64 = 16;

/// A packet that waits, and since when.
#[derive(Clone, Debug)]
struct Waiting {
    packet: Arc<Packet>,
    since: Instant,
}

/// Packets in the order of their arrival, with their total length.
#[derive(Clone, Debug, Default)]
pub struct Fifo {
    packets: VecDeque<Waiting>,
    bytes: u64,
}

impl Fifo {
    /// Number of packets.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Their total length, IP bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends a packet that waits from `now` on.
    pub fn push(&mut self, now: Instant, packet: Arc<Packet>) {
        self.bytes += u64::from(packet.ip_bytes);
        self.packets.push_back(Waiting { packet, since: now });
    }

    /// The packets in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Packet>> {
        self.packets.iter().map(|waiting| &waiting.packet)
    }

    /// Removes the oldest packet.
    pub fn pop(&mut self) -> Option<Arc<Packet>> {
        self.take().map(|waiting| waiting.packet)
    }

    fn take(&mut self) -> Option<Waiting> {
        let waiting = self.packets.pop_front()?;
        self.bytes -= u64::from(waiting.packet.ip_bytes);
        Some(waiting)
    }

    /// Removes the packets that `is_wanted` does not want; they are appended to `out` in order.
    pub fn retain(&mut self, is_wanted: impl Fn(&Packet) -> bool, out: &mut Vec<Arc<Packet>>) {
        let bytes = &mut self.bytes;
        self.packets.retain(|waiting| {
            let stays = is_wanted(&waiting.packet);
            if !stays {
                *bytes -= u64::from(waiting.packet.ip_bytes);
                out.push(waiting.packet.clone());
            }
            stays
        });
    }
}

/// A packet that leaves the queue to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dequeued {
    /// The packet.
    pub packet: Arc<Packet>,
    /// Whether CoDel marked it Congestion Experienced.
    pub is_marked: bool,
}

/// The state of the control loop of one queue (RFC 8289, section 5.2).
#[derive(Clone, Debug)]
pub struct Codel {
    /// The minimum has been above the target since [`INTERVAL`] before.
    first_above: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    count: u32,
    last_count: u32,
}

impl Default for Codel {
    fn default() -> Self {
        Self { first_above: None, dropping: false, drop_next: Instant::ZERO, count: 0, last_count: 0 }
    }
}

impl Codel {
    /// The packet that leaves `queue` at `now`, the `deque` of RFC 8289, section 5.5; packets dropped before it are appended to
    /// `dropped`. `None`: the queue is empty.
    pub fn dequeue(&mut self, now: Instant, queue: &mut Fifo, dropped: &mut Vec<Arc<Packet>>) -> Option<Dequeued> {
        let (mut next, may_drop) = self.take(now, queue);
        let mut is_marked = false;
        if self.dropping {
            self.dropping = may_drop;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if next.as_mut().is_some_and(mark) {
                    is_marked = true;
                    self.drop_next = control_law(self.drop_next, self.count);
                    break;
                }
                dropped.extend(next);
                (next, self.dropping) = self.take(now, queue);
                if self.dropping {
                    self.drop_next = control_law(self.drop_next, self.count);
                }
            }
        } else if may_drop {
            if next.as_mut().is_some_and(mark) {
                is_marked = true;
            } else {
                dropped.extend(next);
                (next, _) = self.take(now, queue); // the state begins whatever this one's delay is
            }
            self.dropping = true;
            let delta = self.count.saturating_sub(self.last_count);
            let is_recent = now.since(self.drop_next) < INTERVAL * MEMORY_INTERVALS;
            self.count = if delta > 1 && is_recent { delta } else { 1 };
            self.drop_next = control_law(now, self.count);
            self.last_count = self.count;
        }
        next.map(|packet| Dequeued { packet, is_marked })
    }

    /// The oldest packet, and whether the minimum of the delay has been above the target for an interval: `dodequeue` of section
    /// 5.6.
    fn take(&mut self, now: Instant, queue: &mut Fifo) -> (Option<Arc<Packet>>, bool) {
        let Some(Waiting { packet, since }) = queue.take() else {
            self.first_above = None;
            return (None, false);
        };
        if now.since(since) < TARGET || queue.is_empty() {
            self.first_above = None;
            return (Some(packet), false);
        }
        let first_above = *self.first_above.get_or_insert(now + INTERVAL);
        (Some(packet), now >= first_above)
    }
}

/// The time of the next drop: the drop rate grows with the square root of the number of drops (section 3.3).
fn control_law(at: Instant, count: u32) -> Instant {
    at + Duration::from_secs_f64(INTERVAL.as_secs_f64() / f64::from(count).sqrt())
}

/// Marks a packet Congestion Experienced; false: its transport is not capable of ECN.
fn mark(packet: &mut Arc<Packet>) -> bool {
    let mut frame = packet.ethernet.to_vec();
    let marked = flow::mark_congestion(&mut frame);
    if marked {
        *packet = Arc::new(Packet { ethernet: frame.into(), ..Packet::clone(packet) });
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::packet::tests::packet;
    use crate::wire::flow::tests::ipv4;

    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// A queue into which packet *n* comes at *n* ms, `packets` in all.
    fn filled(packets: u64) -> Fifo {
        let mut queue = Fifo::default();
        (0..packets).for_each(|n| queue.push(ms(n), packet(n, 1, false)));
        queue
    }

    /// Packets dropped at each dequeue at `times`, ms.
    fn drops(codel: &mut Codel, queue: &mut Fifo, times: impl Iterator<Item = u64>) -> Vec<(u64, Vec<u64>)> {
        let at = |t| {
            let mut dropped = Vec::new();
            codel.dequeue(ms(t), queue, &mut dropped);
            (t, dropped.iter().map(|packet| packet.id).collect::<Vec<u64>>())
        };
        times.map(at).filter(|(_, dropped)| !dropped.is_empty()).collect()
    }

    // RFC 8289, section 3.1: only a minimum above the target for an interval is a standing queue. Packet n leaves at 21 + 2n, after
    // 21 + n ms: above from 21 ms on, so the first drop is at the first dequeue from 121 ms on, of packet (121 - 21) / 2 = 50. Then
    // the gaps are 100 / sqrt(count) ms (section 3.3): 221 exactly, 221 + 70.7 = 291.7, 349.4, 399.4, each at the next odd ms
    #[test]
    fn drops_begin_an_interval_after_the_minimum_exceeds_the_target_and_come_faster() {
        let found = drops(&mut Codel::default(), &mut filled(400), (21..=401).step_by(2));
        let times: Vec<u64> = found.iter().map(|(t, _)| *t).collect();
        assert_eq!(times, [121, 221, 293, 351, 401]);
        assert_eq!(found[0].1, [50]);
    }

    // section 5.6: a delay below the target at any packet ends it
    #[test]
    fn one_packet_below_the_target_begins_the_interval_again() {
        let (mut codel, mut queue) = (Codel::default(), filled(60));
        assert_eq!(drops(&mut codel, &mut queue, (21..=119).step_by(2)), []);
        // packets 0 to 49 are gone; 50, which came at 50 ms, is new again at 119
        queue = Fifo::default();
        (100..300).for_each(|n| queue.push(ms(n), packet(n, 1, false)));
        assert_eq!(drops(&mut codel, &mut queue, std::iter::once(119)), [], "19 ms");
        // above again from 121 (packet 101) to 221
        assert_eq!(drops(&mut codel, &mut queue, (121..=221).step_by(2)).len(), 1);
    }

    #[test]
    fn a_delay_of_less_than_the_target_is_never_dropped() {
        let (mut codel, mut queue) = (Codel::default(), filled(1000));
        assert_eq!(drops(&mut codel, &mut queue, 19..1019), []);
    }

    // RFC 8289, section 5.6: no more than a packet's worth of queue is not worth dropping
    #[test]
    fn the_last_packet_is_sent_whatever_its_delay() {
        let (mut codel, mut queue) = (Codel::default(), filled(3));
        assert_eq!(drops(&mut codel, &mut queue, [1000].into_iter()), [], "above from now on");
        assert_eq!(drops(&mut codel, &mut queue, [2000].into_iter()), [(2000, vec![1])]);
        assert!(queue.is_empty());
    }

    // section 5.5: a few drops behind, one dequeue drops several
    #[test]
    fn a_late_dequeue_makes_up_for_the_drops_missed() {
        let (mut codel, mut queue) = (Codel::default(), filled(400));
        drops(&mut codel, &mut queue, [100, 200].into_iter()); // in the dropping state from 200 on
                                                               // due at 300, 370.7, 428.4, 478.4 and 523.1
        assert_eq!(drops(&mut codel, &mut queue, [500].into_iter())[0].1.len(), 4);
    }

    // section 5.5: the rate that controlled the queue is where the next state begins, if that was less than 16 intervals ago. Four
    // drops (count 4) lead to a first gap of 100 / sqrt(4 - 1)
    #[test]
    fn a_new_dropping_state_remembers_the_rate_of_a_recent_one() {
        for (pause, gap) in [(300, 58), (5000, 100)] {
            let (mut codel, mut queue) = (Codel::default(), filled(400));
            let begin = drops(&mut codel, &mut queue, (21..=351).step_by(2));
            assert_eq!(begin.len(), 4);
            codel.take(ms(352), &mut Fifo::default()); // empty for a moment
            codel.dequeue(ms(352), &mut Fifo::default(), &mut Vec::new());
            let again = 352 + pause;
            let times = drops(&mut codel, &mut queue, again..again + 300);
            assert_eq!(times[0].0, again + 100);
            assert_eq!(times[1].0 - times[0].0, gap);
        }
    }

    // RFC 8290, section 5.2.6: packets that are ECN-capable are marked, not dropped; the rate of marks is that of drops
    #[test]
    fn capable_packets_are_marked_at_the_rate_of_drops() {
        let (mut codel, mut queue) = (Codel::default(), Fifo::default());
        let ect0: Arc<[u8]> = ipv4(2, 6, 0, &[0; 20]).into();
        for n in 0..400 {
            queue.push(ms(n), Arc::new(Packet { ethernet: ect0.clone(), ..Packet::clone(&packet(n, 1, false)) }));
        }
        let mut dropped = Vec::new();
        let sent = (21..=401).step_by(2).map(|t| (t, codel.dequeue(ms(t), &mut queue, &mut dropped).unwrap()));
        let (marked, others): (Vec<_>, Vec<_>) = sent.partition(|(_, one)| one.is_marked);
        assert_eq!(marked.iter().map(|(t, _)| *t).collect::<Vec<u64>>(), [121, 221, 293, 351, 401]);
        assert!(marked.iter().all(|(_, one)| *one.packet.ethernet == *ipv4(3, 6, 0, &[0; 20])));
        assert!(others.iter().all(|(_, one)| one.packet.ethernet == ect0));
        assert!(dropped.is_empty());
    }
}
