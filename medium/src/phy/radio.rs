//! Radio profiles: every number of an 802.11 PHY and of the DCF's rules, read from
//! `medium/radios/<name>.toml`. The medium knows no profile by name.
//!
//! Durations follow IEEE Std 802.11-2012: clause 16.2 (DSSS PPDU: preamble and header, then the MPDU at its
//! rate), clause 18.3 (OFDM: 16 us preamble, 4 us SIGNAL, symbols of 4 us holding 16 service bits, the MPDU
//! and 6 tail bits), clause 19.3 (ERP-OFDM: 6 us signal extension). Inter-frame spaces: clause 9.3.2.3.

use manet_engine::keys::{above, of, up_to, within, Declared, Limits, OutOfLimits};
use manet_engine::{choices, keys, Duration};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Reason for refusing a profile: one line.
#[derive(Debug)]
pub enum RadioError {
    /// The text is not TOML, or lacks the keys and types of a profile; the message is the parser's.
    Toml(Box<toml::de::Error>),
    /// A number is outside its limits.
    Limits(OutOfLimits),
    /// Two values contradict each other: key and range.
    Value(String),
}

impl fmt::Display for RadioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // the parser shows the position on several lines
            Self::Toml(e) => f.write_str(&e.to_string().split_whitespace().collect::<Vec<_>>().join(" ")),
            Self::Limits(e) => e.fmt(f),
            Self::Value(mistake) => f.write_str(mistake),
        }
    }
}
impl std::error::Error for RadioError {}

impl From<String> for RadioError {
    fn from(mistake: String) -> Self {
        Self::Value(mistake)
    }
}

impl From<OutOfLimits> for RadioError {
    fn from(error: OutOfLimits) -> Self {
        Self::Limits(error)
    }
}

/// Kind of a frame. All kinds but `Data` and `Bcast` have a fixed length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FrameKind {
    /// Request to send.
    Rts,
    /// Clear to send.
    Cts,
    /// Unicast data.
    Data,
    /// Acknowledgement.
    Ack,
    /// Data to a group address.
    Bcast,
}

impl FrameKind {
    /// Name in the air log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rts => "rts",
            Self::Cts => "cts",
            Self::Data => "data",
            Self::Ack => "ack",
            Self::Bcast => "bcast",
        }
    }
}

/// Length of an RTS, bytes with FCS (802.11-2012 clause 8.3.1.2).
pub const RTS_BYTES: u32 = 20;
/// Length of a CTS, bytes with FCS (802.11-2012 clause 8.3.1.3).
pub const CTS_BYTES: u32 = 14;
/// Length of an ACK, bytes with FCS (802.11-2012 clause 8.3.1.4).
pub const ACK_BYTES: u32 = 14;

/// Slot of an ERP PHY without the short slot time (clause 19.4.5).
const LONG_SLOT_US: u32 = 20;

/// Clause 18.1.1.
const OFDM_RATES_MBPS: [f64; 8] = [6.0, 9.0, 12.0, 18.0, 24.0, 36.0, 48.0, 54.0];

/// Clauses 16.2.3.4 and 17.2.3.4.
const DSSS_RATES_BPS: [u64; 4] = [1_000_000, 2_000_000, 5_500_000, 11_000_000];

/// Mandatory rates of an OFDM PHY (clause 18.2.2.3).
const MANDATORY_OFDM_RATES_BPS: [u64; 3] = [6_000_000, 12_000_000, 24_000_000];

/// Receiver minimum input sensitivity: clauses 16.4.8.2 (stated for 2 Mbit/s), 17.4.8.2 (for 11 Mbit/s), table 18-14 (20 MHz).
fn min_sensitivity_dbm(rate_bps: u64) -> f64 {
    match rate_bps / 100_000 {
        10 | 20 => -80.0,
        55 | 110 => -76.0,
        60 => -82.0,
        90 => -81.0,
        120 => -79.0,
        180 => -77.0,
        240 => -74.0,
        360 => -70.0,
        480 => -66.0,
        _ => -65.0,
    }
}

choices! {
    /// PHY family of a profile.
    pub enum Modulation {
        /// Preamble and header of `plcp_bits` at `plcp_rate_bps`, then the MPDU (also HR/DSSS).
        Dsss = "dsss",
        /// 20 us preamble and SIGNAL, then symbols of 4 us.
        Ofdm = "ofdm",
    }
}

