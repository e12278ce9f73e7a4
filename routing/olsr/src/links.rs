//! Link set (RFC 3626, sections 4.2.1 and 7): the neighbours' heard interfaces, and whether they hear us.

use crate::hysteresis::Quality;
use crate::wire::hello::LinkType;
use crate::wire::Span;
use manet_engine::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Maximum number of links; a radio channel does not carry the HELLOs of so many neighbours.
pub const MAX_LINKS: usize = 512;

/// A link tuple. A time at or before now has expired.
#[derive(Clone, Debug)]
pub struct Link {
    /// Main address of the neighbour.
    pub main: Ipv4Addr,
    /// L_SYM_time.
    pub symmetric_until: Instant,
    /// L_ASYM_time.
    pub heard_until: Instant,
    /// L_LOST_LINK_time (14.1).
    pub lost_until: Instant,
    /// L_time: end of the tuple, which is kept at least to announce the link as lost.
    pub until: Instant,
    /// Hysteresis; `None` if it is off.
    pub quality: Option<Quality>,
}

/// Contents of a HELLO about the link over which it arrived.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// Main address of the sender.
    pub main: Ipv4Addr,
    /// Type of the sender's link to us, if it lists us.
    pub us: Option<LinkType>,
    /// Vtime of the message.
    pub validity: Duration,
    /// Time to the next HELLO.
    pub htime: Span,
    /// Sequence number of the packet.
    pub packet: u16,
}

/// The link set.
#[derive(Clone, Debug, Default)]
pub struct Links {
    links: BTreeMap<Ipv4Addr, Link>,
    /// NEIGHB_HOLD_TIME.
    hold: Duration,
    hysteresis: bool,
}

impl Link {
    /// The type in our HELLOs; `None`: pending, not announced (14.3).
    pub fn kind(&self, now: Instant) -> Option<LinkType> {
        if self.lost_until > now {
            return Some(LinkType::Lost);
        }
        if self.quality.as_ref().is_some_and(|q| q.pending) {
            return None;
        }
        // 6.2, step 1
        Some(match (self.symmetric_until > now, self.heard_until > now) {
            (true, _) => LinkType::Symmetric,
            (false, true) => LinkType::Asymmetric,
            (false, false) => LinkType::Lost,
        })
    }

    /// Whether packets may use the link.
    pub fn is_symmetric(&self, now: Instant) -> bool {
        self.kind(now) == Some(LinkType::Symmetric)
    }

    fn deadlines(&self) -> impl Iterator<Item = Instant> + '_ {
        let silence = self.quality.as_ref().map(|q| q.due);
        [self.symmetric_until, self.heard_until, self.lost_until, self.until].into_iter().chain(silence)
    }
}

impl Links {
    /// `hold`: NEIGHB_HOLD_TIME.
    pub fn new(hold: Duration, hysteresis: bool) -> Self {
        Self { links: BTreeMap::new(), hold, hysteresis }
    }

    /// Counts a packet of any kind for hysteresis. True: the link may have changed.
    pub fn packet(&mut self, now: Instant, from: Ipv4Addr, sequence: u16) -> bool {
        let hold = self.hold;
        let Some(link) = self.links.get_mut(&from) else { return false };
        let Some(quality) = link.quality.as_mut() else { return false };
        if quality.packet(sequence) {
            link.lost_until = link.until.min(now + hold);
        }
        true
    }

    /// Handles a HELLO (7.1.1). False: [`MAX_LINKS`] is reached.
    pub fn hello(&mut self, now: Instant, from: Ipv4Addr, heard: Heard) -> bool {
        if self.links.len() >= MAX_LINKS && !self.links.contains_key(&from) {
            return false;
        }
        let (hold, hysteresis) = (self.hold, self.hysteresis);
        let link = self.links.entry(from).or_insert_with(|| Link {
            main: heard.main,
            symmetric_until: now,
            heard_until: now,
            lost_until: now,
            until: now + heard.validity,
            quality: hysteresis.then(|| Quality::new(now, heard.packet, heard.htime)),
        });
        link.main = heard.main;
        link.heard_until = now + heard.validity;
        match heard.us {
            Some(LinkType::Lost) => link.symmetric_until = now,
            Some(LinkType::Symmetric | LinkType::Asymmetric) => {
                link.symmetric_until = now + heard.validity;
                link.until = link.symmetric_until + hold;
            }
            Some(LinkType::Unspecified) | None => {}
        }
        link.until = link.until.max(link.heard_until);
        if let Some(quality) = &mut link.quality {
            quality.hello(now, heard.htime);
        }
        true
    }

    /// The radio reports a failure to `neighbour` (section 13): the link is lost until it is heard. False: it was not
    /// symmetric.
    pub fn fail(&mut self, now: Instant, neighbour: Ipv4Addr) -> bool {
        let hold = self.hold;
        let Some(link) = self.links.get_mut(&neighbour).filter(|l| l.is_symmetric(now)) else { return false };
        link.symmetric_until = now;
        link.heard_until = now;
        link.until = now + hold;
        true
    }

