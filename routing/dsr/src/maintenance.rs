//! The maintenance buffer (RFC 4728, sections 4.5, 8.3.2 and 8.3.3): packets sent to a next hop that has not shown yet
//! that it is there. Used when the radio does not report failed frames.
//!
//! One packet a next hop is watched at a time, those after it ride with it: they are given back if the link turns out
//! broken, but only the watched one is sent again (repeating each fills a queue that is merely long). Once the watched
//! one had to be sent again the link is in doubt, and what follows waits here instead of in the radio's queue, where
//! retries to somebody gone hold up everything else. The first attempt is confirmed by overhearing the next hop pass
//! the packet on (not where the packet ends there); after that the packet is sent again with an acknowledgement
//! request, `retries` times. Any sign of life of a next hop confirms all that was sent to it before: what is maintained
//! is the link, not the packet.
//!
//! Two things keep a busy air from being taken for broken links. Each request has an identification of its own, so that
//! late answers to repeated ones are samples of the round-trip time too: the wait follows the queues. And any frame
//! heard from a next hop that is waited for shows that it is within reach (departure from 8.3.2; links are taken for
//! bidirectional anyway), a few times in a row: a neighbour that is heard but does not hear is found out in the end.

use crate::datagram::Datagram;
use crate::wire::{AckRequest, Opt};
use manet_engine::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// RexmtBufferSize (section 9).
const PACKETS: usize = 50;
/// Requests under way whose answers can be matched.
const ASKED: usize = 256;
/// Times in a row that being heard stands for an acknowledgement.
const PRESUMED: u32 = 8;
/// Neighbours whose round-trip times are remembered.
const NEIGHBOURS: usize = 256;
/// Bounds of the adaptive wait for an acknowledgement, which doubles with each retry (8.3.3 asks for one, names none).
/// A queue of full frames before the answer is no break: 50 ms are seven of them at 2 Mbit/s.
const MIN_WAIT: Duration = Duration::from_millis(50);
const MAX_WAIT: Duration = Duration::from_millis(1000);

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
    /// Of the acknowledgement request sent last.
    identification: u16,
    /// Times sent with an acknowledgement request.
    asked: u32,
    /// First handed over.
    since: Instant,
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
    /// Times confirmed by being heard since the last acknowledgement.
    presumed: u32,
}

/// An acknowledgement request on its way.
#[derive(Clone, Copy, Debug)]
struct Asked {
    next: Ipv4Addr,
    identification: u16,
    sent: Instant,
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
    /// Oldest first.
    asked: VecDeque<Asked>,
    /// Kept back until their next hop was confirmed: to be sent now.
    released: VecDeque<(Ipv4Addr, Datagram)>,
}

impl Maintenance {
    pub fn new(pace: Pace) -> Self {
        let (neighbours, asked, released) = (BTreeMap::new(), VecDeque::new(), VecDeque::new());
        Self { pace, packets: Vec::new(), neighbours, identification: 0, asked, released }
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
        let rides = self.packets.iter().any(|p| p.next == next);
        let unsent = self.packets.iter().any(|p| p.next == next && p.at.is_some() && p.again);
        let passive = rides || packet.destination() != next;
        let wait = if passive { self.pace.passive } else { self.wait(next) };
        let asked = u32::from(!passive);
        let at = (!rides).then(|| now + wait);
        let identification = if passive { 0 } else { self.ask(now, next) };
        let entry = Unconfirmed { next, packet, identification, asked, since: now, at, again: false, unsent };
        let out = (!unsent).then(|| entry.as_sent());
        self.packets.push(entry);
        out
    }

    /// An acknowledgement came from `next`. False: nothing known was asked so.
    pub fn acknowledged(&mut self, now: Instant, next: Ipv4Addr, identification: u16) -> bool {
        let at = self.asked.iter().position(|a| a.next == next && a.identification == identification);
        let asked = at.and_then(|at| self.asked.remove(at));
        if let Some(asked) = asked {
            self.measure(next, (now - asked.sent).as_nanos());
        }
        // a late one shows as well that the neighbour is there
        self.alive(now, next);
        asked.is_some()
    }

    /// The identification of a new request (8.3.3: not one that is on its way to the same neighbour).
    fn ask(&mut self, now: Instant, next: Ipv4Addr) -> u16 {
        self.identification = self.identification.wrapping_add(1);
        if self.asked.len() >= ASKED {
            self.asked.pop_front();
        }
        self.asked.push_back(Asked { next, identification: self.identification, sent: now });
        self.identification
    }

