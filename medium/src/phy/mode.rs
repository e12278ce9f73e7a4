//! Modes: what a frame is sent with (modulation, code rate, width, guard interval, streams), and the time that it takes.
//!
//! Clauses are of IEEE Std 802.11-2016: DSSS and HR/DSSS 15.2 and 16.2, OFDM 17.3 and 17.4.3, ERP 18.3, HT 19.3 and 19.4.3 (HT-mixed format),
//! VHT 21.3 and 21.4.3 (single user), HE of IEEE Std 802.11ax-2021, 27.3 and 27.4.3 (HE SU), S1G of IEEE Std 802.11ah-2016, 23.3 and
//! 23.4.3 (S1G_SHORT at 2 MHz, S1G_1M). A mode is a point of one family; all arithmetic is in nanoseconds and bits. Not modelled:
//! HT-greenfield, STBC, the gain of LDPC (HE's lack of a tail is), beamforming. Nor of HE packet extension (the receiver's nominal packet
//! padding is 0 us), DCM and midambles, nor of S1G the limit of 511 symbols without aggregation (the standard sends longer frames in
//! fragments).

use manet_engine::{choices, Duration};
use std::fmt;

/// Modulation of a subcarrier, or DSSS and CCK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Constellation {
    /// Differential BPSK, spread by the Barker sequence (1 Mbit/s).
    Dbpsk,
    /// Differential QPSK, spread by the Barker sequence (2 Mbit/s).
    Dqpsk,
    /// Complementary code keying of 4 bits (5.5 Mbit/s).
    Cck4,
    /// Complementary code keying of 8 bits (11 Mbit/s).
    Cck8,
    /// One bit a subcarrier.
    Bpsk,
    /// Two bits.
    Qpsk,
    /// Four bits.
    Qam16,
    /// Six bits.
    Qam64,
    /// Eight bits.
    Qam256,
    /// Ten bits.
    Qam1024,
}

impl Constellation {
    fn bits(self) -> u64 {
        match self {
            Self::Dbpsk | Self::Bpsk => 1,
            Self::Dqpsk | Self::Qpsk => 2,
            Self::Cck4 | Self::Qam16 => 4,
            Self::Qam64 => 6,
            Self::Cck8 | Self::Qam256 => 8,
            Self::Qam1024 => 10,
        }
    }
}

/// Rate of the convolutional code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodeRate {
    /// No code (DSSS, CCK).
    None,
    /// 1/2
    Half,
    /// 2/3
    TwoThirds,
    /// 3/4
    ThreeQuarters,
    /// 5/6
    FiveSixths,
}

impl CodeRate {
    /// Numerator and denominator.
    fn ratio(self) -> (u64, u64) {
        match self {
            Self::None => (1, 1),
            Self::Half => (1, 2),
            Self::TwoThirds => (2, 3),
            Self::ThreeQuarters => (3, 4),
            Self::FiveSixths => (5, 6),
        }
    }
}

/// PHYs whose modes are a table by MCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// High throughput (802.11n).
    Ht,
    /// Very high throughput (802.11ac).
    Vht,
    /// High efficiency (802.11ax), PPDUs of one user.
    He,
    /// Sub 1 GHz (802.11ah).
    S1g,
}

impl Family {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ht => "ht",
            Self::Vht => "vht",
            Self::He => "he",
            Self::S1g => "s1g",
        }
    }

    pub(crate) fn widths_mhz(self) -> &'static [u16] {
        match self {
            Self::Ht => &[20, 40],
            Self::Vht | Self::He => &[20, 40, 80],
            Self::S1g => &[1, 2],
        }
    }

    /// Whether an MCS of one stream is one of its tables', at some width.
    pub(super) fn has_mcs(self, mcs: u8) -> bool {
        mcs <= self.max_mcs() || (self, mcs) == (Self::S1g, REPEATED)
    }

    /// Highest MCS of one stream.
    pub(super) fn max_mcs(self) -> u8 {
        match self {
            Self::Ht => 7,
            Self::Vht | Self::S1g => 9,
            Self::He => 11,
        }
    }

    /// Guard intervals of its data symbols.
    pub(super) fn guards(self) -> &'static [GuardInterval] {
        match self {
            Self::He => &[GuardInterval::Long, GuardInterval::Double, GuardInterval::Quadruple],
            Self::Ht | Self::Vht | Self::S1g => &[GuardInterval::Long, GuardInterval::Short],
        }
    }

    /// Whether a PPDU of data holds an A-MPDU, also of one MPDU (9.7.1, 10.13.7; 802.11ax 26.6).
    pub(super) fn always_aggregates(self) -> bool {
        matches!(self, Self::Vht | Self::He)
    }
}