choices! {
    /// Kind of network that a profile is for.
    pub enum Network {
        /// Independent BSS: stations that hear one another, without an access point.
        AdHoc = "ad-hoc",
        /// Stations of an access point.
        Infrastructure = "infrastructure",
    }
}

keys! {
    /// The departures of ns-2.35's `mac-802_11.cc` from the standard, each by its own switch.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Rules {
        /// Range of a backoff draw: `cw` is 0..=CW (clause 9.3.3), `cw-1` is 0..=CW-1 (ns-2: `Random::random() % cw`).
        pub backoff_draw: BackoffDraw;
        /// Frame that finds the medium idle longer than DIFS. False: it is sent at once (clause 9.3.4.2). True: it waits DIFS and
        /// a backoff like any other (ns-2, `bugFix_timer_`).
        pub backoff_when_idle: bool;
        /// Wait after a frame that was not decoded. False: EIFS instead of DIFS (clause 9.3.2.3.7). True: a NAV of EIFS, then DIFS
        /// (ns-2). No RTS is answered during this NAV, and weak frames set it, too.
        pub eifs_as_nav: bool;
        /// Condition for CTS and for data after CTS. False: CTS needs an idle NAV at the end of the RTS (clause 9.3.2.6), data after
        /// CTS needs nothing. True: both need an idle medium after SIFS (ns-2).
        pub response_needs_idle: bool;
        /// Whether a station that sent CTS defers until the expected end of the data frame (ns-2).
        pub cts_holds: bool;
        /// Retry counters. False: each packet has its own (clause 9.3.4.4). True: a packet that fails at one retry limit leaves the
        /// other counter unchanged for the next packet (ns-2: one `ssrc_` and one `slrc_` per station).
        pub retries_carry_over: bool;
        /// Timeout of CTS and ACK: `standard` is SIFS + slot + PHY start delay, extended by a reception in progress
        /// (clauses 9.3.2.6, 9.3.2.8); `full` is SIFS + the whole answer (ns-2).
        pub timeouts: Timeouts;
    }
}

choices! {
    /// Range of a backoff draw.
    pub enum BackoffDraw {
        /// 0 to CW (clause 9.3.3).
        Cw = "cw",
        /// 0 to CW - 1 (ns-2).
        CwMinusOne = "cw-1",
    }
}

choices! {
    /// Timeout of CTS and ACK.
    pub enum Timeouts {
        /// SIFS + slot + PHY start delay, extended by a reception in progress (clauses 9.3.2.6, 9.3.2.8).
        Standard = "standard",
        /// SIFS + the whole answer (ns-2).
        Full = "full",
    }
}

const RATE: Limits = within(100_000.0, 1e10).of("bit/s");
/// Limits of a gain or a loss.
pub const GAIN: Limits = within(-100.0, 100.0).of("dB");
/// Limits of a transmit power: -100 to 300 dBm. The upper one leaves room for a range of 100 km at a high path loss exponent.
pub const TX_POWER: Limits = within(1e-13, 1e27).of("W");
/// Limits of the height of an antenna, up to that of a range.
pub const ANTENNA_HEIGHT: Limits = within(1e-3, 1e5).of("m");
const WINDOW: Limits = within(1.0, 32_767.0).of("slots");
const RETRIES: Limits = within(1.0, 255.0);

