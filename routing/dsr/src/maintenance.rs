//! The maintenance buffer (RFC 4728, sections 4.5, 8.3.2 and 8.3.3): packets sent to a next hop that is not yet
//! confirmed. Used when the radio does not report failed frames.
//!
//! One packet per next hop is monitored at a time. Packets after it are attached to it: they are returned if the link is
//! broken, but only the monitored one is retransmitted (retransmitting all would fill a queue that is merely long). After
//! the first retransmission the link is in doubt: further packets wait here instead of in the radio's queue, where retries
//! to an absent neighbour delay all other frames. The first attempt is confirmed by overhearing that the next hop forwards
//! the packet (unless the packet ends there); then the packet is retransmitted with an acknowledgement request, `retries`
//! times. Any frame of a next hop confirms all packets sent to it before: the buffer maintains links, not packets.
//!
//! Two measures avoid false breaks on a loaded channel. Each request has its own identification, so that late answers to
//! repeated requests are samples of the round-trip time too, and the wait adapts to the queues. Any frame from a next hop
//! that must confirm shows that it is in range (departure from 8.3.2; links are assumed bidirectional), but only a few
//! times in a row: so a neighbour that we hear but that does not hear us is detected.

use crate::datagram::Datagram;
use crate::wire::{AckRequest, Opt};
use manet_engine::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// RexmtBufferSize (section 9).
const PACKETS: usize = 50;
/// Maximum number of requests whose answers can be matched.
const MAX_UNANSWERED: usize = 256;
/// Number of times in a row that a heard frame counts as an acknowledgement.
const PRESUMED: u32 = 8;
/// Maximum number of neighbours whose round-trip times are remembered.
const NEIGHBOURS: usize = 256;
/// Bounds of the adaptive wait for an acknowledgement, which doubles with each retry (8.3.3 requires one without values).
/// A queue of full frames before the answer is no break: seven of them take 50 ms at 2 Mbit/s.
const MIN_WAIT: Duration = Duration::from_millis(50);
const MAX_WAIT: Duration = Duration::from_millis(1000);

/// The timing of confirmations.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// PassiveAckTimeout; also the first wait for an acknowledgement.
    pub passive: Duration,
    /// MaintHoldoffTime: a confirmed next hop needs no confirmation for this time.
    pub holdoff: Duration,
    /// MaxMaintRexmt.
    pub retries: u32,
}

#[derive(Clone, Debug)]
struct Unconfirmed {
    next: Ipv4Addr,
    /// The packet without acknowledgement request.
    packet: Datagram,
    /// Identification of the last acknowledgement request.
    identification: u16,
    /// Number of transmissions with an acknowledgement request.
    requests: u32,
    /// Time of the first transmission.
    since: Instant,
    /// End of its wait; `None`: it is attached to another packet to the same next hop.
    at: Option<Instant>,
    /// Retransmitted: the link is in doubt.
    again: bool,
    /// Kept back because the link was in doubt.
    unsent: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Neighbour {
    confirmed: Option<Instant>,
    /// Smoothed round-trip time and its deviation (RFC 6298, section 2), nanoseconds.
    rtt: Option<(u64, u64)>,
    /// Number of confirmations by heard frames since the last acknowledgement.
    presumed: u32,
}

/// An unanswered acknowledgement request.
#[derive(Clone, Copy, Debug)]
struct SentRequest {
    next: Ipv4Addr,
    identification: u16,
    sent: Instant,
}

/// The action at the end of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// Retransmit this packet to this next hop.
    Retransmit(Ipv4Addr, Datagram),
    /// The link to this neighbour is broken; these packets were unconfirmed.
    Broken(Ipv4Addr, Vec<Datagram>),
}

/// The maintenance buffer.
#[derive(Clone, Debug)]
pub struct Maintenance {
    pace: Pace,
    packets: Vec<Unconfirmed>,
    neighbours: BTreeMap<Ipv4Addr, Neighbour>,
    identification: u16,
    /// Unanswered requests, oldest first.
    unanswered: VecDeque<SentRequest>,
    /// Packets that were kept back until their next hop was confirmed.
    released: VecDeque<(Ipv4Addr, Datagram)>,
}

