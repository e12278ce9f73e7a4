//! The node's messages: HELLO (RFC 3626, section 6.2), TC (9.3, with the redundancy of section 15), MID (5.3), HNA
//! (12.4).

use crate::machine::{Olsr, Timer};
use crate::wire::hello::{Block, LinkType, NeighbourType, BLOCK_HEADER_LEN};
use crate::wire::{hello, hna, message, Hello, Hna, Message, Mid, Span, Tc};
use manet_engine::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// TTL of flooded messages.
const NETWORK_WIDE: u8 = 255;

impl Olsr {
    pub(crate) fn send_hello(&mut self, now: Instant) {
        self.choose_mprs();
        let links: Vec<(LinkType, NeighbourType, Ipv4Addr)> = self
            .links
            .iter()
            .filter_map(|(address, link)| Some((link.kind(now)?, self.neighbour_type(link.main), address)))
            .collect();
        self.hellos(&links);
        self.counters.count("hello-sent");
    }

    /// A neighbour's type is that of the node, not of the link (6.2, step 2).
    fn neighbour_type(&self, main: Ipv4Addr) -> NeighbourType {
        if !self.neighbours.is_symmetric(main) {
            NeighbourType::Not
        } else if self.mprs.contains(&main) {
            NeighbourType::Mpr
        } else {
            NeighbourType::Symmetric
        }
    }

    /// Sends the links in as few HELLOs as possible, at least one, which announces this node.
    fn hellos(&mut self, links: &[(LinkType, NeighbourType, Ipv4Addr)]) {
        let room = self.outgoing.room() - message::HEADER_LEN - hello::HEADER_LEN;
        let mut bodies = Vec::new();
        let mut groups: BTreeMap<(LinkType, NeighbourType), Vec<Ipv4Addr>> = BTreeMap::new();
        let mut used = 0;
        for (link, neighbour, address) in links {
            let another = if groups.contains_key(&(*link, *neighbour)) { 4 } else { 4 + BLOCK_HEADER_LEN };
            if used + another > room {
                bodies.push(self.hello_body(std::mem::take(&mut groups)));
                used = 0;
            }
            used += if groups.contains_key(&(*link, *neighbour)) { 4 } else { 4 + BLOCK_HEADER_LEN };
            groups.entry((*link, *neighbour)).or_default().push(*address);
        }
        bodies.push(self.hello_body(groups));
        for body in bodies {
            self.own_message(message::HELLO, self.options.neighbour_hold, 1, body);
        }
    }

    fn hello_body(&self, groups: BTreeMap<(LinkType, NeighbourType), Vec<Ipv4Addr>>) -> Vec<u8> {
        let blocks = groups.into_iter().map(|((link, neighbour), list)| Block::new(link, neighbour, list)).collect();
        let interval = Span::of(self.options.hello_interval);
        Hello { interval, willingness: self.options.willingness, blocks }.emit()
    }

    /// The neighbours in our TCs (15.1): our selectors, with redundancy 1 also our MPRs, with 2 all neighbours.
    fn neighbours_to_advertise(&self) -> BTreeSet<Ipv4Addr> {
        match self.options.tc_redundancy {
            0 => self.selectors.iter().collect(),
            1 => self.selectors.iter().chain(self.mprs.iter().copied()).collect(),
            _ => self.neighbours.symmetric_set(),
        }
    }

    /// Updates the advertised set: a change gets a new number (9.3), and an empty set is advertised as long as others may
    /// keep the previous one.
    pub(crate) fn follow_advertised(&mut self, now: Instant) {
        let now_advertised = self.neighbours_to_advertise();
        if now_advertised != self.advertised {
            self.ansn = self.ansn.wrapping_add(1);
            if now_advertised.is_empty() {
                self.silent_from = now + Span::of(self.options.topology_hold).duration();
            }
            self.advertised = now_advertised;
        }
    }

