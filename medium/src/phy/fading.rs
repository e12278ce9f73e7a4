//! Small-scale fading of each link: the factor on its power, a pure function of seed, link and time, or of both stations' positions.
//!
//! **Doppler** (`coherence = "doppler"`). The scattered part is a sum of [`WAVES`] plane waves of equal amplitude, whose phases
//! and whose directions, evenly spaced from a first one, are drawn for each link (Clarke 1968; as a sum of sinusoids
//! with random phases Zheng and Xiao, IEEE Transactions on Communications 51(6), 2003). With `speed_mps` a wave from direction
//! alpha has the Doppler shift f cos(alpha), f = speed / wavelength, and the correlation over a time t is J0(2 pi f t). Without, each
//! wave has a direction at both stations and its phase is a function of their positions (Akki and Haber, IEEE Transactions on
//! Vehicular Technology 35(1), 1986): J0(2 pi d / wavelength) over a movement of one station by d, of both the product; a link
//! between stations at rest does not change. The waves are horizontal: heights do not count.
//!
//! **Block** (`coherence = "block"`). Independent draws for blocks of the coherence time 0.423 / f (Rappaport, Wireless Communications,
//! equation 5.40.c), whose borders differ from link to link.
//!
//! The distribution of the power: exponential (Rayleigh); with a fixed part of K times the scattered power (Rician; the fixed part has
//! the Doppler shift of a direction of its own, Xiao, Zheng and Beaulieu, IEEE Transactions on Wireless Communications 5(12), 2006, or
//! the phase of the straight path); gamma of shape m (Nakagami), to which the exponential of the waves is mapped at equal
//! probability. The mean is 1, a value at most [`HIGHEST`].
//!
//! The same in both directions. A frame has the value of its start; its changes within a frame are not modelled.

use super::propagation::{distance_m, wavelength_m};
use super::Radio;
use manet_engine::keys::{above, within, Limits};
use manet_engine::random::Purpose;
use manet_engine::{choices, tables, Instant, Stream};
use std::f64::consts::TAU;

/// Waves of a link. Their number of equal amplitudes makes peaks rarer than in the exponential distribution: with 32, 10 dB above
/// the mean are exceeded half as often.
const WAVES: usize = 32;
/// A wave's number of the direction at the second station is this multiple of that at the first: few waves have neighbouring directions
/// at both (a lattice of 32 points).
const STRIDE: usize = 13;
/// Bound of the factor, 10 dB, up to which links below a threshold are considered. The exponential distribution is above with a
/// probability of 4.5e-5, a Rician one less often, Nakagami with m = 0.5 with 1.6e-3.
pub const HIGHEST: f64 = 10.0;
/// Coherence time times Doppler shift.
const COHERENCE: f64 = 0.423;

const SPEED: Limits = above(0.0).up_to(1000.0).of("m/s");

tables! {
    /// The `fading` table of `medium.json`.
    pub enum Fading by "model" {
        /// No small-scale fading.
        Off = "none" {}
        /// Scattered waves alone: exponential power.
        Rayleigh = "rayleigh" {
            /// Speed that gives the Doppler shift, whatever stations do; without it, their movement changes the phases.
            #[serde(default)]
            speed_mps: Option<f64> => SPEED;
            /// Change of the power over time.
            #[serde(default)]
            coherence: Coherence;
        }
        /// A fixed part and scattered waves.
        Rician = "rician" {
            /// Power of the fixed part over that of the scattered waves.
            k_db: f64 => within(-30.0, 40.0).of("dB");
            /// Speed that gives the Doppler shift, whatever stations do; without it, their movement changes the phases.
            #[serde(default)]
            speed_mps: Option<f64> => SPEED;
            /// Change of the power over time.
            #[serde(default)]
            coherence: Coherence;
        }
        /// Gamma distributed power.
        Nakagami = "nakagami" {
            /// Shape: 1 is Rayleigh, more fades less.
            m: f64 => within(0.5, 100.0);
            /// Speed that gives the Doppler shift, whatever stations do; without it, their movement changes the phases.
            #[serde(default)]
            speed_mps: Option<f64> => SPEED;
            /// Change of the power over time.
            #[serde(default)]
            coherence: Coherence;
        }
    }
}

choices! {
    /// Change of the power of a link over time.
    pub enum Coherence {
        /// Gradual, by the Doppler shifts of the waves.
        Doppler = "doppler",
        /// Constant for a coherence time, then independent; needs `speed_mps`.
        Block = "block",
    }
}