impl Maintenance {
    /// An empty buffer.
    pub fn new(pace: Pace) -> Self {
        let (neighbours, unanswered, released) = (BTreeMap::new(), VecDeque::new(), VecDeque::new());
        Self { pace, packets: Vec::new(), neighbours, identification: 0, unanswered, released }
    }

    /// Returns the packet to send to `next`, possibly with an acknowledgement request, and remembers it until it is
    /// confirmed. `None`: the link is in doubt and the packet is kept back.
    pub fn send(&mut self, now: Instant, next: Ipv4Addr, packet: Datagram) -> Option<Datagram> {
        let confirmed = self.neighbours.get(&next).and_then(|n| n.confirmed);
        if confirmed.is_some_and(|at| now.since(at) < self.pace.holdoff) {
            return Some(packet);
        }
        if self.packets.len() >= PACKETS {
            // not a monitored one: the attached packets would wait without end
            match self.packets.iter().position(|p| p.at.is_none()) {
                Some(oldest) => drop(self.packets.remove(oldest)),
                None => return Some(packet),
            }
        }
        let rides = self.packets.iter().any(|p| p.next == next);
        let unsent = self.packets.iter().any(|p| p.next == next && p.at.is_some() && p.again);
        let passive = rides || packet.destination() != next;
        let wait = if passive { self.pace.passive } else { self.wait(next) };
        let requests = u32::from(!passive);
        let at = (!rides).then(|| now + wait);
        let identification = if passive { 0 } else { self.new_request(now, next) };
        let entry = Unconfirmed { next, packet, identification, requests, since: now, at, again: false, unsent };
        let out = (!unsent).then(|| entry.as_sent());
        self.packets.push(entry);
        out
    }

    /// Handles an acknowledgement from `next`. False: it answers no known request.
    pub fn acknowledged(&mut self, now: Instant, next: Ipv4Addr, identification: u16) -> bool {
        let at = self.unanswered.iter().position(|a| a.next == next && a.identification == identification);
        let asked = at.and_then(|at| self.unanswered.remove(at));
        if let Some(asked) = asked {
            self.measure(next, (now - asked.sent).as_nanos());
        }
        // a late one also shows that the neighbour is in range
        self.alive(now, next);
        asked.is_some()
    }

    /// The identification of a new request (8.3.3: it differs from those of unanswered ones).
    fn new_request(&mut self, now: Instant, next: Ipv4Addr) -> u16 {
        self.identification = self.identification.wrapping_add(1);
        if self.unanswered.len() >= MAX_UNANSWERED {
            self.unanswered.pop_front();
        }
        self.unanswered.push_back(SentRequest { next, identification: self.identification, sent: now });
        self.identification
    }

    /// Handles a frame heard from `next`. True: it confirms the packets sent to `next` before.
    pub fn heard(&mut self, now: Instant, next: Ipv4Addr) -> bool {
        let presumed = self.neighbours.get(&next).map_or(0, |n| n.presumed);
        if presumed >= PRESUMED || !self.packets.iter().any(|p| p.next == next && p.since < now) {
            return false;
        }
        self.alive(now, next);
        self.neighbour(next).presumed = presumed + 1;
        true
    }

    /// Handles an overheard packet. Returns the next hop if that forwarded our packet (8.3.2).
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

    /// Confirms `next` and all packets sent to it.
    pub fn alive(&mut self, now: Instant, next: Ipv4Addr) {
        let (of_next, left) = std::mem::take(&mut self.packets).into_iter().partition(|p| p.next == next);
        self.packets = left;
        let of_next: Vec<Unconfirmed> = of_next;
        self.released.extend(of_next.into_iter().filter(|p| p.unsent).map(|p| (next, p.packet)));
        let neighbour = self.neighbour(next);
        neighbour.confirmed = Some(now);
        neighbour.presumed = 0;
    }