choices! {
    /// Guard interval of the data symbols of HT, VHT, HE and S1G.
    pub enum GuardInterval {
        /// 800 ns, of S1G 8 us.
        Long = "long",
        /// 400 ns, of S1G 4 us; not of HE.
        Short = "short",
        /// 1600 ns, of HE.
        Double = "double",
        /// 3200 ns, of HE.
        Quadruple = "quadruple",
    }
}

impl GuardInterval {
    /// The short one or the long one.
    pub fn of_short(is_short: bool) -> Self {
        if is_short {
            Self::Short
        } else {
            Self::Long
        }
    }
}

/// A mode of HT, VHT, HE or S1G. The MCS is that of one stream: the HT standard's MCS 8 to 15 are 0 to 7 with two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mcs {
    /// The PHY.
    pub family: Family,
    /// 0 to 7 (HT), 9, or 11 (HE), of S1G at 1 MHz also [`REPEATED`].
    pub mcs: u8,
    /// Width of the channel, MHz.
    pub width_mhz: u16,
    /// Guard interval.
    pub guard: GuardInterval,
    /// Spatial streams, 1 or 2.
    pub streams: u8,
}

/// What a frame is sent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// DSSS and HR/DSSS at this rate, bit/s.
    Dsss(u64),
    /// OFDM of 20 MHz at this rate, bit/s.
    Ofdm(u64),
    /// HT, VHT, HE or S1G.
    Mcs(Mcs),
}

/// Rates of an OFDM PHY, bit/s (17.3.4.3).
pub const OFDM_RATES_BPS: [u64; 8] =
    [6_000_000, 9_000_000, 12_000_000, 18_000_000, 24_000_000, 36_000_000, 48_000_000, 54_000_000];

/// Constellation and code rate of MCS 0 to 11 (tables 19-27 and 21-30; 802.11ax 27.5).
const OF_MCS: [(Constellation, CodeRate); 12] = [
    (Constellation::Bpsk, CodeRate::Half),
    (Constellation::Qpsk, CodeRate::Half),
    (Constellation::Qpsk, CodeRate::ThreeQuarters),
    (Constellation::Qam16, CodeRate::Half),
    (Constellation::Qam16, CodeRate::ThreeQuarters),
    (Constellation::Qam64, CodeRate::TwoThirds),
    (Constellation::Qam64, CodeRate::ThreeQuarters),
    (Constellation::Qam64, CodeRate::FiveSixths),
    (Constellation::Qam256, CodeRate::ThreeQuarters),
    (Constellation::Qam256, CodeRate::FiveSixths),
    (Constellation::Qam1024, CodeRate::ThreeQuarters),
    (Constellation::Qam1024, CodeRate::FiveSixths),
];

/// MCS 10 of S1G at 1 MHz: MCS 0, each bit sent twice (802.11ah 23.3.9.5).
pub const REPEATED: u8 = 10;

/// SERVICE field, bits (17.3.5.2, 19.3.11.2, 21.3.10.2; 802.11ax 27.3.12.2).
const SERVICE_BITS: u64 = 16;
/// That of S1G (802.11ah 23.3.9.2).
const S1G_SERVICE_BITS: u64 = 8;
/// Tail of one encoder, bits.
const TAIL_BITS: u64 = 6;
/// Delimiter of an MPDU, bytes (9.7.1).
pub(super) const DELIMITER_BYTES: u64 = 4;
/// More data bits a symbol than that need a further encoder in VHT (tables 21-30 to 21-61).
const BITS_OF_A_VHT_ENCODER: u64 = 2160;