impl Default for Fading {
    fn default() -> Self {
        Self::Off {}
    }
}

impl Fading {
    /// The refusal of blocks whose length nothing gives.
    pub const NO_LENGTH: &'static str = "\"block\" needs speed_mps, from which its length follows; add it";

    /// Whether it has blocks, but no speed for their length.
    pub fn lacks_speed(&self) -> bool {
        self.over_time().is_some_and(|(speed_mps, coherence)| coherence == Coherence::Block && speed_mps.is_none())
    }

    fn over_time(&self) -> Option<(Option<f64>, Coherence)> {
        match *self {
            Self::Off {} => None,
            Self::Rayleigh { speed_mps, coherence }
            | Self::Rician { speed_mps, coherence, .. }
            | Self::Nakagami { speed_mps, coherence, .. } => Some((speed_mps, coherence)),
        }
    }
}

/// What changes the phases of the waves.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Doppler shift, Hz.
    Time(f64),
    Places,
    /// Length of a block, s.
    Block(f64),
}

/// Fading of the links of one radio.
#[derive(Clone, Debug)]
pub struct Fader {
    model: Fading,
    change: Change,
    seed: u64,
    /// 2 pi over the wavelength, rad/m.
    wave_number: f64,
    /// Cosine and sine of the evenly spaced directions.
    directions: [[f64; 2]; WAVES],
}

impl Fader {
    /// `model` must not lack a speed.
    pub fn new(model: &Fading, seed: u64, radio: &Radio) -> Self {
        let wavelength_m = wavelength_m(radio);
        let change = match model.over_time() {
            Some((Some(speed_mps), Coherence::Block)) => Change::Block(COHERENCE * wavelength_m / speed_mps),
            Some((Some(speed_mps), Coherence::Doppler)) => Change::Time(speed_mps / wavelength_m),
            _ => Change::Places,
        };
        let directions = std::array::from_fn(|n| {
            let (sin, cos) = (TAU * n as f64 / WAVES as f64).sin_cos();
            [cos, sin]
        });
        Self { model: model.clone(), change, seed, wave_number: TAU / wavelength_m, directions }
    }

    /// Whether it ever changes a power.
    pub fn is_on(&self) -> bool {
        !matches!(self.model, Fading::Off {})
    }

    /// Bound of [`Self::gain`].
    pub fn highest(&self) -> f64 {
        if self.is_on() {
            HIGHEST
        } else {
            1.0
        }
    }

    /// The factor on the power of the link between `a` and `b`, stations with their positions in m, at `now`.
    pub fn gain(&self, a: (u16, [f64; 3]), b: (u16, [f64; 3]), now: Instant) -> f64 {
        if !self.is_on() {
            return 1.0;
        }
        let ((low, from), (high, to)) = if a.0 <= b.0 { (a, b) } else { (b, a) };
        let pair = u64::from(low) << 16 | u64::from(high);
        let mut link = Stream::new(self.seed, pair, Purpose::LinkFading);
        let (fixed_phase, scattered) = match self.change {
            Change::Block(length_s) => {
                let block = (now.as_nanos() as f64 / 1e9 / length_s + link.unit()) as u64;
                let mut block = Stream::new(link.next_u64(), block, Purpose::LinkFading);
                // the power of two normal parts of variance 1/2 is exponential of mean 1
                let (power, angle) = (-(1.0 - block.unit()).ln(), TAU * block.unit());
                (TAU * block.unit(), [power.sqrt() * angle.cos(), power.sqrt() * angle.sin()])
            }
            Change::Time(shift_hz) => {
                let turns = TAU * shift_hz * (now.as_nanos() as f64 / 1e9);
                let fixed = TAU * link.unit() + turns * (TAU * link.unit()).cos();
                (fixed, self.waves(&mut link, |[[x, _], _]| turns * x))
            }
            Change::Places => {
                let fixed = TAU * link.unit() + self.wave_number * distance_m(from, to);
                let phase = |[[x, y], [u, v]]: [[f64; 2]; 2]| {
                    self.wave_number * (x * from[0] + y * from[1] + u * to[0] + v * to[1])
                };
                (fixed, self.waves(&mut link, phase))
            }
        };
        self.power(fixed_phase, scattered).min(HIGHEST)
    }

