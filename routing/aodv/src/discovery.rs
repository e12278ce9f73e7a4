//! The discoveries under way and the ladder of TTLs that each climbs (RFC 3561, 6.3 and 6.4).
//!
//! RFC: 1, 3, 5, 7, then NET_DIAMETER once and RREQ_RETRIES times more, there with binary exponential backoff.
//! AODV-UU 0.9.6: 2, 4, 6, 8, 35, 35 at 0, 320, 800, 1440, 2240, 5200 ms, given up at 8160 ms, no backoff.

use crate::options::Options;
use manet_engine::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Discoveries at once; each has at least one packet waiting.
pub const MAX_DISCOVERIES: usize = 64;

/// What the discovery is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A packet of our own.
    Own,
    /// Local repair of a route that had so many hops: one request.
    Repair { hops: u8 },
    /// There was no answer: until `Discovery::at` no request is sent.
    HoldDown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discovery {
    pub purpose: Purpose,
    pub ttl: u8,
    /// Requests across the whole network, the present one included.
    pub wide: u8,
    /// Whether the request of this step is out; if not, it is to be sent at `at`.
    pub sent: bool,
    pub at: Instant,
}

/// RFC 3561, section 10.
#[derive(Clone, Copy, Debug)]
pub struct Ladder {
    uu: bool,
    ring: bool,
    start: u8,
    increment: u8,
    threshold: u8,
    diameter: u8,
    retries: u8,
    buffer: u8,
    node_traversal: Duration,
}

impl Ladder {
    pub fn new(options: &Options, ttl_start: u8) -> Self {
        Self {
            uu: options.uu(),
            ring: options.expanding_ring,
            start: ttl_start.min(options.net_diameter),
            increment: options.ttl_increment,
            threshold: options.ttl_threshold,
            diameter: options.net_diameter,
            retries: options.rreq_retries,
            buffer: options.timeout_buffer,
            node_traversal: options.node_traversal_time,
        }
    }

    /// The first TTL; `hops`: of an entry that is no longer valid (6.4).
    pub fn first(&self, hops: Option<u8>) -> u8 {
        match hops {
            _ if !self.ring => self.diameter,
            Some(hops) if hops > 0 => self.capped(hops.saturating_add(self.increment)),
            _ if self.start > self.threshold => self.diameter,
            _ => self.start,
        }
    }

    /// The TTL after `ttl` of which `wide` have gone across the network; `None`: give up.
    pub fn next(&self, ttl: u8, wide: u8) -> Option<u8> {
        if ttl < self.diameter {
            let more = ttl.saturating_add(self.increment);
            // AODV-UU compares before it adds
            let beyond = if self.uu { ttl > self.threshold } else { more > self.threshold };
            return Some(if beyond { self.diameter } else { more.min(self.diameter) });
        }
        let most = if self.uu && self.ring { self.retries.max(1) } else { self.retries.saturating_add(1) };
        (wide < most).then_some(self.diameter)
    }

    /// How long to wait for an answer.
    pub fn wait(&self, ttl: u8, wide: u8) -> Duration {
        if ttl < self.diameter || self.uu && self.ring {
            // RING_TRAVERSAL_TIME
            return self.node_traversal * 2 * (u64::from(ttl) + u64::from(self.buffer));
        }
        let net_traversal = self.node_traversal * 2 * u64::from(self.diameter);
        net_traversal * (1 << wide.saturating_sub(1).min(16))
    }

    /// 1 for a request across the whole network.
    pub fn is_wide(&self, ttl: u8) -> u8 {
        u8::from(ttl >= self.diameter)
    }

    fn capped(&self, ttl: u8) -> u8 {
        if ttl > self.threshold {
            self.diameter
        } else {
            ttl.min(self.diameter)
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Discoveries(BTreeMap<Ipv4Addr, Discovery>);

impl Discoveries {
    pub fn get(&self, destination: Ipv4Addr) -> Option<&Discovery> {
        self.0.get(&destination)
    }
    /// False: too many.
    pub fn insert(&mut self, destination: Ipv4Addr, discovery: Discovery) -> bool {
        let room = self.0.len() < MAX_DISCOVERIES || self.0.contains_key(&destination);
        if room {
            self.0.insert(destination, discovery);
        }
        room
    }
    pub fn remove(&mut self, destination: Ipv4Addr) -> Option<Discovery> {
        self.0.remove(&destination)
    }
    pub fn next_timeout(&self) -> Option<Instant> {
        self.0.values().map(|s| s.at).min()
    }
    /// The earliest that is due.
    pub fn due(&self, now: Instant) -> Option<(Ipv4Addr, Discovery)> {
        let due = self.0.iter().filter(|(_, s)| s.at <= now).min_by_key(|(d, s)| (s.at, **d));
        due.map(|(d, s)| (*d, *s))
    }
    pub fn iter(&self) -> impl Iterator<Item = (&Ipv4Addr, &Discovery)> {
        self.0.iter()
    }
    pub fn len(&self) -> usize {
        self.0.len()
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Style;

    /// (TTL, when sent) of each request, and when it is given up, in ms.
    fn climb(options: &Options, hops: Option<u8>) -> (Vec<(u8, u64)>, u64) {
        let ladder = Ladder::new(options, options.derived().unwrap().ttl_start);
        let (mut sent, mut at, mut wide) = (Vec::new(), 0, 0);
        let mut step = Some(ladder.first(hops));
        while let Some(ttl) = step {
            wide += ladder.is_wide(ttl);
            sent.push((ttl, at));
            at += ladder.wait(ttl, wide).as_nanos() / 1_000_000;
            step = ladder.next(ttl, wide);
        }
        (sent, at)
    }

    #[test]
    fn the_rfcs_ladder() {
        // waits 2 * 40 * (TTL + 2): 240, 400, 560, 720; then 2800, 5600, 11200
        let sent = vec![(1, 0), (3, 240), (5, 640), (7, 1200), (35, 1920), (35, 4720), (35, 10_320)];
        assert_eq!(climb(&Options::default(), None), (sent, 21_520));
    }

    #[test]
    fn aodv_uus_ladder_as_measured() {
        let options = Options { style: Style::Uu, ..Options::default() };
        let sent = vec![(2, 0), (4, 320), (6, 800), (8, 1440), (35, 2240), (35, 5200)];
        assert_eq!(climb(&options, None), (sent, 8160));
    }

    #[test]
    fn without_expanding_ring_both_wait_2800_5600_11200() {
        for style in [Style::Rfc, Style::Uu] {
            let options = Options { style, expanding_ring: false, ..Options::default() };
            assert_eq!(climb(&options, Some(2)), (vec![(35, 0), (35, 2800), (35, 8400)], 19_600));
        }
    }

    #[test]
    fn a_known_destination_is_looked_for_where_it_was() {
        assert_eq!(climb(&Options::default(), Some(3)).0[..2], [(5, 0), (7, 560)]);
        assert_eq!(Ladder::new(&Options::default(), 1).first(Some(6)), 35);
        assert_eq!(Ladder::new(&Options::default(), 1).first(Some(255)), 35);
    }
}
