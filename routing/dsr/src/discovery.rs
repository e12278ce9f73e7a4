//! The Route Request Table (RFC 4728, section 4.3) for this node's own discoveries.

use manet_engine::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Maximum number of simultaneous discoveries; packets to further destinations wait.
const MAX_DISCOVERIES: usize = 64;

/// The timing of a discovery.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Whether the first request has TTL 1.
    pub nonpropagating: bool,
    /// Wait after the non-propagating request (NonpropRequestTimeout).
    pub nonprop_timeout: Duration,
    /// Wait after the first propagating request (RequestPeriod).
    pub period: Duration,
    /// Factor of the wait after each further one.
    pub backoff: u32,
    /// Upper bound of the wait (MaxRequestPeriod).
    pub max_period: Duration,
    /// Propagating requests after the first (MaxRequestRexmt).
    pub retries: u32,
}

impl Pace {
    /// The wait after one of `wait`.
    fn after(&self, wait: Duration) -> Duration {
        (wait * u64::from(self.backoff)).min(self.max_period)
    }
}

/// The next action of a discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send a request to the neighbours only (TTL 1).
    Neighbours,
    /// Send a propagating request.
    Network,
    /// The discovery failed: drop the waiting packets.
    GiveUp,
}

#[derive(Clone, Copy, Debug)]
struct Discovery {
    /// Propagating requests sent since packets began to wait.
    sent: u32,
    /// Wait after the next propagating request.
    wait: Duration,
    at: Instant,
    given_up: bool,
    /// Its wait is over and no packet waits: no request is sent until one does.
    idle: bool,
}

/// Own discoveries by target. An entry stays until a Route Reply for its target arrives (4.3, 8.2): a route learnt from
/// another packet ends the discovery, but leaves the earliest time of the next request and the wait after it unchanged.
#[derive(Clone, Debug)]
pub struct Discoveries {
    pace: Pace,
    targets: BTreeMap<Ipv4Addr, Discovery>,
}

impl Discoveries {
    /// No discoveries.
    pub fn new(pace: Pace) -> Self {
        Self { pace, targets: BTreeMap::new() }
    }

    /// Starts a discovery and returns its first step; `None`: the target's wait is not over, or the maximum is reached.
    pub fn start(&mut self, now: Instant, target: Ipv4Addr) -> Option<Step> {
        let before = self.targets.get(&target).copied();
        if before.is_some_and(|d| !d.idle) || before.is_none() && !self.make_room() {
            return None;
        }
        let pace = &self.pace;
        let wait = before.map_or(pace.period, |d| d.wait);
        // a discovery that ended after the request to neighbours continues with the propagating one
        let ask_neighbours = pace.nonpropagating && before.is_none_or(|d| d.sent > 0);
        let (step, sent, first, wait) = if ask_neighbours {
            (Step::Neighbours, 0, pace.nonprop_timeout, wait)
        } else {
            (Step::Network, 1, wait, pace.after(wait))
        };
        self.targets.insert(target, Discovery { sent, wait, at: now + first, given_up: false, idle: false });
        Some(step)
    }

    /// Removes the least recently used idle entry, as 4.3 advises. False: all discoveries are active.
    fn make_room(&mut self) -> bool {
        if self.targets.len() >= MAX_DISCOVERIES {
            let oldest = self.targets.iter().filter(|(_, d)| d.idle).min_by_key(|(_, d)| d.at).map(|(t, _)| *t);
            oldest.map(|target| self.targets.remove(&target));
        }
        self.targets.len() < MAX_DISCOVERIES
    }

    /// A target whose wait is over and the next step. `wanted`: whether packets wait for a target.
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
                // the last wait starts again: a new packet must not restart the discovery at once
                discovery.given_up = true;
                discovery.at = now + self.pace.max_period;
                return Some((target, Step::GiveUp));
            }
            discovery.sent += 1;
            discovery.at = now + discovery.wait;
            discovery.wait = self.pace.after(discovery.wait);
            return Some((target, Step::Network));
        }
    }

    /// A Route Reply for the target arrived: the next discovery begins with the first request.
    pub fn answered(&mut self, target: Ipv4Addr) {
        self.targets.remove(&target);
    }

    /// The earliest end of a wait.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.targets.values().filter(|d| !d.idle).map(|d| d.at).min()
    }

    /// Number of discoveries whose wait is not over.
    pub fn len(&self) -> usize {
        self.targets.values().filter(|d| !d.idle).count()
    }

    /// Whether there is no such discovery.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::trial::ms as at;

    const T: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
    const PACE: Pace = Pace {
        nonpropagating: true,
        nonprop_timeout: Duration::from_millis(30),
        period: Duration::from_millis(500),
        backoff: 2,
        max_period: Duration::from_secs(10),
        retries: 16,
    };

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
    fn waits_of_ns2_are_two_seconds_then_eight_then_ten() {
        // dsragent.cc, BackOffTest: 0.5 s * 4^n, at most 10 s; the request to the neighbours is the one with n = 0
        let mut discoveries = Discoveries::new(Pace { period: Duration::from_secs(2), backoff: 4, ..PACE });
        discoveries.start(at(0), T);
        for ms in [30, 2030, 10_030, 20_030, 30_030] {
            assert_eq!(discoveries.next_timeout(), Some(at(ms)));
            assert_eq!(discoveries.due(at(ms), |_| true), Some((T, Step::Network)));
        }
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
    fn with_ns_2s_factor_of_four_the_maximum_is_reached_by_the_fourth_request() {
        // 0.5 s x 4^n: 0.5, 2, 8, then 10 s each
        let mut discoveries = Discoveries::new(Pace { nonpropagating: false, backoff: 4, ..PACE });
        assert_eq!(discoveries.start(at(0), T), Some(Step::Network));
        for ms in [500, 2500, 10_500, 20_500, 30_500] {
            assert_eq!(discoveries.next_timeout(), Some(at(ms)));
            assert_eq!(discoveries.due(at(ms), |_| true), Some((T, Step::Network)));
        }
    }

    #[test]
    fn a_target_gets_no_further_request_within_its_wait() {
        let mut discoveries = Discoveries::new(PACE);
        discoveries.start(at(0), T);
        assert_eq!(discoveries.start(at(1), T), None);
        // no packet waits any more: no request is sent, but the target was blocked until then. No neighbour replied
        assert_eq!(discoveries.due(at(30), |_| false), None);
        assert_eq!((discoveries.next_timeout(), discoveries.start(at(30), T)), (None, Some(Step::Network)));
    }

    #[test]
    fn waits_double_until_a_reply_arrives_even_if_a_route_was_learnt_otherwise() {
        let mut discoveries = Discoveries::new(PACE);
        let mut now = at(0);
        for wait in [500, 1000, 2000, 4000, 8000, 10_000, 10_000] {
            // packets wait, no neighbour replies, a propagating request is sent; then a route is overheard
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
    fn an_idle_target_is_displaced_and_an_active_one_is_not() {
        let mut discoveries = Discoveries::new(PACE);
        let target = |n: u64| Ipv4Addr::from(n as u32);
        for n in 0..MAX_DISCOVERIES as u64 {
            assert!(discoveries.start(at(n), target(n)).is_some());
        }
        assert_eq!(discoveries.start(at(64), T), None);
        assert_eq!(discoveries.due(at(94), |t| t != target(3)), Some((target(0), Step::Network)));
        while discoveries.due(at(94), |t| t != target(3)).is_some() {}
        assert_eq!(discoveries.start(at(95), T), Some(Step::Neighbours));
        assert_eq!(discoveries.targets.get(&target(3)).map(|d| d.at), None);
    }
}
