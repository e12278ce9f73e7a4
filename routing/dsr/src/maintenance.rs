//! The maintenance buffer (RFC 4728, sections 4.5, 8.3.2 and 8.3.3): packets sent to a next hop that has not shown yet that it
//! is there. Used when the radio does not tell of failed frames.
//!
//! The first attempt is confirmed by overhearing the next hop pass the packet on (not where the packet ends there); after
//! that the packet is sent again with an acknowledgement request, `retries` times. Any sign of life of a next hop confirms
//! all that was sent to it before: what is maintained is the link, not the packet.

use crate::datagram::Datagram;
use crate::wire::{AckRequest, Opt};
use manet_engine::{Duration, Instant};
use std::collections::BTreeMap;
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
    at: Instant,
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
}

impl Maintenance {
    pub fn new(pace: Pace) -> Self {
        Self { pace, packets: Vec::new(), neighbours: BTreeMap::new(), identification: 0 }
    }

    /// The packet as it is to be sent to `next`, perhaps with an acknowledgement request; remembered until confirmed.
    pub fn send(&mut self, now: Instant, next: Ipv4Addr, packet: Datagram) -> Datagram {
        let confirmed = self.neighbours.get(&next).and_then(|n| n.confirmed);
        if confirmed.is_some_and(|at| now.since(at) < self.pace.holdoff) {
            return packet;
        }
        if self.packets.len() >= PACKETS {
            self.packets.remove(0);
        }
        self.identification = self.identification.wrapping_add(1);
        // one packet at a time asks for each neighbour; what follows it shares its fate
        let asks = self.packets.iter().find(|p| p.next == next).map(|p| p.at);
        let passive = asks.is_some() || packet.destination() != next;
        let wait = if passive { self.pace.passive } else { self.wait(next) };
        let asked = u32::from(!passive);
        let at = asks.unwrap_or(now + wait);
        let entry = Unconfirmed { next, packet, identification: self.identification, asked, sent: now, at };
        let out = entry.as_sent();
        self.packets.push(entry);
        out
    }

    /// An acknowledgement came from `next`. False: of nothing that waits.
    pub fn acknowledged(&mut self, now: Instant, next: Ipv4Addr, identification: u16) -> bool {
        let entry = self.packets.iter().find(|p| p.next == next && p.identification == identification);
        let Some((asked, sent)) = entry.map(|e| (e.asked, e.sent)) else { return false };
        if asked == 1 {
            // of a packet asked for twice one cannot say which was answered (Karn)
            self.measure(next, (now - sent).as_nanos());
        }
        self.alive(now, next);
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
        self.packets.retain(|p| p.next != next);
        self.neighbour(next).confirmed = Some(now);
    }

    /// The first wait that is over.
    pub fn due(&mut self, now: Instant) -> Option<Due> {
        let index =
            (0..self.packets.len()).filter(|i| self.packets[*i].at <= now).min_by_key(|i| self.packets[*i].at)?;
        let next = self.packets[index].next;
        if self.packets[index].asked > self.pace.retries {
            return Some(Due::Broken(next, self.broken(next)));
        }
        let wait = self.wait(next);
        let entry = &mut self.packets[index];
        let wait = (wait * (1 << entry.asked.min(4))).min(LONGEST);
        entry.asked += 1;
        entry.sent = now;
        entry.at = now + wait;
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
        self.packets.iter().map(|p| p.at).min()
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