    /// The next packet that was kept back and may be sent.
    pub fn release(&mut self) -> Option<(Ipv4Addr, Datagram)> {
        self.released.pop_front()
    }

    /// The action of the first wait that is over.
    pub fn due(&mut self, now: Instant) -> Option<Due> {
        let watched = self.packets.iter().enumerate().filter_map(|(i, p)| Some((p.at?, i)));
        let (_, index) = watched.filter(|(at, _)| *at <= now).min()?;
        let next = self.packets[index].next;
        if self.packets[index].requests > self.pace.retries {
            return Some(Due::Broken(next, self.broken(next)));
        }
        let (wait, identification) = (self.wait(next), self.new_request(now, next));
        let entry = &mut self.packets[index];
        entry.identification = identification;
        let wait = (wait * (1 << entry.requests.min(4))).min(MAX_WAIT);
        entry.requests += 1;
        entry.again = true;
        entry.at = Some(now + wait);
        Some(Due::Retransmit(next, entry.as_sent()))
    }

    /// Removes and returns all unconfirmed packets to `next`, oldest first.
    pub fn broken(&mut self, next: Ipv4Addr) -> Vec<Datagram> {
        if let Some(neighbour) = self.neighbours.get_mut(&next) {
            // the round-trip time stays: the cause of late answers may persist
            neighbour.confirmed = None;
        }
        let (gone, left) = std::mem::take(&mut self.packets).into_iter().partition(|p| p.next == next);
        self.packets = left;
        let gone: Vec<Unconfirmed> = gone;
        gone.into_iter().map(|p| p.packet).collect()
    }

    /// Whether this packet to `next` is unconfirmed; it may have an acknowledgement request.
    pub fn has(&self, next: Ipv4Addr, packet: &Datagram) -> bool {
        let mut plain = packet.clone();
        plain.options.retain(|o| !matches!(o, Opt::AckRequest(_)));
        self.packets.iter().any(|p| p.next == next && p.packet == plain)
    }

    /// The earliest end of a wait.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.packets.iter().filter_map(|p| p.at).min()
    }

    /// Number of unconfirmed packets.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether no packet is unconfirmed.
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
            let oldest = self.neighbours.iter().min_by_key(|(_, n)| n.confirmed).map(|(address, _)| *address);
            oldest.map(|address| self.neighbours.remove(&address));
        }
        self.neighbours.entry(next).or_default()
    }
}

