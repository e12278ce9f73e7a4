//! Probability that a stretch of a frame is received without error at a signal to interference and noise ratio.
//!
//! OFDM, HT, VHT, HE, S1G: the model of G. Pei and T. Henderson, "Validation of OFDM error rate model in ns-3", Boeing Research and
//! Technology, 2010 ("NIST"): the uncoded bit error rate of each constellation in additive white Gaussian noise (J. G. Proakis, "Digital
//! Communications", 4th ed. 2001, 5.2: Gray-coded square QAM), then the union bound of the convolutional code (133, 171) with hard
//! decisions; the weights of its punctured forms are of P. Frenger, P. Orten, T. Ottosson, "Multi-rate convolutional codes",
//! Chalmers TR 21, 1998. Bits err independently: a stretch of n bits survives with (1 - p)^n.
//! DSSS: differential BPSK and QPSK by Proakis 5.2.8 (DQPSK's asymptotic form), energy per bit over the noise of 22 MHz. CCK: a code
//! word is taken for one of biorthogonal signals (Proakis 5.2.1), 8 of them at 5.5 Mbit/s and 8 in each of two quadratures at 11.
//!
//! Distances, measured in the tests below beside ns-3.44 (`tests/error_models.csv`): its NIST model is the same for OFDM and its
//! table (its default, from link simulations with soft decisions) is some 2 to 5 dB better; docs/medium.md has them by rate.

use super::mode::{CodeRate, Constellation, Mode};

/// Width of the receiver's filter for DSSS and CCK, Hz; noise is that of this width.
const DSSS_WIDTH_HZ: f64 = 22e6;

/// Natural logarithm of the probability that `bits` bits in `mode` survive at `sinr`, a plain ratio.
pub fn log_success(mode: Mode, sinr: f64, bits: f64) -> f64 {
    let (constellation, code) = mode.modulation();
    // the power is divided among the streams, which do not disturb one another; copies of a bit are added up
    let sinr = sinr * f64::from(mode.repetitions()) / f64::from(mode.streams());
    match constellation {
        Constellation::Dbpsk => bits * (-0.5 * (-bit_ratio(sinr, 1e6)).exp()).ln_1p(),
        Constellation::Dqpsk => bits * (-dqpsk(bit_ratio(sinr, 2e6))).ln_1p(),
        Constellation::Cck4 => cck(sinr, 4.0, bits),
        Constellation::Cck8 => cck(sinr, 8.0, bits),
        _ => bits * (-coded(code, uncoded(constellation, sinr))).ln_1p(),
    }
}

/// Energy of a bit over the density of the noise, for a rate in bit/s.
fn bit_ratio(sinr: f64, rate_bps: f64) -> f64 {
    sinr * DSSS_WIDTH_HZ / rate_bps
}

/// Bit error probability of DQPSK with Gray coding, for large energies (Proakis 5.2-69 gives the exact form by Marcum's Q).
fn dqpsk(bit_ratio: f64) -> f64 {
    let root = std::f64::consts::SQRT_2;
    let factor = (root + 1.0) / (8.0 * std::f64::consts::PI * root).sqrt();
    (factor / bit_ratio.sqrt() * (-(2.0 - root) * bit_ratio).exp()).min(1.0)
}

/// Code words of 8 chips, each chip sampled behind the filter: the energy of a word over the noise is 8 SINR.
fn cck(sinr: f64, bits_of_a_word: f64, bits: f64) -> f64 {
    let word_ratio = 8.0 * sinr;
    let log_word = if bits_of_a_word == 4.0 {
        (-biorthogonal(word_ratio)).ln_1p()
    } else {
        2.0 * (-biorthogonal(word_ratio / 2.0)).ln_1p()
    };
    bits / bits_of_a_word * log_word
}

