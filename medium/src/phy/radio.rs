//! Radio profiles: every number of an 802.11 PHY and of the DCF's rules, read from
//! `medium/radios/<name>.toml`. The medium knows no profile by name.
//!
//! Durations follow IEEE Std 802.11-2012: clause 16.2 (DSSS PPDU: preamble and header, then the MPDU at its
//! rate), clause 18.3 (OFDM: 16 us preamble, 4 us SIGNAL, symbols of 4 us holding 16 service bits, the MPDU
//! and 6 tail bits), clause 19.3 (ERP-OFDM: 6 us signal extension). Inter-frame spaces: clause 9.3.2.3.

pub use super::mode::GuardInterval;
use super::mode::Mode;
use manet_engine::keys::{above, of, up_to, within, Declared, Limits, OutOfLimits};
use manet_engine::misfit::{self, Misfit};
use manet_engine::{choices, keys, Duration};
use serde::{Deserialize, Serialize};
use std::fmt;

mod access;
mod aggregation;
mod check;
mod modes;

pub use access::{Access, AccessCategories, AccessParameters, CategoryKeys};
pub use aggregation::{Aggregation, AggregationLimits, Stretch};
pub use modes::{Layout, Threshold};

/// Reason for refusing a profile: one line.
#[derive(Debug)]
pub enum RadioError {
    /// The text is not TOML; the message is the parser's.
    Toml(Box<toml::de::Error>),
    /// A key is unknown or missing, or its value is not of its type.
    Misfit(Misfit),
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
            Self::Misfit(e) => e.fmt(f),
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
    /// Block Ack.
    Ba,
    /// Block Ack Request.
    Bar,
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
            Self::Ba => "ba",
            Self::Bar => "bar",
        }
    }
}

/// Length of an RTS, bytes with FCS (802.11-2012 clause 8.3.1.2).
pub const RTS_BYTES: u32 = 20;
/// Length of a CTS, bytes with FCS (802.11-2012 clause 8.3.1.3).
pub const CTS_BYTES: u32 = 14;
/// Length of an ACK, bytes with FCS (802.11-2012 clause 8.3.1.4).
pub const ACK_BYTES: u32 = 14;
/// Length of a Block Ack with a compressed bitmap, bytes with FCS (802.11-2016 clause 9.3.1.9.3).
pub const BA_BYTES: u32 = 32;
/// Length of a Block Ack Request, bytes with FCS (802.11-2016 clause 9.3.1.8).
pub const BAR_BYTES: u32 = 24;

choices! {
    /// PHY family of a profile.
    pub enum Modulation {
        /// Preamble and header of `plcp_bits` at `plcp_rate_bps`, then the MPDU (also HR/DSSS).
        Dsss = "dsss",
        /// 20 us preamble and SIGNAL, then symbols of 4 us.
        Ofdm = "ofdm",
        /// 802.11n in HT-mixed format: data by `mcs`, everything else as OFDM.
        Ht = "ht",
        /// 802.11ac: data by `mcs`, everything else as OFDM.
        Vht = "vht",
        /// 802.11ax, HE SU PPDUs: data by `mcs`, everything else as OFDM.
        He = "he",
        /// 802.11ah: data by `mcs`, everything else in a mode of the same width with the long guard interval.
        S1g = "s1g",
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

choices! {
    /// Choice of the rates of unicast data ([`crate::rate_control`]).
    pub enum RateControl {
        /// The profile's rate.
        Fixed = "fixed",
        /// The fastest rate that the last SNR allows for a bit error rate of 1e-6.
        Ideal = "ideal",
        /// Up after 10 answers, down after 2 losses.
        Arf = "arf",
        /// ARF that probes less after each failed probe.
        Aarf = "aarf",
        /// Best measured throughput, 10 % of the frames look around.
        Minstrel = "minstrel",
        /// Minstrel for groups of rates and aggregates, as Linux 5.12 has it.
        MinstrelHt = "minstrel-ht",
    }
}

impl RateControl {
    /// Its name in the table of [`crate::rate_control::ALGORITHMS`].
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Ideal => "ideal",
            Self::Arf => "arf",
            Self::Aarf => "aarf",
            Self::Minstrel => "minstrel",
            Self::MinstrelHt => "minstrel-ht",
        }
    }
}

