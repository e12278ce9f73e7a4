//! Vtime and Htime: a duration in one byte (RFC 3626, sections 3.3.2 and 18.3).
//!
//! Mantissa a in the upper four bits, exponent b in the lower four: C (1 + a/16) 2^b with C = 1/16 s.
//! That is (16 + a) 2^b / 256 s, so every value is a whole number of nanoseconds, at most 3968 s.

use manet_engine::Duration;

/// An encoded duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub u8);

/// 1/256 s.
const UNIT_NS: u64 = 3_906_250;

impl Span {
    /// The smallest value that is not below `duration` (18.3 rounds a up), or the largest of all.
    pub fn of(duration: Duration) -> Self {
        let units = duration.as_nanos().div_ceil(UNIT_NS);
        for b in 0..16u8 {
            let mantissa = units.div_ceil(1 << b);
            if mantissa < 32 {
                return Self((mantissa.saturating_sub(16) as u8) << 4 | b);
            }
        }
        Self(0xff)
    }

    /// The duration, 62.5 ms to 3968 s.
    pub fn duration(self) -> Duration {
        Duration::from_nanos(self.units() * UNIT_NS)
    }

    /// The duration in seconds.
    pub fn seconds(self) -> f64 {
        self.units() as f64 / 256.0
    }

    fn units(self) -> u64 {
        (16 + u64::from(self.0 >> 4)) << (self.0 & 0xf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_rfc_3626_18_3() {
        // 18.3: (a, b) is (0, 5), (8, 6), (14, 7), (14, 8) for 2, 6, 15, 30 s; 5 s: 16 x 5 = 80 = (1 + 4/16) 2^6
        for (seconds, a, b) in [(2, 0, 5), (6, 8, 6), (15, 14, 7), (30, 14, 8), (5, 4, 6)] {
            assert_eq!(Span::of(Duration::from_secs(seconds)), Span(a << 4 | b), "{seconds} s");
            assert_eq!(Span(a << 4 | b).duration(), Duration::from_secs(seconds));
        }
    }

    #[test]
    fn smallest_and_largest_values() {
        // C = 1/16 s = 62.5 ms; C (1 + 15/16) 2^15 = 31/16 x 2048 s = 3968 s
        assert_eq!(Span(0).duration(), Duration::from_micros(62_500));
        assert_eq!(Span(0xff).duration(), Duration::from_secs(3968));
        assert_eq!(Span::of(Duration::ZERO), Span(0));
        assert_eq!(Span::of(Duration::from_secs(1_000_000)), Span(0xff));
    }

    proptest! {
        #[test]
        fn a_duration_is_never_shortened_and_at_most_a_sixteenth_longer(ms in 63u64..3_968_000) {
            let (asked, got) = (Duration::from_millis(ms), Span::of(Duration::from_millis(ms)).duration());
            prop_assert!(got >= asked && got.as_nanos() <= asked.as_nanos() / 16 * 17 + 16 + UNIT_NS, "{got:?}");
        }

        #[test]
        fn every_byte_survives_a_round_trip(byte: u8) {
            prop_assert_eq!(Span::of(Span(byte).duration()), Span(byte));
        }
    }
}