impl Mode {
    /// Rate of the data, bit/s.
    pub fn rate_bps(self) -> u64 {
        match self {
            Self::Dsss(rate_bps) | Self::Ofdm(rate_bps) => rate_bps,
            Self::Mcs(mcs) => mcs.bits_per_symbol() * 1_000_000_000 / mcs.symbol_ns(),
        }
    }

    /// Constellation and code rate.
    pub fn modulation(self) -> (Constellation, CodeRate) {
        use CodeRate::{Half, ThreeQuarters, TwoThirds};
        match self {
            Self::Dsss(rate_bps) => match rate_bps {
                0..=1_000_000 => (Constellation::Dbpsk, CodeRate::None),
                1_000_001..=2_000_000 => (Constellation::Dqpsk, CodeRate::None),
                2_000_001..=5_500_000 => (Constellation::Cck4, CodeRate::None),
                _ => (Constellation::Cck8, CodeRate::None),
            },
            Self::Ofdm(rate_bps) => match rate_bps / 1_000_000 {
                0..=6 => (Constellation::Bpsk, Half),
                7..=9 => (Constellation::Bpsk, ThreeQuarters),
                10..=12 => (Constellation::Qpsk, Half),
                13..=18 => (Constellation::Qpsk, ThreeQuarters),
                19..=24 => (Constellation::Qam16, Half),
                25..=36 => (Constellation::Qam16, ThreeQuarters),
                37..=48 => (Constellation::Qam64, TwoThirds),
                _ => (Constellation::Qam64, ThreeQuarters),
            },
            Self::Mcs(mcs) => mcs.modulation(),
        }
    }

    /// How often each bit is sent.
    pub fn repetitions(self) -> u8 {
        match self {
            Self::Mcs(mcs) => mcs.repetitions(),
            _ => 1,
        }
    }

    /// Spatial streams.
    pub fn streams(self) -> u8 {
        match self {
            Self::Mcs(mcs) => mcs.streams,
            _ => 1,
        }
    }

    /// The fastest rate at which a non-HT frame may answer it (table 10-8: non-HT reference rate), bit/s.
    pub fn reference_rate_bps(self) -> u64 {
        if !matches!(self, Self::Mcs(Mcs { family: Family::Ht | Family::Vht | Family::He, .. })) {
            return self.rate_bps();
        }
        let (constellation, code) = self.modulation();
        match (constellation, code) {
            (Constellation::Bpsk, CodeRate::Half) => 6_000_000,
            (Constellation::Bpsk, _) => 9_000_000,
            (Constellation::Qpsk, CodeRate::Half) => 12_000_000,
            (Constellation::Qpsk, _) => 18_000_000,
            (Constellation::Qam16, CodeRate::Half) => 24_000_000,
            (Constellation::Qam16, _) => 36_000_000,
            (Constellation::Qam64, CodeRate::Half | CodeRate::TwoThirds) => 48_000_000,
            _ => 54_000_000,
        }
    }

    /// Receiver minimum input sensitivity, dBm: 15.4.8.2 (stated for 2 Mbit/s; at half the rate a bit has twice the energy), 16.3.8.2 (for 11
    /// Mbit/s), tables 17-18, 19-23 and 21-25, table 27-51 of 802.11ax, and for S1G, whose channels are a tenth as wide, table 23-35 of
    /// 802.11ah.
    pub fn min_sensitivity_dbm(self) -> f64 {
        match self {
            Self::Dsss(rate_bps) => match rate_bps {
                0..=1_000_000 => -83.0,
                1_000_001..=2_000_000 => -80.0,
                _ => -76.0,
            },
            Self::Ofdm(rate_bps) => match rate_bps / 1_000_000 {
                0..=6 => -82.0,
                7..=9 => -81.0,
                10..=12 => -79.0,
                13..=18 => -77.0,
                19..=24 => -74.0,
                25..=36 => -70.0,
                37..=48 => -66.0,
                _ => -65.0,
            },
            Self::Mcs(mcs) => {
                const OF_20_MHZ: [f64; 12] =
                    [-82.0, -79.0, -77.0, -74.0, -70.0, -66.0, -65.0, -64.0, -59.0, -57.0, -54.0, -52.0];
                let wider_db = match mcs.width_mhz {
                    1 => -16.0, // -98 dBm at MCS 0
                    2 => -13.0, // -95 dBm
                    40 => 3.0,
                    80 => 6.0,
                    _ => 0.0,
                };
                let repeated_db = if mcs.is_repeated() { -3.0 } else { 0.0 };
                OF_20_MHZ[mcs.row()] + wider_db + repeated_db
            }
        }
    }
}