choices! {
    /// Rule by which a radio receives a frame ([`crate::air`]).
    pub enum Reception {
        /// A frame survives if it is above a power and a ratio to all else, and is lost otherwise.
        Threshold = "threshold",
        /// A frame survives with a probability that follows from its SINR by its mode ([`super::error_model`]).
        Sinr = "sinr",
    }
}

choices! {
    /// Frames that the thresholds of a profile are for.
    pub enum Thresholds {
        /// All frames (ns-2).
        One = "one",
        /// Those in the mode of unicast data. Others, and the header of each, differ by the standard's minimum sensitivities.
        Rate = "rate",
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
        /// Frames that `receive_threshold_w` and `capture_db` are for: `one` is all of them (ns-2's `RXThresh_`, `CPThresh_`), `rate` those in
        /// the mode of unicast data; for others, and for the header, which has its own rate, both differ by the minimum sensitivities (table 18-14).
        #[serde(default)]
        pub thresholds: Thresholds;
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
        /// Rate of unicast data of DSSS and OFDM; otherwise it follows from `mcs`.
        #[serde(default)]
        pub data_rate_bps: u64 => RATE;
        /// MCS of unicast data; HT, VHT, HE and S1G only. HT's 8 to 15 are 0 to 7 with two streams and need `streams = 2`, S1G's 10 is for 1 MHz.
        #[serde(default)]
        pub mcs: Option<u8> => up_to(15.0);
        /// Width of the channel of HT, VHT, HE and S1G; `noise_w` is that of this width.
        #[serde(default = "width_20_mhz")]
        pub width_mhz: u16 => within(1.0, 80.0).of("MHz").by_default(20.0);
        /// Guard interval of HT, VHT, HE and S1G.
        #[serde(default)]
        pub guard_interval: GuardInterval;
        /// Spatial streams of HT, VHT, HE and S1G.
        #[serde(default = "one_stream")]
        pub streams: u8 => within(1.0, 2.0).by_default(1.0);
        /// Rate of RTS; a basic rate.
        pub control_rate_bps: u64 => RATE;
        /// Rate of broadcast data; a basic rate.
        pub broadcast_rate_bps: u64 => RATE;
        /// BSSBasicRateSet, ascending. CTS and ACK are sent at the fastest of these rates that is not above the rate of the frame
        /// they answer.
        pub basic_rates_bps: Vec<u64> => RATE;
        /// Rate of the ACK in the formula of EIFS: the lowest mandatory rate of the PHY (of 802.11g 1 Mbit/s), of ns-2 the basic rate.
        pub eifs_ack_rate_bps: u64 => RATE;
        /// Length of PLCP preamble and header; DSSS, and the ACK of EIFS of 802.11g.
        #[serde(default)]
        pub plcp_bits: u32 => of("bits");
        /// Rate of PLCP preamble and header; as `plcp_bits`.
        #[serde(default)]
        pub plcp_rate_bps: u64 => of("bit/s");
        /// Signal extension: silence after each frame, 6 us for OFDM in the 2.4 GHz band (clause 19.3.2.1).
        #[serde(default)]
        pub signal_extension_us: u32 => of("us");
        /// Bytes around the IP packet: MAC header, LLC/SNAP if counted, FCS. Unicast data of HT, VHT, HE and S1G are QoS data frames, which have 2 more.
        pub overhead_bytes: u32 => up_to(200.0).of("bytes");

        /// aSlotTime.
        pub slot_us: u32 => above(0.0).of("us");
        /// aSIFSTime.
        pub sifs_us: u32 => above(0.0).of("us");
        /// Slots between SIFS and the first slot of a backoff: 2 makes DIFS; AIFSN of best effort is 3 (table 8-105), which QoS data need.
        #[serde(default = "difs_slots")]
        pub aifsn: u32 => within(2.0, 15.0).of("slots").by_default(2.0);
        /// aRxPHYStartDelay.
        pub rx_start_delay_us: u32 => of("us");
        /// aCWmin: 2^k - 1.
        pub cw_min: u32 => WINDOW;
        /// aCWmax: 2^k - 1.
        pub cw_max: u32 => WINDOW;
        /// Access to the medium; QoS data frames of EDCA have 2 bytes more, whatever the PHY.
        #[serde(default)]
        pub access: Access;
        /// Parameters of the access categories of EDCA that replace those of table 9-155 of IEEE Std 802.11-2020.
        #[serde(default)]
        pub access_categories: AccessCategories;
        /// dot11ShortRetryLimit.
        pub short_retry_limit: u32 => RETRIES;
        /// dot11LongRetryLimit.
        pub long_retry_limit: u32 => RETRIES;
        /// dot11RTSThreshold: an MPDU longer than this is preceded by RTS/CTS; 0: always, 3000: never, of A-MPDUs 2000000.
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
        /// MCS that `receive_threshold_w` and `capture_db` are for, of one stream; by default `mcs`. If they differ those of `mcs` follow by the minimum sensitivities, its range with `reception = "sinr"` by the error model.
        #[serde(default)]
        pub receive_threshold_mcs: Option<u8> => up_to(11.0);
        /// Rate of DSSS and OFDM that `receive_threshold_w` and `capture_db` are for; by default `data_rate_bps`. If they differ those of `data_rate_bps` follow by the minimum sensitivities.
        #[serde(default)]
        pub receive_threshold_rate_bps: Option<u64> => RATE;
        /// Carrier sense threshold: a weaker frame is not sensed.
        pub carrier_sense_threshold_w: f64 => above(0.0).of("W");
        /// Capture threshold: a frame that exceeds the others by this ratio is received.
        pub capture_db: f64 => GAIN;
        /// Thermal noise and noise figure over the channel; used by `interference = "sinr"` and `reception = "sinr"`.
        pub noise_w: f64 => above(0.0).of("W");
        /// Rule of reception. With "sinr" all power is summed, whatever `interference` says, and reception threshold and capture threshold decide no reception (ranges of maps and static routes use the former).
        #[serde(default)]
        pub reception: Reception;
        /// Energy detection: without a preamble, power above it is sensed. By default the carrier sense threshold; used by `reception = "sinr"`, and for jammers and other channels by all rules.
        #[serde(default)]
        pub energy_detect_w: Option<f64> => above(0.0).of("W");
        /// Whether a later frame that is `capture_db` above all else takes over a receiver that holds another; used by `reception = "sinr"`.
        #[serde(default)]
        pub frame_capture: bool;
        /// Whether frames take 0.33 us per 100 m to arrive.
        #[serde(default)]
        pub propagation_delay: bool;
        /// A-MPDUs with Block Acks, for profiles with an `mcs`: `false`, `true`, a number of MPDUs (1 to 64), or a table with `max_mpdus`, `max_bytes` and `request_after_silence`.
        #[serde(default)]
        pub aggregation: Aggregation;
        /// Choice of the rates of unicast data.
        #[serde(default)]
        pub rate_control: RateControl;

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
        override_keys(&mut table, overrides);
        let mut values = as_json(&table.into());
        make_whole(&mut values);
        misfit::fit(Self::KEYS, &values).map_err(RadioError::Misfit)?;
        let radio: Self = serde_json::from_value(values).map_err(|e| e.to_string())?;
        radio.completed()
    }

    /// The profile with the rate that follows from its MCS, checked.
    ///
    /// # Errors
    /// [`RadioError`], which names the key.
    pub(super) fn completed(mut self) -> Result<Self, RadioError> {
        if self.family().is_some() {
            let rate_bps = Mode::Mcs(self.mcs_mode()?).rate_bps();
            let stated = std::mem::replace(&mut self.data_rate_bps, rate_bps);
            if stated != 0 && stated != self.data_rate_bps {
                return Err(format!("key \"data_rate_bps\": {stated} is not that of mcs; leave it out").into());
            }
        }
        self.check()?;
        Ok(self)
    }

    /// aSlotTime.
    pub fn slot(&self) -> Duration {
        Duration::from_micros(self.slot_us.into())
    }
    /// aSIFSTime.
    pub fn sifs(&self) -> Duration {
        Duration::from_micros(self.sifs_us.into())
    }
    /// DIFS, SIFS + 2 slots (clause 9.3.2.3.5), or the AIFS of QoS data (9.3.2.3.6).
    pub fn difs(&self) -> Duration {
        self.aifs(self.aifsn)
    }
    /// AIFS of so many slots (802.11-2020 clause 10.3.2.3.6).
    pub fn aifs(&self, aifsn: u32) -> Duration {
        self.sifs() + self.slot() * u64::from(aifsn)
    }
    /// SIFS + DIFS + an ACK at the lowest mandatory rate (clause 9.3.7), which for an ERP station is that of DSSS (19.1.2).
    pub fn eifs(&self) -> Duration {
        self.sifs() + self.difs() + self.airtime(ACK_BYTES, self.mode_of_rate(self.eifs_ack_rate_bps))
    }

    /// Time on the air of an MPDU of `bytes` (FCS included).
    pub fn airtime(&self, bytes: u32, mode: Mode) -> Duration {
        let bits = u64::from(bytes) * 8;
        let extension = Duration::from_micros(self.signal_extension_us.into());
        match mode {
            Mode::Dsss(rate_bps) => {
                // the PLCP header states the MPDU's time in whole microseconds (clause 17.3.4): rounded up at 5.5 and 11 Mbit/s
                let mpdu_us = Duration::of_bits(bits, rate_bps).as_nanos().div_ceil(1000);
                self.plcp_airtime() + Duration::from_micros(mpdu_us)
            }
            Mode::Ofdm(rate_bps) => {
                let bits_per_symbol = rate_bps * 4 / 1_000_000;
                let symbols = (16 + bits + 6).div_ceil(bits_per_symbol);
                Duration::from_micros(20 + 4 * symbols) + extension
            }
            Mode::Mcs(mcs) => mcs.airtime(bytes) + extension,
        }
    }

    fn plcp_airtime(&self) -> Duration {
        Duration::of_bits(self.plcp_bits.into(), self.plcp_rate_bps)
    }
}

