//! The maintenance buffer (RFC 4728, sections 4.5, 8.3.2 and 8.3.3): packets sent to a next hop that has not shown yet that it
//! is there. Used when the radio does not tell of failed frames.
//!
//! One packet a next hop is watched at a time, those after it ride with it: they are given back if the link turns out broken,
//! but only the watched one is sent again (repeating each fills a queue that is merely long).
//! Once the watched one had to be sent again the link is in doubt, and what follows waits here instead of in the radio's queue,
//! where retries to somebody gone hold up everything else.
//! The first attempt is confirmed by overhearing the next hop pass the packet on (not where the packet ends there); after
//! that the packet is sent again with an acknowledgement request, `retries` times. Any sign of life of a next hop confirms
//! all that was sent to it before: what is maintained is the link, not the packet.

use crate::datagram::Datagram;
use crate::wire::{AckRequest, Opt};
use manet_engine::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// RexmtBufferSize (section 9).
const PACKETS: usize = 50;
/// Neighbours whose round-trip times are remembered.
const NEIGHBOURS: usize = 256;
/// Bounds of the adaptive wait for an acknowledgement, which doubles with each retry (8.3.3 asks for one, names none). A queue of
/// full frames before the answer is no break: 50 ms are seven of them at 2 Mbit/s.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_millis(1000);

#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// PassiveAckTimeout; also the first wait for an acknowledgement.
    pub passive: Duration,
    /// MaintHoldoffTime: a confirmed next hop is not asked again for so long.
    pub holdoff: Duration,
    /// MaxMaintRexmt.
    pub retries: u32,
}

#[derive(Clone, Debug)]
struct Unconfirmed {
    next: Ipv4Addr,
    /// As sent, without acknowledgement request.
    packet: Datagram,
    identification: u16,
    /// Times sent with an acknowledgement request.
    asked: u32,
    sent: Instant,
    /// When its wait is over; `None`: it rides with another to the same next hop.
    at: Option<Instant>,
    /// Sent more than once: the link is in doubt.
    again: bool,
    /// Kept back because the link was in doubt already.
    unsent: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Neighbour {
    confirmed: Option<Instant>,
    /// Smoothed round-trip time and its deviation (RFC 6298, section 2), nanoseconds.
    rtt: Option<(u64, u64)>,
}

/// What is to be done when a wait is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// Send this again.
    Again(Ipv4Addr, Datagram),
    /// The link to this neighbour is broken; these packets were under way to it.
    Broken(Ipv4Addr, Vec<Datagram>),
}

#[derive(Clone, Debug)]
pub struct Maintenance {
    pace: Pace,
    packets: Vec<Unconfirmed>,
    neighbours: BTreeMap<Ipv4Addr, Neighbour>,
    identification: u16,
    /// Kept back until their next hop was confirmed: to be sent now.
    released: VecDeque<(Ipv4Addr, Datagram)>,
}

impl Maintenance {
    pub fn new(pace: Pace) -> Self {
        Self { pace, packets: Vec::new(), neighbours: BTreeMap::new(), identification: 0, released: VecDeque::new() }
    }

    /// The packet as it is to be sent to `next`, perhaps with an acknowledgement request; remembered until confirmed.
    /// `None`: not now, the link is in doubt.
    pub fn send(&mut self, now: Instant, next: Ipv4Addr, packet: Datagram) -> Option<Datagram> {
        let confirmed = self.neighbours.get(&next).and_then(|n| n.confirmed);
        if confirmed.is_some_and(|at| now.since(at) < self.pace.holdoff) {
            return Some(packet);
        }
        if self.packets.len() >= PACKETS {
            // not a watched one: those that ride with it would wait for ever
            match self.packets.iter().position(|p| p.at.is_none()) {
                Some(oldest) => drop(self.packets.remove(oldest)),
                None => return Some(packet),
            }
        }
        self.identification = self.identification.wrapping_add(1);
        let rides = self.packets.iter().any(|p| p.next == next);
        let unsent = self.packets.iter().any(|p| p.next == next && p.at.is_some() && p.again);
        let passive = rides || packet.destination() != next;
        let wait = if passive { self.pace.passive } else { self.wait(next) };
        let asked = u32::from(!passive);
        let at = (!rides).then(|| now + wait);
        let identification = self.identification;
        let entry = Unconfirmed { next, packet, identification, asked, sent: now, at, again: false, unsent };
        let out = (!unsent).then(|| entry.as_sent());
        self.packets.push(entry);
        out
    }

    /// An acknowledgement came from `next`. False: of nothing that waits.
    pub fn acknowledged(&mut self, now: Instant, next: Ipv4Addr, identification: u16) -> bool {
        let entry = self.packets.iter().find(|p| p.next == next && p.identification == identification);
        let waited = entry.map(|e| (e.asked, e.sent));
        if let Some((1, sent)) = waited {
            // of a packet asked for twice one cannot say which was answered (Karn)
            self.measure(next, (now - sent).as_nanos());
        }
        // a late one shows as well that the neighbour is there
        self.alive(now, next);
        waited.is_some()
    }

    /// A packet was overheard: does it show that a next hop passed ours on (8.3.2)?
    pub fn overheard(&mut self, now: Instant, heard: &Datagram) -> Option<Ipv4Addr> {
        let left = heard.source_route()?.segments_left;
        let passed_on = |p: &&Unconfirmed| {
            let ours = p.packet.source_route().map(|r| r.segments_left);
            p.packet.fingerprint() == heard.fingerprint() && ours.is_some_and(|ours| left < ours)
        };
        let next = self.packets.iter().find(passed_on)?.next;
        self.alive(now, next);
        Some(next)
    }