/// `54 Mbit/s`, `ht-mcs7-20`: for messages.
impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dsss(rate_bps) | Self::Ofdm(rate_bps) => write!(f, "{} Mbit/s", *rate_bps as f64 / 1e6),
            Self::Mcs(mcs) => mcs.fmt(f),
        }
    }
}

/// `ht-mcs7-20`, with `-2ss` for two streams and `-sgi`, `-gi1.6` or `-gi3.2` for a guard interval other than the long one: the column
/// `mode` of the air log.
impl fmt::Display for Mcs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let streams = if self.streams == 2 { "-2ss" } else { "" };
        let guard = match self.guard {
            GuardInterval::Long => "",
            GuardInterval::Short => "-sgi",
            GuardInterval::Double => "-gi1.6",
            GuardInterval::Quadruple => "-gi3.2",
        };
        write!(f, "{}-mcs{}-{}{streams}{guard}", self.family.name(), self.mcs, self.width_mhz)
    }
}

impl Mcs {
    /// The mode of a family. HT's MCS 8 to 15 are those of two streams.
    ///
    /// # Errors
    /// The reason why the standard has no such mode.
    pub(crate) fn new(
        family: Family,
        mcs: u8,
        width_mhz: u16,
        guard: GuardInterval,
        streams: u8,
    ) -> Result<Self, String> {
        let (mcs, streams) = match (family, mcs) {
            (Family::Ht, 8..=15) => (mcs - 8, 2),
            _ => (mcs, streams),
        };
        let mode = Self { family, mcs, width_mhz, guard, streams };
        let repeated = mcs == REPEATED && family == Family::S1g;
        if repeated && (width_mhz, streams) != (1, 1) {
            return Err(format!("MCS {REPEATED} of s1g has one stream in 1 MHz"));
        }
        if mcs > family.max_mcs() && !repeated {
            let most = if family == Family::Ht { 15 } else { family.max_mcs() };
            return Err(format!("MCS {mcs} is above {most} of {}", family.name()));
        }
        if !family.widths_mhz().contains(&width_mhz) {
            return Err(format!(
                "{width_mhz} MHz is none of the widths {:?} of {}",
                family.widths_mhz(),
                family.name()
            ));
        }
        if !(1..=2).contains(&streams) {
            return Err(format!("{streams} streams; 1 or 2 are possible"));
        }
        // 21.5 and 23.5: without an integral number of data bits a symbol there is no such mode (MCS 9 in 20 MHz, in 2 MHz of S1G); that
        // of HE is rounded down (802.11ax 27.5: MCS 9 and 11 in 80 MHz)
        let (numerator, denominator) = mode.modulation().1.ratio();
        if family != Family::He && mode.coded_bits_per_symbol() * numerator % denominator != 0 {
            return Err(format!("{mode}: the standard has no such mode"));
        }
        Ok(mode)
    }

    /// Its row of [`OF_MCS`].
    fn row(self) -> usize {
        usize::from(if self.is_repeated() { 0 } else { self.mcs })
    }

    fn is_repeated(self) -> bool {
        self.family == Family::S1g && self.mcs == REPEATED
    }

    fn modulation(self) -> (Constellation, CodeRate) {
        OF_MCS[self.row()]
    }

