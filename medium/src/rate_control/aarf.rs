//! Adaptive ARF: Lacage, Manshaei and Turletti, "IEEE 802.11 rate adaptation: a practical approach", MSWiM 2004, section 3.
//!
//! ARF ([`super::arf`]), but a failed probe doubles the successes that raise the rate again, up to 50; two failures, which lower
//! the rate, set them back to 10. (ns-3's `AarfWifiManager` has 60 in place of 50.)

use super::{arf, RateControl, Setup};

const MAX_SUCCESSES: u32 = 50;

pub(super) fn new(setup: Setup) -> Box<dyn RateControl> {
    arf::with(setup, |required| (2 * required).min(MAX_SUCCESSES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_control::arf::tests::{last, rates};
    use crate::rate_control::channel::{setup, Link, OFDM};

    /// Successes until the next probe, which fails.
    fn until_failed_probe(control: &mut dyn RateControl) -> u32 {
        for n in 1.. {
            if last(control, "+") == 9 {
                assert_eq!(rates(control, "-"), [6]);
                return n;
            }
        }
        unreachable!()
    }

    #[test]
    fn each_failed_probe_doubles_the_successes_required_up_to_50() {
        let mut control = new(setup(&OFDM));
        let required: Vec<u32> = (0..5).map(|_| until_failed_probe(&mut *control)).collect();
        assert_eq!(required, [10, 20, 40, 50, 50]);
    }

    #[test]
    fn two_failures_set_them_back_to_10() {
        let mut control = new(setup(&OFDM));
        for _ in 0..3 {
            until_failed_probe(&mut *control);
        }
        assert_eq!(last(&mut *control, "-"), 6);
        assert_eq!(last(&mut *control, "-"), 6);
        assert_eq!(until_failed_probe(&mut *control), 10);
    }

    #[test]
    fn a_probe_that_succeeds_keeps_what_is_required() {
        let mut control = new(setup(&OFDM));
        until_failed_probe(&mut *control);
        assert_eq!(last(&mut *control, &"+".repeat(20)), 9);
        assert_eq!(last(&mut *control, &"+".repeat(19)), 9);
        assert_eq!(last(&mut *control, "+"), 12);
    }

    #[test]
    fn it_probes_a_fifth_as_often_as_arf() {
        let mut link = Link::new("aarf", setup(&OFDM));
        let shares = link.run(5.0, &[1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
        assert!((shares[5] - 1.0 / 51.0).abs() < 0.005 && shares[4] > 0.96, "{shares:?}");
    }
}