    /// `next` is there: nothing sent to it waits any more.
    pub fn alive(&mut self, now: Instant, next: Ipv4Addr) {
        let (of_next, left) = std::mem::take(&mut self.packets).into_iter().partition(|p| p.next == next);
        self.packets = left;
        let of_next: Vec<Unconfirmed> = of_next;
        self.released.extend(of_next.into_iter().filter(|p| p.unsent).map(|p| (next, p.packet)));
        self.neighbour(next).confirmed = Some(now);
    }

    /// The next packet that was kept back and may go.
    pub fn release(&mut self) -> Option<(Ipv4Addr, Datagram)> {
        self.released.pop_front()
    }

    /// The first wait that is over.
    pub fn due(&mut self, now: Instant) -> Option<Due> {
        let watched = self.packets.iter().enumerate().filter_map(|(i, p)| Some((p.at?, i)));
        let (_, index) = watched.filter(|(at, _)| *at <= now).min()?;
        let next = self.packets[index].next;
        if self.packets[index].asked > self.pace.retries {
            return Some(Due::Broken(next, self.broken(next)));
        }
        let wait = self.wait(next);
        let entry = &mut self.packets[index];
        let wait = (wait * (1 << entry.asked.min(4))).min(LONGEST);
        entry.asked += 1;
        entry.again = true;
        entry.sent = now;
        entry.at = Some(now + wait);
        Some(Due::Again(next, entry.as_sent()))
    }

    /// Gives back all that was under way to `next`, oldest first.
    pub fn broken(&mut self, next: Ipv4Addr) -> Vec<Datagram> {
        self.neighbours.remove(&next);
        let (gone, left) = std::mem::take(&mut self.packets).into_iter().partition(|p| p.next == next);
        self.packets = left;
        let gone: Vec<Unconfirmed> = gone;
        gone.into_iter().map(|p| p.packet).collect()
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        self.packets.iter().filter_map(|p| p.at).min()
    }

    pub fn len(&self) -> usize {
        self.packets.len()
    }

    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    fn wait(&self, next: Ipv4Addr) -> Duration {
        let rtt = self.neighbours.get(&next).and_then(|n| n.rtt);
        let wait = rtt.map_or(self.pace.passive, |(mean, deviation)| Duration::from_nanos(mean + 4 * deviation));
        wait.clamp(SHORTEST, LONGEST)
    }

    fn measure(&mut self, next: Ipv4Addr, sample: u64) {
        let rtt = &mut self.neighbour(next).rtt;
        *rtt = Some(match *rtt {
            None => (sample, sample / 2),
            Some((mean, deviation)) => ((7 * mean + sample) / 8, (3 * deviation + mean.abs_diff(sample)) / 4),
        });
    }

    fn neighbour(&mut self, next: Ipv4Addr) -> &mut Neighbour {
        if !self.neighbours.contains_key(&next) && self.neighbours.len() >= NEIGHBOURS {
            let oldest = self.neighbours.iter().min_by_key(|(_, n)| n.confirmed).map(|(who, _)| *who);
            oldest.map(|who| self.neighbours.remove(&who));
        }
        self.neighbours.entry(next).or_default()
    }
}

impl Unconfirmed {
    fn as_sent(&self) -> Datagram {
        let mut packet = self.packet.clone();
        if self.asked > 0 {
            packet.options.push(Opt::AckRequest(AckRequest { identification: self.identification }));
        }
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const PACE: Pace = Pace { passive: Duration::from_millis(100), holdoff: Duration::from_millis(250), retries: 2 };

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn packet(id: u16) -> Datagram {
        Datagram::control(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 9), id, Vec::new())
    }

    /// 20 packets in 20 ms to a next hop that has not been confirmed.
    fn loaded() -> Maintenance {
        let mut maintenance = Maintenance::new(PACE);
        (0..20).for_each(|n| drop(maintenance.send(at(u64::from(n)), NEXT, packet(n))));
        maintenance
    }

    #[test]
    fn of_many_packets_to_a_silent_neighbour_only_one_is_sent_again() {
        let mut maintenance = loaded();
        let mut again = 0;
        while let Some(next) = maintenance.next_timeout() {
            match maintenance.due(next) {
                Some(Due::Again(..)) => again += 1,
                Some(Due::Broken(_, packets)) => assert_eq!(packets.len(), 20),
                None => unreachable!("a deadline with nothing due"),
            }
        }
        assert_eq!(again, 3); // the request and MaxMaintRexmt more
        assert!(maintenance.is_empty());
    }

    #[test]
    fn a_link_in_doubt_gets_nothing_more_until_it_is_confirmed_and_then_all_in_order() {
        let mut maintenance = loaded();
        assert!(matches!(maintenance.due(at(100)), Some(Due::Again(..))));
        let kept: Vec<Datagram> = (20..25).map(packet).collect();
        for packet in &kept {
            assert_eq!(maintenance.send(at(101), NEXT, packet.clone()), None);
        }
        maintenance.alive(at(110), NEXT);
        let released: Vec<Datagram> = std::iter::from_fn(|| maintenance.release()).map(|(_, p)| p).collect();
        assert_eq!(released, kept);
    }

    #[test]
    fn a_late_acknowledgement_confirms_the_neighbour_all_the_same() {
        let mut maintenance = loaded();
        assert!(!maintenance.acknowledged(at(50), NEXT, 999));
        assert_eq!((maintenance.len(), maintenance.next_timeout()), (0, None));
    }

    #[test]
    fn the_buffer_holds_fifty_packets_and_keeps_the_watched_one() {
        let mut maintenance = Maintenance::new(PACE);
        (0..200).for_each(|n| drop(maintenance.send(at(0), NEXT, packet(n))));
        assert_eq!((maintenance.len(), maintenance.next_timeout()), (50, Some(at(100))));
    }
}
