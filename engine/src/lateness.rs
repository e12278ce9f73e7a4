//! Histogram of lateness, with buckets 1/8 of an octave wide from 1 us to hours, in constant memory.
//!
//! A quantile read from it is the upper bound of its bucket: at most 12.5 % too high, never too low.

use crate::Duration;

const SUB: u64 = 8;
/// Octaves above 1 us; 2^33 us is more than two hours.
const OCTAVES: usize = 34;
const BUCKETS: usize = OCTAVES * SUB as usize;

/// Lateness of all releases of a run: histogram, count, mean and maximum.
#[derive(Clone, Debug)]
pub struct Lateness {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    sum_ns: u64,
    max: Duration,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]), count: 0, sum_ns: 0, max: Duration::ZERO }
    }
}

/// Values below 1 us share the first bucket; then 8 linear steps in each octave.
fn bucket(d: Duration) -> usize {
    let eighths_us = d.as_nanos() / 125;
    if eighths_us < SUB {
        return 0;
    }
    let octave = (eighths_us.ilog2() - SUB.ilog2()) as usize;
    let step = (eighths_us >> octave) as usize - SUB as usize;
    (1 + octave * SUB as usize + step).min(BUCKETS - 1)
}

/// The smallest duration that is past the bucket.
fn upper_bound(index: usize) -> Duration {
    if index == 0 {
        return Duration::from_micros(1);
    }
    let (octave, step) = ((index - 1) as u64 / SUB, (index - 1) as u64 % SUB);
    Duration::from_nanos(((SUB + step + 1) << octave) * 125)
}

impl Lateness {
    /// Counts one release that came `late` after its planned instant.
    pub fn record(&mut self, late: Duration) {
        self.counts[bucket(late)] += 1;
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(late.as_nanos());
        self.max = self.max.max(late);
    }

    /// Number of releases.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Largest lateness; zero if nothing was recorded.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// Mean lateness; zero if nothing was recorded.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.sum_ns.checked_div(self.count).unwrap_or(0))
    }

    /// The quantile `q` (0 to 1): a share `q` of all releases was at most this late. Zero if nothing was recorded.
    pub fn quantile(&self, q: f64) -> Duration {
        let wanted = (q * self.count as f64).ceil() as u64;
        let mut seen = 0;
        for (i, n) in self.counts.iter().enumerate() {
            seen += n;
            if *n > 0 && seen >= wanted {
                return upper_bound(i).min(self.max);
            }
        }
        Duration::ZERO
    }

    /// Share (0 to 1) of the releases later than `bound`; the bucket that contains `bound` counts as not later.
    pub fn share_above(&self, bound: Duration) -> f64 {
        let above: u64 = self.counts[bucket(bound) + 1..].iter().sum();
        if self.count == 0 {
            0.0
        } else {
            above as f64 / self.count as f64
        }
    }

    /// The releases since `earlier`, a copy of this histogram. Their maximum is the upper bound of its bucket.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut counts = self.counts.clone();
        counts.iter_mut().zip(earlier.counts.iter()).for_each(|(n, before)| *n -= before);
        let max = counts.iter().rposition(|n| *n > 0).map_or(Duration::ZERO, |i| upper_bound(i).min(self.max));
        Self { counts, count: self.count - earlier.count, sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns), max }
    }

    /// Upper bound and count of every bucket that is not empty.
    pub fn histogram(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, n)| **n > 0).map(|(i, n)| (upper_bound(i), *n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_and_shares_of_a_known_set() {
        let mut lateness = Lateness::default();
        for us in 1..=1000 {
            lateness.record(Duration::from_micros(us));
        }
        let p50 = lateness.quantile(0.5).as_nanos();
        assert!((500_000..=562_500).contains(&p50), "{p50}");
        assert_eq!(lateness.quantile(1.0), Duration::from_millis(1));
        assert_eq!(lateness.mean().as_nanos(), 500_500);
        // 488 of 1000 are above 512 us, where a bucket begins
        assert!((lateness.share_above(Duration::from_nanos(511_999)) - 0.489).abs() < 1e-9);
        assert_eq!(Lateness::default().quantile(0.99), Duration::ZERO);
    }

    #[test]
    fn the_difference_of_two_histograms_has_only_the_later_releases() {
        let mut lateness = Lateness::default();
        lateness.record(Duration::from_millis(50));
        let earlier = lateness.clone();
        assert_eq!((lateness.since(&earlier).count(), lateness.since(&earlier).max()), (0, Duration::ZERO));
        lateness.record(Duration::from_micros(200));
        lateness.record(Duration::from_micros(400));
        let since = lateness.since(&earlier);
        assert_eq!((since.count(), since.mean()), (2, Duration::from_micros(300)));
        assert!((400_000..=450_000).contains(&since.max().as_nanos()), "{:?}", since.max());
    }

    proptest! {
        #[test]
        fn every_value_lies_below_its_bound_by_at_most_an_eighth(ns in 0u64..7_000_000_000_000) {
            let bound = upper_bound(bucket(Duration::from_nanos(ns))).as_nanos();
            prop_assert!(ns < bound);
            prop_assert!(bound <= ns + ns / 8 + 1000);
        }
    }
}
