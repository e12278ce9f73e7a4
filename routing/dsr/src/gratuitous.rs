//! The Gratuitous Route Reply Table (RFC 4728, section 4.4).

use manet_engine::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Maximum number of entries; the RFC states none.
const ENTRIES: usize = 64;

/// Pairs of origin and overheard transmitter for which a reply was sent, each with the end of the holdoff.
#[derive(Clone, Debug)]
pub struct Gratuitous {
    holdoff: Duration,
    until: BTreeMap<(Ipv4Addr, Ipv4Addr), Instant>,
}

impl Gratuitous {
    /// `holdoff`: GratReplyHoldoff.
    pub fn new(holdoff: Duration) -> Self {
        Self { holdoff, until: BTreeMap::new() }
    }

    /// Whether a reply may be sent now. If so, the holdoff begins.
    pub fn may(&mut self, now: Instant, origin: Ipv4Addr, transmitter: Ipv4Addr) -> bool {
        self.until.retain(|_, until| *until > now);
        if self.until.contains_key(&(origin, transmitter)) || self.until.len() >= ENTRIES {
            return false;
        }
        self.until.insert((origin, transmitter), now + self.holdoff);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reply_per_second_and_pair_of_origin_and_transmitter() {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let mut table = Gratuitous::new(Duration::from_secs(1));
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert!(table.may(at(0), a, b) && !table.may(at(999), a, b));
        assert!(table.may(at(999), b, a) && table.may(at(1000), a, b));
    }

    #[test]
    fn the_table_is_bounded() {
        let mut table = Gratuitous::new(Duration::from_secs(1));
        let sent = (0..1000u32).filter(|n| table.may(Instant::ZERO, Ipv4Addr::from(*n), Ipv4Addr::from(0))).count();
        assert_eq!(sent, ENTRIES);
    }
}