keys! {
    /// One radio profile. Units are in the names; rates in bit/s, powers in W at the receiver's antenna port.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Radio {
        /// Name of the profile: that of its file.
        pub name: String;
        /// Source of the numbers.
        pub source: String;

        /// Kind of network that the profile is for. An ERP station (802.11g) of an ad hoc network has slots of 20 us, that of an
        /// access point may have 9 us (clause 19.4.5).
        #[serde(default)]
        pub network: Network;
        /// PHY family.
        pub modulation: Modulation;
        /// Carrier frequency.
        pub frequency_hz: f64 => above(0.0).of("Hz");
        /// Rate of unicast data.
        pub data_rate_bps: u64 => RATE;
        /// Rate of RTS; a basic rate.
        pub control_rate_bps: u64 => RATE;
        /// Rate of broadcast data; a basic rate.
        pub broadcast_rate_bps: u64 => RATE;
        /// BSSBasicRateSet, ascending. CTS and ACK are sent at the fastest of these rates that is not above the rate of the frame
        /// they answer.
        pub basic_rates_bps: Vec<u64> => RATE;
        /// Rate of the ACK in the formula of EIFS: the lowest basic rate.
        pub eifs_ack_rate_bps: u64 => RATE;
        /// Length of PLCP preamble and header; DSSS only.
        #[serde(default)]
        pub plcp_bits: u32 => of("bits");
        /// Rate of PLCP preamble and header; DSSS only.
        #[serde(default)]
        pub plcp_rate_bps: u64 => of("bit/s");
        /// Signal extension: silence after each frame, 6 us for OFDM in the 2.4 GHz band (clause 19.3.2.1).
        #[serde(default)]
        pub signal_extension_us: u32 => of("us");
        /// Bytes around the IP packet: MAC header, LLC/SNAP if counted, FCS.
        pub overhead_bytes: u32 => up_to(200.0).of("bytes");

        /// aSlotTime.
        pub slot_us: u32 => above(0.0).of("us");
        /// aSIFSTime.
        pub sifs_us: u32 => above(0.0).of("us");
        /// aRxPHYStartDelay.
        pub rx_start_delay_us: u32 => of("us");
        /// aCWmin: 2^k - 1.
        pub cw_min: u32 => WINDOW;
        /// aCWmax: 2^k - 1.
        pub cw_max: u32 => WINDOW;
        /// dot11ShortRetryLimit.
        pub short_retry_limit: u32 => RETRIES;
        /// dot11LongRetryLimit.
        pub long_retry_limit: u32 => RETRIES;
        /// dot11RTSThreshold: an MPDU longer than this is preceded by RTS/CTS; 0: always, 3000: never.
        pub rts_threshold_bytes: u32 => of("bytes");

        /// Transmit power at the antenna.
        pub tx_power_w: f64 => TX_POWER;
        /// Height of the antenna above the station.
        pub antenna_height_m: f64 => ANTENNA_HEIGHT;
        /// Antenna gain at each end.
        pub antenna_gain_db: f64 => GAIN;
        /// System loss of each link.
        pub system_loss_db: f64 => GAIN;
        /// Reception threshold: a weaker frame is not received.
        pub receive_threshold_w: f64 => above(0.0).of("W");
        /// Carrier sense threshold: a weaker frame is not sensed.
        pub carrier_sense_threshold_w: f64 => above(0.0).of("W");
        /// Capture threshold: a frame that exceeds the others by this ratio is received.
        pub capture_db: f64 => GAIN;
        /// Thermal noise and noise figure over the channel; used by `interference = "sinr"`.
        pub noise_w: f64 => above(0.0).of("W");

        /// The departures of ns-2.35's `mac-802_11.cc` from the standard, each by its own switch.
        pub rules: Rules;
    }
}

impl Radio {
    /// Parses the text of a profile; `overrides` replace its keys. Both are checked.
    ///
    /// # Errors
    /// [`RadioError`], which names the key.
    pub fn parse(text: &str, overrides: &toml::Table) -> Result<Self, RadioError> {
        let not_a_profile = |e| RadioError::Toml(Box::new(e));
        let mut table: toml::Table = text.parse().map_err(not_a_profile)?;
        for (key, value) in overrides {
            match (table.get_mut(key), value) {
                (Some(toml::Value::Table(old)), toml::Value::Table(new)) => old.extend(new.clone()),
                _ => {
                    table.insert(key.clone(), value.clone());
                }
            }
        }
        table.iter_mut().for_each(|(_, value)| make_whole(value));
        let radio: Self = table.try_into().map_err(not_a_profile)?;
        radio.check()?;
        Ok(radio)
    }

    /// aSlotTime.
    pub fn slot(&self) -> Duration {
        Duration::from_micros(self.slot_us.into())
    }
    /// aSIFSTime.
    pub fn sifs(&self) -> Duration {
        Duration::from_micros(self.sifs_us.into())
    }
    /// SIFS + 2 slots (clause 9.3.2.3.5).
    pub fn difs(&self) -> Duration {
        self.sifs() + self.slot() * 2
    }
    /// SIFS + DIFS + an ACK at the lowest basic rate (clause 9.3.2.3.7).
    pub fn eifs(&self) -> Duration {
        self.sifs() + self.difs() + self.airtime(ACK_BYTES, self.eifs_ack_rate_bps)
    }

