//! Seeded random streams, one per (node, purpose).
//!
//! A new node or purpose never shifts the stream of another: each stream depends only on
//! (seed, node, purpose). SplitMix64 spreads the key, xoshiro256++ (Blackman & Vigna 2019)
//! generates the numbers; both are public domain algorithms, written out here because the
//! sequence is part of the golden files and must not change with a dependency's version.

use crate::Duration;
use serde::{Deserialize, Serialize};

/// Use of a stream. The number is part of every golden file: append, never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u64)]
pub enum Purpose {
    /// Backoff slots of the DCF.
    Backoff = 1,
    /// Frame errors of links.
    Error = 2,
    /// Log-normal loss of a pair of stations; the node is the number of the pair.
    Shadowing = 3,
    /// Gaps of synthetic traffic; the node is the number of the flow.
    Traffic = 4,
    /// Jitter of routing protocols.
    Routing = 5,
    /// Random waypoints.
    Mobility = 6,
    /// Fading of frames; the node is the sender.
    Fading = 7,
    /// Receptions by SINR; the node is the receiver.
    Reception = 8,
    /// Samples of a rate control.
    RateControl = 9,
    /// Perturbation of the hash over flows of a fair queue.
    FlowHash = 10,
    /// Shadowing as a field over positions.
    ShadowField = 21,
    /// Fading of links; the node is the pair of stations, or a block of time of one.
    LinkFading = 22,
}

/// A pseudorandom stream (xoshiro256++).
#[derive(Clone, Debug)]
pub struct Stream {
    state: [u64; 4],
}

fn split_mix(z: &mut u64) -> u64 {
    *z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mix(*z)
}

/// The output function of SplitMix64: a bijection of 64-bit numbers in which each bit of `x` flips about half of the result's.
pub const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Stream {
    /// The stream of `node` for `purpose` under `seed`.
    pub fn new(seed: u64, node: u64, purpose: Purpose) -> Self {
        let mut z = seed;
        let a = split_mix(&mut z);
        let mut z = a ^ node.wrapping_mul(0xd6e8_feb8_6659_fd93);
        let b = split_mix(&mut z);
        let mut z = b ^ (purpose as u64).wrapping_mul(0xa076_1d64_78bd_642f);
        Self { state: std::array::from_fn(|_| split_mix(&mut z)) }
    }

    /// Uniform over all 64-bit numbers.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in 0..n (n > 0), without modulo bias (Lemire 2019).
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0);
        loop {
            let m = u128::from(self.next_u64()) * u128::from(n);
            let low = m as u64;
            if low >= n || low >= n.wrapping_neg() % n {
                return (m >> 64) as u64;
            }
        }
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A duration, uniform between the two; `min` if `max` is less.
    pub fn between(&mut self, min: Duration, max: Duration) -> Duration {
        let spread = max.as_secs_f64() - min.as_secs_f64();
        min + Duration::from_secs_f64(spread.max(0.0) * self.unit())
    }

    /// True with probability `p`. Draws nothing for p <= 0 or p >= 1.
    pub fn chance(&mut self, p: f64) -> bool {
        p >= 1.0 || (p > 0.0 && self.unit() < p)
    }

    /// Standard normal (Box & Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let u = 1.0 - self.unit();
        let v = self.unit();
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_part_of_the_golden_files() {
        let mut s = Stream::new(1, 0, Purpose::Backoff);
        let first: Vec<u64> = (0..4).map(|_| s.below(32)).collect();
        let mut again = Stream::new(1, 0, Purpose::Backoff);
        assert_eq!(first, (0..4).map(|_| again.below(32)).collect::<Vec<_>>());
    }

    #[test]
    fn streams_of_other_nodes_and_purposes_differ() {
        let draw = |node, purpose| Stream::new(7, node, purpose).next_u64();
        assert_ne!(draw(0, Purpose::Backoff), draw(1, Purpose::Backoff));
        assert_ne!(draw(0, Purpose::Backoff), draw(0, Purpose::Error));
    }

    #[test]
    fn below_is_uniform() {
        // 31 classes, 310,000 draws: chi-square with 30 degrees of freedom is below 59.7 in 99.9 % of cases
        let mut s = Stream::new(3, 1, Purpose::Traffic);
        let mut count = [0f64; 31];
        for _ in 0..310_000 {
            count[s.below(31) as usize] += 1.0;
        }
        let chi2: f64 = count.iter().map(|c| (c - 1e4).powi(2) / 1e4).sum();
        assert!(chi2 < 59.7, "{chi2}");
    }

    #[test]
    fn normal_has_mean_zero_and_variance_one() {
        let mut s = Stream::new(5, 2, Purpose::Shadowing);
        let x: Vec<f64> = (0..100_000).map(|_| s.normal()).collect();
        let mean = x.iter().sum::<f64>() / 1e5;
        let var = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.015 && (var - 1.0).abs() < 0.02, "{mean} {var}");
    }
}
