//! Route discoveries and the TTLs of their expanding ring search (RFC 3561, 6.3 and 6.4).
//!
//! RFC: 1, 3, 5, 7, then NET_DIAMETER once and RREQ_RETRIES times more, the latter with binary exponential backoff.
//! AODV-UU 0.9.6: 2, 4, 6, 8, 35, 35 at 0, 320, 800, 1440, 2240, 5200 ms, abandoned at 8160 ms, no backoff.

use crate::options::Options;
use manet_engine::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Maximum number of simultaneous discoveries; at least one packet waits for each.
pub const MAX_DISCOVERIES: usize = 64;

/// The purpose of a discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A packet of this node waits.
    Own,
    /// Local repair with one request (6.12).
    Repair {
        /// Hop count of the broken route.
        hops: u8,
    },
    /// The last discovery failed: no request is sent until [`Discovery::at`].
    HoldDown,
}

/// The state of one discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// Its purpose.
    pub purpose: Purpose,
    /// TTL of the present request.
    pub ttl: u8,
    /// Number of requests with TTL NET_DIAMETER, including the present one.
    pub wide: u8,
    /// Whether the present request was sent; if not, it is due at `at`.
    pub sent: bool,
    /// Next deadline.
    pub at: Instant,
}

/// Parameters of the expanding ring search (RFC 3561, 6.4 and section 10).
#[derive(Clone, Copy, Debug)]
pub struct ExpandingRing {
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

impl ExpandingRing {
    /// Takes the parameters from the options; `ttl_start` is TTL_START, given or derived.
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

    /// The first TTL. `hops`: last hop count of an invalid entry, `None` without one (6.4).
    pub fn first(&self, hops: Option<u8>) -> u8 {
        match hops {
            _ if !self.ring => self.diameter,
            Some(hops) if hops > 0 => self.capped(hops.saturating_add(self.increment)),
            _ if self.start > self.threshold => self.diameter,
            _ => self.start,
        }
    }

    /// The TTL after `ttl`, when `wide` requests with TTL NET_DIAMETER were sent; `None`: the discovery fails.
    pub fn next(&self, ttl: u8, wide: u8) -> Option<u8> {
        if ttl < self.diameter {
            let more = ttl.saturating_add(self.increment);
            // AODV-UU compares before it adds
            let beyond = if self.uu { ttl > self.threshold } else { more > self.threshold };
            return Some(if beyond { self.diameter } else { more.min(self.diameter) });
        }
        let max_wide = if self.uu && self.ring { self.retries.max(1) } else { self.retries.saturating_add(1) };
        (wide < max_wide).then_some(self.diameter)
    }

    /// Time to wait for a reply to the request with this TTL.
    pub fn wait(&self, ttl: u8, wide: u8) -> Duration {
        if ttl < self.diameter || self.uu && self.ring {
            // RING_TRAVERSAL_TIME
            return self.node_traversal * 2 * (u64::from(ttl) + u64::from(self.buffer));
        }
        let net_traversal = self.node_traversal * 2 * u64::from(self.diameter);
        net_traversal * (1 << wide.saturating_sub(1).min(16))
    }

    /// 1 if a request with this TTL crosses the whole network, else 0.
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

/// The present discoveries, by destination.
#[derive(Clone, Debug, Default)]
pub struct Discoveries(BTreeMap<Ipv4Addr, Discovery>);

impl Discoveries {
    /// The discovery for `destination`.
    pub fn get(&self, destination: Ipv4Addr) -> Option<&Discovery> {
        self.0.get(&destination)
    }
    /// Adds or replaces a discovery. False: [`MAX_DISCOVERIES`] is reached.
    pub fn insert(&mut self, destination: Ipv4Addr, discovery: Discovery) -> bool {
        let room = self.0.len() < MAX_DISCOVERIES || self.0.contains_key(&destination);
        if room {
            self.0.insert(destination, discovery);
        }
        room
    }
    /// Ends a discovery and returns it.
    pub fn remove(&mut self, destination: Ipv4Addr) -> Option<Discovery> {
        self.0.remove(&destination)
    }
    /// The earliest deadline.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.0.values().map(|s| s.at).min()
    }
    /// The discovery with the earliest deadline at or before `now`.
    pub fn due(&self, now: Instant) -> Option<(Ipv4Addr, Discovery)> {
        let due = self.0.iter().filter(|(_, s)| s.at <= now).min_by_key(|(d, s)| (s.at, **d));
        due.map(|(d, s)| (*d, *s))
    }
    /// All discoveries, sorted by destination.
    pub fn iter(&self) -> impl Iterator<Item = (&Ipv4Addr, &Discovery)> {
        self.0.iter()
    }
    /// Number of discoveries.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether there is no discovery.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Style;

    /// TTL and sending time of each request, and the time at which the discovery fails, in ms.
    fn climb(options: &Options, hops: Option<u8>) -> (Vec<(u8, u64)>, u64) {
        let ring = ExpandingRing::new(options, options.derived().unwrap().ttl_start);
        let (mut sent, mut at, mut wide) = (Vec::new(), 0, 0);
        let mut step = Some(ring.first(hops));
        while let Some(ttl) = step {
            wide += ring.is_wide(ttl);
            sent.push((ttl, at));
            at += ring.wait(ttl, wide).as_nanos() / 1_000_000;
            step = ring.next(ttl, wide);
        }
        (sent, at)
    }

    #[test]
    fn ring_search_of_the_rfc() {
        // waits 2 * 40 * (TTL + 2): 240, 400, 560, 720; then 2800, 5600, 11200
        let sent = vec![(1, 0), (3, 240), (5, 640), (7, 1200), (35, 1920), (35, 4720), (35, 10_320)];
        assert_eq!(climb(&Options::default(), None), (sent, 21_520));
    }

    #[test]
    fn ring_search_of_aodv_uu_as_measured() {
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
    fn the_search_for_a_known_destination_begins_at_its_last_hop_count() {
        assert_eq!(climb(&Options::default(), Some(3)).0[..2], [(5, 0), (7, 560)]);
        assert_eq!(ExpandingRing::new(&Options::default(), 1).first(Some(6)), 35);
        assert_eq!(ExpandingRing::new(&Options::default(), 1).first(Some(255)), 35);
    }
}