    /// Time on the air of an MPDU of `bytes` (FCS included) at `rate_bps`.
    pub fn airtime(&self, bytes: u32, rate_bps: u64) -> Duration {
        let bits = u64::from(bytes) * 8;
        match self.modulation {
            Modulation::Dsss => {
                // the PLCP header states the MPDU's time in whole microseconds (clause 17.3.4): rounded up at 5.5 and 11 Mbit/s
                let mpdu_us = Duration::of_bits(bits, rate_bps).as_nanos().div_ceil(1000);
                Duration::of_bits(self.plcp_bits.into(), self.plcp_rate_bps) + Duration::from_micros(mpdu_us)
            }
            Modulation::Ofdm => {
                let bits_per_symbol = rate_bps * 4 / 1_000_000;
                let symbols = (16 + bits + 6).div_ceil(bits_per_symbol);
                Duration::from_micros(20 + 4 * symbols + u64::from(self.signal_extension_us))
            }
        }
    }

    /// Power in W needed to decode a frame whose rate `rate_bps` the sender chose: the profile's threshold, shifted by the
    /// difference of the standard's minimum sensitivities at the two rates.
    pub fn receive_threshold_at_w(&self, rate_bps: u64) -> f64 {
        let apart_db = min_sensitivity_dbm(rate_bps) - min_sensitivity_dbm(self.data_rate_bps);
        self.receive_threshold_w * 10f64.powf(apart_db / 10.0)
    }

    /// Whether this PHY has the rate `rate_bps`.
    pub fn has_rate(&self, rate_bps: u64) -> bool {
        match self.modulation {
            Modulation::Dsss => DSSS_RATES_BPS.contains(&rate_bps),
            Modulation::Ofdm => OFDM_RATES_MBPS.contains(&(rate_bps as f64 / 1e6)),
        }
    }

    /// Rate of frames of this kind, bit/s.
    pub fn rate_of(&self, kind: FrameKind) -> u64 {
        match kind {
            FrameKind::Data => self.data_rate_bps,
            FrameKind::Bcast => self.broadcast_rate_bps,
            _ => self.control_rate_bps,
        }
    }

    /// Time on the air of an RTS.
    pub fn rts_airtime(&self) -> Duration {
        self.airtime(RTS_BYTES, self.control_rate_bps)
    }

    /// Rate in bit/s of the CTS or ACK that answers a frame of `rate_bps`: the fastest basic rate not above it, or without such a
    /// rate the fastest mandatory one (802.11-2016 10.6.6.5.2). ns-2 has one basic rate.
    pub fn answer_rate_bps(&self, rate_bps: u64) -> u64 {
        let mandatory: &[u64] = match self.modulation {
            Modulation::Dsss => &DSSS_RATES_BPS,
            Modulation::Ofdm => &MANDATORY_OFDM_RATES_BPS,
        };
        let fastest = |rates: &[u64]| rates.iter().copied().filter(|rate| *rate <= rate_bps).max();
        fastest(&self.basic_rates_bps).or_else(|| fastest(mandatory)).unwrap_or(rate_bps)
    }

    /// Time on the air of the CTS or ACK that answers a frame of `rate_bps`; both have the same length.
    pub fn answer_airtime(&self, rate_bps: u64) -> Duration {
        self.airtime(ACK_BYTES, self.answer_rate_bps(rate_bps))
    }

    /// Time on the air of the CTS that answers an RTS.
    pub fn cts_airtime(&self) -> Duration {
        self.answer_airtime(self.control_rate_bps)
    }

    /// CTSTimeout or ACKTimeout: wait for the answer after the end of the station's own frame of `rate_bps`.
    pub fn answer_timeout(&self, rate_bps: u64) -> Duration {
        match self.rules.timeouts {
            // 4 us: ns-2 adds twice DSSS_MaxPropagationDelay
            Timeouts::Full => self.sifs() + self.answer_airtime(rate_bps) + Duration::from_micros(4),
            Timeouts::Standard => self.sifs() + self.slot() + Duration::from_micros(self.rx_start_delay_us.into()),
        }
    }

