//! The Route Request Table (RFC 4728, section 4.3), our own requests: the discoveries under way.

use manet_engine::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Own discoveries at a time; a stack that asks for more destinations than that waits.
const DISCOVERIES: usize = 64;

/// How a discovery goes on.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub nonpropagating: bool,
    /// Wait after the non-propagating request (NonpropRequestTimeout).
    pub nonprop_timeout: Duration,
    /// Wait after the first propagating request; doubles up to `longest` (RequestPeriod, MaxRequestPeriod).
    pub period: Duration,
    pub longest: Duration,
    /// Propagating requests after the first (MaxRequestRexmt).
    pub retries: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send a request that only neighbours hear.
    Neighbours,
    /// Send one that is passed on.
    Network,
    GiveUp,
}

#[derive(Clone, Copy, Debug)]
struct Discovery {
    /// Propagating requests sent since packets began to wait.
    sent: u32,
    /// After the next propagating request.
    wait: Duration,
    at: Instant,
    given_up: bool,
    /// Its wait is over, and no packet waits: nothing is sent until one does.
    idle: bool,
}

/// Own discoveries by target. A target stays, found or not, until a Route Reply for it comes (4.3, 8.2): what was learnt
/// from other packets ends the search, and leaves the time before which the target is not asked for again, and the wait
/// after that, as they are.
#[derive(Clone, Debug)]
pub struct Discoveries {
    pace: Pace,
    targets: BTreeMap<Ipv4Addr, Discovery>,
}

impl Discoveries {
    pub fn new(pace: Pace) -> Self {
        Self { pace, targets: BTreeMap::new() }
    }

    /// The first step for `target`; `None`: its wait is not over, or too many are under way.
    pub fn start(&mut self, now: Instant, target: Ipv4Addr) -> Option<Step> {
        let before = self.targets.get(&target).copied();
        if before.is_some_and(|d| !d.idle) || before.is_none() && !self.make_room() {
            return None;
        }
        let pace = &self.pace;
        let wait = before.map_or(pace.period, |d| d.wait);
        // who stopped after the neighbours' request goes on with the network's
        let ask_neighbours = pace.nonpropagating && before.is_none_or(|d| d.sent > 0);
        let (step, sent, first, wait) = if ask_neighbours {
            (Step::Neighbours, 0, pace.nonprop_timeout, wait)
        } else {
            (Step::Network, 1, wait, (wait + wait).min(pace.longest))
        };
        self.targets.insert(target, Discovery { sent, wait, at: now + first, given_up: false, idle: false });
        Some(step)
    }

    /// As 4.3 advises, what was used least lately goes; nothing that is under way does.
    fn make_room(&mut self) -> bool {
        if self.targets.len() >= DISCOVERIES {
            let oldest = self.targets.iter().filter(|(_, d)| d.idle).min_by_key(|(_, d)| d.at).map(|(t, _)| *t);
            oldest.map(|target| self.targets.remove(&target));
        }
        self.targets.len() < DISCOVERIES
    }

    /// A target whose wait is over and what to do. `wanted`: whether packets still wait for it.
    pub fn due(&mut self, now: Instant, wanted: impl Fn(Ipv4Addr) -> bool) -> Option<(Ipv4Addr, Step)> {
        loop {
            let due = |(_, d): &(&Ipv4Addr, &Discovery)| !d.idle && d.at <= now;
            let (target, _) = self.targets.iter().filter(due).min_by_key(|(_, d)| d.at)?;
            let target = *target;
            let discovery = self.targets.get_mut(&target)?;
            if discovery.given_up || !wanted(target) {
                discovery.idle = true;
                continue;
            }
            if discovery.sent > self.pace.retries {
                // its last wait starts again: a new packet must not restart the search at once
                discovery.given_up = true;
                discovery.at = now + self.pace.longest;
                return Some((target, Step::GiveUp));
            }
            discovery.sent += 1;
            discovery.at = now + discovery.wait;
            discovery.wait = (discovery.wait + discovery.wait).min(self.pace.longest);
            return Some((target, Step::Network));
        }
    }

    /// A Route Reply for the target came: the next request is the first again.
    pub fn answered(&mut self, target: Ipv4Addr) {
        self.targets.remove(&target);
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        self.targets.values().filter(|d| !d.idle).map(|d| d.at).min()
    }