    /// The sum of the waves, of mean power 1. `phase`: what position or time adds to the phase of a wave of these directions at the two stations.
    fn waves(&self, link: &mut Stream, phase: impl Fn([[f64; 2]; 2]) -> f64) -> [f64; 2] {
        let rotations: [(f64, f64); 2] = std::array::from_fn(|_| (TAU * link.unit()).sin_cos());
        let first = link.below(WAVES as u64) as usize;
        let turned = |n: usize, (sin, cos): (f64, f64)| {
            let [x, y] = self.directions[n % WAVES];
            [x * cos - y * sin, x * sin + y * cos]
        };
        let mut sum = [0.0; 2];
        for n in 0..WAVES {
            let ends = [turned(n, rotations[0]), turned(first + STRIDE * n, rotations[1])];
            let (sin, cos) = (phase(ends) + TAU * link.unit()).sin_cos();
            sum = [sum[0] + cos, sum[1] + sin];
        }
        sum.map(|part| part / (WAVES as f64).sqrt())
    }

    fn power(&self, fixed_phase: f64, [x, y]: [f64; 2]) -> f64 {
        match self.model {
            Fading::Rician { k_db, .. } => {
                let k = 10f64.powf(k_db / 10.0);
                let (fixed, scattered) = ((k / (k + 1.0)).sqrt(), (1.0 / (k + 1.0)).sqrt());
                let (sin, cos) = fixed_phase.sin_cos();
                (fixed * cos + scattered * x).powi(2) + (fixed * sin + scattered * y).powi(2)
            }
            Fading::Nakagami { m, .. } if m != 1.0 => gamma::upper_quantile(m, (-(x * x + y * y)).exp()) / m,
            _ => x * x + y * y,
        }
    }
}

/// The gamma distribution of scale 1.
mod gamma {
    /// The value that is exceeded with probability `q` (above 0, up to 1) under shape `a` (0.5 or more).
    ///
    /// Newton's method within a bracket, from Wilson and Hilferty's approximation (1931).
    pub fn upper_quantile(a: f64, q: f64) -> f64 {
        if q >= 1.0 {
            return 0.0;
        }
        let q = q.max(f64::MIN_POSITIVE);
        let (mut low, mut high) = (0.0, f64::INFINITY);
        let scale = 1.0 / (9.0 * a);
        let mut x = a * (1.0 - scale + normal_upper_quantile(q) * scale.sqrt()).powi(3).max(1e-6);
        for _ in 0..200 {
            let above = upper(a, x);
            if above > q {
                low = x;
            } else {
                high = x;
            }
            let density = ((a - 1.0) * x.ln() - x - ln_gamma(a)).exp();
            let newton = x + (above - q) / density;
            let next = match (newton > low && newton < high, high.is_finite()) {
                (true, _) => newton,
                (false, true) => (low + high) / 2.0,
                (false, false) => 2.0 * x,
            };
            if (next - x).abs() <= 1e-13 * x {
                return next;
            }
            x = next;
        }
        x
    }

    /// Abramowitz and Stegun 26.2.23, within 4.5e-4.
    fn normal_upper_quantile(q: f64) -> f64 {
        let t = (-2.0 * q.min(1.0 - q).max(f64::MIN_POSITIVE).ln()).sqrt();
        let z = t
            - (2.515_517 + t * (0.802_853 + t * 0.010_328)) / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
        if q < 0.5 {
            z
        } else {
            -z
        }
    }

    /// The regularized upper incomplete gamma function Q(a, x): Abramowitz and Stegun 6.5.29 below a + 1, 6.5.31 above.
    pub fn upper(a: f64, x: f64) -> f64 {
        if x <= 0.0 {
            return 1.0;
        }
        let front = (a * x.ln() - x - ln_gamma(a)).exp();
        if x < a + 1.0 {
            let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
            while term > sum * 1e-17 {
                n += 1.0;
                term *= x / n;
                sum += term;
            }
            return (1.0 - front * sum).max(0.0);
        }
        // Lentz's algorithm in the form of Thompson and Barnett (1986)
        let mut b = x + 1.0 - a;
        let (mut c, mut d) = (1.0 / f64::MIN_POSITIVE, 1.0 / b);
        let mut h = d;
        for i in 1..1000 {
            let i = f64::from(i);
            let an = -i * (i - a);
            b += 2.0;
            d = 1.0 / (an * d + b);
            c = b + an / c;
            h *= d * c;
            if (d * c - 1.0).abs() < 1e-15 {
                break;
            }
        }
        front * h
    }