/// Probability that one of 16 biorthogonal signals is taken for another (Proakis 5.2-34); `ratio`: energy of a signal over the
/// density of the noise. Integrated by Simpson's rule.
fn biorthogonal(ratio: f64) -> f64 {
    const STEPS: usize = 60;
    const FAR: f64 = 9.0; // beyond it the normal density is below 1e-18
    let mean = (2.0 * ratio).sqrt();
    let from = (-mean).max(-FAR);
    let step = (FAR - from) / STEPS as f64;
    let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let others_smaller = |x: f64| (1.0 - erfc((x + mean) / std::f64::consts::SQRT_2)).max(0.0).powi(7);
    let right: f64 = (0..=STEPS)
        .map(|i| {
            let x = from + i as f64 * step;
            let weight = if i == 0 || i == STEPS { 1.0 } else { [2.0, 4.0][i % 2] };
            weight * others_smaller(x) * density(x)
        })
        .sum();
    (1.0 - right * step / 3.0).clamp(0.0, 1.0)
}

/// Bit error probability before decoding; `sinr`: energy of a symbol of a subcarrier over the density of the noise.
fn uncoded(constellation: Constellation, sinr: f64) -> f64 {
    let points = match constellation {
        Constellation::Bpsk => return 0.5 * erfc(sinr.sqrt()),
        Constellation::Qam16 => 16.0f64,
        Constellation::Qam64 => 64.0,
        Constellation::Qam256 => 256.0,
        Constellation::Qam1024 => 1024.0,
        _ => 4.0,
    };
    let factor = 4.0 / points.log2() * (1.0 - 1.0 / points.sqrt());
    factor * 0.5 * erfc((3.0 * sinr / (2.0 * (points - 1.0))).sqrt())
}

/// Error weights of the punctured codes from the free distance on (Frenger and others, table 3 and following).
const HALF: [f64; 9] = [36.0, 211.0, 1404.0, 11_633.0, 77_433.0, 502_690.0, 3_322_763.0, 21_292_910.0, 134_365_911.0];
const TWO_THIRDS: [f64; 10] =
    [3.0, 70.0, 285.0, 1276.0, 6160.0, 27_128.0, 117_019.0, 498_860.0, 2_103_891.0, 8_784_123.0];
const THREE_QUARTERS: [f64; 10] =
    [42.0, 201.0, 1492.0, 10_469.0, 62_935.0, 379_644.0, 2_253_373.0, 13_073_811.0, 75_152_755.0, 428_005_675.0];
const FIVE_SIXTHS: [f64; 10] = [
    92.0,
    528.0,
    8694.0,
    79_453.0,
    792_114.0,
    7_375_573.0,
    67_884_974.0,
    610_875_423.0,
    5_427_275_376.0,
    47_664_215_639.0,
];

/// Bit error probability after a hard-decision Viterbi decoder, of which `uncoded` bits were wrong: the union bound with
/// Chernoff's bound D = sqrt(4 p (1 - p)) on each error event.
fn coded(code: CodeRate, uncoded: f64) -> f64 {
    let d = (4.0 * uncoded * (1.0 - uncoded)).sqrt();
    let (weights, free_distance, step, puncturing): (&[f64], i32, i32, f64) = match code {
        CodeRate::None => return uncoded,
        CodeRate::Half => (&HALF, 10, 2, 1.0),
        CodeRate::TwoThirds => (&TWO_THIRDS, 6, 1, 2.0),
        CodeRate::ThreeQuarters => (&THREE_QUARTERS, 5, 1, 3.0),
        CodeRate::FiveSixths => (&FIVE_SIXTHS, 4, 1, 5.0),
    };
    let events = (0..).zip(weights).map(|(i, weight)| weight * d.powi(free_distance + step * i));
    (events.sum::<f64>() / (2.0 * puncturing)).min(1.0)
}