    /// Some frame of `next` was heard. True: that confirms what has been sent to it before.
    pub fn heard(&mut self, now: Instant, next: Ipv4Addr) -> bool {
        let presumed = self.neighbours.get(&next).map_or(0, |n| n.presumed);
        if presumed >= PRESUMED || !self.packets.iter().any(|p| p.next == next && p.since < now) {
            return false;
        }
        self.alive(now, next);
        self.neighbour(next).presumed = presumed + 1;
        true
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
        let neighbour = self.neighbour(next);
        neighbour.confirmed = Some(now);
        neighbour.presumed = 0;
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
        let (wait, identification) = (self.wait(next), self.ask(now, next));
        let entry = &mut self.packets[index];
        entry.identification = identification;
        let wait = (wait * (1 << entry.asked.min(4))).min(MAX_WAIT);
        entry.asked += 1;
        entry.again = true;
        entry.at = Some(now + wait);
        Some(Due::Again(next, entry.as_sent()))
    }

    /// Gives back all that was under way to `next`, oldest first.
    pub fn broken(&mut self, next: Ipv4Addr) -> Vec<Datagram> {
        if let Some(neighbour) = self.neighbours.get_mut(&next) {
            // its round-trip time stays: what made the answers late has not gone with the link
            neighbour.confirmed = None;
        }
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
        wait.clamp(MIN_WAIT, MAX_WAIT)
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

    /// Sends a packet to the last hop at `ms`; the identification of its acknowledgement request.
    fn ask(maintenance: &mut Maintenance, ms: u64) -> u16 {
        let last_hop = Datagram::control(Ipv4Addr::new(10, 0, 0, 1), NEXT, 1, Vec::new());
        requested(&maintenance.send(at(ms), NEXT, last_hop).unwrap())
    }

    fn requested(packet: &Datagram) -> u16 {
        let Some(Opt::AckRequest(request)) = packet.options.last() else { panic!("nothing is asked: {packet}") };
        request.identification
    }

    #[test]
    fn the_answer_to_a_repeated_request_tells_the_round_trip_time_of_that_request() {
        let mut maintenance = Maintenance::new(PACE);
        let first = ask(&mut maintenance, 0);
        let Some(Due::Again(_, again)) = maintenance.due(at(100)) else { panic!("not sent again") };
        assert_ne!(requested(&again), first);
        // 400 ms for the first: mean 400, deviation 200, so the next wait is 400 + 4 x 200 (RFC 6298, 2.2), cut to 1 s
        assert!(maintenance.acknowledged(at(400), NEXT, first));
        ask(&mut maintenance, 1000);
        assert_eq!(maintenance.next_timeout(), Some(at(2000)));
        // the same request is not answered twice
        assert!(!maintenance.acknowledged(at(1001), NEXT, first));
    }

    #[test]
    fn a_broken_link_does_not_make_the_round_trip_time_forgotten() {
        let mut maintenance = Maintenance::new(PACE);
        let first = ask(&mut maintenance, 0);
        maintenance.acknowledged(at(200), NEXT, first);
        maintenance.broken(NEXT);
        ask(&mut maintenance, 1000);
        // mean 200, deviation 100: 200 + 4 x 100 (RFC 6298, 2.2)
        assert_eq!(maintenance.next_timeout(), Some(at(1600)));
    }

    #[test]
    fn a_neighbour_that_is_heard_is_there_but_not_for_ever_without_an_answer() {
        let mut maintenance = Maintenance::new(PACE);
        let mut last = 0;
        for n in 0..PRESUMED {
            last = 1000 * u64::from(n);
            ask(&mut maintenance, last);
            assert!(!maintenance.heard(at(last), NEXT), "heard before it was asked");
            assert!(maintenance.heard(at(last + 1), NEXT) && maintenance.is_empty());
        }
        let id = ask(&mut maintenance, last + 1000);
        assert!(!maintenance.heard(at(last + 1001), NEXT) && maintenance.len() == 1);
        assert!(maintenance.acknowledged(at(last + 1002), NEXT, id));
        ask(&mut maintenance, last + 2000);
        assert!(maintenance.heard(at(last + 2001), NEXT));
    }

    #[test]
    fn requests_on_their_way_are_bounded() {
        let mut maintenance = Maintenance::new(PACE);
        for ms in 0..1000 {
            ask(&mut maintenance, 1000 * ms);
            maintenance.alive(at(1000 * ms + 1), NEXT);
        }
        assert_eq!(maintenance.asked.len(), ASKED);
    }

    #[test]
    fn the_buffer_holds_fifty_packets_and_keeps_the_watched_one() {
        let mut maintenance = Maintenance::new(PACE);
        (0..200).for_each(|n| drop(maintenance.send(at(0), NEXT, packet(n))));
        assert_eq!((maintenance.len(), maintenance.next_timeout()), (50, Some(at(100))));
    }
}