    /// Removes expired tuples and counts missing HELLOs.
    pub fn expire(&mut self, now: Instant) {
        let hold = self.hold;
        for link in self.links.values_mut() {
            while let Some(quality) = link.quality.as_mut().filter(|q| q.due <= now) {
                if quality.silence(quality.due) {
                    link.lost_until = link.until.min(now + hold);
                }
            }
        }
        self.links.retain(|_, link| link.until > now);
    }

    /// The earliest change by time after `now`.
    pub fn next_timeout(&self, now: Instant) -> Option<Instant> {
        self.links.values().flat_map(Link::deadlines).filter(|at| *at > now).min()
    }

    /// The link to the interface `address`.
    pub fn get(&self, address: Ipv4Addr) -> Option<&Link> {
        self.links.get(&address)
    }

    /// All links, sorted by the neighbour's interface address.
    pub fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &Link)> {
        self.links.iter().map(|(address, link)| (*address, link))
    }

    /// Whether the link to the interface `address` is symmetric.
    pub fn is_symmetric(&self, now: Instant, address: Ipv4Addr) -> bool {
        self.get(address).is_some_and(|link| link.is_symmetric(now))
    }

    /// Main addresses of the symmetric neighbours (8.1).
    pub fn symmetric(&self, now: Instant) -> BTreeSet<Ipv4Addr> {
        self.links.values().filter(|link| link.is_symmetric(now)).map(|link| link.main).collect()
    }

    /// Main addresses of all neighbours in the set.
    pub fn mains(&self) -> BTreeSet<Ipv4Addr> {
        self.links.values().map(|link| link.main).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::trial::at;

    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn heard(us: Option<LinkType>) -> Heard {
        let htime = Span::of(Duration::from_secs(2));
        Heard { main: B, us, validity: Duration::from_secs(6), htime, packet: 0 }
    }

    fn links() -> Links {
        Links::new(Duration::from_secs(6), false)
    }

    fn kind(links: &Links, s: u32) -> Option<LinkType> {
        links.get(B).and_then(|l| l.kind(at(s)))
    }

    #[test]
    fn a_link_becomes_asymmetric_symmetric_lost_and_expires() {
        let mut links = links();
        links.hello(at(0), B, heard(None));
        assert_eq!(kind(&links, 0), Some(LinkType::Asymmetric));
        links.hello(at(2), B, heard(Some(LinkType::Asymmetric)));
        assert_eq!(kind(&links, 7), Some(LinkType::Symmetric));
        // 7.1.1: L_SYM_time = 2 + 6, L_time = 8 + NEIGHB_HOLD_TIME
        assert_eq!(kind(&links, 8), Some(LinkType::Lost));
        links.expire(at(13));
        assert_eq!(kind(&links, 13), Some(LinkType::Lost));
        links.expire(at(14));
        assert!(links.get(B).is_none());
    }

    #[test]
    fn a_neighbour_that_lost_us_is_heard_but_not_symmetric() {
        let mut links = links();
        links.hello(at(0), B, heard(Some(LinkType::Symmetric)));
        links.hello(at(1), B, heard(Some(LinkType::Lost)));
        assert_eq!(kind(&links, 1), Some(LinkType::Asymmetric));
    }

    #[test]
    fn a_hello_without_us_does_not_end_the_symmetry_early() {
        let mut links = links();
        links.hello(at(0), B, heard(Some(LinkType::Symmetric)));
        links.hello(at(5), B, heard(None));
        assert_eq!(kind(&links, 5), Some(LinkType::Symmetric));
        assert_eq!(kind(&links, 6), Some(LinkType::Asymmetric));
    }

    #[test]
    fn a_failed_link_is_lost_at_once_and_returns_with_the_next_hello() {
        let mut links = links();
        links.hello(at(0), B, heard(Some(LinkType::Symmetric)));
        assert!(links.fail(at(1), B));
        assert!(!links.fail(at(1), B));
        assert_eq!(kind(&links, 1), Some(LinkType::Lost));
        links.hello(at(2), B, heard(Some(LinkType::Symmetric)));
        assert_eq!(kind(&links, 2), Some(LinkType::Symmetric));
    }

    #[test]
    fn a_pending_link_is_not_announced_until_it_is_established() {
        let mut links = Links::new(Duration::from_secs(6), true);
        links.hello(at(0), B, heard(Some(LinkType::Symmetric)));
        assert_eq!(kind(&links, 0), None);
        links.packet(at(1), B, 1);
        links.packet(at(2), B, 2);
        assert_eq!(kind(&links, 2), Some(LinkType::Symmetric));
        links.packet(at(3), B, 5);
        assert_eq!(kind(&links, 3), Some(LinkType::Lost));
    }

    #[test]
    fn forged_neighbours_do_not_exceed_the_limit() {
        let mut links = links();
        for n in 0..2000u32 {
            let taken = links.hello(at(0), Ipv4Addr::from(n), heard(None));
            assert_eq!(taken, n < MAX_LINKS as u32);
        }
        assert!(links.hello(at(1), Ipv4Addr::from(3), heard(None)));
        assert_eq!(links.iter().count(), MAX_LINKS);
    }
}