    fn repetitions(self) -> u8 {
        if self.is_repeated() {
            2
        } else {
            1
        }
    }

    /// Data subcarriers (tables 19-6, 21-5; 802.11ah table 23-4; 802.11ax 27.5: RUs of 242, 484 and 996 tones).
    fn subcarriers(self) -> u64 {
        match (self.family, self.width_mhz) {
            (Family::He, 80) => 980,
            (Family::He, width_mhz) => 234 * u64::from(width_mhz) / 20,
            (_, 1) => 24,
            (_, 40) => 108,
            (_, 80) => 234,
            _ => 52,
        }
    }

    fn coded_bits_per_symbol(self) -> u64 {
        self.subcarriers() * self.modulation().0.bits() * u64::from(self.streams) / u64::from(self.repetitions())
    }

    /// Data bits of a symbol, N_DBPS.
    pub fn bits_per_symbol(self) -> u64 {
        let (numerator, denominator) = self.modulation().1.ratio();
        self.coded_bits_per_symbol() * numerator / denominator
    }

    /// Guard interval, ns.
    fn guard_ns(self) -> u64 {
        let ns = match self.guard {
            GuardInterval::Short => 400,
            GuardInterval::Long => 800,
            GuardInterval::Double => 1600,
            GuardInterval::Quadruple => 3200,
        };
        if self.family == Family::S1g {
            ns * 10
        } else {
            ns
        }
    }

    /// Duration of a symbol: 3.2 us (S1G 32, HE 12.8) and the guard interval, ns.
    pub fn symbol_ns(self) -> u64 {
        let without_ns = match self.family {
            Family::Ht | Family::Vht => 3200,
            Family::He => 12_800,
            Family::S1g => 32_000,
        };
        without_ns + self.guard_ns()
    }

    /// Duration of an HE-LTF: of the combinations that the standard requires 2x HE-LTF with 0.8 and 1.6 us and 4x HE-LTF with 3.2 us of
    /// guard interval (802.11ax 27.3.11.10).
    fn he_ltf_ns(self) -> u64 {
        let without_ns = if self.guard == GuardInterval::Quadruple { 12_800 } else { 6400 };
        without_ns + self.guard_ns()
    }

    /// Whether the code is the convolutional one. HE has LDPC in channels wider than 20 MHz and for 1024-QAM (802.11ax 27.3.12.5).
    fn is_convolutional(self) -> bool {
        self.family != Family::He || self.width_mhz == 20 && self.mcs <= 9
    }

    /// Preamble and header up to the first data symbol: HT-mixed L-STF, L-LTF, L-SIG (20 us), HT-SIG (8), HT-STF (4), an HT-LTF a
    /// stream (19.3.9.2); VHT VHT-SIG-A (8), VHT-STF (4), VHT-LTFs, VHT-SIG-B (4) (21.3.8.2); HE RL-SIG (4), HE-SIG-A (8), HE-STF (4), an
    /// HE-LTF a stream (802.11ax 27.3.4); S1G_SHORT STF, LTF1, SIG of 80 us each, S1G_1M 160, 160 and 240 us, further LTFs of 40 us
    /// (802.11ah 23.3.8).
    pub fn preamble_ns(self) -> u64 {
        let streams = u64::from(self.streams);
        let he_ltfs_ns = if self.family == Family::He { streams * self.he_ltf_ns() } else { 0 };
        let others_us = match (self.family, self.width_mhz) {
            (Family::Ht, _) => 20 + 8 + 4 + 4 * streams,
            (Family::Vht, _) => 20 + 8 + 4 + 4 * streams + 4,
            (Family::He, _) => 20 + 4 + 8 + 4,
            (Family::S1g, 1) => 160 + 160 + 240 + 40 * (streams - 1),
            (Family::S1g, _) => 240 + 40 * (streams - 1),
        };
        1000 * others_us + he_ltfs_ns
    }