    /// Those whose wait is not over.
    pub fn len(&self) -> usize {
        self.targets.values().filter(|d| !d.idle).count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
    const PACE: Pace = Pace {
        nonpropagating: true,
        nonprop_timeout: Duration::from_millis(30),
        period: Duration::from_millis(500),
        longest: Duration::from_secs(10),
        retries: 16,
    };

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn waits_are_30_ms_then_half_a_second_doubling_to_ten() {
        let mut discoveries = Discoveries::new(PACE);
        assert_eq!(discoveries.start(at(0), T), Some(Step::Neighbours));
        let mut sent = Vec::new();
        while let Some(next) = discoveries.next_timeout() {
            if let Some((_, step)) = discoveries.due(next, |_| true) {
                sent.push((next.as_nanos() / 1_000_000, step));
            }
        }
        // 30 ms, then + 0.5, 1, 2, 4, 8, 10, 10, ... s; 1 + 16 propagating requests
        let times: Vec<u64> = sent.iter().map(|(at, _)| *at).collect();
        assert_eq!(times[..7], [30, 530, 1530, 3530, 7530, 15_530, 25_530]);
        assert_eq!((sent.len(), sent[17].1), (18, Step::GiveUp));
        assert!(sent[..17].iter().all(|(_, step)| *step == Step::Network));
    }

    #[test]
    fn without_the_neighbours_request_the_first_wait_is_half_a_second_and_the_second_a_whole() {
        let mut discoveries = Discoveries::new(Pace { nonpropagating: false, ..PACE });
        assert_eq!(discoveries.start(at(0), T), Some(Step::Network));
        for ms in [500, 1500, 3500] {
            assert_eq!(discoveries.next_timeout(), Some(at(ms)));
            assert_eq!(discoveries.due(at(ms), |_| true), Some((T, Step::Network)));
        }
    }

    #[test]
    fn a_target_is_not_asked_for_again_within_its_wait() {
        let mut discoveries = Discoveries::new(PACE);
        discoveries.start(at(0), T);
        assert_eq!(discoveries.start(at(1), T), None);
        // no packet waits any more: nothing is sent, but the target was blocked until then. The neighbours had no answer
        assert_eq!(discoveries.due(at(30), |_| false), None);
        assert_eq!((discoveries.next_timeout(), discoveries.start(at(30), T)), (None, Some(Step::Network)));
    }

    #[test]
    fn waits_go_on_doubling_until_a_reply_comes_whatever_else_ended_the_search() {
        let mut discoveries = Discoveries::new(PACE);
        let mut now = at(0);
        for wait in [500, 1000, 2000, 4000, 8000, 10_000, 10_000] {
            // packets wait, the neighbours know nothing and the network is asked; then a route is overheard
            assert_eq!(discoveries.start(now, T), Some(Step::Neighbours));
            now += Duration::from_millis(30);
            assert_eq!(discoveries.due(now, |_| true), Some((T, Step::Network)));
            assert_eq!(discoveries.start(now, T), None);
            assert_eq!(discoveries.next_timeout(), Some(now + Duration::from_millis(wait)));
            now += Duration::from_millis(wait);
            assert_eq!(discoveries.due(now, |_| false), None);
        }
        discoveries.answered(T);
        assert_eq!(discoveries.start(now, T), Some(Step::Neighbours));
        assert_eq!(discoveries.due(now + Duration::from_millis(30), |_| true), Some((T, Step::Network)));
        assert_eq!(discoveries.next_timeout(), Some(now + Duration::from_millis(530)));
    }

    #[test]
    fn a_target_that_rests_makes_room_and_one_that_is_asked_for_does_not() {
        let mut discoveries = Discoveries::new(PACE);
        let target = |n: u64| Ipv4Addr::from(n as u32);
        for n in 0..DISCOVERIES as u64 {
            assert!(discoveries.start(at(n), target(n)).is_some());
        }
        assert_eq!(discoveries.start(at(64), T), None);
        assert_eq!(discoveries.due(at(94), |t| t != target(3)), Some((target(0), Step::Network)));
        while discoveries.due(at(94), |t| t != target(3)).is_some() {}
        assert_eq!(discoveries.start(at(95), T), Some(Step::Neighbours));
        assert_eq!(discoveries.targets.get(&target(3)).map(|d| d.at), None);
    }
}