    /// Checks ranges and combinations. The error names the key and the range.
    pub(super) fn check(&self) -> Result<(), RadioError> {
        keys::check(Self::KEYS, self)?;
        for (key, rate) in [
            ("data_rate_bps", self.data_rate_bps),
            ("control_rate_bps", self.control_rate_bps),
            ("broadcast_rate_bps", self.broadcast_rate_bps),
            ("eifs_ack_rate_bps", self.eifs_ack_rate_bps),
        ]
        .into_iter()
        .chain(self.basic_rates_bps.iter().map(|rate| ("basic_rates_bps", *rate)))
        {
            if self.modulation == Modulation::Ofdm && !OFDM_RATES_MBPS.contains(&(rate as f64 / 1e6)) {
                return Err(
                    format!("key \"{key}\": {rate} is no OFDM rate (6, 9, 12, 18, 24, 36, 48, 54 Mbit/s)").into()
                );
            }
        }
        self.check_basic_rates()?;
        self.check_slot()?;
        if self.modulation == Modulation::Dsss && (self.plcp_bits == 0 || self.plcp_rate_bps == 0) {
            return Err(RadioError::Value("keys \"plcp_bits\" and \"plcp_rate_bps\" are needed for DSSS".into()));
        }
        for (key, cw) in [("cw_min", self.cw_min), ("cw_max", self.cw_max)] {
            if !(cw + 1).is_power_of_two() {
                return Err(format!("key \"{key}\": {cw} is not 2^k - 1").into());
            }
        }
        if self.cw_min > self.cw_max {
            return Err(format!("key \"cw_min\": {} is above cw_max {}", self.cw_min, self.cw_max).into());
        }
        Ok(())
    }

    /// The short slot of an ERP PHY, whose sign is the signal extension, needs an access point that announces it.
    fn check_slot(&self) -> Result<(), RadioError> {
        if self.network == Network::AdHoc && self.signal_extension_us > 0 && self.slot_us < LONG_SLOT_US {
            return Err(format!(
                "key \"slot_us\": {} us is the slot of an access point's network; an ad hoc one has {LONG_SLOT_US} us \
                 (802.11-2012 19.4.5), or set network = \"infrastructure\"",
                self.slot_us
            )
            .into());
        }
        Ok(())
    }

    fn check_basic_rates(&self) -> Result<(), RadioError> {
        let basic = &self.basic_rates_bps;
        if basic.is_empty() || !basic.is_sorted_by(|a, b| a < b) {
            return Err(format!(
                "key \"basic_rates_bps\": {basic:?} is not a list of one or more rates, the slowest first"
            )
            .into());
        }
        // 802.11-2016 10.6.6.2 and 10.6.5: RTS and group addressed frames go out at a basic rate
        let own = [("control_rate_bps", self.control_rate_bps), ("broadcast_rate_bps", self.broadcast_rate_bps)];
        match own.into_iter().find(|(_, rate)| !basic.contains(rate)) {
            Some((key, rate)) => {
                Err(format!("key \"{key}\": {rate} is none of basic_rates_bps {basic:?}; add it there").into())
            }
            None => Ok(()),
        }
    }
}