    pub(crate) fn send_tc(&mut self, now: Instant) {
        if self.advertised.is_empty() && self.silent_from <= now {
            return;
        }
        let max = (self.outgoing.room() - message::HEADER_LEN - 4) / 4;
        let all: Vec<Ipv4Addr> = self.advertised.iter().copied().collect();
        let ansn = self.ansn;
        let mut lists: Vec<Vec<Ipv4Addr>> = all.chunks(max).map(<[Ipv4Addr]>::to_vec).collect();
        if lists.is_empty() {
            lists.push(Vec::new());
        }
        for neighbours in lists {
            let body = Tc { ansn, neighbours }.emit();
            self.own_message(message::TC, self.options.topology_hold, NETWORK_WIDE, body);
        }
        self.counters.count("tc-sent");
    }

    /// Sends MIDs; a node with one address has none (5.3).
    pub(crate) fn send_mid(&mut self) {
        let max = (self.outgoing.room() - message::HEADER_LEN) / 4;
        let lists: Vec<Vec<Ipv4Addr>> = self.options.mid.chunks(max).map(<[Ipv4Addr]>::to_vec).collect();
        for interfaces in lists {
            self.own_message(message::MID, self.options.mid_hold, NETWORK_WIDE, Mid { interfaces }.emit());
            self.counters.count("mid-sent");
        }
    }

    pub(crate) fn send_hna(&mut self) {
        let max = (self.outgoing.room() - message::HEADER_LEN) / 8;
        let networks: Vec<(Ipv4Addr, Ipv4Addr)> = self.attached.iter().map(|(n, p)| (*n, hna::mask(*p))).collect();
        for list in networks.chunks(max) {
            let body = Hna { networks: list.to_vec() }.emit();
            self.own_message(message::HNA, self.options.hna_hold, NETWORK_WIDE, body);
            self.counters.count("hna-sent");
        }
    }

    /// At the end: announces that all links are lost and nothing is reachable (not in RFC 3626; olsrd does it too).
    pub(crate) fn send_farewell(&mut self) {
        let links: Vec<_> =
            self.links.iter().map(|(address, _)| (LinkType::Lost, NeighbourType::Not, address)).collect();
        self.hellos(&links);
        if !self.advertised.is_empty() {
            self.ansn = self.ansn.wrapping_add(1);
            let body = Tc { ansn: self.ansn, neighbours: Vec::new() }.emit();
            self.own_message(message::TC, self.options.topology_hold, NETWORK_WIDE, body);
        }
    }

    fn own_message(&mut self, kind: u8, validity: Duration, ttl: u8, body: Vec<u8>) {
        let sequence = self.message_sequence;
        self.message_sequence = sequence.wrapping_add(1);
        let (validity, originator) = (Span::of(validity), self.node.address);
        let sent = self.outgoing.push(Message { kind, validity, originator, ttl, hops: 0, sequence, body });
        if !sent {
            self.counters.count("queue-full");
        }
    }

    /// Sends a HELLO at once after a failed link: the neighbours must know of it before they send us packets for the link,
    /// or the packets bounce between nodes.
    pub(crate) fn hello_now(&mut self, now: Instant) {
        let interval = self.options.hello_interval.as_nanos();
        let earliest = self.last_hello + Duration::from_nanos(interval / FAILURES_PER_INTERVAL);
        if earliest <= now {
            self.fire(now, Timer::Hello);
        } else if self.timers.get(Timer::Hello).is_some_and(|planned| planned > earliest) {
            self.timers.set(Timer::Hello, earliest);
        }
    }

    /// Advances the next message after a change, to at most four times the usual rate.
    pub(crate) fn advance_message(&mut self, now: Instant, timer: Timer) {
        let (interval, last) = match timer {
            Timer::Hello => (self.options.hello_interval, self.last_hello),
            _ => (self.options.tc_interval, self.last_tc),
        };
        let earliest = last + Duration::from_nanos(interval.as_nanos() / 4);
        let at = now.max(earliest) + Duration::from_nanos(1 + self.rng.below(ADVANCE_JITTER.as_nanos()));
        if self.timers.get(timer).is_some_and(|planned| planned > at) {
            self.timers.set(timer, at);
        }
    }
}

/// Limit of HELLOs about failed links, per HELLO interval.
const FAILURES_PER_INTERVAL: u64 = 20;

/// Jitter between neighbours that detect the same change.
const ADVANCE_JITTER: Duration = Duration::from_millis(50);