/// Complementary error function: the series of Abramowitz and Stegun 7.1.6 near 0, the continued fraction 7.1.14 beyond.
fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    let scaled = (-x * x).exp() / std::f64::consts::PI.sqrt();
    if x < 2.5 {
        let mut term = 2.0 * x;
        let mut sum = term;
        for n in 1..60 {
            term *= 2.0 * x * x / f64::from(2 * n + 1);
            sum += term;
        }
        return 1.0 - scaled * sum;
    }
    let fraction = (1..=40).rev().fold(0.0, |below, n| f64::from(n) / 2.0 / (x + below));
    scaled / (x + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::mode::{Family, GuardInterval, Mcs};

    /// Success of frames by mode, length and ratio in dB in ns-3.44 (PyPI `ns3` 3.44.post0), by its NIST and its table model.
    const NS3: &str = include_str!("../../tests/error_models.csv");

    fn mode_of(name: &str) -> Mode {
        let of = |family, mcs| Mode::Mcs(Mcs::new(family, mcs, 20, GuardInterval::Long, 1).unwrap());
        let mbps = |name: &str| (name.trim_end_matches("Mbps").replace('_', ".").parse::<f64>().unwrap() * 1e6) as u64;
        if let Some(rate) = name.strip_prefix("DsssRate") {
            Mode::Dsss(mbps(rate))
        } else if let Some(rate) = name.strip_prefix("OfdmRate") {
            Mode::Ofdm(mbps(rate))
        } else if let Some(mcs) = name.strip_prefix("HtMcs") {
            of(Family::Ht, mcs.parse().unwrap())
        } else if let Some(mcs) = name.strip_prefix("HeMcs") {
            of(Family::He, mcs.parse().unwrap())
        } else {
            of(Family::Vht, name.strip_prefix("VhtMcs").unwrap().parse().unwrap())
        }
    }

    #[test]
    fn success_is_that_of_ns3_s_nist_and_dsss_models_within_a_millionth() {
        let mut rows = 0;
        for row in NS3.lines().filter(|line| !line.starts_with('#')).skip(1) {
            let cells: Vec<&str> = row.split(',').collect();
            let [bytes, db, _, nist] = [1, 2, 3, 4].map(|i| cells[i].parse::<f64>().unwrap());
            let ours = log_success(mode_of(cells[0]), 10f64.powf(db / 10.0), 8.0 * bytes).exp();
            assert!((ours - nist).abs() < 2e-6, "{row}: {ours}");
            rows += 1;
        }
        assert!(rows > 100, "{rows}");
    }

    #[test]
    fn the_complementary_error_function_is_that_of_the_tables() {
        // Abramowitz and Stegun, table 7.1 and 7.3
        for (x, value) in [
            (0.0, 1.0),
            (0.5, 0.479_500_122_186_953_5),
            (2.0, 0.004_677_734_981_047_265),
            (3.0, 2.209_049_699_858_544e-5),
            (5.0, 1.537_459_794_428_035e-12),
        ] {
            assert!((erfc(x) / value - 1.0).abs() < 1e-9, "{x}: {}", erfc(x));
        }
        assert!((erfc(-0.5) - 1.520_499_877_813_046_5).abs() < 1e-12);
    }

    #[test]
    fn two_stretches_survive_as_the_whole_does_and_two_streams_need_twice_the_power() {
        let one = Mode::Mcs(Mcs::new(Family::Ht, 7, 20, GuardInterval::Long, 1).unwrap());
        let two = Mode::Mcs(Mcs::new(Family::Ht, 7, 20, GuardInterval::Long, 2).unwrap());
        let of = |mode, sinr, bits| log_success(mode, sinr, bits);
        assert!((of(one, 200.0, 1000.0) + of(one, 200.0, 2000.0) - of(one, 200.0, 3000.0)).abs() < 1e-12);
        assert_eq!(of(one, 200.0, 1000.0), of(two, 400.0, 1000.0));
    }

    #[test]
    fn no_mode_survives_noise_alone_or_fails_far_above_it() {
        for mode in
            ["DsssRate1Mbps", "DsssRate5_5Mbps", "DsssRate11Mbps", "OfdmRate6Mbps", "HtMcs7", "VhtMcs8", "HeMcs11"]
                .map(mode_of)
        {
            assert!(log_success(mode, 1e-3, 8000.0).exp() < 1e-9, "{mode}");
            assert!(log_success(mode, 1e4, 8000.0).exp() > 1.0 - 1e-9, "{mode}");
        }
    }
}