impl Unconfirmed {
    fn as_sent(&self) -> Datagram {
        let mut packet = self.packet.clone();
        if self.requests > 0 {
            packet.options.push(Opt::AckRequest(AckRequest { identification: self.identification }));
        }
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::trial::ms as at;

    const NEXT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const PACE: Pace = Pace { passive: Duration::from_millis(100), holdoff: Duration::from_millis(250), retries: 2 };

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
    fn of_many_packets_to_a_silent_neighbour_only_one_is_retransmitted() {
        let mut maintenance = loaded();
        let mut again = 0;
        while let Some(next) = maintenance.next_timeout() {
            match maintenance.due(next) {
                Some(Due::Retransmit(..)) => again += 1,
                Some(Due::Broken(_, packets)) => assert_eq!(packets.len(), 20),
                None => unreachable!("a deadline with nothing due"),
            }
        }
        assert_eq!(again, 3); // the request and MaxMaintRexmt more
        assert!(maintenance.is_empty());
    }

    #[test]
    fn a_link_in_doubt_gets_no_packets_until_it_is_confirmed_then_all_in_order() {
        let mut maintenance = loaded();
        assert!(matches!(maintenance.due(at(100)), Some(Due::Retransmit(..))));
        let kept: Vec<Datagram> = (20..25).map(packet).collect();
        for packet in &kept {
            assert_eq!(maintenance.send(at(101), NEXT, packet.clone()), None);
        }
        maintenance.alive(at(110), NEXT);
        let released: Vec<Datagram> = std::iter::from_fn(|| maintenance.release()).map(|(_, p)| p).collect();
        assert_eq!(released, kept);
    }

    #[test]
    fn a_late_acknowledgement_still_confirms_the_neighbour() {
        let mut maintenance = loaded();
        assert!(!maintenance.acknowledged(at(50), NEXT, 999));
        assert_eq!((maintenance.len(), maintenance.next_timeout()), (0, None));
    }

    /// Sends a packet to the last hop at `ms`; the identification of its acknowledgement request.
    fn new_request(maintenance: &mut Maintenance, ms: u64) -> u16 {
        let last_hop = Datagram::control(Ipv4Addr::new(10, 0, 0, 1), NEXT, 1, Vec::new());
        requested(&maintenance.send(at(ms), NEXT, last_hop).unwrap())
    }

    fn requested(packet: &Datagram) -> u16 {
        let Some(Opt::AckRequest(request)) = packet.options.last() else { panic!("no request: {packet}") };
        request.identification
    }

    #[test]
    fn the_answer_to_a_repeated_request_measures_the_round_trip_time_of_that_request() {
        let mut maintenance = Maintenance::new(PACE);
        let first = new_request(&mut maintenance, 0);
        let Some(Due::Retransmit(_, again)) = maintenance.due(at(100)) else { panic!("not sent again") };
        assert_ne!(requested(&again), first);
        // 400 ms for the first: mean 400, deviation 200, so the next wait is 400 + 4 x 200 (RFC 6298, 2.2), cut to 1 s
        assert!(maintenance.acknowledged(at(400), NEXT, first));
        new_request(&mut maintenance, 1000);
        assert_eq!(maintenance.next_timeout(), Some(at(2000)));
        // the same request is not answered twice
        assert!(!maintenance.acknowledged(at(1001), NEXT, first));
    }

    #[test]
    fn a_broken_link_keeps_its_round_trip_time() {
        let mut maintenance = Maintenance::new(PACE);
        let first = new_request(&mut maintenance, 0);
        maintenance.acknowledged(at(200), NEXT, first);
        maintenance.broken(NEXT);
        new_request(&mut maintenance, 1000);
        // mean 200, deviation 100: 200 + 4 x 100 (RFC 6298, 2.2)
        assert_eq!(maintenance.next_timeout(), Some(at(1600)));
    }

    #[test]
    fn a_heard_neighbour_is_confirmed_but_not_without_end() {
        let mut maintenance = Maintenance::new(PACE);
        let mut last = 0;
        for n in 0..PRESUMED {
            last = 1000 * u64::from(n);
            new_request(&mut maintenance, last);
            assert!(!maintenance.heard(at(last), NEXT), "heard before the request");
            assert!(maintenance.heard(at(last + 1), NEXT) && maintenance.is_empty());
        }
        let id = new_request(&mut maintenance, last + 1000);
        assert!(!maintenance.heard(at(last + 1001), NEXT) && maintenance.len() == 1);
        assert!(maintenance.acknowledged(at(last + 1002), NEXT, id));
        new_request(&mut maintenance, last + 2000);
        assert!(maintenance.heard(at(last + 2001), NEXT));
    }

    #[test]
    fn unanswered_requests_are_bounded() {
        let mut maintenance = Maintenance::new(PACE);
        for ms in 0..1000 {
            new_request(&mut maintenance, 1000 * ms);
            maintenance.alive(at(1000 * ms + 1), NEXT);
        }
        assert_eq!(maintenance.unanswered.len(), MAX_UNANSWERED);
    }

    #[test]
    fn the_buffer_holds_fifty_packets_and_keeps_the_monitored_one() {
        let mut maintenance = Maintenance::new(PACE);
        (0..200).for_each(|n| drop(maintenance.send(at(0), NEXT, packet(n))));
        assert_eq!((maintenance.len(), maintenance.next_timeout()), (50, Some(at(100))));
    }
}