fn width_20_mhz() -> u16 {
    20
}
fn one_stream() -> u8 {
    1
}
fn difs_slots() -> u32 {
    2
}

/// Replaces keys of a table; of tables in it, their keys.
fn override_keys(table: &mut toml::Table, overrides: &toml::Table) {
    for (key, value) in overrides {
        match (table.get_mut(key), value) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) => override_keys(old, new),
            _ => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
}

/// A profile of TOML as JSON, which has no infinite numbers: no key takes one, and their text is refused with its key.
fn as_json(value: &toml::Value) -> serde_json::Value {
    match value {
        toml::Value::Table(table) => table.iter().map(|(key, value)| (key.clone(), as_json(value))).collect(),
        toml::Value::Array(values) => values.iter().map(as_json).collect(),
        toml::Value::Float(number) if !number.is_finite() => number.to_string().into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Boolean(flag) => (*flag).into(),
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Datetime(date) => date.to_string().into(),
    }
}

/// `6e6` is a float in TOML and JSON, which an integer key would refuse; a float key takes an integer.
pub(super) fn make_whole(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Number(number) if number.is_f64() => {
            if let Some(whole) = number.as_f64().and_then(whole) {
                *value = whole.into();
            }
        }
        serde_json::Value::Object(table) => table.values_mut().for_each(make_whole),
        serde_json::Value::Array(values) => values.iter_mut().for_each(make_whole),
        _ => {}
    }
}