    /// Lanczos' approximation (g = 7, nine terms), within 1e-14 for positive arguments.
    #[allow(clippy::excessive_precision)]
    pub fn ln_gamma(x: f64) -> f64 {
        const TERMS: [f64; 9] = [
            0.999_999_999_999_809_93,
            676.520_368_121_885_1,
            -1_259.139_216_722_402_8,
            771.323_428_777_653_13,
            -176.615_029_162_140_59,
            12.507_343_278_686_905,
            -0.138_571_095_265_720_12,
            9.984_369_578_019_571_6e-6,
            1.505_632_735_149_311_6e-7,
        ];
        let x = x - 1.0;
        let t = x + 7.5;
        let sum: f64 = (1..).zip(&TERMS[1..]).map(|(i, term)| term / (x + f64::from(i))).sum::<f64>() + TERMS[0];
        0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * t.ln() - t + sum.ln()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_functions_have_the_known_values() {
            // Abramowitz and Stegun, table 6.1: gamma(0.5) = sqrt(pi), gamma(1.5) = sqrt(pi) / 2, gamma(10) = 9!
            let ln = |x: f64| ln_gamma(x).exp();
            assert!((ln(0.5) - std::f64::consts::PI.sqrt()).abs() < 1e-13);
            assert!((ln(1.5) - std::f64::consts::PI.sqrt() / 2.0).abs() < 1e-13);
            assert!((ln(10.0) / 362_880.0 - 1.0).abs() < 1e-12);
            // of whole shapes Q(n, x) = exp(-x) (1 + x + ... + x^(n-1) / (n-1)!)
            for x in [0.01, 0.5, 3.9, 4.1, 20.0] {
                let closed = f64::exp(-x) * (1.0 + x + x * x / 2.0);
                assert!((upper(3.0, x) / closed - 1.0).abs() < 1e-10, "{x}: {} {closed}", upper(3.0, x));
            }
        }

        #[test]
        fn the_quantile_is_the_inverse() {
            for a in [0.5, 0.7, 1.0, 2.0, 5.5, 100.0] {
                for q in [1e-12, 1e-5, 0.01, 0.3, 0.5, 0.9, 0.999, 1.0 - 1e-9] {
                    let x = upper_quantile(a, q);
                    assert!((upper(a, x) - q).abs() <= 1e-8 * q.min(1.0 - q).max(1e-7), "{a} {q}: {x} {}", upper(a, x));
                }
                assert_eq!(upper_quantile(a, 1.0), 0.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::radio::tests::profile;
    use manet_engine::Duration;

    const SPEED_MPS: f64 = 3.0;

    fn fader(model: Fading, seed: u64) -> Fader {
        Fader::new(&model, seed, &profile("ns2-dsss-2m"))
    }

    /// The probability of a power of at most x.
    type Distribution = fn(f64) -> f64;

    /// Each model with this speed and coherence.
    fn models(speed_mps: Option<f64>, coherence: Coherence) -> Vec<(Fading, Distribution)> {
        vec![
            (Fading::Rayleigh { speed_mps, coherence }, |x| 1.0 - (-x).exp()),
            (Fading::Rician { k_db: 6.0, speed_mps, coherence }, |x| rician(10f64.powf(0.6), x)),
            (Fading::Nakagami { m: 0.5, speed_mps, coherence }, |x| 1.0 - gamma::upper(0.5, 0.5 * x)),
            (Fading::Nakagami { m: 3.0, speed_mps, coherence }, |x| 1.0 - gamma::upper(3.0, 3.0 * x)),
        ]
    }

    /// The noncentral chi-square distribution of two degrees of freedom as a mixture of gamma distributions with Poisson weights.
    fn rician(k: f64, x: f64) -> f64 {
        let weight = |n: u32| (f64::from(n) * k.ln() - k - gamma::ln_gamma(f64::from(n) + 1.0)).exp();
        (0..60).map(|n| weight(n) * (1.0 - gamma::upper(f64::from(n) + 1.0, (k + 1.0) * x))).sum()
    }

    fn at(seconds: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(seconds)
    }

    /// The gain of link 0 to `pair` at a time, stations at rest.
    fn gain(fader: &Fader, pair: u16, seconds: f64) -> f64 {
        fader.gain((0, [0.0; 3]), (pair, [f64::from(pair), 70.0, 0.0]), at(seconds))
    }

    /// Kolmogorov and Smirnov's statistic.
    fn distance(mut values: Vec<f64>, below: impl Fn(f64) -> f64) -> f64 {
        values.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let apart =
            |(i, x): (usize, &f64)| (below(*x) - i as f64 / n).abs().max((below(*x) - (i as f64 + 1.0) / n).abs());
        values.iter().enumerate().map(apart).fold(0.0, f64::max)
    }

    #[test]
    fn the_powers_of_many_links_have_the_distribution_of_the_model() {
        // 1.95 / sqrt(n): exceeded by one of 1000 samples of the distribution itself
        let (links, bound) = (20_000u16, 1.95 / 20_000f64.sqrt());
        for (speed_mps, coherence) in
            [(Some(SPEED_MPS), Coherence::Doppler), (Some(SPEED_MPS), Coherence::Block), (None, Coherence::Doppler)]
        {
            for (model, below) in models(speed_mps, coherence) {
                let fader = fader(model.clone(), 5);
                let values: Vec<f64> = (1..=links).map(|pair| gain(&fader, pair, 12.5)).collect();
                let found = distance(values, below);
                assert!(found < bound, "{model:?}: {found}, of at most {bound}");
            }
        }
    }

    #[test]
    fn the_powers_of_one_link_over_time_have_it_too_and_their_mean_is_1() {
        // 3 m/s at 914 MHz: 9.14 Hz; samples half a second apart are nearly independent
        for (model, below) in models(Some(SPEED_MPS), Coherence::Doppler) {
            let fader = fader(model.clone(), 6);
            let values: Vec<f64> = (0..20_000).map(|i| gain(&fader, 1, f64::from(i) * 0.511)).collect();
            let mean = values.iter().sum::<f64>() / 20_000.0;
            assert!((mean - 1.0).abs() < 0.05, "{model:?}: {mean}");
            let found = distance(values, below);
            // one realisation: the directions of its 32 waves leave up to 0.01
            assert!(found < 0.025, "{model:?}: {found}");
        }
    }

    /// Bessel's J0 by its series (Abramowitz and Stegun 9.1.10), for arguments up to 12.
    fn j0(x: f64) -> f64 {
        let (mut term, mut sum) = (1.0, 1.0);
        for k in 1..60 {
            term *= -(x * x / 4.0) / f64::from(k * k);
            sum += term;
        }
        sum
    }

    /// The correlation of the power at two times or places, over many links.
    fn correlation(values: impl Iterator<Item = (f64, f64)>) -> f64 {
        let (mut n, mut sums) = (0.0, [0.0; 5]);
        for (a, b) in values {
            n += 1.0;
            for (sum, value) in sums.iter_mut().zip([a, b, a * b, a * a, b * b]) {
                *sum += value;
            }
        }
        let [a, b, ab, aa, bb] = sums.map(|sum| sum / n);
        (ab - a * b) / ((aa - a * a) * (bb - b * b)).sqrt()
    }

    #[test]
    fn over_a_time_the_power_is_correlated_by_j0_squared_of_the_doppler_shift() {
        let fader = fader(Fading::Rayleigh { speed_mps: Some(SPEED_MPS), coherence: Coherence::Doppler }, 7);
        let shift_hz = SPEED_MPS / (3e8 / 914e6);
        // 30,000 links: a correlation is known to about 4 x 2 / sqrt(30000) = 0.046
        for turns in [0.0, 0.1, 0.2, 0.3827, 0.423, 0.6, 1.0] {
            let pairs =
                (1..=30_000u16).map(|pair| (gain(&fader, pair, 3.0), gain(&fader, pair, 3.0 + turns / shift_hz)));
            let (found, expected) = (correlation(pairs), j0(TAU * turns).powi(2));
            assert!((found - expected).abs() < 0.046, "{turns} / f: {found}, not {expected}");
        }
    }

    #[test]
    fn movement_by_a_length_has_the_correlation_of_clarke_at_either_end_and_of_both_their_product() {
        let fader = fader(Fading::Rayleigh { speed_mps: None, coherence: Coherence::Doppler }, 8);
        let wavelength_m = 3e8 / 914e6;
        for waves in [0.0, 0.1, 0.2, 0.3827, 0.6] {
            let moved_m = waves * wavelength_m;
            let of = |by: [f64; 2]| {
                let at = |pair, by: [f64; 2]| {
                    let (x, y) = (5.0 + by[0] * moved_m, 9.0 + by[1] * moved_m);
                    fader.gain((0, [x, 1.0, 0.0]), (pair, [60.0, y, 0.0]), Instant::ZERO)
                };
                correlation((1..=30_000u16).map(|pair| (at(pair, [0.0; 2]), at(pair, by))))
            };
            let one = j0(TAU * waves).powi(2);
            for (by, expected) in [([1.0, 0.0], one), ([0.0, 1.0], one), ([1.0, 1.0], one * one)] {
                assert!((of(by) - expected).abs() < 0.05, "{waves} wavelengths, {by:?}: {}, not {expected}", of(by));
            }
        }
    }

    #[test]
    fn a_level_is_crossed_as_often_as_the_formula_says() {
        // Rappaport, equation 5.80: sqrt(2 pi) f rho exp(-rho^2) upward crossings a second of rho times the effective amplitude
        let fader = fader(Fading::Rayleigh { speed_mps: Some(SPEED_MPS), coherence: Coherence::Doppler }, 9);
        let shift_hz = SPEED_MPS / (3e8 / 914e6);
        let (links, steps, step_s) = (50u16, 20_000, 0.002 / shift_hz);
        let of_link = |pair| (0..steps).map(|i| gain(&fader, pair, f64::from(i) * step_s)).collect::<Vec<f64>>();
        let of_links: Vec<Vec<f64>> = (1..=links).map(of_link).collect();
        for rho in [0.3f64, 1.0] {
            let upward = |two: &&[f64]| two[0] <= rho * rho && two[1] > rho * rho;
            let crossings: usize = of_links.iter().map(|powers| powers.windows(2).filter(upward).count()).sum();
            let found = crossings as f64 / (f64::from(links) * f64::from(steps) * step_s);
            let expected = TAU.sqrt() * shift_hz * rho * (-rho * rho).exp();
            // 1400 to 1800 crossings: four standard errors are 10 %
            assert!((found / expected - 1.0).abs() < 0.1, "{rho}: {found} a second, not {expected}");
        }
    }

    #[test]
    fn a_block_lasts_the_coherence_time_and_the_next_is_independent() {
        let fader = fader(Fading::Rayleigh { speed_mps: Some(SPEED_MPS), coherence: Coherence::Block }, 10);
        let length_s = 0.423 * (3e8 / 914e6) / SPEED_MPS;
        let steps = 100_000;
        let values: Vec<f64> = (0..steps).map(|i| gain(&fader, 1, f64::from(i) * length_s / 10.0)).collect();
        let changes = values.windows(2).filter(|two| two[0] != two[1]).count();
        assert!(changes.abs_diff(steps as usize / 10) <= 1, "{changes}: one in ten steps");
        let next = correlation(values.iter().zip(&values[10..]).map(|(a, b)| (*a, *b)));
        assert!(next.abs() < 0.04, "{next}, of 10,000 blocks");
        let begins =
            |pair| (0..20).position(|i| gain(&fader, pair, f64::from(i) * length_s / 20.0) != gain(&fader, pair, 0.0));
        let borders: std::collections::BTreeSet<_> = (1..50).map(begins).collect();
        assert!(borders.len() > 10, "the borders differ from link to link: {borders:?}");
    }

    #[test]
    fn a_link_is_the_same_both_ways_and_with_the_same_seed_only() {
        for (model, _) in
            models(Some(SPEED_MPS), Coherence::Doppler).into_iter().chain(models(None, Coherence::Doppler))
        {
            let one = fader(model.clone(), 1);
            let (a, b) = ((3, [1.0, 2.0, 0.0]), (7, [80.0, -3.0, 5.0]));
            assert_eq!(one.gain(a, b, at(1.5)), one.gain(b, a, at(1.5)));
            assert_eq!(one.gain(a, b, at(1.5)), fader(model.clone(), 1).gain(a, b, at(1.5)));
            assert_ne!(one.gain(a, b, at(1.5)), fader(model, 2).gain(a, b, at(1.5)));
            assert_ne!(one.gain(a, b, at(1.5)), one.gain(a, (8, b.1), at(1.5)), "another link");
        }
    }

    #[test]
    fn stations_at_rest_without_a_speed_have_links_that_do_not_change() {
        let fader = fader(Fading::Rayleigh { speed_mps: None, coherence: Coherence::Doppler }, 1);
        assert_eq!(gain(&fader, 1, 0.0), gain(&fader, 1, 1e6));
        assert_eq!((Fading::default(), fader.highest()), (Fading::Off {}, 10.0));
    }

    #[test]
    fn links_of_one_radio_are_independent() {
        let fader = fader(Fading::Rayleigh { speed_mps: Some(SPEED_MPS), coherence: Coherence::Doppler }, 12);
        let both = (0..20_000).map(|i| f64::from(i) * 0.511).map(|time| (gain(&fader, 1, time), gain(&fader, 2, time)));
        let found = correlation(both);
        assert!(found.abs() < 0.05, "{found}");
    }
}