    /// Symbols of a PSDU that holds an MPDU of `mpdu_bytes`.
    fn symbols(self, mpdu_bytes: u32) -> u64 {
        let (service, encoders, bytes) = match self.family {
            Family::Ht => (SERVICE_BITS, 1, 0), // two encoders above 300 Mbit/s only (19.3.11.4)
            Family::Vht => (SERVICE_BITS, self.bits_per_symbol().div_ceil(BITS_OF_A_VHT_ENCODER), DELIMITER_BYTES),
            Family::He => (SERVICE_BITS, self.is_convolutional().into(), DELIMITER_BYTES), // LDPC has no tail
            Family::S1g => (S1G_SERVICE_BITS, 1, 0),
        };
        let bits = service + 8 * (u64::from(mpdu_bytes) + bytes) + TAIL_BITS * encoders;
        bits.div_ceil(self.bits_per_symbol())
    }

    /// TXTIME of an MPDU of `mpdu_bytes`. The data of short guard intervals end with a whole symbol of 4 us (equation 19-91, 21-105); those
    /// of HE with their last symbol.
    pub fn airtime(self, mpdu_bytes: u32) -> Duration {
        let whole_ns = match self.family {
            Family::Ht | Family::Vht => 4000,
            Family::He => 1,
            Family::S1g => 40_000,
        };
        let data_ns = (self.symbols(mpdu_bytes) * self.symbol_ns()).next_multiple_of(whole_ns);
        Duration::from_nanos(self.preamble_ns() + data_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mcs(family: Family, mcs: u8, width_mhz: u16, short_guard: bool, streams: u8) -> Mcs {
        Mcs::new(family, mcs, width_mhz, GuardInterval::of_short(short_guard), streams).unwrap()
    }

    fn mbps(mode: Mcs) -> f64 {
        (Mode::Mcs(mode).rate_bps() as f64 / 1e5).round() / 10.0
    }

    #[test]
    fn rates_are_those_of_the_standards_tables() {
        let ht = |width, short| (0..16).map(|i| mbps(mcs(Family::Ht, i, width, short, 1))).collect::<Vec<_>>();
        // tables 19-27 and 19-28 (20 MHz), 19-31 and 19-32 (40 MHz)
        assert_eq!(
            ht(20, false),
            [6.5, 13.0, 19.5, 26.0, 39.0, 52.0, 58.5, 65.0, 13.0, 26.0, 39.0, 52.0, 78.0, 104.0, 117.0, 130.0]
        );
        assert_eq!(ht(20, true)[..8], [7.2, 14.4, 21.7, 28.9, 43.3, 57.8, 65.0, 72.2]);
        assert_eq!(
            ht(40, false),
            [13.5, 27.0, 40.5, 54.0, 81.0, 108.0, 121.5, 135.0, 27.0, 54.0, 81.0, 108.0, 162.0, 216.0, 243.0, 270.0]
        );
        assert_eq!(ht(40, true)[15], 300.0);
        let vht = |width, short, streams| {
            let guard = GuardInterval::of_short(short);
            (0..10).filter_map(|i| Mcs::new(Family::Vht, i, width, guard, streams).ok()).map(mbps).collect::<Vec<_>>()
        };
        // tables 21-30 (20 MHz), 21-38 (40 MHz), 21-46 and 21-47 (80 MHz)
        assert_eq!(vht(20, false, 1), [6.5, 13.0, 19.5, 26.0, 39.0, 52.0, 58.5, 65.0, 78.0]);
        assert_eq!(vht(40, false, 1), [13.5, 27.0, 40.5, 54.0, 81.0, 108.0, 121.5, 135.0, 162.0, 180.0]);
        assert_eq!(vht(80, false, 1), [29.3, 58.5, 87.8, 117.0, 175.5, 234.0, 263.3, 292.5, 351.0, 390.0]);
        assert_eq!(vht(80, true, 2)[9], 866.7);
        let he = |width, guard, streams| {
            let of = |i| mbps(Mcs::new(Family::He, i, width, guard, streams).unwrap());
            (0..12).map(of).collect::<Vec<_>>()
        };
        let [long, double, quadruple] = [GuardInterval::Long, GuardInterval::Double, GuardInterval::Quadruple];
        // 802.11ax 27.5: HE-MCSs of RUs of 242, 484 and 996 tones
        assert_eq!(he(20, long, 1), [8.6, 17.2, 25.8, 34.4, 51.6, 68.8, 77.4, 86.0, 103.2, 114.7, 129.0, 143.4]);
        assert_eq!(he(40, double, 1), [16.3, 32.5, 48.8, 65.0, 97.5, 130.0, 146.3, 162.5, 195.0, 216.7, 243.8, 270.8]);
        assert_eq!(
            he(80, quadruple, 1),
            [30.6, 61.3, 91.9, 122.5, 183.8, 245.0, 275.6, 306.3, 367.5, 408.3, 459.4, 510.4]
        );
        assert_eq!((he(80, long, 1)[11], he(80, long, 2)[11]), (600.4, 1201.0));
        // 802.11ah tables 23-41 (1 MHz), 23-42 (2 MHz)
        let s1g = |width| {
            let long = GuardInterval::Long;
            (0..10).filter_map(|i| Mcs::new(Family::S1g, i, width, long, 1).ok()).map(mbps).collect::<Vec<_>>()
        };
        assert_eq!(s1g(1), [0.3, 0.6, 0.9, 1.2, 1.8, 2.4, 2.7, 3.0, 3.6, 4.0]);
        assert_eq!(s1g(2), [0.7, 1.3, 2.0, 2.6, 3.9, 5.2, 5.9, 6.5, 7.8]);
        // MCS 10: 24 subcarriers, one bit each, code rate 1/2, sent twice: 6 data bits in 40 us
        assert_eq!(Mode::Mcs(mcs(Family::S1g, 10, 1, false, 1)).rate_bps(), 150_000);
    }

    #[test]
    fn modes_that_no_table_has_are_refused() {
        let refusal = |family, i, width, streams| Mcs::new(family, i, width, GuardInterval::Long, streams).unwrap_err();
        assert_eq!(refusal(Family::Vht, 9, 20, 1), "vht-mcs9-20: the standard has no such mode");
        assert_eq!(refusal(Family::S1g, 9, 2, 1), "s1g-mcs9-2: the standard has no such mode");
        assert_eq!(refusal(Family::Ht, 16, 20, 1), "MCS 16 is above 15 of ht");
        assert_eq!(refusal(Family::Ht, 0, 80, 1), "80 MHz is none of the widths [20, 40] of ht");
        assert_eq!(refusal(Family::Vht, 0, 80, 3), "3 streams; 1 or 2 are possible");
        assert_eq!(refusal(Family::S1g, 10, 2, 1), "MCS 10 of s1g has one stream in 1 MHz");
        assert_eq!(refusal(Family::Vht, 10, 20, 1), "MCS 10 is above 9 of vht");
        assert_eq!(refusal(Family::He, 12, 20, 1), "MCS 12 is above 11 of he");
    }

    #[test]
    fn durations_are_those_of_the_standards_formulas() {
        let us = |mode: Mcs, bytes| mode.airtime(bytes).as_nanos() / 1000;
        // 1538 bytes: 16 + 12304 + 6 = 12326 bits. HT20 MCS 7: 260 a symbol -> 48 symbols, 36 + 192 us
        assert_eq!(us(mcs(Family::Ht, 7, 20, false, 1), 1538), 228);
        // MCS 0: 26 a symbol -> 475 symbols
        assert_eq!(us(mcs(Family::Ht, 0, 20, false, 1), 1538), 36 + 1900);
        // short guard: 48 symbols of 3.6 us are 172.8, sent as 44 symbols of 4 us
        assert_eq!(us(mcs(Family::Ht, 7, 20, true, 1), 1538), 36 + 176);
        // HT40 MCS 15: 1080 a symbol -> 12 symbols; two HT-LTFs
        assert_eq!(us(mcs(Family::Ht, 15, 40, false, 1), 1538), 40 + 48);
        // VHT80 MCS 9: the delimiter makes 12358 bits, 1560 a symbol -> 8 symbols; 20 + 8 + 4 + 4 + 4 us before
        assert_eq!(us(mcs(Family::Vht, 9, 80, false, 1), 1538), 40 + 32);
        // two streams: 3120 a symbol, two encoders: 12364 bits -> 4 symbols, two VHT-LTFs
        assert_eq!(us(mcs(Family::Vht, 9, 80, false, 2), 1538), 44 + 16);
        // HE20 MCS 7: 16 + 8 * 1542 + 6 = 12358 bits of 1170 -> 11 symbols of 13.6 us; 20 + 4 + 8 + 4 us and an HE-LTF of 7.2 us before
        let he = |i, width_mhz, guard, streams| Mcs { family: Family::He, mcs: i, width_mhz, guard, streams };
        let ns = |mode: Mcs, bytes| mode.airtime(bytes).as_nanos();
        assert_eq!(ns(he(7, 20, GuardInterval::Long, 1), 1538), 43_200 + 11 * 13_600);
        // HE80 MCS 11, two streams: LDPC has no tail, 12352 bits of 16333 -> 1 symbol; two HE-LTFs of 6.4 + 1.6 us
        assert_eq!(ns(he(11, 80, GuardInterval::Double, 2), 1538), 36_000 + 2 * 8000 + 14_400);
        // HE40 MCS 0: 12352 bits of 234 -> 53 symbols of 16 us; one 4x HE-LTF of 12.8 + 3.2 us
        assert_eq!(ns(he(0, 40, GuardInterval::Quadruple, 1), 1538), 36_000 + 16_000 + 53 * 16_000);
        // of 1170 bits: 16 + 8 * 143 + 6 = 1166 are one symbol, 1174 two; without the tail 1168 would be one
        assert_eq!(ns(he(7, 20, GuardInterval::Long, 1), 139), 43_200 + 13_600);
        assert_eq!(ns(he(7, 20, GuardInterval::Long, 1), 140), 43_200 + 2 * 13_600);
        // S1G 2 MHz MCS 0: 8 + 800 + 6 = 814 bits of 26 -> 32 symbols of 40 us; 1 MHz: 12 bits -> 68 symbols
        assert_eq!(us(mcs(Family::S1g, 0, 2, false, 1), 100), 240 + 1280);
        assert_eq!(us(mcs(Family::S1g, 0, 1, false, 1), 100), 560 + 2720);
        // MCS 10: 6 bits -> 136 symbols
        assert_eq!(us(mcs(Family::S1g, 10, 1, false, 1), 100), 560 + 5440);
        // MCS 7: 1538 bytes are 8 + 12304 + 6 = 12318 bits; 2 MHz 260 a symbol -> 48, 1 MHz 120 -> 103; short guard 103 of 36 us are
        // 3708, sent as 93 of 40 us
        assert_eq!(us(mcs(Family::S1g, 7, 2, false, 1), 1538), 240 + 1920);
        assert_eq!(us(mcs(Family::S1g, 7, 1, false, 1), 1538), 560 + 4120);
        assert_eq!(us(mcs(Family::S1g, 7, 1, true, 1), 1538), 560 + 3720);
    }

    #[test]
    fn sensitivity_rises_with_the_rate_and_by_three_decibels_with_the_width() {
        let of = |i, width| Mode::Mcs(mcs(Family::Vht, i, width, false, 1)).min_sensitivity_dbm();
        assert!((0..8).all(|i| of(i, 20) < of(i + 1, 20)));
        assert_eq!((of(9, 40), of(9, 80)), (-54.0, -51.0), "table 21-25");
        let he = Mode::Mcs(mcs(Family::He, 11, 80, false, 1)).min_sensitivity_dbm();
        assert_eq!(he, -46.0, "802.11ax table 27-51; MCS 10 is no repetition there");
        assert_eq!(Mode::Ofdm(54_000_000).min_sensitivity_dbm(), -65.0);
        assert_eq!(
            (Mode::Dsss(2_000_000).min_sensitivity_dbm(), Mode::Dsss(11_000_000).min_sensitivity_dbm()),
            (-80.0, -76.0)
        );
    }
}