/// The whole number that a float is; `None`: it is none, or may be rounded.
fn whole(float: f64) -> Option<i64> {
    const EXACT: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;
    (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i64)
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
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains("\nnetwork = "), "{stem} says which kind of network it is for");
            n += 1;
        }
        assert!(n >= 6);
    }

    /// Data sheets state the power at which a tenth of the frames is lost.
    #[test]
    fn a_card_loses_a_tenth_of_its_frames_at_the_sensitivity_of_its_data_sheet() {
        for name in ["mikrotik-hap-lite", "taixin-tx-ah-r900p", "toplinkst-top-5m01", "toplinkst-top-s5"] {
            let r = profile(name);
            let bits = f64::from(8 * (1500 + r.overhead_bytes + 2));
            let log = crate::phy::error_model::log_success(r.data_mode(), r.receive_threshold_w / r.noise_w, bits);
            assert!((0.85..0.95).contains(&log.exp()), "{name}: {}", log.exp());
        }
    }

    #[test]
    fn wavelan_durations_are_those_of_ns2() {
        // reference: data 192 us + (IP bytes + 34) * 8 / rate; RTS 192 + 160, CTS and ACK 192 + 112 us; EIFS 364 us
        let r = profile("ns2-dsss-2m");
        assert_eq!(r.airtime(1500 + r.overhead_bytes, r.data_mode()), Duration::from_micros(192 + 1534 * 4));
        assert_eq!(r.rts_airtime(), Duration::from_micros(352));
        assert_eq!(r.cts_airtime(), Duration::from_micros(304));
        assert_eq!(r.eifs(), Duration::from_micros(364));
        assert_eq!(r.difs(), Duration::from_micros(50));
    }

    #[test]
    fn ofdm_durations_count_whole_symbols() {
        // 1536 bytes at 54 Mbit/s: (16 + 12288 + 6) / 216 = 56.99 -> 57 symbols = 228 us, + 20 us preamble and SIGNAL
        let a = profile("dot11a-54m");
        assert_eq!(a.airtime(1536, Mode::Ofdm(54_000_000)), Duration::from_micros(248));
        // an ACK at 24 Mbit/s: (16 + 112 + 6) / 96 -> 2 symbols: 28 us (34 us with 802.11g's signal extension)
        assert_eq!(a.airtime(14, Mode::Ofdm(24_000_000)), Duration::from_micros(28));
        assert_eq!(profile("dot11g-54m").airtime(14, Mode::Ofdm(24_000_000)), Duration::from_micros(34));
    }

    #[test]
    fn eifs_has_an_ack_at_the_lowest_mandatory_rate_of_802_11g_that_of_dsss() {
        // SIFS 10 + DIFS 50 + 192 + 112 us; 802.11a: 16 + 34 + 44
        assert_eq!(profile("dot11g-54m").eifs(), Duration::from_micros(364));
        assert_eq!(profile("dot11a-54m").eifs(), Duration::from_micros(94));
    }

    /// 1538 bytes at MCS 7 of 2 MHz: 8 + 12304 + 6 = 12318 bits of 260 a symbol -> 48 symbols, of 40 us or of 36 that end with a whole 40;
    /// an ACK: 8 + 112 + 6 = 126 bits of 78 at MCS 2 -> 2 symbols of 40 us.
    #[test]
    fn s1g_with_the_short_guard_interval_has_it_in_unicast_data_alone() {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/radios/dot11ah-2m.toml")).unwrap();
        for (guard_interval, symbols) in [("long", 48), ("short", 44)] {
            let overrides = format!("guard_interval = \"{guard_interval}\"").parse().unwrap();
            let r = Radio::parse(&text, &overrides).unwrap();
            assert_eq!(r.airtime(1538, r.data_mode()), Duration::from_micros(240 + 40 * symbols));
            assert_eq!(r.answer_airtime(r.data_mode()), Duration::from_micros(240 + 2 * 40));
            assert_eq!(r.airtime(14, r.mode_of(FrameKind::Bcast)), Duration::from_micros(240 + 5 * 40));
        }
    }

    #[test]
    fn hr_dsss_durations_are_whole_microseconds() {
        // 1536 bytes at 11 Mbit/s: 12288 / 11 = 1117.09 us, stated and sent as 1118; preamble and header 192 us
        assert_eq!(profile("dot11b-11m").airtime(1536, Mode::Dsss(11_000_000)), Duration::from_micros(192 + 1118));
    }

    #[test]
    fn an_ad_hoc_network_in_2_4_ghz_has_no_short_slot() {
        let mut r = profile("dot11g-54m");
        assert_eq!((r.network, r.slot_us), (Network::AdHoc, 20));
        r.slot_us = 9;
        assert!(r
            .check()
            .unwrap_err()
            .to_string()
            .starts_with("key \"slot_us\": 9 us is the slot of an access point's"));
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

    fn refusal(name: &str, change: fn(&mut Radio)) -> String {
        let mut r = profile(name);
        change(&mut r);
        r.check().unwrap_err().to_string()
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
        let refusal = |change: fn(&mut Radio)| refusal("dot11a-54m", change);
        let wanted = "is not a list of one or more rates, the slowest first; sort it";
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
    fn combinations_that_do_not_work_name_the_key_and_the_remedy() {
        let refusal = |change: fn(&mut Radio)| refusal("dot11n-ht20", change);
        assert_eq!(refusal(|r| r.width_mhz = 30), "key \"width_mhz\": 30 is none of ht; give one of 20, 40");
        let minstrel = refusal(|r| r.rate_control = RateControl::Minstrel);
        assert!(
            minstrel.starts_with("key \"rate_control\": \"minstrel\" ") && minstrel.contains("take \"minstrel-ht\"")
        );
        let mut alone = profile("dot11n-ht20");
        (alone.rate_control, alone.aggregation) = (RateControl::Minstrel, Aggregation::Switch(false));
        assert!(alone.check().is_ok());
    }

    #[test]
    fn a_contention_window_that_is_no_power_of_two_minus_one_is_refused() {
        let mut r = profile("ns2-dsss-2m");
        r.cw_min = 30;
        assert_eq!(r.check().unwrap_err().to_string(), "key \"cw_min\": 30 is not 2^k - 1; give 15 or 31");
    }
}
