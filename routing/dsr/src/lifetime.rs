//! The time for which an unused path stays in the route cache (RFC 4728, section 4.1: RouteCacheTimeout), fixed or adaptive.
//!
//! Holland and Vaidya (MobiCom 1999, section 5.3) propose to adjust it to the observed rate of route failures, without a
//! formula. The one here is Marina and Das's ("Performance of Route Caching Strategies in Dynamic Source Routing", 2001):
//! 1.25 times the mean lifetime of the paths that broke, but no less than the time since the last break, so that a node
//! that sees no breaks keeps its paths. We did not have that paper itself. Departure: a path has one time of use, not one
//! for each of its nodes.

use manet_engine::{Duration, Instant};

/// Times the mean lifetime, as a fraction.
const FACTOR: (u64, u64) = (5, 4);

/// The time-out of unused paths.
#[derive(Clone, Debug)]
pub struct Lifetime {
    max: Duration,
    adaptive: bool,
    /// Number of broken paths, and the sum of their lifetimes.
    broken: (u64, Duration),
    last_break: Option<Instant>,
}

impl Lifetime {
    /// `max`: the time-out, of an adaptive one the maximum, which holds until a path breaks.
    pub fn new(max: Duration, adaptive: bool) -> Self {
        Self { max, adaptive, broken: (0, Duration::ZERO), last_break: None }
    }

    /// A path learnt at `learnt` broke.
    pub fn broke(&mut self, now: Instant, learnt: Instant) {
        let (count, sum) = self.broken;
        self.broken = (count + 1, sum + now.since(learnt));
        self.last_break = Some(now);
    }

    /// The time-out at `now`.
    pub fn timeout(&self, now: Instant) -> Duration {
        let (count, sum) = self.broken;
        let Some(last) = self.last_break.filter(|_| self.adaptive) else { return self.max };
        let by_mean = Duration::from_nanos(sum.as_nanos() / count / FACTOR.1 * FACTOR.0);
        by_mean.max(now.since(last)).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manet_routing::trial::at;

    fn lifetime(adaptive: bool) -> Lifetime {
        let mut lifetime = Lifetime::new(Duration::from_secs(300), adaptive);
        assert_eq!(lifetime.timeout(at(50)), Duration::from_secs(300));
        lifetime.broke(at(100), at(88));
        lifetime.broke(at(120), at(116));
        lifetime
    }

    #[test]
    fn an_adaptive_time_out_is_five_quarters_of_the_mean_lifetime_or_the_time_since_the_last_break() {
        // 1.25 x (12 + 4) / 2 = 10 s
        let lifetime = lifetime(true);
        for (now, timeout) in [(120, 10), (130, 10), (145, 25), (900, 300)] {
            assert_eq!(lifetime.timeout(at(now)), Duration::from_secs(timeout), "at {now} s");
        }
    }

    #[test]
    fn a_fixed_time_out_does_not_follow_the_breaks() {
        assert_eq!(lifetime(false).timeout(at(120)), Duration::from_secs(300));
    }
}