/// `6e6` is a float in TOML and JSON, which an integer key would refuse; a float key takes an integer.
fn make_whole(value: &mut toml::Value) {
    const EXACT: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;
    if let Some(float) = value.as_float().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT) {
        *value = toml::Value::Integer(float as i64);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The profile of a name as it lies in `medium/radios`, for tests of every module.
    pub fn profile(name: &str) -> Radio {
        let path = format!("{}/radios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        Radio::parse(&std::fs::read_to_string(&path).unwrap(), &toml::Table::new()).unwrap()
    }

    #[test]
    fn every_profile_is_valid_and_named_as_its_file() {
        let mut n = 0;
        for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/radios")).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
            assert_eq!(profile(&stem).name, stem);
            n += 1;
        }
        assert!(n >= 6);
    }

    #[test]
    fn wavelan_durations_are_those_of_ns2() {
        // reference: data 192 us + (IP bytes + 34) * 8 / rate; RTS 192 + 160, CTS and ACK 192 + 112 us; EIFS 364 us
        let r = profile("ns2-dsss-2m");
        assert_eq!(r.airtime(1500 + r.overhead_bytes, r.data_rate_bps), Duration::from_micros(192 + 1534 * 4));
        assert_eq!(r.rts_airtime(), Duration::from_micros(352));
        assert_eq!(r.cts_airtime(), Duration::from_micros(304));
        assert_eq!(r.eifs(), Duration::from_micros(364));
        assert_eq!(r.difs(), Duration::from_micros(50));
    }

    #[test]
    fn ofdm_durations_count_whole_symbols() {
        // 1536 bytes at 54 Mbit/s: (16 + 12288 + 6) / 216 = 56.99 -> 57 symbols = 228 us, + 20 us preamble and SIGNAL
        let a = profile("dot11a-54m");
        assert_eq!(a.airtime(1536, 54_000_000), Duration::from_micros(248));
        // an ACK at 24 Mbit/s: (16 + 112 + 6) / 96 -> 2 symbols: 28 us (34 us with 802.11g's signal extension)
        assert_eq!(a.airtime(14, 24_000_000), Duration::from_micros(28));
        assert_eq!(profile("dot11g-54m").airtime(14, 24_000_000), Duration::from_micros(34));
    }

    #[test]
    fn hr_dsss_durations_are_whole_microseconds() {
        // 1536 bytes at 11 Mbit/s: 12288 / 11 = 1117.09 us, stated and sent as 1118; preamble and header 192 us
        assert_eq!(profile("dot11b-11m").airtime(1536, 11_000_000), Duration::from_micros(192 + 1118));
    }

    #[test]
    fn an_ad_hoc_network_in_2_4_ghz_has_no_short_slot() {
        let mut r = profile("dot11g-54m");
        assert_eq!((r.network, r.slot_us), (Network::AdHoc, 20));
        r.slot_us = 9;
        assert!(r.check().unwrap_err().to_string().starts_with("key \"slot_us\": 9 us is the slot of an access point's"));
        r.network = Network::Infrastructure;
        assert!(r.check().is_ok());
        assert!(profile("dot11a-54m").slot_us == 9, "5 GHz has no long slot");
    }

    #[test]
    fn a_gain_that_is_no_number_and_a_rate_between_two_are_refused() {
        let mut r = profile("dot11a-54m");
        r.capture_db = f64::NAN;
        assert_eq!(r.check().unwrap_err().to_string(), "key \"capture_db\": NaN is not between -100 and 100 dB");
        let mut r = profile("dot11a-54m");
        r.control_rate_bps = 6_500_000;
        assert!(r.check().unwrap_err().to_string().starts_with("key \"control_rate_bps\": 6500000 is no OFDM rate"));
    }

    #[test]
    fn an_answer_is_never_faster_than_the_frame_it_answers() {
        let mbps = |name: &str, rates: &[u64]| -> Vec<u64> {
            rates.iter().map(|rate| profile(name).answer_rate_bps(rate * 500_000) / 500_000).collect()
        };
        // basic rates 6, 12, 24; in units of 500 kbit/s
        assert_eq!(mbps("dot11a-54m", &[12, 18, 24, 36, 48, 72, 96, 108]), [12, 12, 24, 24, 48, 48, 48, 48]);
        assert_eq!(mbps("dot11b-11m", &[2, 4, 11, 22]), [2, 4, 4, 4]);
        // ns-2 has one basic rate
        assert_eq!(mbps("ns2-dsss-2m", &[2, 4]), [2, 2]);
        assert_eq!(mbps("hv-dsss-2m", &[4]), [4]);
    }

    #[test]
    fn without_a_basic_rate_slow_enough_the_answer_is_at_a_mandatory_one() {
        let mut r = profile("dot11a-54m");
        (r.basic_rates_bps, r.broadcast_rate_bps) = (vec![24_000_000], 24_000_000);
        assert!(r.check().is_ok());
        assert_eq!(r.answer_rate_bps(18_000_000), 12_000_000);
        assert_eq!(r.answer_rate_bps(9_000_000), 6_000_000);
    }

    #[test]
    fn basic_rates_that_are_none_are_refused() {
        let refusal = |change: fn(&mut Radio)| {
            let mut r = profile("dot11a-54m");
            change(&mut r);
            r.check().unwrap_err().to_string()
        };
        let wanted = "is not a list of one or more rates, the slowest first";
        assert_eq!(refusal(|r| r.basic_rates_bps = vec![]), format!("key \"basic_rates_bps\": [] {wanted}"));
        assert!(refusal(|r| r.basic_rates_bps.reverse()).ends_with(wanted));
        assert!(refusal(|r| r.basic_rates_bps[0] = 7_000_000)
            .starts_with("key \"basic_rates_bps\": 7000000 is no OFDM rate"));
        assert!(
            refusal(|r| r.control_rate_bps = 54_000_000).starts_with("key \"control_rate_bps\": 54000000 is none of")
        );
        assert!(refusal(|r| r.broadcast_rate_bps = 54_000_000).ends_with("add it there"));
    }

    #[test]
    fn a_contention_window_that_is_no_power_of_two_minus_one_is_refused() {
        let mut r = profile("ns2-dsss-2m");
        r.cw_min = 30;
        assert_eq!(r.check().unwrap_err().to_string(), "key \"cw_min\": 30 is not 2^k - 1");
    }
}
